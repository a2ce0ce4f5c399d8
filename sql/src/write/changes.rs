//! From rows that go and rows that come to exact changes, reservations and what must be unique.

use std::collections::HashSet;

use arrow::array::{ArrayRef, UInt64Array};
use arrow::compute::{interleave, take_record_batch};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use arrow::row::Rows;
use stillframe_protocol::{Changes, Entry, Lockable, Mode};

use super::Target;
use super::keys::{KeyEncoder, entries, hash};
use super::proposal::{Proposal, Uniqueness};
use super::staging::{Cuts, ExactChanges};
use crate::Error;

impl Proposal {
    /// Rows come.
    pub(crate) fn insert(target: &Target, rows: RecordBatch) -> Result<Self, Error> {
        let count = rows.num_rows();
        if count == 0 {
            return Ok(Self::nothing());
        }
        let (hashes, uniqueness) = if target.is_keyed() {
            let encoder = target.key_encoder()?;
            let encoded = encoder.encode(&rows)?;
            let mut seen = HashSet::with_capacity(count);
            let repeated = encoded.iter().position(|key| !seen.insert(key.data()));
            let hashes = encoded.iter().map(|key| hash(key.data())).collect();
            let keys = target.keys_of(&rows)?;
            let repeated = repeated.map(|row| (row, keys.slice(row, 1)));
            let uniqueness = Uniqueness { target: target.clone(), encoder, keys, repeated };
            (hashes, Some(uniqueness))
        } else {
            (vec![], None)
        };
        Ok(Self {
            entries: entries(target.id(), hashes),
            uniqueness,
            changes: Some(ExactChanges::inserted(target, rows)),
            target: Some(target.clone()),
            rows: count as u64,
        })
    }

    /// Rows of the frame go, each as often as it is given.
    pub(crate) fn delete(target: &Target, rows: RecordBatch) -> Result<Self, Error> {
        let count = rows.num_rows();
        if count == 0 {
            return Ok(Self::nothing());
        }
        let encoded = target.key_encoder()?.encode(&rows)?;
        let hashes = encoded.iter().map(|key| hash(key.data())).collect();
        Ok(Self {
            entries: entries(target.id(), hashes),
            uniqueness: None,
            changes: Some(ExactChanges::deleted(target, rows)),
            target: Some(target.clone()),
            rows: count as u64,
        })
    }

    /// All rows of the frame go; nobody else may write the table meanwhile.
    pub(crate) fn truncate(target: &Target, rows: RecordBatch) -> Self {
        let lockable = Lockable::Relation(target.id());
        let count = rows.num_rows() as u64;
        Self {
            entries: vec![Entry { lockable, mode: Mode::Exclusive }],
            uniqueness: None,
            changes: (count > 0).then(|| ExactChanges::deleted(target, rows)),
            target: Some(target.clone()),
            rows: count,
        }
    }

    /// Rows of the frame change: `old[i]` becomes `new[i]`.
    pub(crate) fn update(
        target: &Target,
        old: RecordBatch,
        new: RecordBatch,
    ) -> Result<Self, Error> {
        let count = old.num_rows();
        if count == 0 {
            return Ok(Self::nothing());
        }
        let encoder = target.key_encoder()?;
        let old_keys = encoder.encode(&old)?;
        let mut hashes: Vec<_> = old_keys.iter().map(|key| hash(key.data())).collect();
        let uniqueness = if target.is_keyed() {
            let new_keys = encoder.encode(&new)?;
            hashes.extend(new_keys.iter().map(|key| hash(key.data())));
            moved(target, encoder, &old_keys, &new_keys, &new)?
        } else {
            None
        };
        Ok(Self {
            entries: entries(target.id(), hashes),
            uniqueness,
            changes: net(target, &old, &new)?,
            target: Some(target.clone()),
            rows: count as u64,
        })
    }
}

/// Which new keys mustn't be there yet, when rows change one after the other.
///
/// PostgreSQL checks each row as it comes to it, in the order in which the rows are stored. Here
/// that order is the old keys': `SET id = id - 1` passes and `SET id = id + 1` meets the next row.
fn moved(
    target: &Target,
    encoder: KeyEncoder,
    old_keys: &Rows,
    new_keys: &Rows,
    new: &RecordBatch,
) -> Result<Option<Uniqueness>, Error> {
    let mut order: Vec<usize> =
        (0..old_keys.num_rows()).filter(|row| old_keys.row(*row) != new_keys.row(*row)).collect();
    if order.is_empty() {
        return Ok(None);
    }
    order.sort_unstable_by(|left, right| old_keys.row(*left).cmp(&old_keys.row(*right)));
    // The keys that rows of the statement have at the moment.
    let mut taken: HashSet<&[u8]> = old_keys.iter().map(|key| key.data()).collect();
    let known: HashSet<&[u8]> = taken.clone();
    let mut unknown = vec![];
    let mut repeated = None;
    for row in order {
        let key = new_keys.row(row).data();
        if taken.contains(key) {
            repeated = Some((unknown.len(), row));
            break;
        }
        if !known.contains(key) {
            unknown.push(row as u64);
        }
        taken.remove(old_keys.row(row).data());
        taken.insert(key);
    }
    let keys = target.keys_of(new)?;
    let repeated = repeated.map(|(before, row)| (before, keys.slice(row, 1)));
    let keys = take_record_batch(&keys, &UInt64Array::from(unknown)).map_err(broken)?;
    Ok(Some(Uniqueness { target: target.clone(), encoder, keys, repeated }))
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
    let mut changes: Vec<(&[u8], i64, (usize, usize))> = vec![];
    for row in 0..old.num_rows() {
        let (before, after) = (old_rows.row(row).data(), new_rows.row(row).data());
        if before != after {
            changes.push((before, -1, (0, row)));
            changes.push((after, 1, (1, row)));
        }
    }
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
