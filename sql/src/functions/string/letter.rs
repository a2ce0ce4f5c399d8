//! Letters: their case, their numbers, and how a text is written with escapes.

use std::sync::Arc;

use arrow::array::{AsArray, Int64Array, StringArray, StringBuilder};
use arrow::datatypes::{Int32Type, Int64Type};
use arrow::error::ArrowError;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use crate::functions::row::{arrays, raise, shaped};
use crate::functions::typed::{Settled, Typed, is_integer, is_text};
use crate::{SqlState, Type};

pub(super) static DEFINITIONS: &[Typed] = &[
    Typed { name: "upper", settle: text, invoke: |a| each(a, |t| t.chars().map(upper).collect()) },
    Typed { name: "lower", settle: text, invoke: |a| each(a, |t| t.chars().map(lower).collect()) },
    Typed { name: "initcap", settle: text, invoke: |a| each(a, capitals) },
    Typed {
        name: "chr",
        settle: |kinds| match kinds {
            [number] if is_integer(number) => Some(Settled::new([Type::Integer], Type::Text)),
            _ => None,
        },
        invoke: character,
    },
    Typed {
        name: "to_hex",
        settle: |kinds| match kinds {
            [Type::SmallInt | Type::Integer] => Some(Settled::new([Type::Integer], Type::Text)),
            [Type::BigInt] => Some(Settled::new([Type::BigInt], Type::Text)),
            _ => None,
        },
        invoke: hexadecimal,
    },
    Typed {
        name: "bit_count",
        settle: |kinds| match kinds {
            [Type::Bytea] => Some(Settled::new([Type::Bytea], Type::BigInt)),
            _ => None,
        },
        invoke: |arguments| {
            let (arrays, is_scalar) = arrays(arguments)?;
            let count = |bytes: &[u8]| bytes.iter().map(|byte| i64::from(byte.count_ones())).sum();
            let counts = arrays[0].as_binary::<i32>().iter().map(|bytes| bytes.map(count));
            shaped(Arc::new(counts.collect::<Int64Array>()), is_scalar)
        },
    },
    Typed { name: "unistr", settle: text, invoke: unescaped },
];

fn text(kinds: &[Type]) -> Option<Settled> {
    match kinds {
        [text] if is_text(text) => Some(Settled::new([Type::Text], Type::Text)),
        _ => None,
    }
}

fn each(arguments: &ScalarFunctionArgs, change: impl Fn(&str) -> String) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let texts = arrays[0].as_string::<i32>().iter().map(|text| text.map(&change));
    shaped(Arc::new(texts.collect::<StringArray>()), is_scalar)
}

/// The capital letter, if that is a single one.
fn upper(letter: char) -> char {
    let mut letters = letter.to_uppercase();
    match (letters.next(), letters.next()) {
        (Some(upper), None) => upper,
        _ => letter,
    }
}

fn lower(letter: char) -> char {
    let mut letters = letter.to_lowercase();
    match (letters.next(), letters.next()) {
        (Some(lower), None) => lower,
        _ => letter,
    }
}

fn capitals(text: &str) -> String {
    let mut is_inside = false;
    let mut cased = |letter: char| {
        let changed = if is_inside { lower(letter) } else { upper(letter) };
        is_inside = letter.is_alphanumeric();
        changed
    };
    text.chars().map(&mut cased).collect()
}

fn character(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let mut builder = StringBuilder::new();
    for number in arrays[0].as_primitive::<Int32Type>() {
        let Some(number) = number else {
            builder.append_null();
            continue;
        };
        let limit = |message: String| raise(SqlState::PROGRAM_LIMIT_EXCEEDED, message);
        if number < 0 {
            let message = "character number must be positive";
            return Err(raise(SqlState::INVALID_PARAMETER_VALUE, message).into());
        }
        if number == 0 {
            return Err(limit("null character not permitted".to_owned()).into());
        }
        let found = char::from_u32(number.unsigned_abs()).ok_or_else(|| {
            let what = if number > 0x0010_ffff { "too large" } else { "not valid" };
            limit(format!("requested character {what} for encoding: {number}"))
        })?;
        builder.append_value(found.encode_utf8(&mut [0; 4]));
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

fn hexadecimal(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let texts: StringArray = match arrays[0].as_primitive_opt::<Int32Type>() {
        Some(numbers) => numbers.iter().map(|number| Some(format!("{:x}", number?))).collect(),
        None => {
            let numbers = arrays[0].as_primitive::<Int64Type>().iter();
            numbers.map(|number| Some(format!("{:x}", number?))).collect()
        }
    };
    shaped(Arc::new(texts), is_scalar)
}

fn unescaped(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let mut builder = StringBuilder::new();
    for text in arrays[0].as_string::<i32>() {
        match text {
            Some(text) => builder.append_value(without_escapes(text)?),
            None => builder.append_null(),
        }
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

/// `\0061`, `\u0061`, `\+000061` and `\U00000061` as the characters that they stand for.
fn without_escapes(text: &str) -> std::result::Result<String, ArrowError> {
    let wrong = || raise(SqlState::SYNTAX_ERROR, "invalid Unicode escape");
    let pair = || raise(SqlState::SYNTAX_ERROR, "invalid Unicode surrogate pair");
    let mut units: Vec<u16> = vec![];
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        if next != '\\' {
            units.extend(next.encode_utf16(&mut [0; 2]).iter());
            rest = &rest[next.len_utf8()..];
            continue;
        }
        if rest[1..].starts_with('\\') {
            units.push(u16::from(b'\\'));
            rest = &rest[2..];
            continue;
        }
        let (skipped, length) = match rest[1..].chars().next() {
            Some('u') => (2, 4),
            Some('+') => (2, 6),
            Some('U') => (2, 8),
            _ => (1, 4),
        };
        let digits = rest.get(skipped..skipped + length).ok_or_else(wrong)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let code = u32::from_str_radix(digits, 16).map_err(|_| wrong())?;
        match (u16::try_from(code), char::from_u32(code)) {
            (Ok(0), _) | (Err(_), None) => return Err(wrong()),
            (Ok(unit), _) => units.push(unit),
            (Err(_), Some(found)) => units.extend(found.encode_utf16(&mut [0; 2]).iter()),
        }
        rest = &rest[skipped + length..];
    }
    String::from_utf16(&units).map_err(|_| pair())
}
