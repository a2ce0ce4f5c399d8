//! How many rows make an operator fail, and how.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

use dbsp::circuit::GlobalNodeId;
use dbsp::storage::backend::{StorageError, StoragePath};
use dbsp::storage::file::to_bytes;
use dbsp::trace::aligned_deserialize;
use dbsp::{Runtime, ZWeight};
use feldera_storage::FileCommitter;
use stillframe_protocol::RowError;

use crate::circuit::output::ErrorCounts;
use crate::circuit::publish::Published;

/// The errors of one operator on one worker: the operator's state.
///
/// A row is taken away on the worker where it was added, so its entry cancels there. The book is in
/// memory; errors are meant to be few.
pub(crate) struct ErrorBook {
    counts: ErrorCounts,
    /// Whether readers don't see the counts yet.
    changed: bool,
    published: Published<ErrorCounts>,
}

impl ErrorBook {
    /// An empty book, and where its counts are published after each step.
    pub(crate) fn new() -> (Self, Published<ErrorCounts>) {
        let published = Published::shared();
        let book = Self { counts: Arc::default(), changed: true, published: published.clone() };
        (book, published)
    }

    pub(crate) fn add(&mut self, error: RowError, weight: ZWeight) {
        let counts = Arc::make_mut(&mut self.counts);
        let count = counts.entry(error.clone()).or_default();
        *count += weight;
        if *count == 0 {
            counts.remove(&error);
        }
        self.changed = true;
    }

    /// How many rows raise each error.
    pub(crate) fn counts(&self) -> &BTreeMap<RowError, ZWeight> {
        &self.counts
    }

    pub(crate) fn publish(&mut self) {
        if mem::take(&mut self.changed) {
            self.published.set(Arc::clone(&self.counts));
        }
    }

    pub(crate) fn clear(&mut self) {
        self.counts = Arc::default();
        self.changed = true;
    }

    pub(crate) fn swap(&mut self, other: &mut Self) {
        mem::swap(&mut self.counts, &mut other.counts);
        (self.changed, other.changed) = (true, true);
    }

    /// Writes the book into a checkpoint, also when it is empty: an operator without a file is a
    /// new one, and must be filled from the start.
    pub(crate) fn checkpoint(
        &self,
        base: &StoragePath,
        id: Option<&str>,
        node: &GlobalNodeId,
        files: &mut Vec<Arc<dyn FileCommitter>>,
    ) -> Result<(), dbsp::Error> {
        let entry = |(error, count): (&RowError, &ZWeight)| {
            (error.sqlstate.clone(), error.message.clone(), *count)
        };
        let entries: Vec<(String, String, i64)> = self.counts.iter().map(entry).collect();
        let bytes = to_bytes(&entries).expect("text and numbers are serialisable");
        files.push(Runtime::storage_backend()?.write(&file(base, id, node)?, bytes)?);
        Ok(())
    }

    pub(crate) fn restore(
        &mut self,
        base: &StoragePath,
        id: Option<&str>,
        node: &GlobalNodeId,
    ) -> Result<(), dbsp::Error> {
        let bytes = Runtime::storage_backend()?.read(&file(base, id, node)?)?;
        let entries: Vec<(String, String, i64)> = aligned_deserialize(&bytes);
        let entry = |(sqlstate, message, count)| (RowError { sqlstate, message }, count);
        self.counts = Arc::new(entries.into_iter().map(entry).collect::<BTreeMap<_, _>>());
        self.changed = true;
        // New views may read what this operator has booked before it runs again.
        self.publish();
        Ok(())
    }
}

fn file(
    base: &StoragePath,
    id: Option<&str>,
    node: &GlobalNodeId,
) -> Result<StoragePath, StorageError> {
    let id = id.ok_or_else(|| StorageError::NoPersistentId(node.to_string()))?;
    Ok(base.clone().join(format!("errors-{id}.dat")))
}
