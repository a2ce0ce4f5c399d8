//! JSON: what is asked of `json` and `jsonb`, and what makes them.
//!
//! Parts of a `json` come out as they were written. A `jsonb` is carried in its one form, of which
//! every part is one in that form too: so the same functions serve both.

mod access;
mod change;
mod contains;
mod insert;
mod key;
mod made;
mod rows;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringArray, StringBuilder};
use arrow::error::ArrowError;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use crate::Type;
use crate::functions::row::{arrays, raise_error, shaped};
use crate::functions::typed::Typed;
use crate::text::json::{self, Detail, Json};

pub(super) use access::{
    GET, GET_JSONB, GET_JSONB_TEXT, GET_PATH, GET_PATH_TEXT, GET_TEXT, SUBSCRIPT,
};
pub(super) use change::{CONCATENATED, DELETE, DELETE_PATH};
pub(super) use contains::{CONTAINED, CONTAINS, HAS, HAS_ALL, HAS_ANY};
pub(super) use key::{KEY, OF_SORTED, SORTED};
pub(super) use made::{MADE_JSON, MADE_JSONB};

/// All of them.
pub(super) fn definitions() -> impl Iterator<Item = &'static Typed> {
    [
        &GET,
        &GET_TEXT,
        &GET_JSONB,
        &GET_JSONB_TEXT,
        &GET_PATH,
        &GET_PATH_TEXT,
        &SUBSCRIPT,
        &CONCATENATED,
        &DELETE,
        &DELETE_PATH,
        &CONTAINS,
        &CONTAINED,
        &HAS,
        &HAS_ALL,
        &HAS_ANY,
        &KEY,
        &SORTED,
        &OF_SORTED,
        &MADE_JSON,
        &MADE_JSONB,
    ]
    .into_iter()
    .chain(access::DEFINITIONS)
    .chain(change::DEFINITIONS)
    .chain(insert::DEFINITIONS)
    .chain(made::DEFINITIONS)
    .chain(rows::DEFINITIONS)
}

type Row<T> = std::result::Result<T, ArrowError>;

fn texts() -> Type {
    Type::Array(Box::new(Type::Text))
}

fn is_json(kind: &Type) -> bool {
    matches!(kind, Type::Json | Type::Jsonb)
}

/// Reads a text that is JSON.
fn read(text: &str) -> Row<Json> {
    json::parse(text, Detail::Values).map_err(raise_error)
}

/// A text for each row of the first argument, which is JSON; NULL of NULL.
fn each_text(
    arguments: &ScalarFunctionArgs,
    compute: impl Fn(&str, usize, &[ArrayRef]) -> Row<Option<String>>,
) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let values = arrays[0].as_string::<i32>();
    let mut builder = StringBuilder::new();
    for row in 0..values.len() {
        match values.is_valid(row) {
            true => builder.append_option(compute(values.value(row), row, &arrays)?),
            false => builder.append_null(),
        }
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

/// A condition for each row of the first argument, which is JSON; NULL of NULL.
fn each_condition(
    arguments: &ScalarFunctionArgs,
    compute: impl Fn(&str, usize, &[ArrayRef]) -> Row<Option<bool>>,
) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let values = arrays[0].as_string::<i32>();
    let mut found = Vec::with_capacity(values.len());
    for row in 0..values.len() {
        found.push(match values.is_valid(row) {
            true => compute(values.value(row), row, &arrays)?,
            false => None,
        });
    }
    shaped(Arc::new(BooleanArray::from(found)), is_scalar)
}

/// The text of an argument in a row.
fn text_at(array: &ArrayRef, row: usize) -> Option<&str> {
    let texts = array.as_string::<i32>();
    texts.is_valid(row).then(|| texts.value(row))
}

/// The texts of an argument that is an array, in a row.
fn texts_at(array: &ArrayRef, row: usize) -> Option<Vec<Option<String>>> {
    let lists = array.as_list::<i32>();
    lists.is_valid(row).then(|| {
        let list = lists.value(row);
        let list: &StringArray = list.as_string();
        list.iter().map(|text| text.map(str::to_owned)).collect()
    })
}
