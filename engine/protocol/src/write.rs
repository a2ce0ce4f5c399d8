//! What a transaction writes, and what it reserves so that nobody else does.

use arrow::record_batch::RecordBatch;
use serde::{Deserialize, Serialize};

use crate::{Epoch, RelationId, Table, TransactionId};

/// Exact changes of one table: what is retracted is there, what is inserted isn't.
#[derive(Clone, Debug)]
pub struct Changes {
    /// The table.
    pub relation: RelationId,
    /// Rows of the table's stored schema.
    pub rows: RecordBatch,
    /// By row, how many copies are added (positive) or taken away (negative).
    pub weights: Vec<i64>,
}

/// Asks a host to hold changes until their transaction enters a step.
///
/// Sent by a front end before the transaction commits. `sequence` makes it idempotent: a host
/// passes over one it has seen.
#[derive(Clone, Debug)]
pub struct Staging {
    /// The epoch of the transaction.
    pub epoch: Epoch,
    /// The transaction.
    pub transaction: TransactionId,
    /// Counts the transaction's stagings on this host, from 0.
    pub sequence: u64,
    /// What it changes.
    pub changes: Vec<Changes>,
    /// The tables among those that it changes which no circuit has yet: the transaction's own change
    /// of the catalog adds them, and its changes enter with that.
    pub tables: Vec<Table>,
}

/// Something a transaction can reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Lockable {
    /// A whole relation.
    Relation(RelationId),
    /// One key of one constraint of a relation, by a stable hash. Constraint 0 is the primary key,
    /// or the row itself where there is none. Two keys with one hash only wait for each other.
    Key {
        /// The relation.
        relation: RelationId,
        /// The constraint.
        constraint: u32,
        /// The key's hash.
        hash: u64,
    },
}

/// How something is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Mode {
    /// Together with other shared reservations.
    Shared,
    /// Alone.
    Exclusive,
}

/// One reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Entry {
    /// What.
    pub lockable: Lockable,
    /// How.
    pub mode: Mode,
}
