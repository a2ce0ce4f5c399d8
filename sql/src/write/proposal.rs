//! What a statement would do, as one frame has it.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use arrow::compute::concat_batches;
use arrow::record_batch::RecordBatch;
use stillframe_protocol::{Entry, RelationId};

use super::staging::ExactChanges;
use super::unique::Uniqueness;
use super::{Rows, Target};
use crate::query::Given;
use crate::{Error, Frame, OutputColumn, SqlState};

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

/// Refuses two statements that change the same row: which of them does so isn't told.
fn refuse_shared(target: &Target, writes: &[TableWrite]) -> Result<(), Error> {
    let encoder = target.key_encoder()?;
    let mut seen: HashSet<Box<[u8]>> = HashSet::new();
    for write in writes.iter().filter(|_| writes.len() > 1) {
        let rows = encoder.encode(&write.old)?;
        if rows.iter().any(|row| seen.contains(row.data())) {
            let message = "changing a row twice in one statement is not supported";
            return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        seen.extend(rows.iter().map(|row| Box::from(row.data())));
    }
    Ok(())
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

    /// What several statements would do, as one. No two of them may change the same row.
    pub(crate) fn together(proposals: Vec<Self>) -> Result<Self, Error> {
        let mut whole = Self::nothing();
        let mut tables: BTreeMap<RelationId, Vec<TableWrite>> = BTreeMap::new();
        for mut proposal in proposals {
            whole.entries.append(&mut proposal.entries);
            for write in proposal.writes {
                tables.entry(write.target.id()).or_default().push(write);
            }
        }
        for writes in tables.into_values() {
            let Some(target) = writes.first().map(|write| write.target.clone()) else { continue };
            refuse_shared(&target, &writes)?;
            let all = |part: &dyn Fn(&TableWrite) -> RecordBatch| {
                let batches: Vec<_> = writes.iter().map(part).collect();
                concat_batches(target.schema(), &batches)
                    .map_err(|error| Error::internal(error.to_string()))
            };
            let rest = |rows: &RecordBatch, from: usize| rows.slice(from, rows.num_rows() - from);
            let rows = Rows {
                updated: Some((
                    all(&|write| write.old.slice(0, write.updated))?,
                    all(&|write| write.new.slice(0, write.updated))?,
                )),
                inserted: Some(all(&|write| rest(&write.new, write.updated))?),
                deleted: Some(all(&|write| rest(&write.old, write.updated))?),
            };
            let mut proposal = Self::write(&target, rows)?;
            whole.entries.append(&mut proposal.entries);
            whole.uniqueness.append(&mut proposal.uniqueness);
            whole.writes.append(&mut proposal.writes);
        }
        whole.entries.sort_unstable();
        whole.entries.dedup();
        Ok(whole)
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
