//! What a host reads of a relation after a step.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use dbsp::trace::BatchReader as _;
use dbsp::typed_batch::{BatchReader as _, SpineSnapshot};
use dbsp::{OrdIndexedZSet, OrdZSet, ZWeight};
use stillframe_protocol::RowError;

use super::publish::Published;
use crate::row::{Codec, Row};

/// A relation of a circuit, on one host.
#[derive(Clone, Debug)]
pub struct RelationOutput {
    codec: Arc<Codec>,
    key_columns: usize,
    rows: Published<Snapshot>,
    errors: Vec<Published<ErrorCounts>>,
}

/// How many rows raise each error, on one worker.
pub(crate) type ErrorCounts = Arc<BTreeMap<RowError, ZWeight>>;

impl RelationOutput {
    pub(crate) fn new(
        codec: Arc<Codec>,
        key_columns: usize,
        rows: Published<Snapshot>,
        errors: Vec<Published<ErrorCounts>>,
    ) -> Self {
        Self { codec, key_columns, rows, errors }
    }

    /// How the relation's rows are encoded.
    pub fn codec(&self) -> &Arc<Codec> {
        &self.codec
    }

    /// How many leading columns are the key of [`Snapshot::Keyed`]; 0 for a [`Snapshot::Set`].
    pub fn key_columns(&self) -> usize {
        self.key_columns
    }

    /// Whether each of the host's workers has its part.
    pub fn is_complete(&self, workers: usize) -> bool {
        (0..workers).all(|worker| self.rows.get(worker).is_some())
    }

    /// The part of the relation that one of the host's workers (from 0) holds after the last step.
    /// None before the first step of the circuit.
    pub fn shard(&self, worker: usize) -> Option<ShardSnapshot> {
        let rows = self.rows.get(worker)?;
        let errors = self.errors.iter().filter_map(|errors| errors.get(worker)).collect();
        Some(ShardSnapshot { rows, errors })
    }
}

/// One worker's part of a relation at one step. Cheap to clone, and it never changes.
#[derive(Clone, Debug)]
pub struct ShardSnapshot {
    /// The rows.
    pub rows: Snapshot,
    errors: Vec<ErrorCounts>,
}

impl ShardSnapshot {
    /// The errors that rows raise here in the view or in one that it reads, each once, and at most
    /// so many.
    pub fn errors(&self, limit: usize) -> Vec<RowError> {
        let mut total = BTreeMap::<&RowError, ZWeight>::new();
        for (error, count) in self.errors.iter().flat_map(|counts| counts.iter()) {
            *total.entry(error).or_default() += count;
        }
        let raised = total.into_iter().filter(|(_, count)| *count != 0);
        raised.take(limit).map(|(error, _)| error.clone()).collect()
    }
}

/// The rows of a snapshot with their weights.
#[derive(Clone)]
pub enum Snapshot {
    /// Whole rows.
    Set(SpineSnapshot<OrdZSet<Row>>),
    /// Rows cut into key and rest: key and rest put together are a row.
    Keyed(SpineSnapshot<OrdIndexedZSet<Row, Row>>),
}

impl Snapshot {
    /// How many entries its batches have: the number of distinct rows, plus what isn't merged yet.
    pub fn entries(&self) -> usize {
        match self {
            Self::Set(rows) => rows.inner().len(),
            Self::Keyed(rows) => rows.inner().len(),
        }
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Snapshot({} entries)", self.entries())
    }
}
