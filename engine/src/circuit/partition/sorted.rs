//! The first rows of a partition whose index is in their order already.
//!
//! A stored row begins with its sort keys in a form in which bytes compare as the order does, so that
//! only the rows that come out are read, however many there are.

use std::mem::take;

use dbsp::dynamic::{DataTrait, DynUnit, Erase, WeightTrait};
use dbsp::operator::Aggregator;
use dbsp::trace::Cursor;
use dbsp::utils::Tup2;
use dbsp::{OrdIndexedZSet, Timestamp, ZWeight};
use stillframe_protocol::{Limit, RowError, SortKey};

use super::gather::internal;
use super::sheet::Sheet;
use crate::EngineError;
use crate::circuit::aggregate::Never;
use crate::circuit::error_entry::error_row;
use crate::circuit::linear::{Chunk, Cutter, Emission, Fields};
use crate::circuit::relation::Relation;
use crate::row::{Row, is_null};

/// The length of the sort keys stands at the end.
const LENGTH: usize = size_of::<u32>();

/// Makes rows of a partition with their sort keys before them.
pub(super) struct SortedRows {
    cutter: Cutter,
    order: Vec<SortKey>,
    sort: Vec<u8>,
    rows: Vec<Tup2<Tup2<Row, Row>, ZWeight>>,
}

impl SortedRows {
    pub(super) fn new(
        relation: &Relation,
        key: &[usize],
        rest: &[usize],
        order: &[SortKey],
    ) -> Result<Self, EngineError> {
        let sorted = order.iter().map(|key| Ok([relation.column(key.column)?]));
        let sorted: Vec<[usize; 1]> = sorted.collect::<Result<_, EngineError>>()?;
        let mut lists = vec![key, rest];
        lists.extend(sorted.iter().map(|register| &register[..]));
        let cutter = Cutter::new(&relation.source.codec, &relation.types, &lists)?;
        Ok(Self { cutter, order: order.to_vec(), sort: vec![], rows: vec![] })
    }
}

impl Emission<OrdIndexedZSet<Row, Row>> for SortedRows {
    fn push(&mut self, chunk: &Chunk<'_>) {
        let weights = chunk.weights();
        let (order, sort, rows) = (&self.order, &mut self.sort, &mut self.rows);
        rows.reserve(weights.len());
        self.cutter.for_each(chunk, |number, fields| {
            sort.clear();
            put_sort_keys(order, fields, sort);
            let length = (sort.len() as u32).to_be_bytes();
            let rest = fields.row(1);
            let stored = Row::concatenate([&sort[..], rest.as_bytes(), &length]);
            rows.push(Tup2(Tup2(fields.row(0), stored), weights[number]));
        });
    }

    fn finish(&mut self) -> OrdIndexedZSet<Row, Row> {
        OrdIndexedZSet::from_tuples((), take(&mut self.rows))
    }
}

/// A field is in ascending order and says where it ends: its bytes inverted are in descending order.
/// A byte before it puts NULLs first or last.
fn put_sort_keys(order: &[SortKey], fields: &Fields<'_>, sort: &mut Vec<u8>) {
    for (place, key) in order.iter().enumerate() {
        let field = fields.field(place + 2);
        if is_null(field) {
            sort.push(if key.nulls_first { 0 } else { 2 });
            continue;
        }
        sort.push(1);
        match key.descending {
            true => sort.extend(field.iter().map(|byte| !byte)),
            false => sort.extend_from_slice(field),
        }
    }
}

/// The sort keys of a stored row, and the row.
fn parts(stored: &[u8]) -> (&[u8], &[u8]) {
    let (stored, length) = stored.split_last_chunk::<LENGTH>().expect("a stored row is whole");
    stored.split_at(u32::from_be_bytes(*length) as usize)
}

/// Takes the first rows of a partition.
#[derive(Clone, Copy, Debug)]
pub(super) struct SortedLimit {
    offset: usize,
    /// The place after the last row but for equals.
    end: usize,
    with_ties: bool,
}

impl SortedLimit {
    /// None if all rows from some place on are wanted, or in no order.
    pub(super) fn of(limit: &Limit) -> Option<Self> {
        let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let (offset, count) = (size(limit.offset), size(limit.count?));
        let with_ties = limit.with_ties;
        (!limit.order.is_empty()).then(|| Self {
            offset,
            end: offset.saturating_add(count),
            with_ties,
        })
    }
}

/// The rows that are taken, on the way through a partition.
struct Taken {
    limit: SortedLimit,
    /// How many rows were there so far.
    passed: usize,
    /// The sort keys of the last of them.
    sort: Vec<u8>,
    rows: Vec<(Row, usize)>,
}

impl Taken {
    /// Goes over a row that is there so often; false if none after it is wanted.
    fn pass(&mut self, stored: &[u8], count: usize) -> bool {
        let SortedLimit { offset, end, with_ties } = self.limit;
        let (sort, row) = parts(stored);
        let is_tie = with_ties && self.passed > offset && self.sort == sort;
        if offset >= end || self.passed >= end && !is_tie {
            return false;
        }
        let after = self.passed.saturating_add(count);
        let last = if with_ties { after } else { after.min(end) };
        let first = self.passed.max(offset);
        if first < last {
            self.rows.push((Row::new(row), last - first));
        }
        self.passed = after;
        self.sort.clear();
        self.sort.extend_from_slice(sort);
        true
    }

    fn sheet(mut self) -> Result<Option<Row>, RowError> {
        self.rows.sort_unstable();
        let mut sheet = Sheet::new();
        for (row, count) in &self.rows {
            sheet.push_copies(row.as_bytes(), *count)?;
        }
        sheet.into_row()
    }
}

impl<T: Timestamp> Aggregator<Row, T, ZWeight> for SortedLimit {
    type Accumulator = Row;
    type Semigroup = Never;
    type Output = Row;

    fn aggregate<K, R>(&self, cursor: &mut dyn Cursor<K, DynUnit, T, R>) -> Option<Row>
    where
        K: DataTrait + ?Sized,
        R: WeightTrait + ?Sized,
        Row: Erase<K>,
        ZWeight: Erase<R>,
    {
        let mut taken = Taken { limit: *self, passed: 0, sort: vec![], rows: vec![] };
        while cursor.key_valid() {
            let mut total: ZWeight = 0;
            cursor.map_times(&mut |_, weight| {
                // SAFETY: the cursor's weights are of this type.
                total += *unsafe { weight.downcast::<ZWeight>() };
            });
            if total != 0 {
                let Ok(count) = usize::try_from(total) else {
                    let error = internal("a stored row is there less often than never");
                    return Some(error_row(&error));
                };
                // SAFETY: the cursor's keys are rows.
                let stored: &Row = unsafe { cursor.key().downcast() };
                if !taken.pass(stored.as_bytes(), count) {
                    break;
                }
            }
            cursor.step_key();
        }
        taken.sheet().unwrap_or_else(|error| Some(error_row(&error)))
    }

    fn finalize(&self, row: Row) -> Row {
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(sort: &str, row: &str) -> Vec<u8> {
        [sort.as_bytes(), row.as_bytes(), &(sort.len() as u32).to_be_bytes()].concat()
    }

    fn taken(offset: usize, count: usize, with_ties: bool) -> Vec<(String, usize)> {
        let limit = SortedLimit { offset, end: offset + count, with_ties };
        let mut taken = Taken { limit, passed: 0, sort: vec![], rows: vec![] };
        for (sort, row, count) in [("a", "p", 2), ("b", "q", 1), ("b", "r", 3), ("c", "s", 1)] {
            if !taken.pass(&stored(sort, row), count) {
                break;
            }
        }
        let text = |row: &Row| String::from_utf8(row.as_bytes().to_vec()).unwrap();
        taken.rows.iter().map(|(row, count)| (text(row), *count)).collect()
    }

    #[test]
    fn copies_are_rows_and_ties_go_on() {
        let expected = |rows: &[(&str, usize)]| -> Vec<(String, usize)> {
            rows.iter().map(|(row, count)| ((*row).to_owned(), *count)).collect()
        };
        assert_eq!(taken(0, 1, false), expected(&[("p", 1)]));
        assert_eq!(taken(0, 1, true), expected(&[("p", 2)]));
        assert_eq!(taken(1, 2, false), expected(&[("p", 1), ("q", 1)]));
        assert_eq!(taken(1, 2, true), expected(&[("p", 1), ("q", 1), ("r", 3)]));
        assert_eq!(taken(4, 1, true), expected(&[("r", 2)]));
        assert_eq!(taken(2, 0, true), expected(&[]));
        assert_eq!(taken(0, 100, false).len(), 4);
        assert_eq!(taken(7, 2, false), expected(&[]));
    }
}
