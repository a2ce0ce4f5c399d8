//! What clients did and saw.

/// A list's name.
pub(super) type Key = u32;
/// What is appended; no value comes twice.
pub(super) type Value = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    ReadCommitted,
    RepeatableRead,
}

impl Level {
    pub(super) fn sql(self) -> &'static str {
        match self {
            Self::ReadCommitted => "read committed",
            Self::RepeatableRead => "repeatable read",
        }
    }
}

/// What has become of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Committed,
    Aborted,
}

/// What a transaction did.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Append(Key, Value),
    /// One statement: when it began, and what it saw.
    Read(u64, Vec<(Key, Vec<Value>)>),
}

/// A transaction. Times are of a clock that all clients share.
#[derive(Clone, Debug)]
pub(super) struct Transaction {
    /// Before it was begun.
    pub(super) begun: u64,
    /// After its end was acknowledged.
    pub(super) ended: u64,
    pub(super) outcome: Outcome,
    pub(super) acts: Vec<Act>,
}
