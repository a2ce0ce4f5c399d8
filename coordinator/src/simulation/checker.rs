//! The judge. It knows what was asked, answered, sent and made, and what the promises are; it knows
//! nothing of how the machine keeps them.

mod answers;
mod epochs;
mod filling;
mod history;
mod leases;
mod reservations;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use stillframe_protocol::{
    Action, CatalogVersion, Command, CommandNumber, CoordinatorError, Epoch, FrameId, Grant,
    HostId, Incarnation, LeaseId, Step, TransactionId,
};

use self::filling::Filling;
use self::history::History;
use self::leases::Leases;
use self::reservations::Reservations;
use super::bank::{Contents, Write};
use crate::machine::{Answer, Request, Ticket};

/// All that is known, and the first promise that was broken.
pub(super) struct Checker {
    pub(super) violation: Option<String>,
    /// Whether a host has failed for good, so that everybody may be told so.
    pub(super) failed: bool,
    /// Whether hosts are processes, so that whoever meets the end of an epoch is told so.
    begins_anew: bool,
    hosts: u32,
    accounts: u64,
    /// The epoch that began last.
    epoch: Option<Epoch>,
    /// Whether it lives.
    lives: bool,
    /// The newest epoch that was told to the coordinator in this life.
    told: Epoch,
    /// The hosts of the epoch that began last.
    members: BTreeMap<HostId, Incarnation>,
    /// Those that can't be part of another epoch, as this life of the coordinator knows.
    used: BTreeSet<Incarnation>,
    /// What epochs that have ended had to show.
    past: BTreeMap<Epoch, History>,
    /// The newest step that each host has made.
    made: Vec<Option<Step>>,
    /// The last command that each host has executed.
    done: Vec<Option<CommandNumber>>,
    filling: Filling,
    asked: BTreeMap<Ticket, Request>,
    cancelled: BTreeSet<Ticket>,
    /// The newest step that a client was told of: no later lease is older.
    acknowledged: Option<Step>,
    acknowledged_when_asked: BTreeMap<Ticket, (Option<Epoch>, Option<Step>)>,
    history: History,
    leases: Leases,
    reservations: Reservations,
    /// How often what was seen, so that nobody believes in a simulation in which nothing happens.
    pub(super) tally: BTreeMap<&'static str, u64>,
}

impl Checker {
    pub(super) fn new(hosts: u32, accounts: u64, begins_anew: bool) -> Self {
        Self {
            violation: None,
            failed: false,
            begins_anew,
            hosts,
            accounts,
            epoch: None,
            lives: false,
            told: Epoch(0),
            members: BTreeMap::new(),
            used: BTreeSet::new(),
            past: BTreeMap::new(),
            made: vec![None; hosts as usize],
            done: vec![None; hosts as usize],
            filling: Filling::default(),
            asked: BTreeMap::new(),
            cancelled: BTreeSet::new(),
            acknowledged: None,
            acknowledged_when_asked: BTreeMap::new(),
            history: History::new(accounts),
            leases: Leases::default(),
            reservations: Reservations::default(),
            tally: BTreeMap::new(),
        }
    }

    /// Notes a broken promise, unless this holds.
    pub(super) fn expect(&mut self, holds: bool, promise: impl FnOnce() -> String) {
        if !holds && self.violation.is_none() {
            self.violation = Some(promise());
        }
    }

    fn count(&mut self, what: &'static str) {
        *self.tally.entry(what).or_default() += 1;
    }

    pub(super) fn check(&mut self, checked: Result<(), String>) {
        if let Err(violation) = checked {
            self.expect(false, || violation);
        }
    }

    /// The newest step that all hosts have made.
    fn made_by_all(&self) -> Option<Step> {
        self.made.iter().copied().min().flatten()
    }

    // What happens at the machine.

    /// The machine is asked.
    pub(super) fn asked(&mut self, ticket: Ticket, request: &Request) {
        self.asked.insert(ticket, request.clone());
        self.acknowledged_when_asked.insert(ticket, (self.epoch, self.acknowledged));
        match request {
            Request::Reserve(reserve) => self.reservations.asked(ticket, reserve),
            Request::Commit { transaction, epoch, staged_on } => {
                let waits = self.lives(*epoch) && self.history.entered(*transaction).is_none();
                if waits && !staged_on.is_empty() {
                    self.filling.asked(*transaction);
                }
                if let Some(history) = self.history_of(*epoch) {
                    history.commit_asked(*transaction);
                }
            }
            Request::Change(change) => self.history.commit_asked(change.transaction),
            _ => {}
        }
    }

    /// Nobody waits for an answer any more. Reservations must not be answered then; anything else
    /// may be.
    pub(super) fn cancelled(&mut self, ticket: Ticket) {
        if let Some(Request::Reserve(_)) = self.asked.get(&ticket) {
            self.asked.remove(&ticket);
            self.reservations.gave_up(ticket);
        }
        self.count("waits given up");
        self.cancelled.insert(ticket);
    }

    /// The machine hears that a lease isn't needed.
    pub(super) fn released(&mut self, lease: LeaseId) {
        self.leases.ended(lease);
    }

    /// The machine hears that a transaction is given up.
    pub(super) fn aborted(&mut self, transaction: TransactionId) {
        if self.history.aborted(transaction) {
            self.reservations.ended(transaction);
        }
    }

    /// The machine sends a command.
    pub(super) fn sent(&mut self, command: &Arc<Command>) {
        if let Some(what) = kind_of(&command.action) {
            self.count(what);
        }
        let current = self.epoch;
        self.expect(Some(command.epoch) == current, || {
            format!("a command of epoch {} is sent in {current:?}", command.epoch)
        });
        let all_done = self.done.iter().all(|done| *done == self.done[0]);
        let sent = self.history.sent(command, all_done);
        let is_new = sent == Ok(true);
        self.check(sent.map(|_| ()));
        if is_new {
            let fair = self.filling.sent(&command.action);
            self.check(fair);
        }
    }

    // What happens at the hosts.

    /// A host has made a step.
    pub(super) fn made(
        &mut self,
        epoch: Option<Epoch>,
        host: HostId,
        done: Option<CommandNumber>,
        step: Option<Step>,
        filling: Option<stillframe_protocol::Filling>,
    ) {
        if epoch != self.epoch {
            return;
        }
        self.made[host.0 as usize] = step;
        self.done[host.0 as usize] = done;
        self.filling.reported(host, filling);
        if let Some(step) = self.made_by_all() {
            for transaction in self.history.entered_up_to(step) {
                self.reservations.ended(transaction);
            }
        }
    }

    /// A host keeps these frames.
    pub(super) fn keeps(
        &mut self,
        now: Duration,
        epoch: Option<Epoch>,
        host: HostId,
        frames: &[Step],
    ) {
        if !self.lives || epoch != self.epoch {
            return;
        }
        let kept = self.leases.are_kept(now, host, frames);
        self.check(kept);
    }

    /// A host doesn't have a frame that a client wants to read.
    pub(super) fn frame_gone(&mut self, now: Duration, lease: LeaseId, frame: FrameId) {
        self.count("frames gone");
        let FrameId { epoch, step } = frame;
        if !self.lives(epoch) {
            return;
        }
        let must_live = self.leases.must_live(now, lease);
        self.expect(!must_live, || format!("lease {lease} lives, its step {step} is gone"));
    }

    // What clients see.

    /// A client is granted a lease.
    pub(super) fn leased(&mut self, grant: &Grant) {
        if self.epoch == Some(grant.epoch) {
            let defined = self.history.defines_all(grant);
            self.check(defined);
        }
    }

    /// A client has read a whole frame.
    pub(super) fn read(&mut self, frame: FrameId, contents: &Contents) {
        self.count("frames read");
        if let Some(history) = self.history_of(frame.epoch) {
            let read = history.reads(frame.step, contents);
            self.check(read);
        }
    }

    /// A client stages these writes.
    pub(super) fn stages(&mut self, transaction: TransactionId, epoch: Epoch, writes: &[Write]) {
        if let Some(history) = self.history_of(epoch) {
            history.staged(transaction, writes);
        }
    }

    /// A client begins to define something, or to take it away.
    pub(super) fn defines(&mut self, item: u32) {
        self.history.defines(item);
    }

    /// A client has defined something, or taken it away.
    pub(super) fn defined(&mut self, base: CatalogVersion, item: u32, present: bool, step: Step) {
        // Versions are told apart by their epochs.
        if self.history.knows_catalog(base) {
            self.history.defined(item, present, step);
        }
    }

    /// A client gets an answer that isn't what it asked for.
    pub(super) fn refused(&mut self, answer: &Answer) {
        let lost =
            matches!(answer, Err(CoordinatorError::NotReady(_) | CoordinatorError::Unknown(_)));
        let failed = matches!(answer, Err(CoordinatorError::Failed(_)));
        let expected = if self.begins_anew { lost } else { self.failed && failed };
        self.expect(expected, || format!("a client is answered {answer:?}"));
    }

    /// All is over: what is left?
    pub(super) fn finish(&mut self) {
        let mut unanswered = std::mem::take(&mut self.asked);
        unanswered.retain(|ticket, _| !self.cancelled.contains(ticket));
        self.expect(unanswered.is_empty(), || format!("never answered: {unanswered:?}"));
    }
}

/// What a command counts as.
fn kind_of(action: &Action) -> Option<&'static str> {
    match action {
        Action::Advance { .. } => None,
        Action::Replace { .. } => Some("replacements sent"),
        Action::ReplaceOnline { .. } => Some("online replacements sent"),
        Action::Pump { .. } => Some("pumps sent"),
        Action::Cutover { .. } => Some("cutovers sent"),
    }
}
