//! What a statement would do, as one frame has it.

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use stillframe_protocol::Entry;

use super::Target;
use super::staging::ExactChanges;
use super::unique::Uniqueness;
use crate::query::Given;
use crate::{Error, Frame, OutputColumn};

/// What a statement would do, as one frame has it.
#[derive(Debug, Default)]
pub(crate) struct Proposal {
    /// What must be reserved, and unchanged since the frame, for this to be right.
    pub(crate) entries: Vec<Entry>,
    /// What must be true of the frame.
    pub(super) uniqueness: Vec<Uniqueness>,
    /// What changes of which table.
    pub(super) writes: Vec<TableWrite>,
    /// How many rows it is about, changed or not.
    pub(crate) rows: u64,
    /// The rows that the statement's RETURNING is about.
    pub(crate) given: Vec<Given>,
}

/// What changes of one table.
#[derive(Clone, Debug)]
pub(super) struct TableWrite {
    pub(super) target: Target,
    /// The exact changes; none if nothing changes.
    pub(super) changes: Option<ExactChanges>,
    /// Rows that go, as stored.
    pub(super) old: RecordBatch,
    /// Rows that come, as stored.
    pub(super) new: RecordBatch,
    /// How many of the first rows that go are those that come, changed.
    pub(super) updated: usize,
}

/// What a statement answers beside how many rows it was about.
#[derive(Clone, Debug)]
pub(crate) struct Returned {
    pub(crate) columns: Vec<OutputColumn>,
    pub(crate) batch: RecordBatch,
}

impl Proposal {
    /// Nothing to do.
    pub(crate) fn nothing() -> Self {
        Self::default()
    }

    /// The same, with the rows that RETURNING is about.
    pub(crate) fn giving(self, given: Vec<Given>) -> Self {
        Self { given, ..self }
    }

    /// Checks against the frame what can only be told when nobody else is about to write it.
    pub(super) async fn check(&self, frame: &Arc<Frame>) -> Result<(), Error> {
        let mut first: Option<(usize, Error)> = None;
        for uniqueness in &self.uniqueness {
            if let Some(found) = uniqueness.check(frame).await?
                && first.as_ref().is_none_or(|(turn, _)| found.0 < *turn)
            {
                first = Some(found);
            }
        }
        first.map_or(Ok(()), |(_, error)| Err(error))
    }
}
