//! Functions that make dates, times and intervals of other values, beside those of `datetime`.

mod age;
mod format;
mod made;
mod overlap;
mod pattern;
mod precision;
mod read;

pub(crate) use precision::moments_rounded;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, TimestampMicrosecondType};
use arrow::error::ArrowError;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use crate::functions::row::{raise, shaped};
use crate::functions::typed::Typed;
use crate::text::{NEGATIVE_INFINITY_US, POSITIVE_INFINITY_US, TimeZone};
use crate::{Error, SqlState, Type};

/// All of them.
pub(super) fn definitions() -> impl Iterator<Item = &'static Typed> {
    age::DEFINITIONS
        .iter()
        .chain(made::DEFINITIONS)
        .chain(format::DEFINITIONS)
        .chain(overlap::DEFINITIONS)
        .chain(precision::DEFINITIONS)
        .chain(read::DEFINITIONS)
}

type Row<T> = std::result::Result<T, ArrowError>;

fn out_of_range(message: impl Into<String>) -> ArrowError {
    raise(SqlState::DATETIME_FIELD_OVERFLOW, message)
}

fn is_infinite(us: i64) -> bool {
    us == POSITIVE_INFINITY_US || us == NEGATIVE_INFINITY_US
}

/// The zone that an argument names, if it is there; it is a constant.
fn zone_at(arrays: &[ArrayRef], place: usize) -> Result<TimeZone> {
    match arrays.get(place) {
        Some(names) if !names.is_empty() && names.is_valid(0) => {
            Ok(TimeZone::parse(names.as_string::<i32>().value(0))?)
        }
        _ => Ok(TimeZone::default()),
    }
}

/// What clocks in a zone show at a moment.
fn local(us: i64, zone: TimeZone) -> i64 {
    us.saturating_add(i64::from(zone.offset_at(us)) * 1_000_000)
}

fn moments(array: &ArrayRef) -> Result<&TimestampMicrosecondArray> {
    array
        .as_primitive_opt::<TimestampMicrosecondType>()
        .ok_or_else(|| Error::internal("a moment that is none").into())
}

fn has_zone(array: &ArrayRef) -> bool {
    matches!(array.data_type(), DataType::Timestamp(_, Some(_)))
}

/// Moments as the function's type carries them.
fn stamps(
    found: Vec<Option<i64>>,
    arguments: &ScalarFunctionArgs,
    is_scalar: bool,
) -> Result<ColumnarValue> {
    let data_type = arguments.return_type().clone();
    let array = TimestampMicrosecondArray::from(found).with_data_type(data_type);
    shaped(Arc::new(array), is_scalar)
}

/// The type in which two moments meet.
fn meeting(left: &Type, right: &Type) -> Option<Type> {
    use Type::{Date, Timestamp, Timestamptz, Unknown};
    match (left, right) {
        (Timestamptz, Timestamptz | Timestamp | Date | Unknown)
        | (Timestamp | Date | Unknown, Timestamptz)
        | (Unknown | Date, Unknown | Date) => Some(Timestamptz),
        (Timestamp, Timestamp | Date | Unknown) | (Date | Unknown, Timestamp) => Some(Timestamp),
        _ => None,
    }
}
