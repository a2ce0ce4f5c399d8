//! What must be unique among a table's rows: the primary key, and each value of a UNIQUE constraint
//! or index.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::UInt64Array;
use arrow::compute::take_record_batch;
use arrow::record_batch::RecordBatch;
use arrow::row::Rows;
use stillframe_protocol::{Entry, Lockable, Mode, RelationId};

use super::keys::{KeyEncoder, hash};
use super::violation::unique_violation;
use super::{Target, existing_keys, rows_with};
use crate::{ConstraintKind, Error, Frame, Relation};

/// The number under which the keys of a primary key are reserved.
pub(super) const PRIMARY: u32 = 0;

/// Columns whose values are a row's alone, unless one of them is NULL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UniqueKey {
    /// What it is reserved under: 0 for the primary key, else its OID.
    pub(crate) number: u32,
    /// The constraint's name.
    pub(crate) name: String,
    /// By place as stored.
    pub(crate) columns: Vec<usize>,
}

impl UniqueKey {
    /// All keys of a table, in the order in which they are checked.
    pub(crate) fn all(relation: &Relation) -> Vec<Self> {
        let order = relation.stored_order();
        let stored = |columns: &[usize]| -> Vec<usize> {
            let place = |column: &usize| order.iter().position(|place| place == column);
            columns.iter().filter_map(place).collect()
        };
        let key = relation.key();
        let primary = (!key.is_empty()).then(|| Self {
            number: PRIMARY,
            name: relation.key_name(),
            columns: stored(key),
        });
        let others = relation.constraints.iter().filter_map(|constraint| match &constraint.kind {
            ConstraintKind::Unique { columns, .. } => Some(Self {
                number: constraint.oid,
                name: constraint.name.clone(),
                columns: stored(columns),
            }),
            _ => None,
        });
        primary.into_iter().chain(others).collect()
    }

    /// The key's values of rows as stored.
    pub(crate) fn of(&self, rows: &RecordBatch) -> Result<Values, Error> {
        Values::new(rows, &self.columns)
    }

    /// What a writer of a key reserves.
    pub(super) fn entry(&self, relation: RelationId, hash: u64) -> Entry {
        let lockable = Lockable::Key { relation, constraint: self.number, hash };
        Entry { lockable, mode: Mode::Exclusive }
    }

    /// Those of `keys` that rows of the frame have.
    pub(crate) async fn existing(
        &self,
        frame: &Arc<Frame>,
        target: &Target,
        keys: &RecordBatch,
    ) -> Result<HashSet<Box<[u8]>>, Error> {
        if self.number == PRIMARY {
            let encoder = target.key_encoder()?;
            return existing_keys(frame, target, &encoder, std::slice::from_ref(keys)).await;
        }
        let found = rows_with(frame, target, &self.columns, keys).await?;
        let values = self.of(&found)?;
        Ok((0..found.num_rows()).filter_map(|row| values.get(row)).map(Box::from).collect())
    }
}

/// Values of some columns of rows, as bytes.
#[derive(Debug)]
pub(crate) struct Values {
    /// The columns alone.
    pub(crate) columns: RecordBatch,
    rows: Rows,
}

impl Values {
    /// The values of some columns.
    pub(crate) fn new(rows: &RecordBatch, columns: &[usize]) -> Result<Self, Error> {
        let columns = rows.project(columns).map_err(broken)?;
        let encoder = KeyEncoder::new(&columns.schema(), columns.num_columns())?;
        Ok(Self { rows: encoder.encode(&columns)?, columns })
    }

    /// The bytes of a row's values; none if one is NULL.
    pub(crate) fn get(&self, row: usize) -> Option<&[u8]> {
        let has_null = self.columns.columns().iter().any(|column| column.is_null(row));
        (!has_null).then(|| self.rows.row(row).data())
    }

    /// The values of some rows.
    pub(crate) fn only(&self, rows: Vec<u64>) -> Result<RecordBatch, Error> {
        take_record_batch(&self.columns, &UInt64Array::from(rows)).map_err(broken)
    }

    /// The hashes of all that have no NULL.
    pub(super) fn hashes(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.columns.num_rows()).filter_map(|row| self.get(row)).map(hash)
    }
}

/// Keys that come, one row after the other, as PostgreSQL checks them.
#[derive(Debug)]
pub(crate) struct Uniqueness {
    target: Target,
    key: UniqueKey,
    /// The keys that rows of the frame mustn't have, in the order in which rows come.
    keys: RecordBatch,
    /// By key, which of the statement's rows has it.
    turns: Vec<usize>,
    /// The first row whose key the statement itself has used, if one has; and that key.
    repeated: Option<(usize, RecordBatch)>,
}

/// What becomes of a row: the places of what goes and of what comes.
pub(super) type Turn = (Option<usize>, Option<usize>);

impl Uniqueness {
    /// Which new keys mustn't be there yet, when rows change one after the other.
    ///
    /// PostgreSQL checks each row as it comes to it: `SET id = id - 1` passes and `SET id = id + 1`
    /// meets the next row.
    pub(super) fn new(
        target: &Target,
        key: UniqueKey,
        old: &Values,
        new: &Values,
        turns: &[Turn],
    ) -> Result<Option<Self>, Error> {
        // The keys that rows of the statement have at the moment.
        let old_keys = turns.iter().filter_map(|(old_row, _)| old.get((*old_row)?));
        let mut taken: HashSet<&[u8]> = old_keys.collect();
        let known = taken.clone();
        let mut unknown = vec![];
        let mut places = vec![];
        let mut repeated = None;
        for (turn, (old_row, new_row)) in turns.iter().enumerate() {
            let before = old_row.and_then(|row| old.get(row));
            let after = new_row.and_then(|row| new.get(row));
            if before == after {
                continue;
            }
            if let (Some(after), Some(row)) = (after, *new_row) {
                if taken.contains(after) {
                    repeated = Some((turn, new.columns.slice(row, 1)));
                    break;
                }
                if !known.contains(after) {
                    unknown.push(row as u64);
                    places.push(turn);
                }
            }
            if let Some(before) = before {
                taken.remove(before);
            }
            taken.extend(after);
        }
        if unknown.is_empty() && repeated.is_none() {
            return Ok(None);
        }
        let keys = new.only(unknown)?;
        Ok(Some(Self { target: target.clone(), key, keys, turns: places, repeated }))
    }

    /// The first row that has a key which is there already, and what is wrong with it.
    pub(super) async fn check(&self, frame: &Arc<Frame>) -> Result<Option<(usize, Error)>, Error> {
        let existing = match self.keys.num_rows() {
            0 => HashSet::new(),
            _ => self.key.existing(frame, &self.target, &self.keys).await?,
        };
        if !existing.is_empty() {
            let all: Vec<_> = (0..self.keys.num_columns()).collect();
            let values = Values::new(&self.keys, &all)?;
            for (row, turn) in self.turns.iter().enumerate() {
                if values.get(row).is_some_and(|key| existing.contains(key)) {
                    let error = unique_violation(&self.target, &self.key, &self.keys, row);
                    return Ok(Some((*turn, error)));
                }
            }
        }
        Ok(self
            .repeated
            .as_ref()
            .map(|(turn, key)| (*turn, unique_violation(&self.target, &self.key, key, 0))))
    }
}

fn broken(error: arrow::error::ArrowError) -> Error {
    Error::internal(format!("rows cannot be put together: {error}"))
}
