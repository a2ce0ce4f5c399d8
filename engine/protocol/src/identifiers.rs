//! Numbers with a meaning, so that a step can't be passed for an epoch.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// One committed engine transaction, numbered from 0 without gaps: the unit of consistency.
    Step(u64)
}
number! {
    /// One life of the cluster between changes of its processes.
    Epoch(u64)
}
number! {
    /// One life of a host's process, a random number: whoever starts again has another.
    Incarnation(u128)
}
number! {
    /// The place of a command in the epoch's global sequence, from 0 without gaps.
    CommandNumber(u64)
}
number! {
    /// One circuit; a replacement starts the next.
    Generation(u64)
}
number! {
    /// A host's place in the layout, from 0.
    HostId(u32)
}
number! {
    /// A table's or view's number (its PostgreSQL OID): never used again, never a name.
    RelationId(u32)
}
number! {
    /// A version of the catalog; every accepted change makes the next.
    CatalogVersion(u64)
}
number! {
    /// A lease's number, chosen by the client that asks for it.
    LeaseId(u128)
}
number! {
    /// A transaction's number, chosen by the client that opens it.
    TransactionId(u128)
}

impl Epoch {
    /// The epoch after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl Step {
    /// The step after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl CommandNumber {
    /// The command after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl Generation {
    /// The circuit after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl CatalogVersion {
    /// The version after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// The part of every relation that one worker of one host holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Shard {
    /// The host.
    pub host: HostId,
    /// The worker's place on that host, from 0.
    pub worker: u32,
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.worker)
    }
}

/// Names one frame: a step of one epoch. A step alone says nothing once epochs have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FrameId {
    /// The epoch.
    pub epoch: Epoch,
    /// The step.
    pub step: Step,
}
