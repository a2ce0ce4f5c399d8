//! Quoting, and names taken apart.

use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray, ListBuilder, StringArray, StringBuilder};
use arrow::error::ArrowError;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use crate::functions::row::{arrays, raise, shaped};
use crate::functions::typed::{Settled, Typed, Wanted, is_text};
use crate::{SqlState, Type};

pub(super) static DEFINITIONS: &[Typed] = &[
    Typed {
        name: "quote_literal",
        settle: shown,
        invoke: |arguments| each(arguments, |text| text.map(literal)),
    },
    Typed {
        name: "quote_nullable",
        settle: shown,
        invoke: |arguments| {
            each(arguments, |text| Some(text.map_or_else(|| "NULL".to_owned(), literal)))
        },
    },
    Typed {
        name: "quote_ident",
        settle: |kinds| match kinds {
            [text] if is_text(text) => Some(Settled::new([Type::Text], Type::Text)),
            _ => None,
        },
        invoke: |arguments| each(arguments, |text| text.map(crate::names::quote_ident)),
    },
    Typed {
        name: "parse_ident",
        settle: |kinds| match kinds {
            [text] if is_text(text) => Some(Settled::new([Type::Text], names())),
            [text, Type::Boolean | Type::Unknown] if is_text(text) => {
                Some(Settled::new([Type::Text, Type::Boolean], names()))
            }
            _ => None,
        },
        invoke: parts,
    },
];

fn names() -> Type {
    Type::Array(Box::new(Type::Text))
}

fn shown(kinds: &[Type]) -> Option<Settled> {
    match kinds {
        [_] => Some(Settled { arguments: vec![Wanted::Shown], returns: Type::Text }),
        _ => None,
    }
}

/// A literal that stands for a text.
pub(super) fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    match quoted.contains('\\') {
        true => format!("E'{}'", quoted.replace('\\', "\\\\")),
        false => format!("'{quoted}'"),
    }
}

fn each(
    arguments: &ScalarFunctionArgs,
    quote: impl Fn(Option<&str>) -> Option<String>,
) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let quoted: StringArray = arrays[0].as_string::<i32>().iter().map(quote).collect();
    shaped(Arc::new(quoted), is_scalar)
}

fn parts(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let strict: Option<&BooleanArray> = arrays.get(1).map(|array| array.as_boolean());
    let mut builder = ListBuilder::new(StringBuilder::new());
    for (row, text) in arrays[0].as_string::<i32>().iter().enumerate() {
        match text.filter(|_| strict.is_none_or(|strict| strict.is_valid(row))) {
            None => builder.append_null(),
            Some(text) => {
                let is_strict = strict.is_none_or(|strict| strict.value(row));
                for part in taken_apart(text, is_strict)? {
                    builder.values().append_value(part);
                }
                builder.append(true);
            }
        }
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

/// The names between the points.
fn taken_apart(text: &str, is_strict: bool) -> std::result::Result<Vec<String>, ArrowError> {
    let invalid = || {
        let message = format!("string is not a valid identifier: \"{text}\"");
        raise(SqlState::INVALID_PARAMETER_VALUE, message)
    };
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
    let is_part = |c: char| is_start(c) || c.is_ascii_digit() || c == '$';
    let mut rest = text.trim_start();
    let mut parts = vec![];
    loop {
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut name = String::new();
            let mut characters = quoted.char_indices();
            let end = loop {
                match characters.next() {
                    None => return Err(invalid()),
                    Some((at, '"')) if quoted[at + 1..].starts_with('"') => {
                        name.push('"');
                        characters.next();
                    }
                    Some((at, '"')) => break at + 1,
                    Some((_, other)) => name.push(other),
                }
            };
            if name.is_empty() {
                return Err(invalid());
            }
            parts.push(name);
            rest = &quoted[end..];
        } else {
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let (name, behind) = rest.split_at(end);
            if !name.starts_with(is_start) {
                return Err(invalid());
            }
            parts.push(name.to_ascii_lowercase());
            rest = behind;
        }
        rest = rest.trim_start();
        match rest.strip_prefix('.') {
            Some(behind) => rest = behind.trim_start(),
            None if rest.is_empty() || !is_strict => return Ok(parts),
            None => return Err(invalid()),
        }
    }
}
