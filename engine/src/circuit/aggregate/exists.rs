//! Whether a group has a row at all.

use dbsp::dynamic::{DataTrait, DynUnit, Erase, WeightTrait};
use dbsp::operator::Aggregator;
use dbsp::trace::Cursor;
use dbsp::{DBWeight, Timestamp};

use super::weigh::Never;
use crate::row::Row;

/// An empty row for each group that has one.
#[derive(Clone, Copy, Debug)]
pub(in crate::circuit) struct Exists;

impl<T: Timestamp, W: DBWeight> Aggregator<Row, T, W> for Exists {
    type Accumulator = Row;
    type Semigroup = Never;
    type Output = Row;

    fn aggregate<K, R>(&self, cursor: &mut dyn Cursor<K, DynUnit, T, R>) -> Option<Row>
    where
        K: DataTrait + ?Sized,
        R: WeightTrait + ?Sized,
        Row: Erase<K>,
        W: Erase<R>,
    {
        while cursor.key_valid() {
            let mut total = W::zero();
            // SAFETY: the cursor's weights are of type W.
            cursor
                .map_times(&mut |_, weight| total.add_assign_by_ref(unsafe { weight.downcast() }));
            if !total.is_zero() {
                return Some(Row::default());
            }
            cursor.step_key();
        }
        None
    }

    fn finalize(&self, row: Row) -> Row {
        row
    }
}
