//! Keys as bytes, and the reservations that stand for them.
//!
//! A key is the primary key of a row, or the whole row where there is none. Equal keys have equal
//! bytes, and bytes compare as the engine's do.

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;
use arrow::row::{RowConverter, Rows, SortField};
use stillframe_protocol::{Entry, Lockable, Mode, RelationId};

use super::unique::PRIMARY;
use crate::Error;

/// So many keys are reserved one by one; more take the whole relation.
pub(super) const KEYS_MAX: usize = 100_000;

/// Turns the leading columns of rows into bytes.
#[derive(Debug)]
pub(crate) struct KeyEncoder {
    converter: RowConverter,
    columns: usize,
}

impl KeyEncoder {
    /// An encoder of the first columns of rows of a schema.
    pub(crate) fn new(schema: &SchemaRef, columns: usize) -> Result<Self, Error> {
        let fields = schema.fields().iter().take(columns);
        let fields = fields.map(|field| SortField::new(field.data_type().clone())).collect();
        let converter = RowConverter::new(fields).map_err(not_encodable)?;
        Ok(Self { converter, columns })
    }

    /// The bytes of each row's key.
    pub(crate) fn encode(&self, rows: &RecordBatch) -> Result<Rows, Error> {
        let columns = &rows.columns()[..self.columns];
        self.converter.convert_columns(columns).map_err(not_encodable)
    }
}

impl KeyEncoder {
    /// How many columns it encodes.
    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// The columns of encoded rows, and how many rows they are.
    pub(super) fn decode<'a>(
        &self,
        rows: impl Iterator<Item = &'a [u8]>,
    ) -> Result<(Vec<ArrayRef>, usize), Error> {
        let parser = self.converter.parser();
        let rows: Vec<_> = rows.map(|row| parser.parse(row)).collect();
        let count = rows.len();
        Ok((self.converter.convert_rows(rows).map_err(not_encodable)?, count))
    }
}

fn not_encodable(error: arrow::error::ArrowError) -> Error {
    Error::internal(format!("rows cannot be encoded: {error}"))
}

/// A hash of a key's bytes that is the same in every process: 64-bit FNV-1a.
pub(crate) fn hash(key: &[u8]) -> u64 {
    key.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// What a writer of these keys reserves: each of them for itself, or the whole relation if they
/// are many. `others` are what it reserves of other constraints of the relation.
pub(crate) fn entries(
    relation: RelationId,
    mut hashes: Vec<u64>,
    others: Vec<Entry>,
) -> Vec<Entry> {
    let whole = Lockable::Relation(relation);
    if hashes.len() + others.len() > KEYS_MAX {
        return vec![Entry { lockable: whole, mode: Mode::Exclusive }];
    }
    hashes.sort_unstable();
    hashes.dedup();
    let keys = hashes.into_iter().map(|hash| Entry {
        lockable: Lockable::Key { relation, constraint: PRIMARY, hash },
        mode: Mode::Exclusive,
    });
    std::iter::once(Entry { lockable: whole, mode: Mode::Shared })
        .chain(keys)
        .chain(others)
        .collect()
}

/// What somebody reserves who keeps rows of a relation from being written.
pub(crate) fn row_entries(relation: RelationId, hashes: Vec<u64>, mode: Mode) -> Vec<Entry> {
    let entries = entries(relation, hashes, vec![]).into_iter();
    let entries = entries.map(|entry| match entry.lockable {
        Lockable::Key { .. } => Entry { mode, ..entry },
        Lockable::Relation(_) => entry,
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RELATION: RelationId = RelationId(7);

    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(hash(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(hash(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn each_key_is_reserved_once_beside_the_shared_relation() {
        let key = |hash| Entry {
            lockable: Lockable::Key { relation: RELATION, constraint: 0, hash },
            mode: Mode::Exclusive,
        };
        let relation = Entry { lockable: Lockable::Relation(RELATION), mode: Mode::Shared };
        assert_eq!(entries(RELATION, vec![9, 3, 9], vec![]), [relation, key(3), key(9)]);
        assert_eq!(entries(RELATION, vec![], vec![]), [relation]);
    }

    #[test]
    fn many_keys_take_the_whole_relation() {
        let relation = Entry { lockable: Lockable::Relation(RELATION), mode: Mode::Exclusive };
        assert_eq!(entries(RELATION, (0..=KEYS_MAX as u64).collect(), vec![]), [relation]);
    }
}
