//! Dates, times and intervals.
//!
//! A third argument, where there is one, names the session's time zone: a day or month added to a
//! `timestamptz` is one on the clocks of that zone.

use arrow::datatypes::{
    DataType, Date32Type, Float64Type, Int32Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
    IntervalUnit, Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
};
use arrow::error::ArrowError;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use crate::functions::arithmetic::Operator;
use crate::functions::resolve::rank;
use crate::functions::row::{binary, division_by_zero, raise, raise_error};
use crate::functions::scalar::Resolved;
use crate::text::{
    DAY_US, NEGATIVE_INFINITY_DAYS, NEGATIVE_INFINITY_US, POSITIVE_INFINITY_DAYS,
    POSITIVE_INFINITY_US, TimeZone, check_date, check_timestamp, civil, days_from_civil,
    days_in_month,
};
use crate::{SqlState, Type};

/// What an operand is to these operators.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Date,
    Time,
    Timestamp,
    Timestamptz,
    Interval,
    /// `smallint` or `integer`.
    Days,
    Number,
    Unknown,
    Other,
}

fn kind(data_type: &DataType) -> Kind {
    match data_type {
        DataType::Date32 => Kind::Date,
        DataType::Time64(_) => Kind::Time,
        DataType::Timestamp(_, None) => Kind::Timestamp,
        DataType::Timestamp(_, Some(_)) => Kind::Timestamptz,
        DataType::Interval(IntervalUnit::MonthDayNano) => Kind::Interval,
        DataType::Int16 | DataType::Int32 => Kind::Days,
        DataType::Null => Kind::Unknown,
        other if rank(other).is_some() => Kind::Number,
        _ => Kind::Other,
    }
}

/// Settles the types, if one operand is of ours.
pub(super) fn resolve(
    operator: Operator,
    left: &DataType,
    right: &DataType,
    zone: Option<&DataType>,
) -> Option<Resolved> {
    use Operator::{Add, Divide, Multiply, Subtract};
    let interval = DataType::Interval(IntervalUnit::MonthDayNano);
    let timestamp = Type::Timestamp.arrow();
    let timestamptz = Type::Timestamptz.arrow();
    let (left, right, returns) = match (operator, kind(left), kind(right)) {
        (Add | Subtract, Kind::Date, Kind::Days) => (DataType::Date32, DataType::Int32, Type::Date),
        (Add, Kind::Days, Kind::Date) => (DataType::Int32, DataType::Date32, Type::Date),
        (Subtract, Kind::Date, Kind::Date | Kind::Unknown) => {
            (DataType::Date32, DataType::Date32, Type::Integer)
        }
        (Add | Subtract, Kind::Date | Kind::Timestamp, Kind::Interval)
        | (Add, Kind::Timestamp, Kind::Unknown) => (timestamp, interval, Type::Timestamp),
        (Add, Kind::Interval, Kind::Date | Kind::Timestamp) => {
            (interval, timestamp, Type::Timestamp)
        }
        (Add | Subtract, Kind::Timestamptz, Kind::Interval)
        | (Add, Kind::Timestamptz, Kind::Unknown) => (timestamptz, interval, Type::Timestamptz),
        (Add, Kind::Interval, Kind::Timestamptz) => (interval, timestamptz, Type::Timestamptz),
        (Add, Kind::Date | Kind::Timestamp, Kind::Time) => {
            (timestamp, DataType::Time64(TimeUnit::Microsecond), Type::Timestamp)
        }
        (Add, Kind::Time, Kind::Date | Kind::Timestamp) => {
            (DataType::Time64(TimeUnit::Microsecond), timestamp, Type::Timestamp)
        }
        (Add, Kind::Interval, Kind::Time) => {
            (interval, DataType::Time64(TimeUnit::Microsecond), Type::Time)
        }
        (Add | Subtract, Kind::Time, Kind::Interval) => {
            (DataType::Time64(TimeUnit::Microsecond), interval, Type::Time)
        }
        (Subtract, Kind::Time, Kind::Time) => {
            let time = DataType::Time64(TimeUnit::Microsecond);
            (time.clone(), time, Type::Interval)
        }
        (Subtract, Kind::Date | Kind::Timestamp, Kind::Date | Kind::Timestamp | Kind::Unknown) => {
            (timestamp.clone(), timestamp, Type::Interval)
        }
        (
            Subtract,
            Kind::Date | Kind::Timestamp | Kind::Timestamptz,
            Kind::Date | Kind::Timestamp | Kind::Timestamptz | Kind::Unknown,
        ) => (timestamptz.clone(), timestamptz, Type::Interval),
        (Add | Subtract, Kind::Interval, Kind::Interval | Kind::Unknown) => {
            (interval.clone(), interval, Type::Interval)
        }
        (Multiply | Divide, Kind::Interval, Kind::Days | Kind::Number) => {
            (interval, DataType::Float64, Type::Interval)
        }
        (Multiply, Kind::Days | Kind::Number, Kind::Interval) => {
            (DataType::Float64, interval, Type::Interval)
        }
        _ => return None,
    };
    let mut arguments = vec![left, right];
    arguments.extend(zone.map(|_| DataType::Utf8));
    Some(Resolved::new(arguments, returns))
}

/// Computes.
pub(super) fn invoke(
    operator: Operator,
    left: &DataType,
    right: &DataType,
    arguments: &ScalarFunctionArgs,
) -> Result<ColumnarValue> {
    type Stamp = TimestampMicrosecondType;
    type Span = IntervalMonthDayNanoType;
    let sign = if operator == Operator::Subtract { -1 } else { 1 };
    match (operator, kind(left), kind(right)) {
        (_, Kind::Date, Kind::Days) => {
            binary::<Date32Type, Int32Type, Date32Type>(arguments, |date, days| {
                move_date(date, i64::from(days) * sign)
            })
        }
        (_, Kind::Days, Kind::Date) => {
            binary::<Int32Type, Date32Type, Date32Type>(arguments, |days, date| {
                move_date(date, i64::from(days))
            })
        }
        (_, Kind::Time, Kind::Time) => {
            binary::<Time64MicrosecondType, Time64MicrosecondType, Span>(
                arguments,
                |left, right| Ok(IntervalMonthDayNano::new(0, 0, (left - right) * 1000)),
            )
        }
        (_, Kind::Date, Kind::Date) => {
            binary::<Date32Type, Date32Type, Int32Type>(arguments, date_difference)
        }
        (_, Kind::Timestamp | Kind::Timestamptz, Kind::Interval) => {
            let zone = zone(arguments)?;
            binary::<Stamp, Span, Stamp>(arguments, |stamp, span| {
                let span = if sign < 0 { negate(span)? } else { span };
                move_stamp(stamp, span, zone)
            })
        }
        (_, Kind::Interval, Kind::Timestamp | Kind::Timestamptz) => {
            let zone = zone(arguments)?;
            binary::<Span, Stamp, Stamp>(arguments, |span, stamp| move_stamp(stamp, span, zone))
        }
        (_, Kind::Timestamp, Kind::Time) => {
            binary::<Stamp, Time64MicrosecondType, Stamp>(arguments, |stamp, time| {
                let span = IntervalMonthDayNano::new(0, 0, time * 1000);
                move_stamp(stamp, span, None)
            })
        }
        (_, Kind::Time, Kind::Timestamp) => {
            binary::<Time64MicrosecondType, Stamp, Stamp>(arguments, |time, stamp| {
                let span = IntervalMonthDayNano::new(0, 0, time * 1000);
                move_stamp(stamp, span, None)
            })
        }
        (_, Kind::Interval, Kind::Time) => {
            binary::<Span, Time64MicrosecondType, Time64MicrosecondType>(arguments, |span, time| {
                let us = span.nanoseconds / 1000;
                Ok((time + us % DAY_US).rem_euclid(DAY_US))
            })
        }
        (_, Kind::Time, Kind::Interval) => {
            binary::<Time64MicrosecondType, Span, Time64MicrosecondType>(arguments, |time, span| {
                let us = span.nanoseconds / 1000;
                Ok((time + (us % DAY_US) * sign).rem_euclid(DAY_US))
            })
        }
        (_, Kind::Timestamp | Kind::Timestamptz, Kind::Timestamp | Kind::Timestamptz) => {
            binary::<Stamp, Stamp, Span>(arguments, stamp_difference)
        }
        (_, Kind::Interval, Kind::Interval) => {
            binary::<Span, Span, Span>(arguments, |left, right| {
                let right = if sign < 0 { negate(right)? } else { right };
                add(left, right)
            })
        }
        (Operator::Multiply, Kind::Interval, _) => {
            binary::<Span, Float64Type, Span>(arguments, scale)
        }
        (Operator::Multiply, _, Kind::Interval) => {
            binary::<Float64Type, Span, Span>(arguments, |factor, span| scale(span, factor))
        }
        (Operator::Divide, Kind::Interval, _) => {
            binary::<Span, Float64Type, Span>(arguments, |span, divisor| {
                if divisor == 0.0 {
                    return Err(division_by_zero());
                }
                divide(span, divisor)
            })
        }
        _ => Err(DataFusionError::Internal(format!("{operator:?} of {left} and {right}"))),
    }
}

/// The session's zone, if days must be those of its clocks.
fn zone(arguments: &ScalarFunctionArgs) -> Result<Option<TimeZone>> {
    let name = match arguments.args.get(2) {
        None => return Ok(None),
        Some(ColumnarValue::Scalar(ScalarValue::Utf8(Some(name)))) => name,
        Some(_) => {
            return Err(DataFusionError::Internal("a time zone that isn't constant".to_owned()));
        }
    };
    match TimeZone::find(name) {
        Some(zone) => Ok(Some(zone)),
        None => Err(raise(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("time zone \"{name}\" not recognized"),
        )
        .into()),
    }
}

fn move_date(date: i32, days: i64) -> std::result::Result<i32, ArrowError> {
    if date == POSITIVE_INFINITY_DAYS || date == NEGATIVE_INFINITY_DAYS {
        return Ok(date);
    }
    check_date(i64::from(date) + days, None).map_err(raise_error)
}

fn date_difference(left: i32, right: i32) -> std::result::Result<i32, ArrowError> {
    let infinite = |date| date == POSITIVE_INFINITY_DAYS || date == NEGATIVE_INFINITY_DAYS;
    if infinite(left) || infinite(right) {
        return Err(raise(SqlState::DATETIME_FIELD_OVERFLOW, "cannot subtract infinite dates"));
    }
    left.checked_sub(right).ok_or_else(interval_out_of_range)
}

fn is_infinite(us: i64) -> bool {
    us == POSITIVE_INFINITY_US || us == NEGATIVE_INFINITY_US
}

fn stamp_difference(
    left: i64,
    right: i64,
) -> std::result::Result<IntervalMonthDayNano, ArrowError> {
    if is_infinite(left) || is_infinite(right) {
        let message = "cannot subtract infinite timestamps";
        return Err(raise(SqlState::DATETIME_FIELD_OVERFLOW, message));
    }
    let us = left.checked_sub(right).ok_or_else(interval_out_of_range)?;
    let days = i32::try_from(us / DAY_US).map_err(|_| interval_out_of_range())?;
    Ok(IntervalMonthDayNano::new(0, days, us % DAY_US * 1000))
}

/// Adds months, then days, then time; the first two on the zone's clocks.
pub(in crate::functions) fn move_stamp(
    stamp: i64,
    span: IntervalMonthDayNano,
    zone: Option<TimeZone>,
) -> std::result::Result<i64, ArrowError> {
    if is_infinite(stamp) {
        return Ok(stamp);
    }
    let mut us = Some(stamp);
    if span.months != 0 || span.days != 0 {
        let offset = |us: i64| zone.map_or(0, |zone| i64::from(zone.offset_at(us)) * 1_000_000);
        let local = stamp.checked_add(offset(stamp));
        let moved = local.and_then(|local| {
            let day = add_months(local.div_euclid(DAY_US), i64::from(span.months));
            let day = day + i64::from(span.days);
            day.checked_mul(DAY_US)?.checked_add(local.rem_euclid(DAY_US))
        });
        us = match zone {
            Some(zone) => moved.and_then(|local| zone.moment(local)),
            None => moved,
        };
    }
    let us = us.and_then(|us| us.checked_add(span.nanoseconds / 1000));
    check_timestamp(us, None).map_err(raise_error)
}

/// The same day so many months later, or the last of a shorter month.
fn add_months(day: i64, months: i64) -> i64 {
    if months == 0 {
        return day;
    }
    let (year, month, day) = civil(day);
    let months = year * 12 + i64::from(month) - 1 + months;
    let (year, month) = (months.div_euclid(12), months.rem_euclid(12) as u32 + 1);
    days_from_civil(year, month, day.min(days_in_month(year, month)))
}

fn interval_out_of_range() -> ArrowError {
    raise(SqlState::DATETIME_FIELD_OVERFLOW, "interval out of range")
}

/// The interval backwards.
pub(super) fn negate(
    span: IntervalMonthDayNano,
) -> std::result::Result<IntervalMonthDayNano, ArrowError> {
    let negated = (|| {
        Some(IntervalMonthDayNano::new(
            span.months.checked_neg()?,
            span.days.checked_neg()?,
            span.nanoseconds.checked_neg()?,
        ))
    })();
    negated.ok_or_else(interval_out_of_range)
}

fn add(
    left: IntervalMonthDayNano,
    right: IntervalMonthDayNano,
) -> std::result::Result<IntervalMonthDayNano, ArrowError> {
    let sum = (|| {
        Some(IntervalMonthDayNano::new(
            left.months.checked_add(right.months)?,
            left.days.checked_add(right.days)?,
            left.nanoseconds.checked_add(right.nanoseconds)?,
        ))
    })();
    sum.ok_or_else(interval_out_of_range)
}

fn scale(
    span: IntervalMonthDayNano,
    factor: f64,
) -> std::result::Result<IntervalMonthDayNano, ArrowError> {
    let us = (span.nanoseconds / 1000) as f64;
    cascade(f64::from(span.months) * factor, f64::from(span.days) * factor, us * factor)
}

/// The interval so many times shorter.
pub(in crate::functions) fn divide(
    span: IntervalMonthDayNano,
    divisor: f64,
) -> std::result::Result<IntervalMonthDayNano, ArrowError> {
    let us = (span.nanoseconds / 1000) as f64;
    cascade(f64::from(span.months) / divisor, f64::from(span.days) / divisor, us / divisor)
}

/// Fractions of months become days, fractions of days time, as in PostgreSQL's `interval_mul`.
fn cascade(
    months: f64,
    days: f64,
    us: f64,
) -> std::result::Result<IntervalMonthDayNano, ArrowError> {
    const MONTH_DAYS: f64 = 30.0;
    const DAY_SECONDS: f64 = 86_400.0;
    let fits = |value: f64| value.abs() < f64::from(i32::MAX);
    if !fits(months) || !fits(days) {
        return Err(interval_out_of_range());
    }
    // Hundredths of microseconds are noise of the multiplication.
    let steady = |value: f64| (value * 1_000_000.0).round_ties_even() / 1_000_000.0;
    let month_days = steady((months - months.trunc()) * MONTH_DAYS);
    let mut seconds = steady((days - days.trunc() + month_days - month_days.trunc()) * DAY_SECONDS);
    let mut whole_days = days.trunc() + month_days.trunc();
    if seconds.abs() >= DAY_SECONDS {
        whole_days += (seconds / DAY_SECONDS).trunc();
        seconds -= (seconds / DAY_SECONDS).trunc() * DAY_SECONDS;
    }
    let nanoseconds = (us + seconds * 1_000_000.0).round_ties_even() * 1000.0;
    if nanoseconds.abs() >= i64::MAX as f64 || !fits(whole_days) {
        return Err(interval_out_of_range());
    }
    Ok(IntervalMonthDayNano::new(months.trunc() as i32, whole_days as i32, nanoseconds as i64))
}
