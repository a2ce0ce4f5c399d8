//! The stored rows of a shard, some at a time.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::Array as _;
use arrow::record_batch::RecordBatch;
use dbsp::ZWeight;
use stillframe_protocol::{HostError, RelationId, ScanRequest};

use super::merge::{BadWeight, Entries, Merge};
use crate::circuit::Snapshot;
use crate::frames::Relation;
use crate::row::{Codec, Row, RowBuffer};

/// A place in a shard, from which reading goes on.
///
/// It holds no reference into the snapshot: to find the place again costs a seek per batch of the
/// snapshot.
pub(super) struct Cursor {
    relation: RelationId,
    snapshot: Snapshot,
    /// The keys to look for, ascending, each once; all rows without.
    keys: Option<Vec<Row>>,
    /// How many of them are done.
    keys_done: usize,
    last: Option<Last>,
}

/// The entry that was read last.
struct Last {
    key: Row,
    /// How many of its copies have been read.
    copies: ZWeight,
}

/// Rows that were read.
pub(super) struct Fill {
    pub(super) rows: Rows,
    /// Whether there are no more.
    pub(super) end: bool,
}

/// Stored rows, or only their number if nobody wants to see them.
pub(super) enum Rows {
    Bytes(RowBuffer),
    Count(usize),
}

impl Rows {
    /// How many rows there are.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Bytes(rows) => rows.len(),
            Self::Count(count) => *count,
        }
    }

    #[inline]
    fn push(&mut self, key: &Row, rest: &[u8], copies: usize) {
        match self {
            Self::Bytes(rows) => (0..copies).for_each(|_| rows.push(key.as_bytes(), rest)),
            Self::Count(count) => *count += copies,
        }
    }
}

impl Cursor {
    /// The start of a shard, or of the part of it with the request's keys.
    pub(super) fn new(relation: &Relation, request: &ScanRequest) -> Result<Self, HostError> {
        let Some(shard) = relation.shards.get(request.worker as usize) else {
            let message = format!("no worker {} on this host", request.worker);
            return Err(HostError::Invalid(message));
        };
        let keys = request.keys.as_ref();
        Ok(Self {
            relation: request.relation,
            snapshot: shard.rows.clone(),
            keys: keys.map(|keys| sorted_keys(relation, keys)).transpose()?,
            keys_done: 0,
            last: None,
        })
    }

    /// Reads up to `wanted` rows.
    pub(super) fn fill(&mut self, wanted: usize, bytes: bool) -> Result<Fill, HostError> {
        let mut rows = if bytes { Rows::Bytes(RowBuffer::default()) } else { Rows::Count(0) };
        let snapshot = self.snapshot.clone();
        let end = match &snapshot {
            Snapshot::Set(set) => self.go_on(&mut Merge::of_set(set), wanted, &mut rows),
            Snapshot::Keyed(keyed) => self.go_on(&mut Merge::of_keyed(keyed), wanted, &mut rows),
        };
        match end {
            Ok(end) => Ok(Fill { rows, end }),
            Err(error) => {
                Err(HostError::Invalid(format!("relation {} is corrupt: {error}", self.relation)))
            }
        }
    }

    /// Goes on where it was left; true at the end.
    fn go_on<V: Entries + ?Sized>(
        &mut self,
        merge: &mut Merge<'_, V>,
        wanted: usize,
        rows: &mut Rows,
    ) -> Result<bool, BadWeight> {
        if let Some(last) = &self.last {
            merge.seek(&last.key);
        }
        let Some(keys) = self.keys.take() else {
            return read(merge, &mut self.last, wanted, rows, |_| true);
        };
        let mut end = true;
        for key in &keys[self.keys_done..] {
            merge.seek(key);
            let wanted_key = |found: &Row| found.as_bytes().starts_with(key.as_bytes());
            if !read(merge, &mut self.last, wanted, rows, wanted_key)? {
                end = false;
                break;
            }
            self.keys_done += 1;
        }
        self.keys = Some(keys);
        Ok(end)
    }
}

/// Reads entries as long as their keys are wanted, up to `wanted` rows; false if there may be more.
fn read<V: Entries + ?Sized>(
    merge: &mut Merge<'_, V>,
    last: &mut Option<Last>,
    wanted: usize,
    rows: &mut Rows,
    wanted_key: impl Fn(&Row) -> bool,
) -> Result<bool, BadWeight> {
    merge.run(wanted_key, &mut |key, rest, weight| {
        let read = last.as_ref().filter(|last| last.key == *key).map_or(0, |last| last.copies);
        let unread = usize::try_from(weight - read).unwrap_or_default();
        let copies = unread.min(wanted - rows.len());
        rows.push(key, rest, copies);
        if rows.len() < wanted {
            return ControlFlow::Continue(());
        }
        *last = Some(Last { key: key.clone(), copies: read + copies as ZWeight });
        ControlFlow::Break(())
    })
}

/// Encodes keys, or leading parts of keys, and brings them into the order of the stored ones.
fn sorted_keys(relation: &Relation, keys: &RecordBatch) -> Result<Vec<Row>, HostError> {
    let columns = keys.num_columns();
    if columns == 0 || columns > relation.key_columns {
        let message = format!("{columns} key columns instead of 1 to {}", relation.key_columns);
        return Err(HostError::Invalid(message));
    }
    let leading: Vec<usize> = (0..columns).collect();
    let encoded = relation
        .codec
        .schema()
        .project(&leading)
        .map_err(Into::into)
        .and_then(|schema| Codec::new(Arc::new(schema)))
        .and_then(|codec| codec.encode_batch(keys))
        .map_err(|error| HostError::Invalid(error.to_string()))?;
    let has_null = |row: usize| keys.columns().iter().any(|column| column.is_null(row));
    let mut sorted: Vec<Row> = encoded
        .into_iter()
        .enumerate()
        .filter(|(row, _)| !has_null(*row))
        .map(|(_, key)| key)
        .collect();
    sorted.sort_unstable();
    sorted.dedup();
    Ok(sorted)
}
