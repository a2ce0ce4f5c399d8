//! Text to Arrow arrays.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Float32Builder,
    Float64Builder, Int16Builder, Int32Builder, Int64Builder, IntervalMonthDayNanoBuilder,
    LargeBinaryBuilder, ListArray, NullBufferBuilder, StringBuilder, Time64MicrosecondBuilder,
    TimestampMicrosecondBuilder,
};
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Field};

use crate::text::float::{double, real};
use crate::text::integer::integer;
use crate::text::interval::parse_interval;
use crate::text::list::elements;
use crate::text::moment::{date, time, timestamp, timestamptz};
use crate::text::numeric::{MAX_PRECISION, Numeric, numeric, out_of_precision};
use crate::text::uuid::uuid;
use crate::text::{TextFormat, invalid_syntax, json, trim};
use crate::{Error, SqlState, Type};

/// What becomes of characters that a `varchar(n)` has no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// 22001 unless they are blanks: on the way into a column.
    Refuse,
    /// Cut off: in a cast that is written out.
    Cut,
}

/// Reads texts of one type into an array.
#[derive(Debug)]
pub struct TextDecoder {
    kind: Type,
    format: TextFormat,
    excess: Excess,
    builder: Builder,
    length: usize,
}

#[derive(Debug)]
enum Builder {
    Boolean(BooleanBuilder),
    SmallInt(Int16Builder),
    Integer(Int32Builder),
    BigInt(Int64Builder),
    Real(Float32Builder),
    Double(Float64Builder),
    Decimal(Decimal128Builder, u8, i8),
    Numeric(LargeBinaryBuilder),
    Text(StringBuilder),
    Bytea(BinaryBuilder),
    Date(Date32Builder),
    Time(Time64MicrosecondBuilder),
    Timestamp(TimestampMicrosecondBuilder),
    Timestamptz(TimestampMicrosecondBuilder),
    Interval(IntervalMonthDayNanoBuilder),
    Array { elements: Box<TextDecoder>, offsets: Vec<i32>, nulls: NullBufferBuilder },
}

impl TextDecoder {
    /// A decoder for a type. Types that can't be read are a 0A000.
    pub fn new(kind: &Type, format: &TextFormat, excess: Excess) -> Result<Self, Error> {
        let builder = match kind {
            Type::Boolean => Builder::Boolean(BooleanBuilder::new()),
            Type::SmallInt => Builder::SmallInt(Int16Builder::new()),
            Type::Integer => Builder::Integer(Int32Builder::new()),
            // Names of objects are looked up where there is a catalog; here are their numbers.
            Type::BigInt
            | Type::Oid
            | Type::Xid
            | Type::Regclass
            | Type::Regtype
            | Type::Regproc
            | Type::Regnamespace
            | Type::Regrole => Builder::BigInt(Int64Builder::new()),
            Type::Real => Builder::Real(Float32Builder::new()),
            Type::Double => Builder::Double(Float64Builder::new()),
            Type::Numeric(_) => match kind.arrow() {
                DataType::Decimal128(precision, scale) => {
                    let builder = Decimal128Builder::new()
                        .with_data_type(DataType::Decimal128(precision, scale));
                    Builder::Decimal(builder, precision, scale)
                }
                _ => Builder::Numeric(LargeBinaryBuilder::new()),
            },
            Type::Text
            | Type::Varchar(_)
            | Type::Char(_)
            | Type::Name
            | Type::InternalChar
            | Type::Uuid
            | Type::Json
            | Type::Jsonb
            | Type::Unknown => Builder::Text(StringBuilder::new()),
            Type::Bytea => Builder::Bytea(BinaryBuilder::new()),
            Type::Date => Builder::Date(Date32Builder::new()),
            Type::Time => Builder::Time(Time64MicrosecondBuilder::new()),
            Type::Timestamp => Builder::Timestamp(TimestampMicrosecondBuilder::new()),
            Type::Timestamptz => Builder::Timestamptz(
                TimestampMicrosecondBuilder::new().with_data_type(kind.arrow()),
            ),
            Type::Interval => Builder::Interval(IntervalMonthDayNanoBuilder::new()),
            Type::Array(element) => Builder::Array {
                elements: Box::new(Self::new(element, format, excess)?),
                offsets: vec![0],
                nulls: NullBufferBuilder::new(0),
            },
            Type::Int2Vector
            | Type::OidVector
            | Type::AclItem
            | Type::NodeTree
            | Type::AnyArray
            | Type::Void => return Err(Error::unsupported(format!("type {kind} from text"))),
        };
        Ok(Self { kind: kind.clone(), format: format.clone(), excess, builder, length: 0 })
    }

    /// How many values were appended.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether none were.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Reads a value. After an error nothing has been appended.
    pub fn append(&mut self, text: &str) -> Result<(), Error> {
        let format = &self.format;
        match &mut self.builder {
            Builder::Boolean(builder) => builder.append_value(boolean(text)?),
            Builder::SmallInt(builder) => {
                let value = integer(text, i16::MIN.into(), i16::MAX.into(), "smallint")?;
                builder.append_value(value as i16);
            }
            Builder::Integer(builder) => {
                let value = integer(text, i32::MIN.into(), i32::MAX.into(), "integer")?;
                builder.append_value(value as i32);
            }
            Builder::BigInt(builder) => builder.append_value(match self.kind {
                Type::BigInt => integer(text, i64::MIN, i64::MAX, "bigint")?,
                _ => integer(text, i32::MIN.into(), u32::MAX.into(), "oid")? & 0xffff_ffff,
            }),
            // Equal floats must be the same bytes.
            Builder::Real(builder) => builder.append_value(normal_real(real(text)?)),
            Builder::Double(builder) => builder.append_value(normal_double(double(text)?)),
            Builder::Decimal(builder, precision, scale) => {
                builder.append_value(decimal(text, *precision, *scale)?);
            }
            Builder::Numeric(builder) => builder.append_value(numeric(text)?.to_bytes()),
            Builder::Text(builder) => match self.kind {
                Type::Uuid => builder.append_value(uuid(text)?),
                Type::Json => {
                    json::check(text)?;
                    builder.append_value(text);
                }
                Type::Jsonb => builder.append_value(json::canonical(text)?),
                _ => builder.append_value(text_as(text, &self.kind, self.excess)?),
            },
            Builder::Bytea(builder) => builder.append_value(bytea(text)?),
            Builder::Date(builder) => builder.append_value(date(text)?),
            Builder::Time(builder) => builder.append_value(time(text)?),
            Builder::Timestamp(builder) => builder.append_value(timestamp(text)?),
            Builder::Timestamptz(builder) => builder.append_value(timestamptz(text, format)?),
            Builder::Interval(builder) => builder.append_value(parse_interval(text)?),
            Builder::Array { elements: decoder, offsets, nulls } => {
                append_array(text, decoder, offsets)?;
                nulls.append_non_null();
            }
        }
        self.length += 1;
        Ok(())
    }

    /// Appends NULL.
    pub fn append_null(&mut self) {
        match &mut self.builder {
            Builder::Boolean(builder) => builder.append_null(),
            Builder::SmallInt(builder) => builder.append_null(),
            Builder::Integer(builder) => builder.append_null(),
            Builder::BigInt(builder) => builder.append_null(),
            Builder::Real(builder) => builder.append_null(),
            Builder::Double(builder) => builder.append_null(),
            Builder::Decimal(builder, ..) => builder.append_null(),
            Builder::Numeric(builder) => builder.append_null(),
            Builder::Text(builder) => builder.append_null(),
            Builder::Bytea(builder) => builder.append_null(),
            Builder::Date(builder) => builder.append_null(),
            Builder::Time(builder) => builder.append_null(),
            Builder::Timestamp(builder) => builder.append_null(),
            Builder::Timestamptz(builder) => builder.append_null(),
            Builder::Interval(builder) => builder.append_null(),
            Builder::Array { elements, offsets, nulls } => {
                offsets.push(elements.len() as i32);
                nulls.append_null();
            }
        }
        self.length += 1;
    }

    /// The values, in the Arrow type that carries theirs; the decoder is empty again.
    pub fn finish(&mut self) -> ArrayRef {
        self.length = 0;
        match &mut self.builder {
            Builder::Boolean(builder) => Arc::new(builder.finish()),
            Builder::SmallInt(builder) => Arc::new(builder.finish()),
            Builder::Integer(builder) => Arc::new(builder.finish()),
            Builder::BigInt(builder) => Arc::new(builder.finish()),
            Builder::Real(builder) => Arc::new(builder.finish()),
            Builder::Double(builder) => Arc::new(builder.finish()),
            Builder::Decimal(builder, ..) => Arc::new(builder.finish()),
            Builder::Numeric(builder) => Arc::new(builder.finish()),
            Builder::Text(builder) => Arc::new(builder.finish()),
            Builder::Bytea(builder) => Arc::new(builder.finish()),
            Builder::Date(builder) => Arc::new(builder.finish()),
            Builder::Time(builder) => Arc::new(builder.finish()),
            Builder::Timestamp(builder) => Arc::new(builder.finish()),
            Builder::Timestamptz(builder) => Arc::new(builder.finish()),
            Builder::Interval(builder) => Arc::new(builder.finish()),
            Builder::Array { elements, offsets, nulls } => {
                let values = elements.finish();
                let field = Field::new_list_field(values.data_type().clone(), true);
                let offsets = std::mem::replace(offsets, vec![0]);
                let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
                Arc::new(ListArray::new(Arc::new(field), offsets, values, nulls.finish()))
            }
        }
    }
}

fn append_array(
    text: &str,
    decoder: &mut TextDecoder,
    offsets: &mut Vec<i32>,
) -> Result<(), Error> {
    let elements = elements(text)?;
    // A bad element must leave nothing behind, so each is tried before any is appended.
    let mut trial = TextDecoder::new(&decoder.kind, &decoder.format, decoder.excess)?;
    for element in elements.iter().flatten() {
        trial.append(element)?;
    }
    for element in &elements {
        match element {
            Some(element) => decoder.append(element)?,
            None => decoder.append_null(),
        }
    }
    offsets.push(decoder.len() as i32);
    Ok(())
}

/// -0 as 0, and any NaN as the one.
fn normal_double(value: f64) -> f64 {
    if value.is_nan() { f64::NAN } else { value + 0.0 }
}

/// -0 as 0, and any NaN as the one.
fn normal_real(value: f32) -> f32 {
    if value.is_nan() { f32::NAN } else { value + 0.0 }
}

/// Reads a `boolean`: any unambiguous beginning of its words.
fn boolean(text: &str) -> Result<bool, Error> {
    let word = trim(text).to_ascii_lowercase();
    let begins = |full: &str| !word.is_empty() && full.starts_with(&word);
    if begins("true") || begins("yes") || word == "on" || word == "1" {
        Ok(true)
    } else if begins("false") || begins("no") || word == "of" || word == "off" || word == "0" {
        Ok(false)
    } else {
        Err(invalid_syntax("boolean", text))
    }
}

fn decimal(text: &str, precision: u8, scale: i8) -> Result<i128, Error> {
    let scale_max = u8::try_from(scale).unwrap_or(0);
    let overflow = || out_of_precision(precision, scale);
    let number = Numeric::parse(text, scale_max).map_err(|error| match error.state {
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE => overflow(),
        _ => error,
    })?;
    let unscaled = super::numeric::rescale(number.unscaled, number.scale as i8, scale);
    let limit = 10i128.pow(u32::from(precision.min(MAX_PRECISION)));
    unscaled.filter(|value| value.abs() < limit).ok_or_else(overflow)
}

/// A text as a type of texts holds it.
pub(crate) fn text_as<'a>(
    text: &'a str,
    kind: &Type,
    excess: Excess,
) -> Result<Cow<'a, str>, Error> {
    Ok(match kind {
        Type::Varchar(Some(characters)) => of_length(text, *characters, excess, kind)?.into(),
        // Blanks at the end are no part of the value: they are put there when it is shown.
        Type::Char(Some(characters)) => {
            of_length(text, *characters, excess, kind)?.trim_end_matches(' ').into()
        }
        Type::Char(None) => text.trim_end_matches(' ').into(),
        Type::InternalChar => first_character(text).into(),
        Type::Name => name(text).into(),
        _ => text.into(),
    })
}

/// The text, if it has at most so many characters, not counting blanks at the end.
fn of_length<'a>(
    text: &'a str,
    characters: u32,
    excess: Excess,
    kind: &Type,
) -> Result<&'a str, Error> {
    let characters = characters as usize;
    if text.len() <= characters {
        return Ok(text);
    }
    let Some((end, _)) = text.char_indices().nth(characters) else { return Ok(text) };
    let (kept, rest) = text.split_at(end);
    if excess == Excess::Refuse && !rest.bytes().all(|byte| byte == b' ') {
        let message = format!("value too long for type {kind}");
        return Err(Error::new(SqlState::STRING_DATA_RIGHT_TRUNCATION, message));
    }
    Ok(kept)
}

fn first_character(text: &str) -> &str {
    text.char_indices().nth(1).map_or(text, |(end, _)| &text[..end])
}

/// A name has 63 bytes at most.
fn name(text: &str) -> &str {
    let mut end = text.len().min(63);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Reads a `bytea`, in hexadecimal or in the old escapes.
pub(crate) fn bytea(text: &str) -> Result<Vec<u8>, Error> {
    if let Some(hex) = text.strip_prefix("\\x") {
        let bad = |message: String| Error::new(SqlState::INVALID_PARAMETER_VALUE, message);
        let mut bytes = Vec::with_capacity(hex.len() / 2);
        let mut digits = hex.chars().filter(|c| !c.is_ascii_whitespace());
        while let Some(high) = digits.next() {
            let digit = |c: char| {
                let digit = c.to_digit(16);
                digit.ok_or_else(|| bad(format!("invalid hexadecimal digit: \"{c}\"")))
            };
            let high = digit(high)?;
            let odd = || bad("invalid hexadecimal data: odd number of digits".to_owned());
            let low = digit(digits.next().ok_or_else(odd)?)?;
            bytes.push((high * 16 + low) as u8);
        }
        return Ok(bytes);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    loop {
        rest = match rest {
            [] => return Ok(bytes),
            [b'\\', b'\\', rest @ ..] => {
                bytes.push(b'\\');
                rest
            }
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', rest @ ..] => {
                bytes.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                rest
            }
            [b'\\', ..] => {
                let message = "invalid input syntax for type bytea";
                return Err(Error::new(SqlState::INVALID_TEXT_REPRESENTATION, message));
            }
            [byte, rest @ ..] => {
                bytes.push(*byte);
                rest
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::TextColumn;

    /// What comes back when a text is read and written.
    fn round_trip(kind: &Type, text: &str) -> Result<String, Error> {
        let format = TextFormat::default();
        let mut decoder = TextDecoder::new(kind, &format, Excess::Refuse)?;
        decoder.append_null();
        decoder.append(text)?;
        let array = decoder.finish();
        assert_eq!(array.data_type(), &kind.arrow());
        let column = TextColumn::new(kind, &array, &format)?;
        let mut out = vec![];
        assert!(!column.write(0, &mut out));
        assert!(column.write(1, &mut out));
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn texts_come_back_as_postgresql_writes_them() {
        let integers = Type::Array(Box::new(Type::Integer));
        let cases = [
            (Type::Boolean, " YES ", "t"),
            (Type::Boolean, "of", "f"),
            (Type::SmallInt, "-32768", "-32768"),
            (Type::Integer, " +007 ", "7"),
            (Type::BigInt, "9223372036854775807", "9223372036854775807"),
            (Type::Real, "1.1", "1.1"),
            (Type::Double, "-0", "0"),
            (Type::Numeric(Some((6, 2))), "1234.1264", "1234.13"),
            (Type::Numeric(Some((6, 2))), "-1234.125", "-1234.13"),
            (Type::Numeric(Some((38, 0))), "9e37", "90000000000000000000000000000000000000"),
            (Type::Text, " a ", " a "),
            (Type::Varchar(Some(3)), "abc  ", "abc"),
            (Type::Varchar(Some(3)), "äöü", "äöü"),
            (Type::Char(Some(3)), "a", "a  "),
            (Type::Char(Some(2)), "a   ", "a "),
            (Type::Char(None), "a  ", "a"),
            (Type::Bytea, "\\x00fF", "\\x00ff"),
            (Type::Bytea, "a\\\\\\001", "\\x615c01"),
            (Type::Time, "1:02:03.5 pm", "13:02:03.5"),
            (Type::Interval, "1 day", "1 day"),
            (
                Type::Uuid,
                "{A0EEBC99-9C0B4EF8BB6D6BB9BD380A11}",
                "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            ),
            (integers, "{1,NULL, 3}", "{1,NULL,3}"),
        ];
        for (kind, text, expected) in cases {
            let text = text.replace("{A0EEBC99-9C0B4EF8", "{A0EEBC999C0B4EF8");
            assert_eq!(round_trip(&kind, &text).unwrap(), expected, "{kind:?}");
        }
    }

    #[test]
    fn bad_texts_have_postgresql_s_states() {
        let cases = [
            (Type::Boolean, "maybe", "22P02"),
            (Type::Boolean, "o", "22P02"),
            (Type::Integer, "abc", "22P02"),
            (Type::Integer, "1.5", "22P02"),
            (Type::Integer, "3000000000", "22003"),
            (Type::BigInt, "9223372036854775808", "22003"),
            (Type::Numeric(Some((4, 2))), "99999", "22003"),
            (Type::Numeric(Some((6, 2))), "9999.995", "22003"),
            (Type::Varchar(Some(3)), "abcd", "22001"),
            (Type::Uuid, "x", "22P02"),
            (Type::Array(Box::new(Type::Integer)), "{1,x}", "22P02"),
            (Type::Json, "{", "22P02"),
            // Only its number: there is no catalog here.
            (Type::Regclass, "t", "22P02"),
            (Type::AclItem, "t", "0A000"),
        ];
        for (kind, text, state) in cases {
            assert_eq!(round_trip(&kind, text).unwrap_err().state.code(), state, "{kind:?}");
        }
    }

    #[test]
    fn errors_read_as_postgresql_s() {
        let message = |kind: Type, text| round_trip(&kind, text).unwrap_err().message;
        assert_eq!(message(Type::Integer, "abc"), "invalid input syntax for type integer: \"abc\"");
        assert_eq!(
            message(Type::SmallInt, "40000"),
            "value \"40000\" is out of range for type smallint"
        );
        assert_eq!(
            message(Type::Varchar(Some(3)), "abcd"),
            "value too long for type character varying(3)"
        );
        let error = round_trip(&Type::Numeric(Some((4, 2))), "99999").unwrap_err();
        assert_eq!(error.message, "numeric field overflow");
        assert_eq!(
            error.detail.as_deref(),
            Some(
                "A field with precision 4, scale 2 must round to an absolute value less than 10^2."
            )
        );
    }

    #[test]
    fn a_bad_element_leaves_nothing_behind() {
        let kind = Type::Array(Box::new(Type::Integer));
        let mut decoder = TextDecoder::new(&kind, &TextFormat::default(), Excess::Refuse).unwrap();
        assert!(decoder.append("{1,x}").is_err());
        decoder.append("{2}").unwrap();
        let array = decoder.finish();
        let column = TextColumn::new(&kind, &array, &TextFormat::default()).unwrap();
        let mut out = vec![];
        assert!(column.len() == 1 && column.write(0, &mut out));
        assert_eq!(out, b"{2}");
    }
}
