//! The least and the greatest value of a group.

use std::fmt;

use dbsp::dynamic::{DataTrait, DynUnit, Erase, WeightTrait};
use dbsp::operator::Aggregator;
use dbsp::trace::Cursor;
use dbsp::{DBWeight, Timestamp};

use super::weigh::Never;
use crate::row::{Row, is_null};

/// Takes the first and the last of a group's encoded values, which are in order. NULL comes first
/// and is passed over, unless there is nothing else.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extremes {
    /// Whether the least is wanted.
    pub(super) least: bool,
    /// Whether the greatest is wanted; it comes second.
    pub(super) greatest: bool,
}

impl fmt::Display for Extremes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.least, self.greatest) {
            (true, true) => "minmax",
            (true, false) => "min",
            _ => "max",
        })
    }
}

impl<T: Timestamp, W: DBWeight> Aggregator<Row, T, W> for Extremes {
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
        let least = if self.least {
            Some(first::<_, _, _, W>(cursor, |cursor| cursor.step_key())?)
        } else {
            None
        };
        if !self.greatest {
            return least;
        }
        cursor.fast_forward_keys();
        let greatest = first::<_, _, _, W>(cursor, |cursor| cursor.step_key_reverse())?;
        Some(match least {
            Some(least) => Row::concatenate([least.as_bytes(), greatest.as_bytes()]),
            None => greatest,
        })
    }

    fn finalize(&self, row: Row) -> Row {
        row
    }
}

/// The first value on the way that is there and isn't NULL; NULL if that is all there is.
fn first<K, T, R, W>(
    cursor: &mut dyn Cursor<K, DynUnit, T, R>,
    step: impl Fn(&mut dyn Cursor<K, DynUnit, T, R>),
) -> Option<Row>
where
    K: DataTrait + ?Sized,
    R: WeightTrait + ?Sized,
    Row: Erase<K>,
    W: DBWeight + Erase<R>,
{
    let mut null = None;
    while cursor.key_valid() {
        let mut total = W::zero();
        // SAFETY: the cursor's weights are of type W.
        cursor.map_times(&mut |_, weight| total.add_assign_by_ref(unsafe { weight.downcast() }));
        if !total.is_zero() {
            // SAFETY: the cursor's keys are rows.
            let value: &Row = unsafe { cursor.key().downcast() };
            if !is_null(value.as_bytes()) {
                return Some(value.clone());
            }
            null = Some(value.clone());
        }
        step(cursor);
    }
    null
}
