//! The one sequence of commands, one at a time.
//!
//! A command is sent to all hosts when all have reported the one before, and never changes. Every
//! command but a pump makes the next step; the step is common when the last host has reported it.
//! Transactions that come while one is under way wait and share the next `Advance`. No command is
//! sent for nothing: a step without transactions is one at whose clock rows come or go.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use stillframe_protocol::{
    Action, Command, CommandNumber, Epoch, Generation, HostId, Program, Report, Retention, Step,
    TransactionId,
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
    /// How many steps were sent.
    steps: u64,
    in_flight: Option<InFlight>,
    transactions: Vec<TransactionId>,
}

/// A command under way.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) command: Arc<Command>,
    /// Whose changes enter or take effect with it.
    pub(super) transactions: Vec<TransactionId>,
    pub(super) sent_at: Duration,
    /// Whether it is an `Advance` that was sent because its clock changes something, whether or not
    /// there are transactions.
    pub(super) is_due: bool,
    awaited: BTreeSet<HostId>,
}

/// What the newest command is to do.
pub(super) enum Work {
    /// Make a step of what transactions have staged.
    Advance,
    /// The same, because a row comes or goes at this clock: there may be no transactions.
    AdvanceClock,
    /// Make a step in which only the catalog changes.
    Describe,
    /// Make a step with a new circuit, which may be hidden.
    Replace(Circuit, bool),
    /// The same, and begin to fill what is new.
    ReplaceOnline(Circuit),
    /// Go on with that.
    Pump { number: u64, slices: u32 },
    /// Make a step that shows what is new.
    Cutover,
}

/// A new circuit.
pub(super) struct Circuit {
    pub(super) program: Arc<Program>,
    pub(super) exchange: Vec<SocketAddr>,
}

/// What a report amounts to.
pub(super) enum Progress {
    /// Nothing new.
    None,
    /// The command is done, and its step common.
    Done(InFlight),
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
            steps: 0,
            in_flight: None,
            transactions: vec![],
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

    /// A new circuit has taken the place of the one before.
    pub(super) fn replaced(&mut self) {
        self.generation = self.generation.next();
    }

    /// Has a committed transaction wait for the next step.
    pub(super) fn push_transaction(&mut self, transaction: TransactionId) {
        self.transactions.push(transaction);
    }

    /// Takes out the transactions that wait for the next step.
    pub(super) fn take_transactions(&mut self) -> Vec<TransactionId> {
        std::mem::take(&mut self.transactions)
    }

    /// Whose changes are part of the command under way.
    pub(super) fn under_way(&self) -> &[TransactionId] {
        self.in_flight.as_ref().map_or(&[], |flight| &flight.transactions[..])
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
        transactions: Vec<TransactionId>,
    ) -> Arc<Command> {
        assert!(self.in_flight.is_none(), "one command at a time");
        let step = self.common.map_or(Step(0), Step::next);
        self.clock_us = match breaks!(self.defect, FollowsWallClock) {
            true => now.wall_us,
            false => self.clock_us.max(now.wall_us),
        };
        let (clock_us, generation) = (self.clock_us, self.generation.next());
        let is_due = matches!(work, Work::AdvanceClock);
        let action = match work {
            Work::Advance | Work::AdvanceClock => {
                let transactions = transactions.clone();
                Action::Advance { step, clock_us, transactions }
            }
            Work::Describe => Action::Advance { step, clock_us, transactions: vec![] },
            Work::Replace(Circuit { program, exchange }, is_hidden) => {
                Action::Replace { step, clock_us, generation, program, exchange, is_hidden }
            }
            Work::ReplaceOnline(Circuit { program, exchange }) => {
                Action::ReplaceOnline { step, clock_us, generation, program, exchange }
            }
            Work::Pump { number, slices } => {
                Action::Pump { step: self.common.unwrap_or_default(), number, slices }
            }
            Work::Cutover => Action::Cutover { step, clock_us },
        };
        self.steps += u64::from(action.makes_step());
        let command = Arc::new(Command { epoch: self.epoch, number: self.next, retention, action });
        self.next = self.next.next();
        self.in_flight = Some(InFlight {
            command: Arc::clone(&command),
            transactions,
            sent_at: now.elapsed,
            is_due,
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
        self.in_flight.take().map_or(Progress::None, Progress::Done)
    }

    /// Steps have no gaps: what is under way makes the step after the common one, or none.
    pub(super) fn steps_have_no_gaps(&self) -> bool {
        self.in_flight.as_ref().is_none_or(|flight| {
            let action = &flight.command.action;
            let next = Some(self.common.map_or(Step(0), Step::next));
            Some(action.step()) == if action.makes_step() { next } else { self.common }
        })
    }

    /// Every command but a pump makes a step: as many were sent as there are steps.
    pub(super) fn steps_are_those_of_commands(&self) -> bool {
        self.steps == self.newest().map_or(0, |step| step.0 + 1)
    }

    /// What is under way was made for somebody, or is the first, or makes no change that can be
    /// seen.
    pub(super) fn no_step_is_empty(&self) -> bool {
        self.in_flight.as_ref().is_none_or(|flight| {
            let unseen = matches!(
                flight.command.action,
                Action::ReplaceOnline { .. }
                    | Action::Pump { .. }
                    | Action::Replace { is_hidden: true, .. }
            );
            unseen
                || flight.is_due
                || flight.command.number == CommandNumber(0)
                || !flight.transactions.is_empty()
        })
    }

    /// The action under way.
    pub(super) fn action(&self) -> Option<&Action> {
        self.in_flight.as_ref().map(|flight| &flight.command.action)
    }
}
