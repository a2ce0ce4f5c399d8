//! The one sequence of commands, one at a time.
//!
//! A command is sent to all hosts when all have reported the one before, and never changes. Every
//! command makes the next step; the step is common when the last host has reported it. What comes
//! while one is under way waits and shares the next: all transactions one `Advance`, all changes of
//! the catalog one `Replace`. No command is sent for nothing.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use stillframe_protocol::{
    Action, CatalogSnapshot, Command, CommandNumber, Epoch, Generation, HostId, Program, Report,
    Retention, Step, TransactionId,
};

use super::{Defect, Now, breaks};

/// The commands of an epoch: those that were made, the one under way and what waits for the next.
#[derive(Debug)]
pub(super) struct Sequence {
    epoch: Epoch,
    defect: Defect,
    next: CommandNumber,
    generation: Generation,
    clock_us: i64,
    common: Option<Step>,
    in_flight: Option<InFlight>,
    transactions: Vec<TransactionId>,
    changes: Vec<TransactionId>,
    turn: Turn,
}

/// Whose turn it is when both wait.
#[derive(Clone, Copy, Debug)]
enum Turn {
    Transactions,
    Changes,
}

/// A command under way.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) command: Arc<Command>,
    pub(super) cargo: Cargo,
    pub(super) clock_us: i64,
    pub(super) sent_at: Duration,
    awaited: BTreeSet<HostId>,
}

/// For whom a command is made.
#[derive(Clone, Debug)]
pub(super) enum Cargo {
    /// Their changes enter.
    Transactions(Vec<TransactionId>),
    /// Their changes of the catalog take effect.
    Changes { transactions: Vec<TransactionId>, catalog: CatalogSnapshot, program: Arc<Program> },
}

impl Cargo {
    pub(super) fn transactions(&self) -> &[TransactionId] {
        match self {
            Self::Transactions(transactions) | Self::Changes { transactions, .. } => transactions,
        }
    }
}

/// What waits and is next.
pub(super) enum Waiting {
    Transactions(Vec<TransactionId>),
    Changes(Vec<TransactionId>),
}

/// What the newest command is to do.
pub(super) enum Work {
    /// Make a step of staged changes.
    Advance,
    /// Make a step with a new circuit.
    Replace { program: Arc<Program>, exchange: Vec<SocketAddr> },
}

/// What a report amounts to.
pub(super) enum Progress {
    /// Nothing new.
    None,
    /// The step is common.
    Common(InFlight),
    /// The host did what it wasn't told to.
    Violation(String),
}

impl Sequence {
    pub(super) fn new(epoch: Epoch, defect: Defect) -> Self {
        Self {
            epoch,
            defect,
            next: CommandNumber(0),
            generation: Generation(0),
            clock_us: i64::MIN,
            common: None,
            in_flight: None,
            transactions: vec![],
            changes: vec![],
            turn: Turn::Transactions,
        }
    }

    /// The newest step that every host has made.
    pub(super) fn common(&self) -> Option<Step> {
        self.common
    }

    /// Whether a command is under way.
    pub(super) fn busy(&self) -> bool {
        self.in_flight.is_some()
    }

    /// The newest step that was sent.
    pub(super) fn newest(&self) -> Option<Step> {
        self.in_flight.as_ref().map(|flight| flight.command.action.step()).or(self.common)
    }

    /// The circuit that the next replacement makes.
    pub(super) fn next_generation(&self) -> Generation {
        self.generation.next()
    }

    /// Has a committed transaction wait for the next step.
    pub(super) fn push_transaction(&mut self, transaction: TransactionId) {
        if self.transactions.is_empty() && self.changes.is_empty() {
            self.turn = Turn::Transactions;
        }
        self.transactions.push(transaction);
    }

    /// Has an accepted change wait for a step of its own.
    pub(super) fn push_change(&mut self, transaction: TransactionId) {
        if self.transactions.is_empty() && self.changes.is_empty() {
            self.turn = Turn::Changes;
        }
        self.changes.push(transaction);
    }

    /// Takes what is next: all that wait of the kind that has waited longest, so that neither kind
    /// keeps the other out.
    pub(super) fn take_waiting(&mut self) -> Option<Waiting> {
        let turn = match (self.transactions.is_empty(), self.changes.is_empty()) {
            (true, true) => return None,
            (false, true) => Turn::Transactions,
            (true, false) => Turn::Changes,
            (false, false) => self.turn,
        };
        match turn {
            Turn::Transactions => {
                self.turn = Turn::Changes;
                Some(Waiting::Transactions(std::mem::take(&mut self.transactions)))
            }
            Turn::Changes => {
                self.turn = Turn::Transactions;
                Some(Waiting::Changes(std::mem::take(&mut self.changes)))
            }
        }
    }

    /// Whose changes are part of the command under way.
    pub(super) fn under_way(&self) -> &[TransactionId] {
        self.in_flight.as_ref().map_or(&[], |flight| flight.cargo.transactions())
    }

    /// The hosts that haven't reported the command under way.
    pub(super) fn awaited(&self) -> &BTreeSet<HostId> {
        const NOBODY: &BTreeSet<HostId> = &BTreeSet::new();
        self.in_flight.as_ref().map_or(NOBODY, |flight| &flight.awaited)
    }

    /// The committed transactions that wait for the next step.
    pub(super) fn waiting_transactions(&self) -> &[TransactionId] {
        &self.transactions
    }

    /// Forgets a committed transaction that waits for the next step.
    pub(super) fn withdraw(&mut self, transaction: TransactionId) {
        self.transactions.retain(|waiting| *waiting != transaction);
    }

    /// Makes the next command, which from now on is under way.
    pub(super) fn send(
        &mut self,
        now: Now,
        hosts: BTreeSet<HostId>,
        retention: Retention,
        work: Work,
        cargo: Cargo,
    ) -> Arc<Command> {
        assert!(self.in_flight.is_none(), "one command at a time");
        let step = self.common.map_or(Step(0), Step::next);
        self.clock_us = match breaks!(self.defect, FollowsWallClock) {
            true => now.wall_us,
            false => self.clock_us.max(now.wall_us),
        };
        let clock_us = self.clock_us;
        let action = match work {
            Work::Advance => {
                let transactions = match &cargo {
                    Cargo::Transactions(transactions) => transactions.clone(),
                    Cargo::Changes { .. } => vec![],
                };
                Action::Advance { step, clock_us, transactions }
            }
            Work::Replace { program, exchange } => {
                self.generation = self.generation.next();
                Action::Replace { step, clock_us, generation: self.generation, program, exchange }
            }
        };
        let command = Arc::new(Command { epoch: self.epoch, number: self.next, retention, action });
        self.next = self.next.next();
        self.in_flight = Some(InFlight {
            command: Arc::clone(&command),
            cargo,
            clock_us,
            sent_at: now.elapsed,
            awaited: hosts,
        });
        command
    }

    /// Learns how far a host is.
    pub(super) fn reported(&mut self, report: &Report) -> Progress {
        let Some(done) = report.done else { return Progress::None };
        if done >= self.next {
            return Progress::Violation(format!("it reports command {done}, which wasn't sent"));
        }
        let Some(flight) = &mut self.in_flight else { return Progress::None };
        if done != flight.command.number {
            return Progress::None;
        }
        let step = flight.command.action.step();
        if report.step != Some(step) {
            let reported = report.step.map_or("no step".into(), |step| format!("step {step}"));
            return Progress::Violation(format!(
                "it reports {reported} where command {done} makes step {step}",
            ));
        }
        flight.awaited.remove(&report.host);
        if !flight.awaited.is_empty() && !breaks!(self.defect, TrustsFirstReport) {
            return Progress::None;
        }
        self.common = Some(step);
        self.in_flight.take().map_or(Progress::None, Progress::Common)
    }

    /// Steps have no gaps: what is under way makes the step after the common one.
    pub(super) fn steps_have_no_gaps(&self) -> bool {
        self.in_flight.as_ref().is_none_or(|flight| {
            flight.command.action.step() == self.common.map_or(Step(0), Step::next)
        })
    }

    /// Commands have no gaps: as many were sent as there are steps.
    pub(super) fn every_command_makes_a_step(&self) -> bool {
        self.next.0 == self.newest().map_or(0, |step| step.0 + 1)
    }

    /// What is under way was made for somebody, or is the first.
    pub(super) fn no_step_is_empty(&self) -> bool {
        self.in_flight.as_ref().is_none_or(|flight| {
            flight.command.number == CommandNumber(0) || !flight.cargo.transactions().is_empty()
        })
    }
}
