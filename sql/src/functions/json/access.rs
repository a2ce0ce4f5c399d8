//! Parts of values.

use std::sync::Arc;

use arrow::array::{Array, AsArray, Int32Array};
use arrow::datatypes::{DataType, Int32Type};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::{Row, each_text, is_json, read, text_at, texts, texts_at};
use crate::functions::row::{arrays, raise, raise_error, shaped};
use crate::functions::typed::{Settled, Typed, is_text};
use crate::text::json::{self, Json};
use crate::{SqlState, Type};

pub(in crate::functions) static GET: Typed = Typed {
    name: "operator ->",
    settle: |kinds| one(kinds, kinds.first().cloned()),
    invoke: |arguments| {
        each_text(arguments, |text, row, arrays| {
            Ok(member(text, &arrays[1], row)?.map(str::to_owned))
        })
    },
};

/// The same of `jsonb`, whose scalars count as arrays of themselves.
pub(in crate::functions) static GET_JSONB: Typed = Typed {
    name: "jsonb ->",
    settle: GET.settle,
    invoke: |arguments| {
        each_text(arguments, |text, row, arrays| {
            Ok(of_jsonb(text, &arrays[1], row)?.map(str::to_owned))
        })
    },
};

pub(in crate::functions) static GET_JSONB_TEXT: Typed = Typed {
    name: "jsonb ->>",
    settle: GET_TEXT.settle,
    invoke: |arguments| {
        each_text(arguments, |text, row, arrays| {
            of_jsonb(text, &arrays[1], row)?.map_or(Ok(None), as_text)
        })
    },
};

fn of_jsonb<'a>(text: &'a str, keys: &arrow::array::ArrayRef, row: usize) -> Row<Option<&'a str>> {
    if *keys.data_type() == DataType::Int32 && !matches!(json::kind(text), b'{' | b'[') {
        let keys = keys.as_primitive::<Int32Type>();
        let is_itself = keys.is_valid(row) && matches!(keys.value(row), 0 | -1);
        return Ok(is_itself.then_some(text));
    }
    member(text, keys, row)
}

pub(in crate::functions) static SUBSCRIPT: Typed =
    Typed { name: "json subscript", settle: GET.settle, invoke: GET.invoke };

pub(in crate::functions) static GET_TEXT: Typed = Typed {
    name: "operator ->>",
    settle: |kinds| one(kinds, Some(Type::Text)),
    invoke: |arguments| {
        each_text(arguments, |text, row, arrays| {
            member(text, &arrays[1], row)?.map_or(Ok(None), as_text)
        })
    },
};

pub(in crate::functions) static GET_PATH: Typed = Typed {
    name: "operator #>",
    settle: |kinds| path(kinds, kinds.first().cloned()),
    invoke: |arguments| {
        each_text(arguments, |text, row, arrays| {
            let Some(path) = texts_at(&arrays[1], row) else { return Ok(None) };
            Ok(follow(text, &path)?.map(str::to_owned))
        })
    },
};

pub(in crate::functions) static GET_PATH_TEXT: Typed = Typed {
    name: "operator #>>",
    settle: |kinds| path(kinds, Some(Type::Text)),
    invoke: |arguments| {
        each_text(arguments, |text, row, arrays| {
            let Some(path) = texts_at(&arrays[1], row) else { return Ok(None) };
            follow(text, &path)?.map_or(Ok(None), as_text)
        })
    },
};

macro_rules! of_kind {
    ($name:literal, $kind:ident, $settle:expr, $invoke:expr) => {
        Typed {
            name: $name,
            settle: |kinds| match kinds.first() {
                Some(Type::$kind) => $settle(kinds),
                Some(Type::Unknown) => {
                    let mut kinds = kinds.to_vec();
                    kinds[0] = Type::$kind;
                    $settle(&kinds)
                }
                _ => None,
            },
            invoke: $invoke,
        }
    };
}

pub(super) static DEFINITIONS: &[Typed] = &[
    of_kind!("json_extract_path", Json, |kinds: &[Type]| steps(kinds, Type::Json), extract),
    of_kind!("jsonb_extract_path", Jsonb, |kinds: &[Type]| steps(kinds, Type::Jsonb), extract),
    of_kind!(
        "json_extract_path_text",
        Json,
        |kinds: &[Type]| steps(kinds, Type::Text),
        extract_text
    ),
    of_kind!(
        "jsonb_extract_path_text",
        Jsonb,
        |kinds: &[Type]| steps(kinds, Type::Text),
        extract_text
    ),
    of_kind!("json_typeof", Json, |kinds: &[Type]| alone(kinds, Type::Text), type_of),
    of_kind!("jsonb_typeof", Jsonb, |kinds: &[Type]| alone(kinds, Type::Text), type_of),
    of_kind!("json_array_length", Json, |kinds: &[Type]| alone(kinds, Type::Integer), length),
    of_kind!("jsonb_array_length", Jsonb, |kinds: &[Type]| alone(kinds, Type::Integer), length),
];

/// JSON and a key or subscript.
fn one(kinds: &[Type], returns: Option<Type>) -> Option<Settled> {
    let [value, key] = kinds else { return None };
    let key = match key {
        Type::SmallInt | Type::Integer => Type::Integer,
        key if is_text(key) => Type::Text,
        _ => return None,
    };
    is_json(value).then(|| Some(Settled::new([value.clone(), key], returns?)))?
}

fn path(kinds: &[Type], returns: Option<Type>) -> Option<Settled> {
    let [value, path] = kinds else { return None };
    let is_path = match path {
        Type::Array(element) => is_text(element),
        other => *other == Type::Unknown,
    };
    (is_json(value) && is_path).then(|| Some(Settled::new([value.clone(), texts()], returns?)))?
}

fn steps(kinds: &[Type], returns: Type) -> Option<Settled> {
    let (value, keys) = kinds.split_first()?;
    let arguments = std::iter::once(value.clone()).chain(keys.iter().map(|_| Type::Text));
    keys.iter().all(is_text).then(|| Settled::new(arguments, returns))
}

fn alone(kinds: &[Type], returns: Type) -> Option<Settled> {
    match kinds {
        [value] => Some(Settled::new([value.clone()], returns)),
        _ => None,
    }
}

/// The member or element that the second argument names.
fn member<'a>(text: &'a str, keys: &arrow::array::ArrayRef, row: usize) -> Row<Option<&'a str>> {
    if *keys.data_type() == DataType::Int32 {
        let keys = keys.as_primitive::<Int32Type>();
        return Ok(keys.is_valid(row).then(|| element(text, keys.value(row))).flatten());
    }
    match text_at(keys, row) {
        Some(key) => of_key(text, key),
        None => Ok(None),
    }
}

fn of_key<'a>(text: &'a str, key: &str) -> Row<Option<&'a str>> {
    // Of several members with one key the last holds.
    let members = json::members(text).map_err(raise_error)?;
    Ok(members.into_iter().rev().find(|(known, _)| known == key).map(|(_, value)| value))
}

/// Counted from 0, or backwards from -1.
fn element(text: &str, subscript: i32) -> Option<&str> {
    let elements = json::elements(text);
    let place = match usize::try_from(subscript) {
        Ok(place) => place,
        Err(_) => elements.len().checked_sub(subscript.unsigned_abs() as usize)?,
    };
    elements.get(place).copied()
}

/// What lies at the end of a path.
pub(super) fn follow<'a>(text: &'a str, path: &[Option<String>]) -> Row<Option<&'a str>> {
    let mut found = text;
    for step in path {
        let Some(step) = step else { return Ok(None) };
        let next = match json::kind(found) {
            b'{' => of_key(found, step)?,
            b'[' => step.trim().parse().ok().and_then(|subscript| element(found, subscript)),
            _ => None,
        };
        match next {
            Some(next) => found = next,
            None => return Ok(None),
        }
    }
    Ok(Some(found))
}

/// A value as text: a string without its quotes, and nothing for null.
pub(super) fn as_text(text: &str) -> Row<Option<String>> {
    Ok(match json::kind(text) {
        b'n' => None,
        b'"' => match read(text)? {
            Json::String(string) => Some(string),
            other => Some(other.text()),
        },
        _ => Some(text.trim_matches([' ', '\t', '\n', '\r']).to_owned()),
    })
}

fn extract(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    each_text(arguments, |text, row, arrays| {
        let path: Vec<_> =
            arrays[1..].iter().map(|array| text_at(array, row).map(str::to_owned)).collect();
        Ok(follow(text, &path)?.map(str::to_owned))
    })
}

fn extract_text(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    each_text(arguments, |text, row, arrays| {
        let path: Vec<_> =
            arrays[1..].iter().map(|array| text_at(array, row).map(str::to_owned)).collect();
        follow(text, &path)?.map_or(Ok(None), as_text)
    })
}

fn type_of(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    each_text(arguments, |text, _, _| {
        let word = match json::kind(text) {
            b'{' => "object",
            b'[' => "array",
            b'"' => "string",
            b't' | b'f' => "boolean",
            b'n' => "null",
            _ => "number",
        };
        Ok(Some(word.to_owned()))
    })
}

fn length(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let mut lengths = vec![];
    for text in arrays[0].as_string::<i32>() {
        let length = text.map(|text| {
            let what = match json::kind(text) {
                b'[' => return Ok(json::elements(text).len() as i32),
                b'{' => "non-array",
                _ => "scalar",
            };
            let message = format!("cannot get array length of a {what}");
            Err(raise(SqlState::INVALID_PARAMETER_VALUE, message))
        });
        lengths.push(length.transpose()?);
    }
    shaped(Arc::new(Int32Array::from(lengths)), is_scalar)
}
