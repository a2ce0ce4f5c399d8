//! Dates, times and intervals to each other.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::datatypes::{
    DataType, Date32Type, IntervalMonthDayNano, IntervalMonthDayNanoType, Time64MicrosecondType,
    TimestampMicrosecondType,
};
use arrow::error::ArrowError;
use datafusion::common::Result;

use super::convert::each;
use super::no_cast;
use crate::functions::row::{raise, raise_error};
use crate::text::{
    DAY_US, NEGATIVE_INFINITY_DAYS, NEGATIVE_INFINITY_US, POSITIVE_INFINITY_DAYS,
    POSITIVE_INFINITY_US, TimeZone, check_date, check_timestamp,
};
use crate::{SqlState, Type};

type Stamp = TimestampMicrosecondType;

/// The clock of a moment.
fn local(us: i64, zone: TimeZone) -> i64 {
    us.saturating_add(i64::from(zone.offset_at(us)) * 1_000_000)
}

fn is_infinite(us: i64) -> bool {
    us == POSITIVE_INFINITY_US || us == NEGATIVE_INFINITY_US
}

fn day_of(us: i64) -> std::result::Result<i32, ArrowError> {
    match us {
        POSITIVE_INFINITY_US => Ok(POSITIVE_INFINITY_DAYS),
        NEGATIVE_INFINITY_US => Ok(NEGATIVE_INFINITY_DAYS),
        us => check_date(us.div_euclid(DAY_US), None).map_err(raise_error),
    }
}

fn midnight_of(days: i32) -> std::result::Result<i64, ArrowError> {
    match days {
        POSITIVE_INFINITY_DAYS => Ok(POSITIVE_INFINITY_US),
        NEGATIVE_INFINITY_DAYS => Ok(NEGATIVE_INFINITY_US),
        days => {
            let us = i64::from(days).checked_mul(DAY_US);
            check_timestamp(us, None).map_err(|_| {
                let message = "date out of range for timestamp";
                raise(SqlState::DATETIME_FIELD_OVERFLOW, message)
            })
        }
    }
}

fn moment_of(local: i64, zone: TimeZone) -> std::result::Result<i64, ArrowError> {
    if is_infinite(local) {
        return Ok(local);
    }
    check_timestamp(zone.moment(local), None).map_err(raise_error)
}

pub(super) fn dates(array: &ArrayRef, from: &Type, to: &Type, zone: TimeZone) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Date32 => Ok(Arc::clone(array)),
        DataType::Timestamp(_, None) => each::<Stamp, Date32Type>(array, to, day_of),
        DataType::Timestamp(_, Some(_)) => each::<Stamp, Date32Type>(array, to, |us| {
            day_of(if is_infinite(us) { us } else { local(us, zone) })
        }),
        _ => Err(no_cast(from, to).into()),
    }
}

pub(super) fn timestamps(
    array: &ArrayRef,
    from: &Type,
    to: &Type,
    zone: TimeZone,
) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Date32 => each::<Date32Type, Stamp>(array, to, midnight_of),
        DataType::Timestamp(_, None) => Ok(Arc::clone(array)),
        DataType::Timestamp(_, Some(_)) => each::<Stamp, Stamp>(array, to, |us| {
            Ok(if is_infinite(us) { us } else { local(us, zone) })
        }),
        _ => Err(no_cast(from, to).into()),
    }
}

pub(super) fn moments(
    array: &ArrayRef,
    from: &Type,
    to: &Type,
    zone: TimeZone,
) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Date32 => {
            each::<Date32Type, Stamp>(array, to, |days| moment_of(midnight_of(days)?, zone))
        }
        DataType::Timestamp(_, None) => {
            each::<Stamp, Stamp>(array, to, |local| moment_of(local, zone))
        }
        DataType::Timestamp(_, Some(_)) => each::<Stamp, Stamp>(array, to, Ok),
        _ => Err(no_cast(from, to).into()),
    }
}

pub(super) fn times(array: &ArrayRef, from: &Type, to: &Type, zone: TimeZone) -> Result<ArrayRef> {
    type Clock = Time64MicrosecondType;
    match array.data_type() {
        DataType::Time64(_) => Ok(Arc::clone(array)),
        DataType::Timestamp(_, has_zone) => {
            let zone = has_zone.as_ref().map(|_| zone);
            let clock = |us| zone.map_or(us, |zone| local(us, zone)).rem_euclid(DAY_US);
            let times = each::<Stamp, Clock>(array, to, |us| Ok(clock(us)))?;
            // Infinity has no time of day.
            let stamps = array.as_primitive::<Stamp>().iter();
            let infinite = stamps.map(|us| us.map(is_infinite)).collect::<BooleanArray>();
            Ok(arrow::compute::nullif(&times, &infinite)?)
        }
        DataType::Interval(_) => each::<IntervalMonthDayNanoType, Clock>(array, to, |span| {
            Ok((span.nanoseconds / 1000).rem_euclid(DAY_US))
        }),
        _ => Err(no_cast(from, to).into()),
    }
}

pub(super) fn intervals(array: &ArrayRef, from: &Type, to: &Type) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Interval(_) => Ok(Arc::clone(array)),
        DataType::Time64(_) => {
            each::<Time64MicrosecondType, IntervalMonthDayNanoType>(array, to, |us| {
                Ok(IntervalMonthDayNano::new(0, 0, us * 1000))
            })
        }
        _ => Err(no_cast(from, to).into()),
    }
}
