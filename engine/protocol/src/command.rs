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

/// What a command does. Every action makes exactly one step.
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
    },
}

impl Action {
    /// The step that the action makes.
    pub fn step(&self) -> Step {
        match self {
            Self::Advance { step, .. } | Self::Replace { step, .. } => *step,
        }
    }
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
}
