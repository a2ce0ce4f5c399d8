//! `to_char` of numbers and `to_number`: numbers as pictures show them.

mod number;
mod pattern;
mod read;
mod write;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringBuilder};
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int32Type, Int64Type};
use arrow::error::ArrowError;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use crate::functions::numeric::{self, collect};
use crate::functions::row::{arrays, shaped};
use crate::functions::typed::{Settled, Typed, is_text};
use crate::{Error, Type};
use number::Shown;
use pattern::Picture;

type Row<T> = std::result::Result<T, ArrowError>;

pub(super) static DEFINITIONS: &[Typed] = &[Typed {
    name: "to_number",
    settle: |kinds| match kinds {
        [text, pattern] if is_text(text) && is_text(pattern) => {
            Some(Settled::new([Type::Text, Type::Text], Type::Numeric(None)))
        }
        _ => None,
    },
    invoke: to_number,
}];

/// The type in which `to_char` takes a number.
pub(super) fn number_kind(kind: &Type) -> Option<Type> {
    Some(match kind {
        Type::SmallInt | Type::Integer => Type::Integer,
        Type::BigInt | Type::Real | Type::Double => kind.clone(),
        Type::Numeric(_) => Type::Numeric(None),
        _ => return None,
    })
}

/// A picture, kept from row to row: it is nearly always a constant.
#[derive(Default)]
struct Known(Option<(String, Picture)>);

impl Known {
    fn get(&mut self, text: &str) -> Row<&Picture> {
        let is_known = matches!(&self.0, Some((known, _)) if known == text);
        if !is_known {
            self.0 = Some((text.to_owned(), Picture::parse(text)?));
        }
        match &self.0 {
            Some((_, picture)) => Ok(picture),
            None => Err(ArrowError::ComputeError("a picture that is none".to_owned())),
        }
    }
}

/// `to_char` of an array of numbers.
pub(super) fn to_char(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let (values, patterns) = (&arrays[0], arrays[1].as_string::<i32>());
    let mut known = Known::default();
    let mut builder = StringBuilder::new();
    for row in 0..values.len() {
        if values.is_null(row) || patterns.is_null(row) {
            builder.append_null();
            continue;
        }
        let pattern = patterns.value(row);
        if pattern.is_empty() {
            builder.append_value("");
            continue;
        }
        let picture = known.get(pattern)?;
        let shown = shown(values, row, picture)?;
        builder.append_value(write::written(picture, &shown));
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

/// The digits that are shown of a number.
fn shown(values: &ArrayRef, row: usize, picture: &Picture) -> Result<Shown> {
    Ok(match values.data_type() {
        DataType::Int32 => {
            Shown::of_integer(values.as_primitive::<Int32Type>().value(row), picture)?
        }
        DataType::Int64 => {
            Shown::of_bigint(values.as_primitive::<Int64Type>().value(row), picture)?
        }
        DataType::Float32 => {
            Shown::of_real(values.as_primitive::<Float32Type>().value(row), picture)?
        }
        DataType::Float64 => {
            Shown::of_double(values.as_primitive::<Float64Type>().value(row), picture)?
        }
        _ => match values.as_binary_opt::<i64>() {
            Some(bytes) => Shown::of_numeric(&numeric::read(bytes.value(row))?, picture)?,
            None => return Err(Error::internal("a number that is none").into()),
        },
    })
}

fn to_number(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let (texts, patterns) = (arrays[0].as_string::<i32>(), arrays[1].as_string::<i32>());
    let mut known = Known::default();
    let numbers = texts.iter().zip(patterns).map(|(text, pattern)| {
        let (Some(text), Some(pattern)) = (text, pattern) else { return Ok(None) };
        if pattern.is_empty() {
            return Ok(None);
        }
        read::number(known.get(pattern)?, text).map(Some)
    });
    shaped(collect::<ArrowError>(numbers)?, is_scalar)
}
