//! The arrays that results come in, in the forms that are written to clients.

use arrow::array::{Array, ArrayRef};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};

use crate::{Error, Type};

/// The array in a form that can be written: DataFusion's own functions count unsigned, and have other
/// widths, lists and units than what carries the types here.
pub(crate) fn carried(kind: &Type, array: &ArrayRef) -> Result<ArrayRef, Error> {
    let wanted = match array.data_type() {
        DataType::Int8 | DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 | DataType::UInt64 => DataType::Int64,
        DataType::Float16 => DataType::Float32,
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::LargeUtf8 => DataType::Utf8,
        DataType::BinaryView | DataType::FixedSizeBinary(_) => DataType::Binary,
        DataType::Date64 => DataType::Date32,
        DataType::Time32(_) | DataType::Time64(TimeUnit::Nanosecond) => {
            DataType::Time64(TimeUnit::Microsecond)
        }
        DataType::Timestamp(
            TimeUnit::Second | TimeUnit::Millisecond | TimeUnit::Nanosecond,
            zone,
        ) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        DataType::Interval(IntervalUnit::YearMonth | IntervalUnit::DayTime)
        | DataType::Duration(_) => DataType::Interval(IntervalUnit::MonthDayNano),
        DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            DataType::List(field.clone())
        }
        DataType::Dictionary(_, value) => {
            let values = arrow::compute::cast(array, value).map_err(|_| unwritable(kind, array))?;
            return carried(kind, &values);
        }
        _ => return Ok(ArrayRef::clone(array)),
    };
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, &wanted, &options).map_err(|_| unwritable(kind, array))
}

fn unwritable(kind: &Type, array: &ArrayRef) -> Error {
    Error::unsupported(format!("a result of type {} carried as {}", kind, array.data_type()))
}
