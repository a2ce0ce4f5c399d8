//! Moments with so many digits of seconds, and intervals limited to fields.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, IntervalMonthDayNanoArray, PrimitiveArray};
use arrow::datatypes::{
    DataType, Int32Type, IntervalMonthDayNanoType, Time64MicrosecondType, TimestampMicrosecondType,
};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::{Row, is_infinite};
use crate::functions::row::{arrays, raise_error, shaped};
use crate::functions::typed::{Settled, Typed, is_text};
use crate::text::{Limit, check_timestamp};
use crate::{Error, SqlState, Type};

pub(super) static DEFINITIONS: &[Typed] = &[
    Typed {
        name: "moment rounded",
        settle: |kinds| match kinds {
            [kind @ (Type::Time | Type::Timestamp | Type::Timestamptz), Type::Integer] => {
                Some(Settled::new([kind.clone(), Type::Integer], kind.clone()))
            }
            _ => None,
        },
        invoke: round,
    },
    Typed {
        name: "interval limited",
        settle: |kinds| {
            let [value, Type::Text | Type::Unknown, Type::Integer] = kinds else { return None };
            let value = match value {
                Type::Interval | Type::Time => Type::Interval,
                text if is_text(text) => Type::Text,
                _ => return None,
            };
            Some(Settled::new([value, Type::Text, Type::Integer], Type::Interval))
        },
        invoke: limit,
    },
];

/// 2000-01-01: half a unit goes away from here.
const EPOCH_US: i64 = 946_684_800_000_000;

/// The nearest multiple of a unit.
fn nearest(us: i64, digits: i32) -> i64 {
    let unit = 10_i64.pow((6 - digits).clamp(0, 6) as u32);
    let away = us.saturating_add(if us < 0 { -(unit / 2) } else { unit / 2 });
    away / unit * unit
}

/// The nearest moment of so many digits.
fn nearest_stamp(us: i64, digits: i32) -> Row<i64> {
    if is_infinite(us) || digits >= 6 {
        return Ok(us);
    }
    let from_epoch = us.saturating_sub(EPOCH_US);
    let rounded = nearest(from_epoch, digits).checked_add(EPOCH_US);
    check_timestamp(rounded, None).map_err(raise_error)
}

/// Moments with so many digits of seconds.
pub(crate) fn moments_rounded(array: &ArrayRef, digits: u8) -> Result<ArrayRef, Error> {
    let digits = i32::from(digits);
    Ok(match array.data_type() {
        DataType::Time64(_) => {
            let times = array.as_primitive::<Time64MicrosecondType>();
            Arc::new(times.unary::<_, Time64MicrosecondType>(|us| nearest(us, digits)))
        }
        DataType::Timestamp(..) => {
            let stamps = array.as_primitive::<TimestampMicrosecondType>();
            let rounded: PrimitiveArray<TimestampMicrosecondType> =
                stamps.try_unary(|us| nearest_stamp(us, digits)).map_err(|_| {
                    Error::new(SqlState::DATETIME_FIELD_OVERFLOW, "timestamp out of range")
                })?;
            Arc::new(rounded.with_data_type(array.data_type().clone()))
        }
        _ => Arc::clone(array),
    })
}

fn round(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let digits = arrays[1].as_primitive::<Int32Type>();
    let rounded: ArrayRef = match arrays[0].data_type() {
        DataType::Time64(_) => {
            let times = arrays[0].as_primitive::<Time64MicrosecondType>().iter();
            let rounded = times.zip(digits).map(|(us, digits)| Some(nearest(us?, digits?)));
            Arc::new(rounded.collect::<PrimitiveArray<Time64MicrosecondType>>())
        }
        data_type => {
            let stamps = arrays[0].as_primitive::<TimestampMicrosecondType>().iter();
            let rounded = stamps.zip(digits).map(|(us, digits)| match (us, digits) {
                (Some(us), Some(digits)) => nearest_stamp(us, digits).map(Some),
                _ => Ok(None),
            });
            let rounded = rounded.collect::<Row<PrimitiveArray<TimestampMicrosecondType>>>()?;
            Arc::new(rounded.with_data_type(data_type.clone()))
        }
    };
    shaped(rounded, is_scalar)
}

fn limit(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let fields = arrays[1].as_string::<i32>();
    let digits = arrays[2].as_primitive::<Int32Type>();
    let mut found = vec![];
    for row in 0..arrays[0].len() {
        if arrays[0].is_null(row) {
            found.push(None);
            continue;
        }
        let limit = Limit::find(fields.value(row))
            .ok_or_else(|| Error::internal("fields of an interval that there aren't"))?;
        let digits = digits.value(row).unsigned_abs();
        let value = match arrays[0].as_string_opt::<i32>() {
            Some(texts) => limit.read(texts.value(row), digits),
            None => {
                limit.apply(arrays[0].as_primitive::<IntervalMonthDayNanoType>().value(row), digits)
            }
        };
        found.push(Some(value.map_err(raise_error)?));
    }
    shaped(Arc::new(IntervalMonthDayNanoArray::from(found)), is_scalar)
}
