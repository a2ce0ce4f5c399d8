//! Distances between moments in years, months and days, and moments on a grid.

use std::sync::Arc;

use arrow::array::{Array, AsArray, IntervalMonthDayNanoArray};
use arrow::datatypes::{IntervalMonthDayNano, IntervalMonthDayNanoType};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::{Row, has_zone, is_infinite, local, meeting, moments, out_of_range, stamps, zone_at};
use crate::functions::row::{arrays, raise, raise_error, shaped};
use crate::functions::typed::{Settled, Typed, Wanted};
use crate::text::{DAY_US, check_timestamp, civil, days_in_month};
use crate::{SqlState, Type};

pub(super) static DEFINITIONS: &[Typed] = &[
    Typed {
        name: "age",
        settle: |kinds| match kinds {
            [left, right] | [left, right, Type::Text] => {
                let kind = meeting(left, right)?;
                let mut settled = Settled::new([kind.clone(), kind.clone()], Type::Interval);
                if kind == Type::Timestamptz {
                    settled.arguments.push(Wanted::Zone);
                }
                Some(settled)
            }
            _ => None,
        },
        invoke: age,
    },
    Typed {
        name: "date_bin",
        settle: |kinds| match kinds {
            [Type::Interval | Type::Unknown, source, origin] => {
                let kind = meeting(source, origin)?;
                Some(Settled::new([Type::Interval, kind.clone(), kind.clone()], kind))
            }
            _ => None,
        },
        invoke: bin,
    },
];

fn age(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let (left, right) = (moments(&arrays[0])?, moments(&arrays[1])?);
    let zone = has_zone(&arrays[0]).then(|| zone_at(&arrays, 2)).transpose()?;
    let clock = |us: i64| zone.map_or(us, |zone| local(us, zone));
    let mut found = Vec::with_capacity(left.len());
    for pair in left.iter().zip(right) {
        found.push(match pair {
            (Some(left), Some(right)) if is_infinite(left) || is_infinite(right) => {
                return Err(out_of_range("timestamp out of range").into());
            }
            (Some(left), Some(right)) => Some(between(clock(left), clock(right))?),
            _ => None,
        });
    }
    shaped(Arc::new(IntervalMonthDayNanoArray::from(found)), is_scalar)
}

/// From the second clock to the first, borrowing days from months as PostgreSQL does.
fn between(left: i64, right: i64) -> Row<IntervalMonthDayNano> {
    let is_negative = left < right;
    let sign = if is_negative { -1 } else { 1 };
    let (first, second) = (civil(left.div_euclid(DAY_US)), civil(right.div_euclid(DAY_US)));
    let mut us = (left.rem_euclid(DAY_US) - right.rem_euclid(DAY_US)) * sign;
    let mut days = (i64::from(first.2) - i64::from(second.2)) * sign;
    let mut months = ((first.0 - second.0) * 12 + i64::from(first.1) - i64::from(second.1)) * sign;
    if us < 0 {
        us += DAY_US;
        days -= 1;
    }
    let (year, month) = if is_negative { (first.0, first.1) } else { (second.0, second.1) };
    while days < 0 {
        days += i64::from(days_in_month(year, month));
        months -= 1;
    }
    let number =
        |value: i64| i32::try_from(value * sign).map_err(|_| out_of_range("interval out of range"));
    Ok(IntervalMonthDayNano::new(number(months)?, number(days)?, us * sign * 1000))
}

fn bin(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let strides = arrays[0].as_primitive::<IntervalMonthDayNanoType>();
    let (sources, origins) = (moments(&arrays[1])?, moments(&arrays[2])?);
    let mut found = Vec::with_capacity(sources.len());
    for row in 0..sources.len() {
        if strides.is_null(row) || sources.is_null(row) || origins.is_null(row) {
            found.push(None);
            continue;
        }
        found.push(Some(binned(strides.value(row), sources.value(row), origins.value(row))?));
    }
    stamps(found, arguments, is_scalar)
}

fn binned(stride: IntervalMonthDayNano, source: i64, origin: i64) -> Row<i64> {
    if is_infinite(source) {
        return Ok(source);
    }
    if is_infinite(origin) {
        return Err(out_of_range("origin out of range"));
    }
    if stride.months != 0 {
        let message = "timestamps cannot be binned into intervals containing months or years";
        return Err(raise(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    let us = i64::from(stride.days) * DAY_US + stride.nanoseconds / 1000;
    if us <= 0 {
        return Err(out_of_range("stride must be greater than zero"));
    }
    let distance =
        source.checked_sub(origin).ok_or_else(|| out_of_range("interval out of range"))?;
    let start = origin.checked_add(distance.div_euclid(us) * us);
    check_timestamp(start, None).map_err(raise_error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::days_from_civil;

    #[test]
    fn ages_borrow_days_from_months() {
        let day = |year, month, day| days_from_civil(year, month, day) * DAY_US;
        let cases = [
            (day(2024, 3, 1), day(2023, 1, 31), (13, 1, 0)),
            (day(2024, 2, 29), day(2024, 3, 31), (-1, -2, 0)),
            (day(2024, 1, 1) + 1, day(2024, 1, 1), (0, 0, 1000)),
            (day(2024, 1, 2), day(2024, 1, 1) + 1, (0, 0, (DAY_US - 1) * 1000)),
        ];
        for (left, right, (months, days, ns)) in cases {
            assert_eq!(between(left, right).unwrap(), IntervalMonthDayNano::new(months, days, ns));
        }
    }
}
