//! Arrays of one type to arrays of another.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int32Array, ListArray, PrimitiveArray, StringBuilder,
    new_null_array,
};
use arrow::compute::{CastOptions, cast_with_options, try_unary};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Decimal128Type, Field, Float32Type, Float64Type, Int16Type,
    Int32Type, Int64Type,
};
use arrow::error::ArrowError;
use datafusion::common::Result;
use stillframe_protocol::numeric::Numeric;

use super::json;
use super::moment::{dates, intervals, moments, times, timestamps};
use super::no_cast;
use super::number::{
    decimal, decimal_of_numeric, double_of_decimal, double_of_numeric, integer, integer_of_decimal,
    integer_of_double, integer_of_numeric, real_of_double, real_of_numeric,
};
use crate::functions::numeric;
use crate::functions::row::raise_error;
use crate::text::{Excess, TextColumn, TextDecoder, TextFormat, text_as};
use crate::{Error, Type};

/// Whether there is a cast: 42846 if not.
pub(super) fn check(from: &Type, to: &Type) -> Result<(), Error> {
    if exists(from, to) { Ok(()) } else { Err(no_cast(from, to)) }
}

fn exists(from: &Type, to: &Type) -> bool {
    use Type::{
        Array, BigInt, Boolean, Bytea, Date, Double, Integer, Interval, Json, Jsonb, Name, Numeric,
        Oid, Real, SmallInt, Text, Time, Timestamp, Timestamptz, Unknown, Uuid, Varchar,
    };
    // PostgreSQL writes every type as text when asked.
    if is_text(to) {
        return true;
    }
    match (from, to) {
        (from, to) if from == to => true,
        (Unknown, _) => true,
        (
            SmallInt | Integer | BigInt | Numeric(_) | Real | Double,
            SmallInt | Integer | BigInt | Numeric(_) | Real | Double,
        ) => true,
        (Boolean, Integer) | (Integer, Boolean) => true,
        (SmallInt | Integer | BigInt, Oid) => true,
        (from, Integer | BigInt | Oid) if is_oid(from) => true,
        (from, to) if is_oid(from) && is_oid(to) => true,
        (SmallInt | Integer | BigInt, to) if is_oid(to) => true,
        (Date, Timestamp | Timestamptz)
        | (Timestamp, Date | Timestamptz | Time)
        | (Timestamptz, Date | Timestamp | Time)
        | (Time, Interval)
        | (Interval, Time) => true,
        (Array(from), Array(to)) => exists(from, to),
        (Type::Int2Vector, Array(to)) => exists(&SmallInt, to),
        (Type::OidVector, Array(to)) => exists(&Oid, to),
        (
            Text | Varchar(_) | Name | Type::Char(_),
            Boolean | SmallInt | Integer | BigInt | Real | Double | Numeric(_) | Date | Time
            | Timestamp | Timestamptz | Interval | Uuid | Bytea | Oid | Json | Jsonb | Array(_),
        ) => true,
        (Json, Jsonb) | (Jsonb, Json) => true,
        (Jsonb, Boolean | SmallInt | Integer | BigInt | Real | Double | Numeric(_)) => true,
        _ => false,
    }
}

fn is_text(kind: &Type) -> bool {
    matches!(kind, Type::Text | Type::Varchar(_) | Type::Char(_) | Type::Name | Type::InternalChar)
}

fn is_oid(kind: &Type) -> bool {
    matches!(
        kind,
        Type::Oid
            | Type::Regclass
            | Type::Regtype
            | Type::Regproc
            | Type::Regnamespace
            | Type::Regrole
    )
}

/// Whether the session's time zone changes what comes out.
pub(super) fn depends_on_zone(from: &Type, to: &Type) -> bool {
    let other = |kind: &Type| !matches!(kind, Type::Timestamptz);
    match (from, to) {
        (Type::Array(from), Type::Array(to)) => depends_on_zone(from, to),
        (Type::Array(from), to) => depends_on_zone(from, to),
        (from, Type::Array(to)) => depends_on_zone(from, to),
        (Type::Timestamptz, to) => other(to),
        (from, Type::Timestamptz) => other(from),
        _ => false,
    }
}

/// Casts every value.
pub(super) fn convert(
    array: &ArrayRef,
    from: &Type,
    to: &Type,
    format: &TextFormat,
    excess: Excess,
) -> Result<ArrayRef> {
    if matches!(from, Type::Int2Vector | Type::OidVector) && *array.data_type() == to.arrow() {
        return Ok(Arc::clone(array));
    }
    if array.data_type().is_null() {
        return Ok(new_null_array(&to.arrow(), array.len()));
    }
    let array = &plain(array)?;
    if let Type::Array(to) = to
        && array.as_list_opt::<i32>().is_some()
    {
        return list(array, to, format, excess);
    }
    Ok(match to {
        Type::Text | Type::Varchar(_) | Type::Name | Type::InternalChar | Type::Char(_) => {
            text(array, from, to, format, excess)?
        }
        _ if *from == Type::Jsonb && !matches!(to, Type::Json) => json::scalar(array, to, format)?,
        _ if matches!(array.data_type(), DataType::Utf8) => of_text(array, to, format, excess)?,
        Type::SmallInt => integers::<Int16Type>(array, (i16::MIN.into(), i16::MAX.into()), to)?,
        Type::Integer => integers::<Int32Type>(array, (i32::MIN.into(), i32::MAX.into()), to)?,
        Type::BigInt => integers::<Int64Type>(array, (i64::MIN, i64::MAX), to)?,
        Type::Oid
        | Type::Regclass
        | Type::Regtype
        | Type::Regproc
        | Type::Regnamespace
        | Type::Regrole => {
            integers::<Int64Type>(array, (i32::MIN.into(), u32::MAX.into()), &Type::Oid)?
        }
        Type::Real => reals(array, from, to)?,
        Type::Double => doubles(array, from, to)?,
        Type::Numeric(None) => numerics(array, from, to)?,
        Type::Numeric(Some(_)) => decimals(array, from, to)?,
        Type::Boolean => booleans(array, from, to)?,
        Type::Date => dates(array, from, to, format.time_zone)?,
        Type::Timestamp => timestamps(array, from, to, format.time_zone)?,
        Type::Timestamptz => moments(array, from, to, format.time_zone)?,
        Type::Time => times(array, from, to, format.time_zone)?,
        Type::Interval => intervals(array, from, to)?,
        _ => return Err(no_cast(from, to).into()),
    })
}

/// The array as our own types carry it.
fn plain(array: &ArrayRef) -> Result<ArrayRef> {
    let wanted = Type::from_arrow(array.data_type()).map(|kind| kind.arrow());
    match wanted {
        Some(wanted) if &wanted != array.data_type() && !wanted.is_nested() => {
            let options = CastOptions { safe: false, ..CastOptions::default() };
            Ok(cast_with_options(array, &wanted, &options)?)
        }
        _ => Ok(Arc::clone(array)),
    }
}

fn list(array: &ArrayRef, to: &Type, format: &TextFormat, excess: Excess) -> Result<ArrayRef> {
    let list = array.as_list::<i32>();
    let DataType::List(field) = list.data_type() else { return Ok(Arc::clone(array)) };
    let from = Type::of(field).unwrap_or(Type::Text);
    let values = convert(list.values(), &from, to, format, excess)?;
    let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    Ok(Arc::new(ListArray::new(field, list.offsets().clone(), values, list.nulls().cloned())))
}

fn text(
    array: &ArrayRef,
    from: &Type,
    to: &Type,
    format: &TextFormat,
    excess: Excess,
) -> Result<ArrayRef> {
    if let Some(booleans) = array.as_boolean_opt() {
        // As text a boolean is a word, on the wire a letter.
        let word = |place| if booleans.value(place) { "true" } else { "false" };
        return texts(array, to, excess, |place, buffer: &mut Vec<u8>| {
            buffer.extend_from_slice(word(place).as_bytes());
            booleans.is_valid(place)
        });
    }
    if let Some(strings) = array.as_string_opt::<i32>() {
        return texts(array, to, excess, |place, buffer: &mut Vec<u8>| {
            buffer.extend_from_slice(strings.value(place).as_bytes());
            strings.is_valid(place)
        });
    }
    let column = TextColumn::new(from, array, format)?;
    texts(array, to, excess, |place, buffer: &mut Vec<u8>| column.write(place, buffer))
}

/// The texts that `write` appends; NULL where it returns `false`.
fn texts(
    array: &ArrayRef,
    to: &Type,
    excess: Excess,
    write: impl Fn(usize, &mut Vec<u8>) -> bool,
) -> Result<ArrayRef> {
    let mut builder = StringBuilder::with_capacity(array.len(), array.len() * 8);
    let mut buffer = vec![];
    for place in 0..array.len() {
        buffer.clear();
        if write(place, &mut buffer) {
            let text =
                std::str::from_utf8(&buffer).map_err(|error| Error::internal(error.to_string()))?;
            builder.append_value(text_as(text, to, excess).map_err(raise_error)?);
        } else {
            builder.append_null();
        }
    }
    Ok(Arc::new(builder.finish()))
}

fn of_text(array: &ArrayRef, to: &Type, format: &TextFormat, excess: Excess) -> Result<ArrayRef> {
    let strings = array.as_string::<i32>();
    let mut decoder = TextDecoder::new(to, format, excess)?;
    for text in strings {
        match text {
            Some(text) => decoder.append(text).map_err(raise_error)?,
            None => decoder.append_null(),
        }
    }
    Ok(decoder.finish())
}

/// Casts each value of a primitive array.
pub(super) fn each<I, O>(
    array: &ArrayRef,
    to: &Type,
    operation: impl Fn(I::Native) -> std::result::Result<O::Native, ArrowError>,
) -> Result<ArrayRef>
where
    I: ArrowPrimitiveType,
    O: ArrowPrimitiveType,
{
    let result: PrimitiveArray<O> = try_unary(array.as_primitive::<I>(), operation)?;
    Ok(Arc::new(result.with_data_type(to.arrow())))
}

fn integers<O>(array: &ArrayRef, bounds: (i64, i64), to: &Type) -> Result<ArrayRef>
where
    O: ArrowPrimitiveType,
    O::Native: TryFrom<i64>,
{
    let fit = |value: i64| {
        O::Native::try_from(value).map_err(|_| crate::functions::row::out_of_range(&to.to_string()))
    };
    match array.data_type() {
        DataType::Int16 => {
            each::<Int16Type, O>(array, to, |value| fit(integer(value.into(), bounds, to)?))
        }
        DataType::Int32 => {
            each::<Int32Type, O>(array, to, |value| fit(integer(value.into(), bounds, to)?))
        }
        DataType::Int64 => {
            each::<Int64Type, O>(array, to, |value| fit(integer(value.into(), bounds, to)?))
        }
        DataType::Float32 => each::<Float32Type, O>(array, to, |value| {
            fit(integer_of_double(value.into(), bounds, to)?)
        }),
        DataType::Float64 => {
            each::<Float64Type, O>(array, to, |value| fit(integer_of_double(value, bounds, to)?))
        }
        DataType::Decimal128(_, scale) => each::<Decimal128Type, O>(array, to, |value| {
            fit(integer_of_decimal(value, *scale, bounds, to)?)
        }),
        DataType::LargeBinary => {
            each_numeric::<O>(array, to, |value| fit(integer_of_numeric(value, bounds, to)?))
        }
        DataType::Boolean => {
            let values = array.as_boolean().iter().map(|value| value.map(i32::from));
            let values: ArrayRef = Arc::new(values.collect::<Int32Array>());
            integers::<O>(&values, bounds, to)
        }
        other => Err(no_cast(&Type::from_arrow(other).unwrap_or(Type::Unknown), to).into()),
    }
}

fn reals(array: &ArrayRef, from: &Type, to: &Type) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Int16 => each::<Int16Type, Float32Type>(array, to, |value| Ok(value.into())),
        DataType::Int32 => each::<Int32Type, Float32Type>(array, to, |value| Ok(value as f32)),
        DataType::Int64 => each::<Int64Type, Float32Type>(array, to, |value| Ok(value as f32)),
        DataType::Float32 => Ok(Arc::clone(array)),
        DataType::Float64 => each::<Float64Type, Float32Type>(array, to, real_of_double),
        DataType::Decimal128(_, scale) => each::<Decimal128Type, Float32Type>(array, to, |value| {
            let text = format!("{value}e{}", -i32::from(*scale));
            Ok(text.parse().unwrap_or(f32::NAN))
        }),
        DataType::LargeBinary => each_numeric::<Float32Type>(array, to, real_of_numeric),
        _ => Err(no_cast(from, to).into()),
    }
}

fn doubles(array: &ArrayRef, from: &Type, to: &Type) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Int16 => each::<Int16Type, Float64Type>(array, to, |value| Ok(value.into())),
        DataType::Int32 => each::<Int32Type, Float64Type>(array, to, |value| Ok(value.into())),
        DataType::Int64 => each::<Int64Type, Float64Type>(array, to, |value| Ok(value as f64)),
        DataType::Float32 => each::<Float32Type, Float64Type>(array, to, |value| Ok(value.into())),
        DataType::Float64 => Ok(Arc::clone(array)),
        DataType::Decimal128(_, scale) => each::<Decimal128Type, Float64Type>(array, to, |value| {
            Ok(double_of_decimal(value, *scale))
        }),
        DataType::LargeBinary => each_numeric::<Float64Type>(array, to, double_of_numeric),
        _ => Err(no_cast(from, to).into()),
    }
}

/// Casts each value of an array of numerics.
fn each_numeric<O: ArrowPrimitiveType>(
    array: &ArrayRef,
    to: &Type,
    operation: impl Fn(&Numeric) -> std::result::Result<O::Native, ArrowError>,
) -> Result<ArrayRef> {
    let results = numeric::values(array)?
        .map(|value| value?.map(|value| operation(&value)).transpose())
        .collect::<std::result::Result<PrimitiveArray<O>, ArrowError>>()?;
    Ok(Arc::new(results.with_data_type(to.arrow())))
}

/// Numerics that keep all digits.
fn numerics(array: &ArrayRef, from: &Type, to: &Type) -> Result<ArrayRef> {
    fn of<I: ArrowPrimitiveType>(
        array: &ArrayRef,
        operation: impl Fn(I::Native) -> Numeric,
    ) -> Result<ArrayRef> {
        let values = array.as_primitive::<I>().iter();
        let values = values.map(|value| Ok::<_, ArrowError>(value.map(&operation)));
        Ok(numeric::collect(values)?)
    }
    match array.data_type() {
        DataType::LargeBinary => Ok(Arc::clone(array)),
        DataType::Int16 => of::<Int16Type>(array, |value| Numeric::from(i64::from(value))),
        DataType::Int32 => of::<Int32Type>(array, |value| Numeric::from(i64::from(value))),
        DataType::Int64 => of::<Int64Type>(array, Numeric::from),
        DataType::Decimal128(_, scale) => {
            let scale = (*scale).max(0).unsigned_abs().into();
            of::<Decimal128Type>(array, |value| Numeric::from_units(value, scale))
        }
        DataType::Float32 => of::<Float32Type>(array, |value| Numeric::from_float(value.into(), 6)),
        DataType::Float64 => of::<Float64Type>(array, |value| Numeric::from_float(value, 15)),
        _ => Err(no_cast(from, to).into()),
    }
}

fn decimals(array: &ArrayRef, from: &Type, to: &Type) -> Result<ArrayRef> {
    let DataType::Decimal128(precision, scale) = to.arrow() else {
        return Err(no_cast(from, to).into());
    };
    let digits = (precision, scale);
    match array.data_type() {
        DataType::Int16 => {
            each::<Int16Type, Decimal128Type>(array, to, |value| decimal(value.into(), 0, digits))
        }
        DataType::Int32 => {
            each::<Int32Type, Decimal128Type>(array, to, |value| decimal(value.into(), 0, digits))
        }
        DataType::Int64 => {
            each::<Int64Type, Decimal128Type>(array, to, |value| decimal(value.into(), 0, digits))
        }
        DataType::Decimal128(_, from) => {
            each::<Decimal128Type, Decimal128Type>(array, to, |value| decimal(value, *from, digits))
        }
        DataType::LargeBinary => {
            each_numeric::<Decimal128Type>(array, to, |value| decimal_of_numeric(value, digits))
        }
        DataType::Float32 => each::<Float32Type, Decimal128Type>(array, to, |value| {
            decimal_of_numeric(&Numeric::from_float(value.into(), 6), digits)
        }),
        DataType::Float64 => each::<Float64Type, Decimal128Type>(array, to, |value| {
            decimal_of_numeric(&Numeric::from_float(value, 15), digits)
        }),
        _ => Err(no_cast(from, to).into()),
    }
}

fn booleans(array: &ArrayRef, from: &Type, to: &Type) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Boolean => Ok(Arc::clone(array)),
        DataType::Int32 => {
            let values = array.as_primitive::<Int32Type>().iter();
            let values: BooleanArray = values.map(|value| value.map(|value| value != 0)).collect();
            Ok(Arc::new(values))
        }
        _ => Err(no_cast(from, to).into()),
    }
}
