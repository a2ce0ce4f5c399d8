//! Intervals: how they compare, and functions that take them apart and put them together.
//!
//! PostgreSQL compares intervals by their lengths, where a month has 30 days and a day 24 hours. So
//! the key of an interval is the one of the same length with less than 30 days and less than 24
//! hours, both counted upwards: equal lengths have equal keys, and their order is that of the fields.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryBuilder, IntervalMonthDayNanoArray};
use arrow::compute::try_unary;
use arrow::datatypes::{
    Float64Type, Int32Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
};
use arrow::error::ArrowError;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use crate::functions::arithmetic::interval_quotient;
use crate::functions::row::{arrays, one_array, raise, shaped};
use crate::functions::typed::{Settled, Typed, is_integer};
use crate::{SqlState, Type};

type Row<T> = std::result::Result<T, ArrowError>;

const DAY_NS: i64 = 86_400_000_000_000;
const MONTH_DAYS: i64 = 30;

/// `"interval key"(i)`
pub(super) static KEY: Typed = Typed {
    name: "interval key",
    settle: |kinds| match kinds {
        [Type::Interval] => Some(Settled::new([Type::Interval], Type::Bytea)),
        _ => None,
    },
    invoke: |arguments| {
        let (array, is_scalar) = one_array(&arguments.args[0])?;
        let mut builder = BinaryBuilder::new();
        for interval in array.as_primitive::<IntervalMonthDayNanoType>() {
            builder.append_option(interval.map(|i| ordered(&key(i)).collect::<Vec<u8>>()));
        }
        shaped(Arc::new(builder.finish()), is_scalar)
    },
};

/// Bytes that are ordered by an interval's key and then by its fields.
pub(super) static SORTED: Typed = Typed {
    name: "interval sorted",
    settle: |kinds| match kinds {
        [Type::Interval] => Some(Settled::new([Type::Interval], Type::Bytea)),
        _ => None,
    },
    invoke: |arguments| {
        let (array, is_scalar) = one_array(&arguments.args[0])?;
        let mut builder = BinaryBuilder::new();
        for interval in array.as_primitive::<IntervalMonthDayNanoType>() {
            builder.append_option(interval.map(|interval| {
                [key(interval), interval].iter().flat_map(ordered).collect::<Vec<u8>>()
            }));
        }
        shaped(Arc::new(builder.finish()), is_scalar)
    },
};

/// The interval of such bytes.
pub(super) static OF_SORTED: Typed = Typed {
    name: "interval of sorted",
    settle: |kinds| match kinds {
        [Type::Bytea] => Some(Settled::new([Type::Bytea], Type::Interval)),
        _ => None,
    },
    invoke: |arguments| {
        let (array, is_scalar) = one_array(&arguments.args[0])?;
        let values = array.as_binary::<i32>().iter();
        let found = values.map(|bytes| bytes.and_then(of_ordered));
        shaped(Arc::new(found.collect::<IntervalMonthDayNanoArray>()), is_scalar)
    },
};

/// The parts of intervals that sums are made of: months, days, and microseconds in two parts, each of
/// which has room to be added up.
pub(super) static PARTS: [Typed; 4] = [
    part("interval months", |arguments| parts(arguments, |interval| interval.months)),
    part("interval days", |arguments| parts(arguments, |interval| interval.days)),
    part("interval high", |arguments| {
        parts(arguments, |interval| ((interval.nanoseconds / 1000) >> LOW_BITS) as i32)
    }),
    part("interval low", |arguments| {
        parts(arguments, |interval| ((interval.nanoseconds / 1000) & ((1 << LOW_BITS) - 1)) as i32)
    }),
];

/// The interval of such sums; with a number behind them, so many times shorter.
pub(super) static OF_SUMS: Typed = Typed {
    name: "interval of sums",
    settle: |kinds| {
        let fits = (4..=5).contains(&kinds.len()) && kinds.iter().all(|k| *k == Type::BigInt);
        fits.then(|| Settled::new(kinds.to_vec(), Type::Interval))
    },
    invoke: of_sums,
};

static DEFINITIONS: &[Typed] = &[
    Typed { name: "justify_hours", settle: one, invoke: |a| each(a, justify_hours) },
    Typed { name: "justify_days", settle: one, invoke: |a| each(a, justify_days) },
    Typed { name: "justify_interval", settle: one, invoke: |a| each(a, justify_interval) },
    Typed {
        name: "make_interval",
        settle: |kinds| {
            let numbers = kinds.len().min(6);
            let fits = kinds.len() <= 7
                && kinds[..numbers].iter().all(is_integer)
                && kinds[numbers..].iter().all(|kind| {
                    is_integer(kind)
                        || matches!(
                            kind,
                            Type::BigInt | Type::Real | Type::Double | Type::Numeric(_)
                        )
                });
            let arguments =
                (0..kinds.len()).map(|place| if place < 6 { Type::Integer } else { Type::Double });
            fits.then(|| Settled::new(arguments, Type::Interval))
        },
        invoke: make,
    },
];

/// All of them.
pub(super) fn definitions() -> impl Iterator<Item = &'static Typed> {
    [&KEY, &SORTED, &OF_SORTED, &OF_SUMS].into_iter().chain(&PARTS).chain(DEFINITIONS)
}

const LOW_BITS: u32 = 30;

const fn part(
    name: &'static str,
    invoke: fn(&ScalarFunctionArgs) -> Result<ColumnarValue>,
) -> Typed {
    Typed {
        name,
        settle: |kinds| match kinds {
            [Type::Interval] => Some(Settled::new([Type::Interval], Type::Integer)),
            _ => None,
        },
        invoke,
    }
}

fn parts(
    arguments: &ScalarFunctionArgs,
    part: impl Fn(IntervalMonthDayNano) -> i32,
) -> Result<ColumnarValue> {
    let (array, is_scalar) = one_array(&arguments.args[0])?;
    let values = array.as_primitive::<IntervalMonthDayNanoType>();
    shaped(Arc::new(values.unary::<_, Int32Type>(part)), is_scalar)
}

fn of_sums(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let number = |place: usize, row: usize| {
        let array = arrays.get(place)?.as_primitive::<Int64Type>();
        array.is_valid(row).then(|| array.value(row))
    };
    let mut found = vec![];
    for row in 0..arrays[0].len() {
        let (Some(months), Some(days)) = (number(0, row), number(1, row)) else {
            found.push(None);
            continue;
        };
        let us = i128::from(number(2, row).unwrap_or(0)) * (1 << LOW_BITS)
            + i128::from(number(3, row).unwrap_or(0));
        let sum = (|| {
            let ns = i64::try_from(us.checked_mul(1000)?).ok()?;
            let (months, days) = (i32::try_from(months).ok()?, i32::try_from(days).ok()?);
            Some(IntervalMonthDayNano::new(months, days, ns))
        })();
        let sum = sum.ok_or_else(out_of_range)?;
        found.push(Some(match number(4, row) {
            Some(count) => interval_quotient(sum, count as f64)?,
            None => sum,
        }));
    }
    shaped(Arc::new(IntervalMonthDayNanoArray::from(found)), is_scalar)
}

/// Fields as bytes that compare as they do.
fn ordered(interval: &IntervalMonthDayNano) -> impl Iterator<Item = u8> + use<> {
    let months = (interval.months ^ i32::MIN).to_be_bytes();
    let days = (interval.days ^ i32::MIN).to_be_bytes();
    let ns = (interval.nanoseconds ^ i64::MIN).to_be_bytes();
    months.into_iter().chain(days).chain(ns)
}

/// The fields behind a key.
fn of_ordered(bytes: &[u8]) -> Option<IntervalMonthDayNano> {
    let fields = bytes.get(16..32)?;
    let months = i32::from_be_bytes(fields[..4].try_into().ok()?) ^ i32::MIN;
    let days = i32::from_be_bytes(fields[4..8].try_into().ok()?) ^ i32::MIN;
    let ns = i64::from_be_bytes(fields[8..].try_into().ok()?) ^ i64::MIN;
    Some(IntervalMonthDayNano::new(months, days, ns))
}

fn one(kinds: &[Type]) -> Option<Settled> {
    match kinds {
        [Type::Interval | Type::Unknown] => Some(Settled::new([Type::Interval], Type::Interval)),
        _ => None,
    }
}

fn each(
    arguments: &ScalarFunctionArgs,
    compute: impl Fn(IntervalMonthDayNano) -> Row<IntervalMonthDayNano>,
) -> Result<ColumnarValue> {
    let (array, is_scalar) = one_array(&arguments.args[0])?;
    let values = array.as_primitive::<IntervalMonthDayNanoType>();
    let result: IntervalMonthDayNanoArray = try_unary(values, compute)?;
    shaped(Arc::new(result), is_scalar)
}

/// The keys of an array of intervals.
pub(super) fn keys(values: &ArrayRef) -> Result<ArrayRef> {
    let values = values.as_primitive::<IntervalMonthDayNanoType>();
    Ok(Arc::new(values.unary::<_, IntervalMonthDayNanoType>(key)))
}

fn key(interval: IntervalMonthDayNano) -> IntervalMonthDayNano {
    let days = i64::from(interval.days) + interval.nanoseconds.div_euclid(DAY_NS);
    let months = i64::from(interval.months) + days.div_euclid(MONTH_DAYS);
    // Only intervals beyond PostgreSQL's own have more months than there is room for.
    let months = months.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
    let days = days.rem_euclid(MONTH_DAYS) as i32;
    IntervalMonthDayNano::new(months, days, interval.nanoseconds.rem_euclid(DAY_NS))
}

/// How an interval compares with one of no length.
pub(super) fn sign(interval: IntervalMonthDayNano) -> Ordering {
    let key = key(interval);
    // Only the months of a key can be negative.
    (key.months, key.days, key.nanoseconds).cmp(&(0, 0, 0))
}

pub(super) fn out_of_range() -> ArrowError {
    raise(SqlState::DATETIME_FIELD_OVERFLOW, "interval out of range")
}

/// Whole days out of hours; both with one sign.
fn justify_hours(interval: IntervalMonthDayNano) -> Row<IntervalMonthDayNano> {
    let mut days = i64::from(interval.days) + interval.nanoseconds / DAY_NS;
    let mut ns = interval.nanoseconds % DAY_NS;
    same_sign(&mut days, &mut ns, DAY_NS);
    let days = i32::try_from(days).map_err(|_| out_of_range())?;
    Ok(IntervalMonthDayNano::new(interval.months, days, ns))
}

/// Whole months out of days; both with one sign.
fn justify_days(interval: IntervalMonthDayNano) -> Row<IntervalMonthDayNano> {
    let mut months = i64::from(interval.months) + i64::from(interval.days) / MONTH_DAYS;
    let mut days = i64::from(interval.days) % MONTH_DAYS;
    same_sign(&mut months, &mut days, MONTH_DAYS);
    let months = i32::try_from(months).map_err(|_| out_of_range())?;
    Ok(IntervalMonthDayNano::new(months, days as i32, interval.nanoseconds))
}

fn justify_interval(interval: IntervalMonthDayNano) -> Row<IntervalMonthDayNano> {
    let mut days = i64::from(interval.days) + interval.nanoseconds / DAY_NS;
    let mut ns = interval.nanoseconds % DAY_NS;
    let mut months = i64::from(interval.months) + days / MONTH_DAYS;
    days %= MONTH_DAYS;
    let is_positive = days > 0 || (days == 0 && ns > 0);
    let is_negative = days < 0 || (days == 0 && ns < 0);
    if months > 0 && is_negative {
        days += MONTH_DAYS;
        months -= 1;
    } else if months < 0 && is_positive {
        days -= MONTH_DAYS;
        months += 1;
    }
    same_sign(&mut days, &mut ns, DAY_NS);
    let months = i32::try_from(months).map_err(|_| out_of_range())?;
    Ok(IntervalMonthDayNano::new(months, days as i32, ns))
}

/// Takes one of the larger unit where the signs differ.
fn same_sign(large: &mut i64, small: &mut i64, unit: i64) {
    if *large > 0 && *small < 0 {
        *small += unit;
        *large -= 1;
    } else if *large < 0 && *small > 0 {
        *small -= unit;
        *large += 1;
    }
}

/// Years, months, weeks, days, hours, minutes, seconds; what isn't given is 0.
fn make(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let rows = arrays.first().map_or(arguments.number_rows.max(1), |array| array.len());
    let mut made = Vec::with_capacity(rows);
    for row in 0..rows {
        if arrays.iter().any(|array| array.is_null(row)) {
            made.push(None);
            continue;
        }
        let number = |place: usize| -> i64 {
            arrays.get(place).map_or(0, |array| array.as_primitive::<Int32Type>().value(row).into())
        };
        let seconds =
            arrays.get(6).map_or(0.0, |array| array.as_primitive::<Float64Type>().value(row));
        let us = (seconds * 1_000_000.0).round_ties_even();
        let interval = (|| {
            let months = i32::try_from(number(0) * 12 + number(1)).ok()?;
            let days = i32::try_from(number(2) * 7 + number(3)).ok()?;
            if !us.is_finite() || us.abs() > 9e18 {
                return None;
            }
            let us = ((number(4) * 60 + number(5)) * 60_000_000).checked_add(us as i64)?;
            Some(IntervalMonthDayNano::new(months, days, us.checked_mul(1000)?))
        })();
        made.push(Some(interval.ok_or_else(out_of_range)?));
    }
    shaped(Arc::new(IntervalMonthDayNanoArray::from(made)), is_scalar)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lengths_have_equal_keys() {
        let hours = |hours: i64| hours * 3_600_000_000_000;
        let month = IntervalMonthDayNano::new(1, 0, 0);
        assert_eq!(key(month), key(IntervalMonthDayNano::new(0, 30, 0)));
        assert_eq!(key(month), key(IntervalMonthDayNano::new(0, 29, hours(24))));
        assert_eq!(key(IntervalMonthDayNano::new(1, -30, 0)), IntervalMonthDayNano::new(0, 0, 0));
        assert!(key(IntervalMonthDayNano::new(0, -1, 0)) < key(IntervalMonthDayNano::new(0, 0, 0)));
        let bytes =
            |interval| -> Vec<u8> { [key(interval), interval].iter().flat_map(ordered).collect() };
        for interval in [month, IntervalMonthDayNano::new(-1, 2, -3)] {
            assert_eq!(of_ordered(&bytes(interval)), Some(interval));
        }
        assert!(bytes(IntervalMonthDayNano::new(0, 31, 0)) > bytes(month));
        assert!(
            key(IntervalMonthDayNano::new(0, 0, -1)) > key(IntervalMonthDayNano::new(0, -1, 0))
        );
    }
}
