//! `OVERLAPS`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanBuilder};
use arrow::datatypes::{
    DataType, IntervalMonthDayNanoType, Time64MicrosecondType, TimestampMicrosecondType,
};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::{Row, meeting, zone_at};
use crate::Type;
use crate::functions::arithmetic::move_stamp;
use crate::functions::row::{arrays, shaped};
use crate::functions::typed::{Settled, Typed, Wanted};
use crate::text::{DAY_US, TimeZone};

pub(super) static DEFINITIONS: &[Typed] = &[Typed {
    name: "overlaps",
    settle: |kinds| {
        let (kinds, zone) = kinds.split_at_checked(4)?;
        if !matches!(zone, [] | [Type::Text]) {
            return None;
        }
        let [start, end, other_start, other_end] = kinds else { return None };
        // An end may be a length.
        let ends = [end, other_end].into_iter().filter(|end| **end != Type::Interval);
        let moments: Vec<_> = [start, other_start].into_iter().chain(ends).collect();
        let known = || moments.iter().filter(|kind| ***kind != Type::Unknown);
        let kind = if known().all(|kind| **kind == Type::Time) && known().count() > 0 {
            Type::Time
        } else {
            let mut kind = moments[0].clone();
            for other in &moments[1..] {
                kind = meeting(&kind, other)?;
            }
            kind
        };
        let as_end = |end: &Type| match end {
            Type::Interval => Type::Interval,
            _ => kind.clone(),
        };
        let wanted = [kind.clone(), as_end(end), kind.clone(), as_end(other_end)];
        let mut settled = Settled::new(wanted, Type::Boolean);
        if kind == Type::Timestamptz {
            settled.arguments.push(Wanted::Zone);
        }
        Some(settled)
    },
    invoke: overlaps,
}];

/// A value in a row: a moment, or a time of day.
fn moment(array: &ArrayRef, row: usize) -> Option<i64> {
    if array.is_null(row) {
        return None;
    }
    Some(match array.data_type() {
        DataType::Time64(_) => array.as_primitive::<Time64MicrosecondType>().value(row),
        _ => array.as_primitive::<TimestampMicrosecondType>().value(row),
    })
}

fn end(start: &ArrayRef, end: &ArrayRef, row: usize, zone: Option<TimeZone>) -> Row<Option<i64>> {
    if !matches!(end.data_type(), DataType::Interval(_)) {
        return Ok(moment(end, row));
    }
    let Some(from) = moment(start, row).filter(|_| end.is_valid(row)) else { return Ok(None) };
    let span = end.as_primitive::<IntervalMonthDayNanoType>().value(row);
    Ok(Some(match start.data_type() {
        DataType::Time64(_) => (from + span.nanoseconds / 1000 % DAY_US).rem_euclid(DAY_US),
        _ => move_stamp(from, span, zone)?,
    }))
}

/// Whether two spans of time have a moment in common; an end is none unless it is the start, too.
fn overlap(one: (Option<i64>, Option<i64>), other: (Option<i64>, Option<i64>)) -> Option<bool> {
    let ordered = |(start, end): (Option<i64>, Option<i64>)| match (start, end) {
        (None, None) => None,
        (None, Some(end)) => Some((end, None)),
        (Some(start), Some(end)) if start > end => Some((end, Some(start))),
        (Some(start), end) => Some((start, end)),
    };
    let ((start, end), (other_start, other_end)) = (ordered(one)?, ordered(other)?);
    match start.cmp(&other_start) {
        std::cmp::Ordering::Greater => reaches(start, other_end, end),
        std::cmp::Ordering::Less => reaches(other_start, end, other_end),
        std::cmp::Ordering::Equal => (end.is_some() && other_end.is_some()).then_some(true),
    }
}

/// Whether the earlier of two spans goes on beyond the start of the later.
fn reaches(later: i64, end_of_earlier: Option<i64>, end_of_later: Option<i64>) -> Option<bool> {
    if later < end_of_earlier? {
        return Some(true);
    }
    end_of_later.map(|_| false)
}

fn overlaps(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let zone = match arrays.len() {
        5 => Some(zone_at(&arrays, 4)?),
        _ => None,
    };
    let mut builder = BooleanBuilder::new();
    for row in 0..arrays[0].len() {
        let one = (moment(&arrays[0], row), end(&arrays[0], &arrays[1], row, zone)?);
        let other = (moment(&arrays[2], row), end(&arrays[2], &arrays[3], row, zone)?);
        builder.append_option(overlap(one, other));
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}
