//! Arrow arrays to text.

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Decimal128Array,
    Float32Array, Float64Array, Int16Array, Int32Array, Int64Array, IntervalMonthDayNanoArray,
    LargeBinaryArray, ListArray, StringArray, StringViewArray, Time64MicrosecondArray,
    TimestampMicrosecondArray,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};

use crate::carrier::carried;
use crate::text::float::{write_double, write_real};
use crate::text::integer::write_integer;
use crate::text::interval::write_interval;
use crate::text::list::write_element;
use crate::text::moment::{write_date, write_time, write_timestamp, write_timestamptz};
use crate::text::numeric::{write_decimal, write_numeric};
use crate::text::{TextFormat, TimeZone};
use crate::{Error, Type};

/// The values of one column, ready to be written as text.
#[derive(Debug)]
pub struct TextColumn {
    nulls: Option<NullBuffer>,
    values: Values,
    length: usize,
}

#[derive(Debug)]
enum Values {
    Null,
    Boolean(BooleanArray),
    Int16(Int16Array),
    Int32(Int32Array),
    Int64(Int64Array),
    Real(Float32Array, i32),
    Double(Float64Array, i32),
    Decimal(Decimal128Array, i8),
    Numeric(LargeBinaryArray),
    Text(StringArray),
    /// With blanks up to so many characters.
    Padded(StringArray, usize),
    TextView(StringViewArray),
    Binary(BinaryArray),
    Date(Date32Array),
    Time(Time64MicrosecondArray),
    Timestamp(TimestampMicrosecondArray),
    Timestamptz(TimestampMicrosecondArray, TimeZone),
    Interval(IntervalMonthDayNanoArray),
    /// With whether it is one of the catalogs' vectors.
    Array(ListArray, Box<TextColumn>, bool),
}

impl TextColumn {
    /// The values of an array, as a type. What the array holds must be what carries the type, or
    /// what a cast without loss can bring into that form.
    pub fn new(kind: &Type, array: &ArrayRef, format: &TextFormat) -> Result<Self, Error> {
        let array = carried(kind, array)?;
        let values = match array.data_type() {
            DataType::Null => Values::Null,
            DataType::Boolean => Values::Boolean(array.as_boolean().clone()),
            DataType::Int16 => Values::Int16(array.as_primitive().clone()),
            DataType::Int32 => Values::Int32(array.as_primitive().clone()),
            DataType::Int64 => Values::Int64(array.as_primitive().clone()),
            DataType::Float32 => {
                Values::Real(array.as_primitive().clone(), format.extra_float_digits)
            }
            DataType::Float64 => {
                Values::Double(array.as_primitive().clone(), format.extra_float_digits)
            }
            DataType::Decimal128(_, scale) => Values::Decimal(array.as_primitive().clone(), *scale),
            DataType::LargeBinary => Values::Numeric(array.as_binary().clone()),
            DataType::Utf8 => match kind {
                Type::Char(Some(characters)) => {
                    Values::Padded(array.as_string().clone(), *characters as usize)
                }
                _ => Values::Text(array.as_string().clone()),
            },
            DataType::Utf8View => Values::TextView(array.as_string_view().clone()),
            DataType::Binary => Values::Binary(array.as_binary().clone()),
            DataType::Date32 => Values::Date(array.as_primitive().clone()),
            DataType::Time64(TimeUnit::Microsecond) => Values::Time(array.as_primitive().clone()),
            DataType::Timestamp(TimeUnit::Microsecond, None) => {
                Values::Timestamp(array.as_primitive().clone())
            }
            DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => {
                Values::Timestamptz(array.as_primitive().clone(), format.time_zone)
            }
            DataType::Interval(IntervalUnit::MonthDayNano) => {
                Values::Interval(array.as_primitive().clone())
            }
            DataType::List(field) => {
                let list = array.as_list().clone();
                let element = match kind {
                    Type::Array(element) => element.as_ref().clone(),
                    _ => Type::of(field).unwrap_or(Type::Text),
                };
                let elements = Self::new(&element, list.values(), format)?;
                let is_vector = matches!(kind, Type::Int2Vector | Type::OidVector);
                Values::Array(list, Box::new(elements), is_vector)
            }
            other => return Err(Error::unsupported(format!("a result of type {other}"))),
        };
        Ok(Self { nulls: array.logical_nulls(), values, length: array.len() })
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Appends the value at a place; `false`, and nothing appended, if it is NULL.
    pub fn write(&self, place: usize, out: &mut Vec<u8>) -> bool {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(place)) {
            return false;
        }
        match &self.values {
            Values::Null => return false,
            Values::Boolean(array) => out.push(if array.value(place) { b't' } else { b'f' }),
            Values::Int16(array) => write_integer(array.value(place).into(), out),
            Values::Int32(array) => write_integer(array.value(place).into(), out),
            Values::Int64(array) => write_integer(array.value(place), out),
            Values::Real(array, digits) => write_real(array.value(place), *digits, out),
            Values::Double(array, digits) => write_double(array.value(place), *digits, out),
            Values::Decimal(array, scale) => write_decimal(array.value(place), *scale, out),
            Values::Numeric(array) => write_numeric(array.value(place), out),
            Values::Text(array) => out.extend_from_slice(array.value(place).as_bytes()),
            Values::Padded(array, characters) => {
                let text = array.value(place);
                out.extend_from_slice(text.as_bytes());
                let missing = characters.saturating_sub(text.chars().count());
                out.resize(out.len() + missing, b' ');
            }
            Values::TextView(array) => out.extend_from_slice(array.value(place).as_bytes()),
            Values::Binary(array) => write_hex(array.value(place), out),
            Values::Date(array) => write_date(array.value(place), out),
            Values::Time(array) => write_time(array.value(place), out),
            Values::Timestamp(array) => write_timestamp(array.value(place), out),
            Values::Timestamptz(array, zone) => write_timestamptz(array.value(place), *zone, out),
            Values::Interval(array) => write_interval(array.value(place), out),
            Values::Array(array, elements, false) => write_array(array, elements, place, out),
            Values::Array(array, elements, true) => write_vector(array, elements, place, out),
        }
        true
    }
}

fn write_array(array: &ListArray, elements: &TextColumn, place: usize, out: &mut Vec<u8>) {
    let offsets = array.value_offsets();
    let mut element = vec![];
    out.push(b'{');
    for (count, inner) in (offsets[place]..offsets[place + 1]).enumerate() {
        if count > 0 {
            out.push(b',');
        }
        element.clear();
        if !elements.write(inner as usize, &mut element) {
            out.extend_from_slice(b"NULL");
        } else if matches!(elements.values, Values::Array(..)) {
            out.extend_from_slice(&element);
        } else {
            write_element(&element, out);
        }
    }
    out.push(b'}');
}

/// Elements between blanks.
fn write_vector(array: &ListArray, elements: &TextColumn, place: usize, out: &mut Vec<u8>) {
    let offsets = array.value_offsets();
    for (count, inner) in (offsets[place]..offsets[place + 1]).enumerate() {
        if count > 0 {
            out.push(b' ');
        }
        elements.write(inner as usize, out);
    }
}

fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(b"\\x");
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ListBuilder, StringBuilder, UInt64Array};

    use super::*;

    fn texts(kind: &Type, array: ArrayRef) -> Vec<Option<String>> {
        let column = TextColumn::new(kind, &array, &TextFormat::default()).unwrap();
        (0..column.len())
            .map(|place| {
                let mut out = vec![];
                column.write(place, &mut out).then(|| String::from_utf8(out).unwrap())
            })
            .collect()
    }

    fn some(texts: &[&str]) -> Vec<Option<String>> {
        texts.iter().map(|text| Some((*text).to_owned())).collect()
    }

    #[test]
    fn nulls_write_nothing() {
        let array = Arc::new(Int32Array::from(vec![Some(1), None]));
        assert_eq!(texts(&Type::Integer, array), [Some("1".to_owned()), None]);
        let array = arrow::array::new_null_array(&DataType::Null, 1);
        assert_eq!(texts(&Type::Text, array), [None]);
    }

    #[test]
    fn foreign_carriers_are_brought_into_form() {
        let array = Arc::new(UInt64Array::from(vec![7]));
        assert_eq!(texts(&Type::BigInt, array), some(&["7"]));
        let array = Arc::new(arrow::array::TimestampNanosecondArray::from(vec![1_500]));
        assert_eq!(texts(&Type::Timestamp, array), some(&["1970-01-01 00:00:00.000001"]));
    }

    #[test]
    fn bytes_are_hex_and_arrays_have_braces() {
        let array = Arc::new(BinaryArray::from_vec(vec![b"\x00\xff"]));
        assert_eq!(texts(&Type::Bytea, array), some(&["\\x00ff"]));
        let mut builder = ListBuilder::new(StringBuilder::new());
        builder.append_value([Some("a b"), None, Some("c")]);
        let kind = Type::Array(Box::new(Type::Text));
        assert_eq!(texts(&kind, Arc::new(builder.finish())), some(&["{\"a b\",NULL,c}"]));
    }
}
