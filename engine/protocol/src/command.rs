//! The collective actions of an epoch, and the report a host makes of itself.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{CommandNumber, Epoch, Generation, HostId, Incarnation, Program, Step, TransactionId};

/// Makes a host part of an epoch.
///
/// Sent by the coordinator before any command of the epoch. A host that is part of this epoch
/// already just reports; one that is part of a newer epoch, or of another incarnation, refuses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activation {
    /// The epoch.
    pub epoch: Epoch,
    /// The host's place.
    pub host: HostId,
    /// The life of the host's process that is meant.
    pub incarnation: Incarnation,
    /// How many workers each host runs, by place. All are alike.
    pub workers: Vec<u32>,
}

/// One entry of the epoch's global sequence.
///
/// Sent by the coordinator to every host, in the order of `number`, each only after all hosts have
/// reported the one before. Immutable once sent. The receiver executes it once, and reports when it
/// is done; asked again, it reports again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// The epoch.
    pub epoch: Epoch,
    /// Its place in the sequence.
    pub number: CommandNumber,
    /// What must be kept from now on.
    pub retention: Retention,
    /// What is to be done.
    pub action: Action,
}

/// What a command does. Every action but [`Action::Pump`] makes exactly one step.
///
/// # A circuit is replaced while steps go on
///
/// ```text
/// ReplaceOnline  step 7   the new circuit goes on with the relations there were; what is new is
///                         empty and can't be read
/// Advance        step 8   the relations there were move; what is new has to catch up later
/// Pump                    fills what is new by a bounded amount; no step
/// Advance        step 9   ..and so on, until every host reports that all is filled
/// Cutover        step 10  what is new can be read from here on
/// ```
///
/// A host that can't fill what is new while the relations there were go on says so in its report of
/// the `ReplaceOnline`, of which it has made the step with the old circuit: [`Filling::Refused`].
/// All hosts say the same, since it is a matter of the program alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// Feed what these transactions have staged, compute, publish the frame.
    Advance {
        /// The step that this makes.
        step: Step,
        /// The step's clock: microseconds since 1970-01-01 UTC; never goes back.
        clock_us: i64,
        /// The transactions that enter, in this order. A host on which one has staged nothing
        /// feeds nothing of it.
        transactions: Vec<TransactionId>,
    },
    /// Put a new circuit in the place of the old one: keep the state of what both compute, fill
    /// what is new from it, publish the frame. Frames of the old circuit stay readable.
    Replace {
        /// The step that this makes.
        step: Step,
        /// The step's clock: microseconds since 1970-01-01 UTC.
        clock_us: i64,
        /// The new circuit's number.
        generation: Generation,
        /// What the new circuit computes.
        program: Arc<Program>,
        /// Where each host's part of the new circuit is reached, by place.
        exchange: Vec<SocketAddr>,
        /// Whether the frame shows what the old circuit has made, all of it and nothing else. The
        /// next command is an [`Action::Advance`], which feeds what the transactions have staged
        /// that have changed the catalog, and shows both.
        is_hidden: bool,
    },
    /// Put a new circuit in the place of the old one, which computes all that the old one does and
    /// more. Keep the state of what both compute and publish the frame of that; begin to fill what
    /// is new. Legal while nothing is being filled.
    ReplaceOnline {
        /// The step that this makes.
        step: Step,
        /// The step's clock: microseconds since 1970-01-01 UTC.
        clock_us: i64,
        /// The new circuit's number; if it is refused, the number is not used up.
        generation: Generation,
        /// What the new circuit computes.
        program: Arc<Program>,
        /// Where each host's part of the new circuit is reached, by place.
        exchange: Vec<SocketAddr>,
    },
    /// Go on with filling what is new, by so much, the last time until it has caught up with the
    /// steps made meanwhile; on a host that has filled everything, take part
    /// for the sake of the others. Legal while something is being filled.
    Pump {
        /// The newest step, which this leaves as it is.
        step: Step,
        /// Counts the pumps of one replacement, from 0.
        number: u64,
        /// How many slices of work, the same on all hosts. One slice holds a step up by as much as
        /// it takes, so that it should be some milliseconds.
        slices: u32,
    },
    /// Publish the frame of everything, also of what was filled. Legal when every host has reported that all is filled.
    Cutover {
        /// The step that this makes.
        step: Step,
        /// The step's clock: microseconds since 1970-01-01 UTC.
        clock_us: i64,
    },
}

impl Action {
    /// The newest step once the action is done: the one that it makes, if it makes one.
    pub fn step(&self) -> Step {
        match self {
            Self::Advance { step, .. }
            | Self::Replace { step, .. }
            | Self::ReplaceOnline { step, .. }
            | Self::Pump { step, .. }
            | Self::Cutover { step, .. } => *step,
        }
    }

    /// Whether the action makes a step.
    pub fn makes_step(&self) -> bool {
        !matches!(self, Self::Pump { .. })
    }

    /// The clock of the step that the action makes.
    pub fn clock_us(&self) -> Option<i64> {
        match self {
            Self::Advance { clock_us, .. }
            | Self::Replace { clock_us, .. }
            | Self::ReplaceOnline { clock_us, .. }
            | Self::Cutover { clock_us, .. } => Some(*clock_us),
            Self::Pump { .. } => None,
        }
    }
}

/// How far a host is with what is new in its circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Filling {
    /// It can't be filled while the relations there were go on. The old circuit is in place.
    Refused,
    /// There is more to fill.
    Goes {
        /// So many changes were made meanwhile, which the last pump has to catch up with.
        recorded: u64,
    },
    /// All is filled.
    Done {
        /// As while it goes on.
        recorded: u64,
    },
}

/// Which frames a host must keep: every pinned one, and every one from `common` on.
///
/// Travels in every command and alone. One with a lower `sequence` than the last is stale and is
/// passed over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    /// Grows with every retention of the epoch.
    pub sequence: u64,
    /// The newest step that every host has completed, if there is one.
    pub common: Option<Step>,
    /// The steps that a lease holds.
    pub pinned: BTreeSet<Step>,
}

impl Retention {
    /// Whether a frame of this step must be kept.
    pub fn keeps(&self, step: Step) -> bool {
        self.common.is_none_or(|common| step >= common) || self.pinned.contains(&step)
    }
}

/// A host's whole status. The newest one replaces all before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Whose.
    pub host: HostId,
    /// The epoch the host is part of.
    pub epoch: Epoch,
    /// The last command it has executed.
    pub done: Option<CommandNumber>,
    /// The newest step it has completed.
    pub step: Option<Step>,
    /// The number its next circuit will have, and where its part of that circuit is reached: the
    /// listener is up already.
    pub exchange: (Generation, SocketAddr),
    /// How long the last command took, in microseconds.
    pub took_us: u64,
    /// How far it is with what is new in its circuit; none if nothing is being filled. After a
    /// [`Action::ReplaceOnline`] that it had to refuse, it says so until the next command.
    #[serde(default)]
    pub filling: Option<Filling>,
    /// The first moment at which a row comes or goes by the clock alone, in microseconds since
    /// 1970-01-01 UTC: a step whose clock shows it is owed. None if there is no such row.
    #[serde(default)]
    pub due_us: Option<i64>,
}
