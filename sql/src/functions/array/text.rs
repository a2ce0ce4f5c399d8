//! Texts to arrays, and the shape of arrays in text.

use std::sync::Arc;

use arrow::array::{Array, AsArray, Int32Array, ListBuilder, StringArray, StringBuilder};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::{array_of, lists};
use crate::Type;
use crate::functions::row::{arrays, shaped};
use crate::functions::typed::{Settled, Typed, is_text};

pub(super) static DEFINITIONS: &[Typed] = &[
    Typed {
        name: "string_to_array",
        settle: |kinds| {
            let fits = (2..=3).contains(&kinds.len()) && kinds.iter().all(is_text);
            fits.then(|| Settled::new(kinds.iter().map(|_| Type::Text), array_of(Type::Text)))
        },
        invoke: split,
    },
    Typed {
        name: "array_ndims",
        settle: |kinds| match kinds {
            [array @ Type::Array(_)] => Some(Settled::new([array.clone()], Type::Integer)),
            _ => None,
        },
        invoke: |arguments| {
            let (arrays, is_scalar) = arrays(arguments)?;
            let lists = lists(&arrays[0])?.iter();
            let counts = lists.map(|list| list.filter(|list| !list.is_empty()).map(|_| 1));
            shaped(Arc::new(counts.collect::<Int32Array>()), is_scalar)
        },
    },
    Typed {
        name: "array_dims",
        settle: |kinds| match kinds {
            [array @ Type::Array(_)] => Some(Settled::new([array.clone()], Type::Text)),
            _ => None,
        },
        invoke: |arguments| {
            let (arrays, is_scalar) = arrays(arguments)?;
            let lists = lists(&arrays[0])?.iter();
            let bounds = lists.map(|list| {
                list.filter(|list| !list.is_empty()).map(|list| format!("[1:{}]", list.len()))
            });
            shaped(Arc::new(bounds.collect::<StringArray>()), is_scalar)
        },
    },
];

fn split(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let (texts, delimiters) = (arrays[0].as_string::<i32>(), arrays[1].as_string::<i32>());
    let nulls = arrays.get(2).map(|nulls| nulls.as_string::<i32>());
    let mut builder = ListBuilder::new(StringBuilder::new());
    for row in 0..texts.len() {
        if texts.is_null(row) {
            builder.append_null();
            continue;
        }
        let text = texts.value(row);
        let null = nulls.filter(|nulls| nulls.is_valid(row)).map(|nulls| nulls.value(row));
        let mut add = |part: &str| match null {
            Some(null) if null == part => builder.values().append_null(),
            _ => builder.values().append_value(part),
        };
        let delimiter = delimiters.is_valid(row).then(|| delimiters.value(row));
        match delimiter {
            _ if text.is_empty() => {}
            None => text.split_inclusive(|_: char| true).for_each(&mut add),
            Some("") => add(text),
            Some(delimiter) => text.split(delimiter).for_each(&mut add),
        }
        builder.append(true);
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}
