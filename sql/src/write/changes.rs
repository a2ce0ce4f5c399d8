//! From rows that go and rows that come to exact changes, reservations and what must be unique.

use arrow::array::ArrayRef;
use arrow::compute::{concat_batches, interleave};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use stillframe_protocol::{Changes, Entry, Lockable, Mode};

use super::Target;
use super::keys::{KeyEncoder, entries, hash};
use super::proposal::{Proposal, TableWrite};
use super::staging::{Cuts, ExactChanges};
use super::unique::{PRIMARY, Turn, UniqueKey, Uniqueness};
use crate::Error;

/// What a statement does to the rows of one table. All are as stored.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// Rows of the frame that change, and what they become: equally many.
    pub(crate) updated: Option<(RecordBatch, RecordBatch)>,
    /// Rows that come.
    pub(crate) inserted: Option<RecordBatch>,
    /// Rows of the frame that go, each as often as it is given.
    pub(crate) deleted: Option<RecordBatch>,
}

impl Proposal {
    /// Rows come.
    pub(crate) fn insert(target: &Target, rows: RecordBatch) -> Result<Self, Error> {
        Self::write(target, Rows { inserted: Some(rows), ..Rows::default() })
    }

    /// Rows of the frame go, each as often as it is given.
    pub(crate) fn delete(target: &Target, rows: RecordBatch) -> Result<Self, Error> {
        Self::write(target, Rows { deleted: Some(rows), ..Rows::default() })
    }

    /// Rows of the frame change: `old[i]` becomes `new[i]`.
    pub(crate) fn update(
        target: &Target,
        old: RecordBatch,
        new: RecordBatch,
    ) -> Result<Self, Error> {
        Self::write(target, Rows { updated: Some((old, new)), ..Rows::default() })
    }

    /// All rows of the frame go; nobody else may write the table meanwhile.
    pub(crate) fn truncate(target: &Target, rows: RecordBatch) -> Self {
        let lockable = Lockable::Relation(target.id());
        let count = rows.num_rows() as u64;
        let changes = (count > 0).then(|| ExactChanges::deleted(target, rows));
        // Nobody refers to what is truncated, so no row of it has to be looked at.
        let none = RecordBatch::new_empty(target.schema().clone());
        let (old, new) = (none.clone(), none);
        Self {
            entries: vec![Entry { lockable, mode: Mode::Exclusive }],
            writes: vec![TableWrite { target: target.clone(), changes, old, new, updated: 0 }],
            rows: count,
            ..Self::default()
        }
    }

    /// Rows change, come and go.
    pub(crate) fn write(target: &Target, rows: Rows) -> Result<Self, Error> {
        let none = || RecordBatch::new_empty(target.schema().clone());
        let (before, after) = rows.updated.unwrap_or_else(|| (none(), none()));
        let updated = before.num_rows();
        let old = both(target, before, rows.deleted)?;
        let new = both(target, after, rows.inserted)?;
        let inserted = new.num_rows() - updated;
        let deleted = old.num_rows() - updated;
        if updated + inserted + deleted == 0 {
            return Ok(Self::nothing());
        }
        let turns = turns(target, &old, updated, inserted)?;
        let (hashes, others, uniqueness) = keys(target, &old, &new, &turns)?;
        let changes = match (updated, inserted, deleted) {
            (0, 0, _) => Some(ExactChanges::deleted(target, old.clone())),
            (0, _, 0) => Some(ExactChanges::inserted(target, new.clone())),
            _ => net(target, &old, &new)?,
        };
        Ok(Self {
            entries: entries(target.id(), hashes, others),
            uniqueness,
            writes: vec![TableWrite { target: target.clone(), changes, old, new, updated }],
            rows: (updated + inserted + deleted) as u64,
            given: vec![],
        })
    }
}

fn both(
    target: &Target,
    first: RecordBatch,
    second: Option<RecordBatch>,
) -> Result<RecordBatch, Error> {
    match second {
        None => Ok(first),
        Some(second) if first.num_rows() == 0 => Ok(second),
        Some(second) => concat_batches(target.schema(), [&first, &second]).map_err(broken),
    }
}

/// In which order rows change and come: those that change first, in the order of their keys, as if
/// they were stored so; then those that come, in their own.
fn turns(
    target: &Target,
    old: &RecordBatch,
    updated: usize,
    inserted: usize,
) -> Result<Vec<Turn>, Error> {
    let mut order: Vec<usize> = (0..updated).collect();
    if updated > 1 && target.is_keyed() {
        let keys = target.key_encoder()?.encode(old)?;
        order.sort_by(|left, right| keys.row(*left).cmp(&keys.row(*right)));
    }
    let gone = (updated..old.num_rows()).map(|row| (Some(row), None));
    let changed = order.into_iter().map(|row| (Some(row), Some(row)));
    let come = (updated..updated + inserted).map(|row| (None, Some(row)));
    Ok(gone.chain(changed).chain(come).collect())
}

/// What stands for the rows when they are reserved, the other keys that are, and what must be
/// unique.
fn keys(
    target: &Target,
    old: &RecordBatch,
    new: &RecordBatch,
    turns: &[Turn],
) -> Result<(Vec<u64>, Vec<Entry>, Vec<Uniqueness>), Error> {
    let mut hashes = vec![];
    if !target.is_keyed() {
        hashes.extend(target.key_encoder()?.encode(old)?.iter().map(|row| hash(row.data())));
    }
    let mut others = vec![];
    let mut uniqueness = vec![];
    for key in UniqueKey::all(target.relation()) {
        let (old_values, new_values) = (key.of(old)?, key.of(new)?);
        if key.number == PRIMARY {
            hashes.extend(old_values.hashes().chain(new_values.hashes()));
        } else {
            for (old_row, new_row) in turns {
                let before = old_row.and_then(|row| old_values.get(row));
                let after = new_row.and_then(|row| new_values.get(row));
                if before != after {
                    let written = before.into_iter().chain(after);
                    others.extend(written.map(|value| key.entry(target.id(), hash(value))));
                }
            }
        }
        uniqueness.extend(Uniqueness::new(target, key, &old_values, &new_values, turns)?);
    }
    Ok((hashes, others, uniqueness))
}

/// What is left of rows that go and rows that come: each row once, sorted, so that those of one
/// key stand together.
fn net(
    target: &Target,
    old: &RecordBatch,
    new: &RecordBatch,
) -> Result<Option<ExactChanges>, Error> {
    let encoder = KeyEncoder::new(target.schema(), target.schema().fields().len())?;
    let (old_rows, new_rows) = (encoder.encode(old)?, encoder.encode(new)?);
    let gone = old_rows.iter().enumerate().map(|(row, bytes)| (bytes.data(), -1, (0, row)));
    let come = new_rows.iter().enumerate().map(|(row, bytes)| (bytes.data(), 1, (1, row)));
    let mut changes: Vec<(&[u8], i64, (usize, usize))> = gone.chain(come).collect();
    changes.sort_unstable();
    let mut netted: Vec<(&[u8], i64, (usize, usize))> = vec![];
    for change in changes {
        match netted.last_mut() {
            Some((row, weight, _)) if *row == change.0 => *weight += change.1,
            _ => netted.push(change),
        }
    }
    netted.retain(|(_, weight, _)| *weight != 0);
    if netted.is_empty() {
        return Ok(None);
    }
    let places: Vec<_> = netted.iter().map(|(_, _, place)| *place).collect();
    let columns: Result<Vec<ArrayRef>, _> = (0..old.num_columns())
        .map(|column| interleave(&[old.column(column), new.column(column)], &places))
        .collect();
    let rows = target.batch(columns.map_err(broken)?, places.len())?;
    let cuts = if target.is_keyed() { between_keys(target, &rows)? } else { Cuts::Anywhere };
    let weights = netted.into_iter().map(|(_, weight, _)| weight).collect();
    Ok(Some(ExactChanges { changes: Changes { relation: target.id(), rows, weights }, cuts }))
}

pub(super) fn between_keys(target: &Target, sorted: &RecordBatch) -> Result<Cuts, Error> {
    let keys = target.key_encoder()?.encode(sorted)?;
    let starts =
        (0..keys.num_rows()).filter(|row| *row == 0 || keys.row(*row) != keys.row(row - 1));
    Ok(Cuts::Before(starts.collect()))
}

fn broken(error: ArrowError) -> Error {
    Error::internal(format!("rows cannot be put together: {error}"))
}
