//! Parts of text, by characters, and of bytes.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryBuilder, Int32Array, StringBuilder};
use arrow::datatypes::Int32Type;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::{bytes_at, is_of_text};
use crate::functions::regex;
use crate::functions::row::{arrays, raise, shaped};
use crate::functions::typed::{Settled, Typed, is_integer, is_text};
use crate::{Error, SqlState, Type};

pub(in crate::functions) static SUBSTRING: Typed =
    Typed { name: "substring", settle: sub, invoke: substring };

/// `position(x in y)`, with `y` first.
pub(in crate::functions) static POSITION: Typed = Typed {
    name: "position",
    settle: |kinds| match kinds {
        [Type::Bytea, Type::Bytea | Type::Unknown] | [Type::Unknown, Type::Bytea] => {
            Some(Settled::new([Type::Bytea, Type::Bytea], Type::Integer))
        }
        [whole, part] if is_text(whole) && is_text(part) => {
            Some(Settled::new([Type::Text, Type::Text], Type::Integer))
        }
        _ => None,
    },
    invoke: position,
};

pub(in crate::functions) static OVERLAY: Typed = Typed {
    name: "overlay",
    settle: |kinds| {
        let [whole, part, numbers @ ..] = kinds else { return None };
        if !(1..=2).contains(&numbers.len()) || !numbers.iter().all(is_integer) {
            return None;
        }
        let kind = match (whole, part) {
            (Type::Bytea, Type::Bytea | Type::Unknown) => Type::Bytea,
            (whole, part) if is_text(whole) && is_text(part) => Type::Text,
            _ => return None,
        };
        let numbers = numbers.iter().map(|_| Type::Integer);
        Some(Settled::new([kind.clone(), kind.clone()].into_iter().chain(numbers), kind))
    },
    invoke: overlay,
};

pub(super) static DEFINITIONS: &[Typed] = &[
    Typed {
        name: "substr",
        settle: |kinds| {
            let numbers = kinds.get(1..)?;
            let is_place = |kind: &Type| is_integer(kind) || *kind == Type::BigInt;
            numbers.iter().all(is_place).then(|| sub(kinds)).flatten()
        },
        invoke: substring,
    },
    Typed { name: "strpos", settle: POSITION.settle, invoke: position },
];

fn sub(kinds: &[Type]) -> Option<Settled> {
    let (whole, numbers) = kinds.split_first()?;
    // Literals of no type are texts, as PostgreSQL prefers it: expressions.
    let is_expression = !numbers.is_empty() && numbers.iter().all(is_text) && is_text(whole);
    if is_expression {
        return (numbers.len() <= 2)
            .then(|| Settled::new(kinds.iter().map(|_| Type::Text), Type::Text));
    }
    // `substring(x for 1)` begins at a bigint.
    let is_place = |kind: &Type| is_integer(kind) || *kind == Type::BigInt;
    if !(1..=2).contains(&numbers.len()) || !numbers.iter().all(is_place) {
        return None;
    }
    let kind = match whole {
        Type::Bytea => Type::Bytea,
        text if is_text(text) => Type::Text,
        _ => return None,
    };
    let numbers = numbers.iter().map(|_| Type::Integer);
    Some(Settled::new(std::iter::once(kind.clone()).chain(numbers), kind))
}

/// Collects bytes, or texts that are given as bytes.
enum Builder {
    Text(StringBuilder),
    Bytes(BinaryBuilder),
}

impl Builder {
    fn new(arguments: &ScalarFunctionArgs) -> Self {
        match is_of_text(arguments) {
            true => Self::Text(StringBuilder::new()),
            false => Self::Bytes(BinaryBuilder::new()),
        }
    }

    fn push(&mut self, value: Option<&[u8]>) -> Result<()> {
        match (self, value) {
            (Self::Text(builder), Some(bytes)) => {
                let text = std::str::from_utf8(bytes);
                builder.append_value(text.map_err(|error| Error::internal(error.to_string()))?);
            }
            (Self::Bytes(builder), Some(bytes)) => builder.append_value(bytes),
            (Self::Text(builder), None) => builder.append_null(),
            (Self::Bytes(builder), None) => builder.append_null(),
        }
        Ok(())
    }

    fn finish(self) -> ArrayRef {
        match self {
            Self::Text(mut builder) => Arc::new(builder.finish()),
            Self::Bytes(mut builder) => Arc::new(builder.finish()),
        }
    }
}

/// Where the characters with these numbers, from 0, begin; or the bytes.
fn offset(bytes: &[u8], is_text: bool, number: i64) -> usize {
    let number = usize::try_from(number).unwrap_or(0);
    if !is_text {
        return number.min(bytes.len());
    }
    let mut starts =
        bytes.iter().enumerate().filter(|(_, byte)| **byte & 0xc0 != 0x80).map(|(at, _)| at);
    starts.nth(number).unwrap_or(bytes.len())
}

fn negative_length() -> arrow::error::ArrowError {
    raise(SqlState::SUBSTRING_ERROR, "negative substring length not allowed")
}

fn substring(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    if arguments.args[1].data_type().is_string() {
        return regex::substring(arguments);
    }
    let (arrays, is_scalar) = arrays(arguments)?;
    let is_text = is_of_text(arguments);
    let starts = arrays[1].as_primitive::<Int32Type>();
    let lengths = arrays.get(2).map(|lengths| lengths.as_primitive::<Int32Type>());
    let mut builder = Builder::new(arguments);
    for row in 0..starts.len() {
        let is_null = starts.is_null(row) || lengths.is_some_and(|lengths| lengths.is_null(row));
        let Some(bytes) = bytes_at(&arrays[0], row).filter(|_| !is_null) else {
            builder.push(None)?;
            continue;
        };
        let start = i64::from(starts.value(row)) - 1;
        let low = offset(bytes, is_text, start.max(0));
        let high = match lengths {
            None => bytes.len(),
            Some(lengths) => {
                let length = i64::from(lengths.value(row));
                if length < 0 {
                    return Err(negative_length().into());
                }
                offset(bytes, is_text, (start + length).max(0))
            }
        };
        builder.push(Some(&bytes[low..high.max(low)]))?;
    }
    shaped(builder.finish(), is_scalar)
}

fn position(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let is_text = is_of_text(arguments);
    let found = (0..arrays[0].len()).map(|row| {
        let (whole, part) = (bytes_at(&arrays[0], row)?, bytes_at(&arrays[1], row)?);
        if part.is_empty() {
            return Some(1);
        }
        let at = whole.windows(part.len()).position(|window| window == part);
        Some(at.map_or(0, |at| match is_text {
            true => String::from_utf8_lossy(&whole[..at]).chars().count() as i32 + 1,
            false => at as i32 + 1,
        }))
    });
    shaped(Arc::new(found.collect::<Int32Array>()), is_scalar)
}

fn overlay(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let is_text = is_of_text(arguments);
    let starts = arrays[2].as_primitive::<Int32Type>();
    let lengths = arrays.get(3).map(|lengths| lengths.as_primitive::<Int32Type>());
    let mut builder = Builder::new(arguments);
    for row in 0..starts.len() {
        let is_null = starts.is_null(row) || lengths.is_some_and(|lengths| lengths.is_null(row));
        let both = bytes_at(&arrays[0], row).zip(bytes_at(&arrays[1], row)).filter(|_| !is_null);
        let Some((whole, part)) = both else {
            builder.push(None)?;
            continue;
        };
        let start = i64::from(starts.value(row)) - 1;
        if start < 0 {
            return Err(negative_length().into());
        }
        let length = match lengths {
            Some(lengths) => i64::from(lengths.value(row)),
            None if is_text => String::from_utf8_lossy(part).chars().count() as i64,
            None => part.len() as i64,
        };
        let low = offset(whole, is_text, start);
        let high = offset(whole, is_text, (start + length).max(0));
        builder.push(Some(&[&whole[..low], part, &whole[high..]].concat()))?;
    }
    shaped(builder.finish(), is_scalar)
}
