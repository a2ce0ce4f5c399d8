//! Transactions that write: their reservations, and how they end.
//!
//! ```text
//!            reserve                  commit              common
//!  (unknown) -------> Open <-> Reserving ---> Committed ---------> outcome, history
//!                       '-- abort --> outcome
//! ```
//!
//! A transaction holds what it has reserved until the step that it enters is common, or until it is
//! aborted. Then what it wrote becomes history, and only then somebody else may hold it: so whoever
//! holds something sees in the history all that was written to it.

#[cfg(test)]
mod canaries;
mod deadlock;
mod ending;
mod history;
mod locks;
mod outcomes;
mod patience;
mod reserving;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use stillframe_protocol::{Entry, Step, TransactionId};

use self::history::History;
use self::locks::Locks;
use self::outcomes::Outcomes;
use super::multiset::Multiset;
use super::{Defect, Ticket, violated};

/// The open transactions, and what is remembered of those that ended.
#[derive(Debug)]
pub(super) struct Transactions {
    defect: Defect,
    open: BTreeMap<TransactionId, Transaction>,
    locks: Locks,
    history: History,
    outcomes: Outcomes,
    frames: Multiset<Step>,
    deadlines: BTreeSet<(Duration, TransactionId)>,
    tickets: BTreeMap<Ticket, TransactionId>,
}

/// A transaction that hasn't ended.
#[derive(Debug, Default)]
struct Transaction {
    phase: Phase,
    /// What it has seen, as it said last.
    frame: Option<Step>,
}

#[derive(Debug, Default)]
enum Phase {
    /// It thinks.
    #[default]
    Open,
    /// It waits for others.
    Reserving(Reserving),
    /// Its step is under way, or comes next; these wait for that.
    Committed(Vec<Waiting>),
}

/// Who waits for a step.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    ticket: Ticket,
    since: Duration,
}

/// A request for reservations under way.
#[derive(Debug)]
struct Reserving {
    ticket: Ticket,
    since: Duration,
    frame: Option<Step>,
    /// Ascending: two requests that want the same never wait for each other.
    entries: Vec<Entry>,
    /// Those before are held.
    next: usize,
    deadline: Option<Duration>,
}

/// When something happens, for reservations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) now: Duration,
    pub(super) common: Step,
}

impl Transactions {
    pub(super) fn new(defect: Defect) -> Self {
        Self {
            defect,
            open: BTreeMap::new(),
            locks: Locks::new(defect),
            history: History::new(defect),
            outcomes: Outcomes::default(),
            frames: Multiset::default(),
            deadlines: BTreeSet::new(),
            tickets: BTreeMap::new(),
        }
    }

    /// The oldest frame that an open transaction has named.
    pub(super) fn oldest_frame(&self) -> Option<Step> {
        self.frames.first()
    }

    /// Forgets the history that no frame from this step on needs.
    pub(super) fn trim_history(&mut self, oldest_frame: Step) {
        self.history.trim(oldest_frame);
    }

    fn set_frame(&mut self, transaction: TransactionId, frame: Option<Step>) {
        let open = self.open.entry(transaction).or_default();
        if let Some(old) = std::mem::replace(&mut open.frame, frame) {
            self.frames.remove(old);
        }
        if let Some(frame) = frame {
            self.frames.insert(frame);
        }
    }
}

impl Transactions {
    /// The invariants of this part that don't hold, by name.
    pub(super) fn violated(&self, common: Option<Step>) -> Vec<&'static str> {
        violated([
            ("exclusive holders are alone", self.locks.exclusive_holders_are_alone()),
            ("nobody waits for nothing", self.locks.nobody_waits_for_nothing()),
            ("nobody waits in a circle", self.locks.nobody_waits_in_a_circle()),
            ("holders and waiters are indexed", self.locks.holders_and_waiters_are_indexed()),
            ("history is common", self.history.history_is_common(common)),
            ("history can be trimmed", self.history.history_can_be_trimmed()),
            ("what waits can be found", self.what_waits_can_be_found()),
            ("frames are those of open transactions", self.frames_are_of_the_open()),
        ])
    }

    /// What is left over of transactions that have ended, by name.
    #[cfg(test)]
    pub(super) fn leftovers(&self) -> Vec<&'static str> {
        violated([
            ("transactions", self.open.is_empty()),
            ("reservations", self.locks.is_empty()),
            ("history", self.history.is_empty()),
        ])
    }

    /// Every request under way is found by its ticket and by its deadline, and nothing else is.
    fn what_waits_can_be_found(&self) -> bool {
        let reserving = self.open.iter().filter_map(|(id, open)| match &open.phase {
            Phase::Reserving(reserving) => Some((*id, reserving)),
            _ => None,
        });
        let (mut tickets, mut deadlines) = (BTreeMap::new(), BTreeSet::new());
        for (transaction, reserving) in reserving {
            tickets.insert(reserving.ticket, transaction);
            deadlines.extend(reserving.deadline.map(|deadline| (deadline, transaction)));
        }
        tickets == self.tickets && deadlines == self.deadlines
    }

    fn frames_are_of_the_open(&self) -> bool {
        let mut frames = Multiset::default();
        self.open.values().filter_map(|open| open.frame).for_each(|frame| frames.insert(frame));
        frames.counts().eq(self.frames.counts())
    }
}
