//! Dates and times of numbers.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Date32Array, Time64MicrosecondArray};
use arrow::datatypes::{DataType, Date32Type, Float64Type, Int32Type};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::{Row, is_infinite, moments, out_of_range, stamps, zone_at};
use crate::functions::row::{arrays, raise_error, shaped};
use crate::functions::typed::{Settled, Typed, Wanted, is_integer, is_text};
use crate::text::{
    DAY_US, NEGATIVE_INFINITY_DAYS, NEGATIVE_INFINITY_US, POSITIVE_INFINITY_DAYS,
    POSITIVE_INFINITY_US, check_date, check_timestamp, days_from_civil, days_in_month,
};
use crate::{TimeZone, Type};

pub(super) static DEFINITIONS: &[Typed] = &[
    Typed {
        name: "make_date",
        settle: |kinds| numbers(kinds, 3, false, Type::Date),
        invoke: make_date,
    },
    Typed {
        name: "make_time",
        settle: |kinds| numbers(kinds, 2, true, Type::Time),
        invoke: make_time,
    },
    Typed {
        name: "make_timestamp",
        settle: |kinds| numbers(kinds, 5, true, Type::Timestamp),
        invoke: make_timestamp,
    },
    Typed {
        name: "make_timestamptz",
        settle: |kinds| {
            let (fields, zone) = kinds.split_at(kinds.len().min(6));
            let mut settled = numbers(fields, 5, true, Type::Timestamptz)?;
            match zone {
                [] => settled.arguments.push(Wanted::Zone),
                [zone] if is_text(zone) => settled.arguments.push(Wanted::As(Type::Text)),
                _ => return None,
            }
            Some(settled)
        },
        invoke: make_timestamptz,
    },
    Typed {
        name: "isfinite",
        settle: |kinds| match kinds {
            [kind @ (Type::Date | Type::Timestamp | Type::Timestamptz | Type::Interval)] => {
                Some(Settled::new([kind.clone()], Type::Boolean))
            }
            _ => None,
        },
        invoke: is_finite,
    },
];

fn is_number(kind: &Type) -> bool {
    is_integer(kind) || matches!(kind, Type::BigInt | Type::Real | Type::Double | Type::Numeric(_))
}

/// So many integers, and a number of seconds behind them.
fn numbers(kinds: &[Type], integers: usize, has_seconds: bool, returns: Type) -> Option<Settled> {
    let fits = kinds.len() == integers + usize::from(has_seconds)
        && kinds[..integers].iter().all(is_integer)
        && kinds[integers..].iter().all(is_number);
    let arguments =
        (0..kinds.len()).map(|place| if place < integers { Type::Integer } else { Type::Double });
    fits.then(|| Settled::new(arguments, returns))
}

fn integer(arrays: &[ArrayRef], place: usize, row: usize) -> i64 {
    arrays[place].as_primitive::<Int32Type>().value(row).into()
}

fn is_null(arrays: &[ArrayRef], row: usize) -> bool {
    arrays.iter().any(|array| array.is_null(row))
}

/// The day of a year, which counts backwards from -1 as BC, a month and a day.
pub(super) fn day(year: i64, month: i64, day: i64) -> Row<i64> {
    let invalid =
        || out_of_range(format!("date field value out of range: {year}-{month:02}-{day:02}"));
    let astronomical = if year < 0 { year + 1 } else { year };
    let number =
        |value: i64, low: i64, high: i64| (low..=high).contains(&value).then_some(value as u32);
    let month = number(month, 1, 12).filter(|_| year != 0).ok_or_else(invalid)?;
    let last = days_in_month(astronomical, month);
    let day = number(day, 1, last.into()).ok_or_else(invalid)?;
    Ok(days_from_civil(astronomical, month, day))
}

fn time(arrays: &[ArrayRef], first: usize, row: usize) -> Row<i64> {
    let (hour, minute) = (integer(arrays, first, row), integer(arrays, first + 1, row));
    let seconds = arrays[first + 2].as_primitive::<Float64Type>().value(row);
    let us = (seconds * 1_000_000.0).round_ties_even();
    let is_last = hour == 24 && minute == 0 && us == 0.0;
    let fits = (0..24).contains(&hour) && (0..60).contains(&minute) || is_last;
    if !fits || !(0.0..=60_000_000.0).contains(&us) {
        let message = format!("time field value out of range: {hour}:{minute:02}:{seconds:02}");
        return Err(out_of_range(message));
    }
    Ok((hour * 60 + minute) * 60_000_000 + us as i64)
}

fn make_date(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let mut found = vec![];
    for row in 0..arrays[0].len() {
        if is_null(&arrays, row) {
            found.push(None);
            continue;
        }
        let [year, month, of_month] = [0, 1, 2].map(|place| integer(&arrays, place, row));
        let days = check_date(day(year, month, of_month)?, None).map_err(raise_error)?;
        found.push(Some(days));
    }
    shaped(Arc::new(Date32Array::from(found)), is_scalar)
}

fn make_time(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let found = (0..arrays[0].len())
        .map(|row| (!is_null(&arrays, row)).then(|| time(&arrays, 0, row)).transpose());
    let found = found.collect::<Row<Vec<_>>>()?;
    shaped(Arc::new(Time64MicrosecondArray::from(found)), is_scalar)
}

fn clock(arrays: &[ArrayRef], row: usize) -> Row<Option<i64>> {
    let [year, month, of_month] = [0, 1, 2].map(|place| integer(arrays, place, row));
    let days = day(year, month, of_month)?;
    let time = time(arrays, 3, row)?;
    Ok(days.checked_mul(DAY_US).and_then(|us| us.checked_add(time)))
}

fn make_timestamp(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let mut found = vec![];
    for row in 0..arrays[0].len() {
        found.push(match is_null(&arrays, row) {
            true => None,
            false => Some(check_timestamp(clock(&arrays, row)?, None).map_err(raise_error)?),
        });
    }
    stamps(found, arguments, is_scalar)
}

fn make_timestamptz(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let mut found = vec![];
    for row in 0..arrays[0].len() {
        if is_null(&arrays, row) {
            found.push(None);
            continue;
        }
        let name = arrays[6].as_string::<i32>().value(row);
        let zone = match TimeZone::find(name) {
            Some(zone) => zone,
            None => zone_at(&arrays[6..], 0)?,
        };
        let us = clock(&arrays, row)?.and_then(|us| zone.moment(us));
        found.push(Some(check_timestamp(us, None).map_err(raise_error)?));
    }
    stamps(found, arguments, is_scalar)
}

fn is_finite(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let values = &arrays[0];
    let found: BooleanArray = match values.data_type() {
        DataType::Date32 => {
            let is_infinite =
                |days| days == POSITIVE_INFINITY_DAYS || days == NEGATIVE_INFINITY_DAYS;
            let days = values.as_primitive::<Date32Type>().iter();
            days.map(|days| days.map(|days| !is_infinite(days))).collect()
        }
        DataType::Timestamp(..) => {
            moments(values)?.iter().map(|us| us.map(|us| !is_infinite(us))).collect()
        }
        // Intervals have no infinity.
        _ => (0..values.len()).map(|row| values.is_valid(row).then_some(true)).collect(),
    };
    shaped(Arc::new(found), is_scalar)
}

/// The moment so many seconds after 1970-01-01 UTC.
pub(super) fn of_seconds(seconds: f64) -> Row<i64> {
    if seconds == f64::INFINITY {
        return Ok(POSITIVE_INFINITY_US);
    }
    if seconds == f64::NEG_INFINITY {
        return Ok(NEGATIVE_INFINITY_US);
    }
    if seconds.is_nan() {
        return Err(out_of_range("timestamp cannot be NaN"));
    }
    let us = (seconds * 1_000_000.0).round_ties_even();
    let fits = us.abs() < 9.2e18;
    let us = if fits { Some(us as i64) } else { None };
    check_timestamp(us, None)
        .map_err(|_| out_of_range(format!("timestamp out of range: \"{seconds}\"")))
}
