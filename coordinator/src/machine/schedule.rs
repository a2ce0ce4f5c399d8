//! Whose turn it is.
//!
//! Committed transactions and changes of the catalog take turns, and so do transactions and the
//! pumps of a job that fills what is new: neither keeps the other out. While the job is behind by
//! more than the budget, transactions get fewer turns, so that they can't add to it faster than it
//! is worked off, and the cutover stays short. The end of a job goes first: it is waited for by
//! those who asked for it, and ends the recording.

use super::{Defect, breaks};

/// While what is new is far behind, so many pumps are made for each step.
pub(crate) const PUMPS_PER_STEP_SLOW: u32 = 4;

/// Whose turn it is if more than one waits.
#[derive(Debug)]
pub(super) struct Schedule {
    defect: Defect,
    turn: Kind,
    /// The pumps since the last step of transactions.
    pumps: u32,
}

/// What can be waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A step for committed transactions.
    Transactions,
    /// A command for changes of the catalog.
    Changes,
}

/// What the changes of the catalog need next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Nothing.
    Nothing,
    /// A job can begin.
    Begin,
    /// Something is to be filled.
    Pump {
        /// Whether it is far behind.
        slow: bool,
    },
    /// The job can take effect.
    Conclude,
}

impl Schedule {
    pub(super) fn new(defect: Defect) -> Self {
        Self { defect, turn: Kind::Transactions, pumps: 0 }
    }

    /// Something arrives where nothing of either kind has waited.
    pub(super) fn first(&mut self, kind: Kind) {
        self.turn = kind;
    }

    /// What is next, if anything is.
    pub(super) fn next(&mut self, transactions: bool, need: Need) -> Option<Kind> {
        let kind = match (transactions, need) {
            (false, Need::Nothing) => return None,
            (true, Need::Nothing) => Kind::Transactions,
            (false, _) | (true, Need::Conclude) => Kind::Changes,
            (true, Need::Begin) => self.turn,
            (true, Need::Pump { .. }) if breaks!(self.defect, StarvesPumps) => Kind::Transactions,
            (true, Need::Pump { .. }) if breaks!(self.defect, StarvesSteps) => Kind::Changes,
            (true, Need::Pump { slow }) => {
                let slow = slow && !breaks!(self.defect, IgnoresBacklog);
                let due = if slow { PUMPS_PER_STEP_SLOW } else { 1 };
                if self.pumps >= due { Kind::Transactions } else { Kind::Changes }
            }
        };
        match kind {
            Kind::Transactions => (self.turn, self.pumps) = (Kind::Changes, 0),
            Kind::Changes => {
                self.turn = Kind::Transactions;
                self.pumps = self.pumps.saturating_add(1);
            }
        }
        Some(kind)
    }
}
