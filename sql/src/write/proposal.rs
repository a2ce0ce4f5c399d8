//! What a statement would do to one table, as one frame has it.

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use stillframe_protocol::Entry;

use super::staging::ExactChanges;
use super::{KeyEncoder, Target, existing_keys, unique_violation};
use crate::{Error, Frame};

/// What a statement would do, as one frame has it.
#[derive(Debug)]
pub(crate) struct Proposal {
    /// What must be reserved, and unchanged since the frame, for this to be right.
    pub(crate) entries: Vec<Entry>,
    /// What must be true of the frame.
    pub(crate) uniqueness: Option<Uniqueness>,
    /// The exact changes; none if nothing changes.
    pub(crate) changes: Option<ExactChanges>,
    /// The table that changes, if one does.
    pub(crate) target: Option<Target>,
    /// How many rows it is about, changed or not.
    pub(crate) rows: u64,
}

impl Proposal {
    /// Nothing to do.
    pub(crate) fn nothing() -> Self {
        Self { entries: vec![], uniqueness: None, changes: None, target: None, rows: 0 }
    }

    /// Checks against the frame what can only be told when nobody else is about to write it.
    pub(super) async fn check(&self, frame: &Arc<Frame>) -> Result<(), Error> {
        match &self.uniqueness {
            Some(uniqueness) => uniqueness.check(frame).await,
            None => Ok(()),
        }
    }
}

/// Keys that come, one row after the other, as PostgreSQL checks them.
#[derive(Debug)]
pub(crate) struct Uniqueness {
    pub(super) target: Target,
    pub(super) encoder: KeyEncoder,
    /// The keys that rows of the frame mustn't have, in the order in which rows come.
    pub(super) keys: RecordBatch,
    /// How many of them come before a row whose key the statement itself has used, if one does;
    /// and that row's key.
    pub(super) repeated: Option<(usize, RecordBatch)>,
}

impl Uniqueness {
    async fn check(&self, frame: &Arc<Frame>) -> Result<(), Error> {
        let checked = self.repeated.as_ref().map_or(self.keys.num_rows(), |(before, _)| *before);
        let keys = self.keys.slice(0, checked);
        let existing =
            existing_keys(frame, &self.target, &self.encoder, std::slice::from_ref(&keys)).await?;
        if !existing.is_empty() {
            let encoded = self.encoder.encode(&keys)?;
            for (row, key) in encoded.iter().enumerate() {
                if existing.contains(key.data()) {
                    return Err(unique_violation(&self.target, &keys, row));
                }
            }
        }
        match &self.repeated {
            Some((_, key)) => Err(unique_violation(&self.target, key, 0)),
            None => Ok(()),
        }
    }
}
