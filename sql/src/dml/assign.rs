//! Assignment casts: values of one type on their way into a column of another.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Float32Array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{Decimal128Type, Float32Type, Float64Type};
use stillframe_protocol::numeric::Numeric;

use crate::text::{Excess, TextColumn, TextDecoder, TextFormat};
use crate::{Column, Error, SqlState, Type};

/// The values as the column takes them.
///
/// # Errors
///
/// 42804 if PostgreSQL has no assignment cast from one type to the other; what the cast raises.
pub(crate) fn assign(
    array: &ArrayRef,
    from: &Type,
    column: &Column,
    format: &TextFormat,
) -> Result<ArrayRef, Error> {
    let to = &column.kind;
    match cast_of(from, to) {
        Cast::None => carried(array, to),
        Cast::Text => through_text(array, from, to, format),
        Cast::Integer => to_integer(array, to),
        Cast::Real => to_real(array),
        Cast::Missing => Err(mismatch(from, column, "expression")),
    }
}

/// Refuses an expression, by its type, that the column can't take.
pub(crate) fn check_assignable(from: &Type, column: &Column, what: &str) -> Result<(), Error> {
    match cast_of(from, &column.kind) {
        Cast::Missing => Err(mismatch(from, column, what)),
        _ => Ok(()),
    }
}

fn mismatch(from: &Type, column: &Column, what: &str) -> Error {
    let message = format!(
        "column \"{}\" is of type {} but {what} is of type {}",
        column.name,
        bare(&column.kind),
        bare(from)
    );
    Error::new(SqlState::DATATYPE_MISMATCH, message)
        .with_hint("You will need to rewrite or cast the expression.")
}

/// How values get from one type to another.
enum Cast {
    /// They are the same; only the carrier may differ.
    None,
    /// As text that is read again.
    Text,
    /// A number is rounded, and must fit.
    Integer,
    /// A number that must fit.
    Real,
    Missing,
}

fn cast_of(from: &Type, to: &Type) -> Cast {
    let is_moment = |kind: &Type| matches!(kind, Type::Date | Type::Timestamp | Type::Timestamptz);
    match (from, to) {
        (Type::Unknown, _) => Cast::Text,
        // The carrier has no room for excess.
        (_, Type::Varchar(Some(_)) | Type::Char(_)) => Cast::Text,
        (from, to) if from == to => Cast::None,
        (Type::Text | Type::Varchar(_), Type::Text | Type::Varchar(None)) => Cast::None,
        (_, Type::Text | Type::Varchar(_) | Type::Name) => Cast::Text,
        (from, Type::SmallInt | Type::Integer | Type::BigInt) if is_number(from) => Cast::Integer,
        (Type::Double, Type::Real) => Cast::Real,
        (Type::Real, Type::Double) => Cast::None,
        (from, to) if is_number(from) && is_number(to) => Cast::Text,
        (from, to) if is_moment(from) && is_moment(to) => Cast::Text,
        (Type::Timestamp | Type::Timestamptz | Type::Interval, Type::Time) => Cast::Text,
        (Type::Time, Type::Interval) => Cast::Text,
        (Type::Array(from), Type::Array(to)) => match cast_of(from, to) {
            Cast::None if from.arrow() == to.arrow() => Cast::None,
            Cast::Missing => Cast::Missing,
            _ => Cast::Text,
        },
        (Type::Json, Type::Jsonb) | (Type::Jsonb, Type::Json) => Cast::Text,
        (Type::SmallInt | Type::Integer | Type::BigInt, Type::Oid) => Cast::Text,
        (Type::Oid, Type::Integer | Type::BigInt) => Cast::Integer,
        _ => Cast::Missing,
    }
}

fn is_number(kind: &Type) -> bool {
    matches!(
        kind,
        Type::SmallInt
            | Type::Integer
            | Type::BigInt
            | Type::Real
            | Type::Double
            | Type::Numeric(_)
    )
}

/// The type without its modifier, as messages have it.
fn bare(kind: &Type) -> Type {
    match kind {
        Type::Numeric(_) => Type::Numeric(None),
        Type::Varchar(_) => Type::Varchar(None),
        other => other.clone(),
    }
}

/// The same values in the type's own carrier.
fn carried(array: &ArrayRef, to: &Type) -> Result<ArrayRef, Error> {
    let wanted = to.arrow();
    if *array.data_type() == wanted {
        return Ok(Arc::clone(array));
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, &wanted, &options)
        .map_err(|error| Error::internal(format!("a value is carried wrongly: {error}")))
}

fn through_text(
    array: &ArrayRef,
    from: &Type,
    to: &Type,
    format: &TextFormat,
) -> Result<ArrayRef, Error> {
    // A float becomes a numeric by the digits that are certain, and not by the shortest that read
    // back the same.
    let is_float = matches!(from, Type::Real | Type::Double);
    let digits = if is_float && matches!(to, Type::Numeric(_)) { 0 } else { 1 };
    let written = TextFormat { extra_float_digits: digits, ..format.clone() };
    let source = TextColumn::new(from, array, &written)?;
    let mut decoder = TextDecoder::new(to, format, Excess::Refuse)?;
    let mut text = vec![];
    for row in 0..array.len() {
        text.clear();
        if !source.write(row, &mut text) {
            decoder.append_null();
            continue;
        }
        let text = std::str::from_utf8(&text)
            .map_err(|error| Error::internal(format!("a value's text is not UTF-8: {error}")))?;
        decoder.append(match (from, text) {
            (Type::Boolean, "t") => "true",
            (Type::Boolean, "f") => "false",
            (Type::Char(_), text) => text.trim_end_matches(' '),
            (_, text) => text,
        })?;
    }
    Ok(decoder.finish())
}

fn to_integer(array: &ArrayRef, to: &Type) -> Result<ArrayRef, Error> {
    let out_of_range =
        || Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{to} out of range"));
    let array = rounded(array).ok_or_else(out_of_range)?;
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(&array, &to.arrow(), &options).map_err(|_| out_of_range())
}

/// Numbers without fractions: floats go to the nearest even, numerics away from zero.
fn rounded(array: &ArrayRef) -> Option<ArrayRef> {
    use arrow::datatypes::DataType;
    match array.data_type() {
        DataType::Float32 => {
            let array = array.as_primitive::<Float32Type>();
            let is_finite = array.iter().flatten().all(f32::is_finite);
            is_finite.then(|| -> ArrayRef {
                Arc::new(array.unary::<_, Float64Type>(|value| f64::from(value).round_ties_even()))
            })
        }
        DataType::Float64 => {
            let array = array.as_primitive::<Float64Type>();
            let is_finite = array.iter().flatten().all(f64::is_finite);
            is_finite.then(|| -> ArrayRef {
                Arc::new(array.unary::<_, Float64Type>(f64::round_ties_even))
            })
        }
        DataType::Decimal128(_, scale) if *scale > 0 => {
            let divisor = 10_i128.checked_pow(u32::from(scale.unsigned_abs()))?;
            let rounded =
                array.as_primitive::<Decimal128Type>().unary::<_, Decimal128Type>(|value| {
                    let (quotient, rest) = (value / divisor, value % divisor);
                    quotient + if rest.abs() >= divisor - rest.abs() { rest.signum() } else { 0 }
                });
            Some(Arc::new(rounded.with_data_type(DataType::Decimal128(38, 0))))
        }
        DataType::LargeBinary => {
            let values = array.as_binary::<i64>().iter();
            let values = values.map(|bytes| {
                let Some(bytes) = bytes else { return Some(None) };
                let whole = Numeric::decode(bytes)?.to_integer()?;
                (whole.unsigned_abs() < 10u128.pow(38)).then_some(Some(whole))
            });
            let values: Decimal128Array = values.collect::<Option<Vec<_>>>()?.into();
            Some(Arc::new(values.with_data_type(DataType::Decimal128(38, 0))))
        }
        _ => Some(Arc::clone(array)),
    }
}

fn to_real(array: &ArrayRef) -> Result<ArrayRef, Error> {
    let doubles = array.as_primitive_opt::<Float64Type>().ok_or_else(|| {
        Error::internal(format!("a double precision is carried as {}", array.data_type()))
    })?;
    let out_of_range = |what: &str| {
        Err(Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("value out of range: {what}")))
    };
    let mut reals = Vec::with_capacity(doubles.len());
    for double in doubles {
        let real = double.map(|double| double as f32);
        match (double, real) {
            (Some(double), Some(real)) if real.is_infinite() && double.is_finite() => {
                return out_of_range("overflow");
            }
            (Some(double), Some(0.0)) if double != 0.0 => return out_of_range("underflow"),
            _ => reals.push(real),
        }
    }
    Ok(Arc::new(Float32Array::from(reals)))
}
