//! Functions of texts, and those that write values of any type as PostgreSQL does.

mod count;
mod format;
mod letter;
mod quote;
mod split;

use std::sync::Arc;

use arrow::array::{Array, AsArray, StringArray, StringBuilder};
use arrow::datatypes::{DataType, Int32Type};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use crate::functions::row::{arrays, shaped};
use crate::functions::scalar::{Definition, Resolved, no_function};
use crate::functions::typed::{Settled, Typed, is_text};
use crate::text::TextFormat;
use crate::{Error, TextColumn, Type};

/// A `char(n)` with its blanks.
pub(super) static PADDED: Typed = Typed {
    name: "padded",
    settle: |kinds| match kinds {
        [text, Type::Integer] if is_text(text) => {
            Some(Settled::new([text.clone(), Type::Integer], Type::Text))
        }
        _ => None,
    },
    invoke: pad,
};

/// A text as the `char(n)` that it is compared with: without the blanks at its end.
pub(super) static STRIPPED: Typed = Typed {
    name: "stripped",
    settle: |kinds| match kinds {
        [text] if is_text(text) => Some(Settled::new([text.clone()], Type::Char(None))),
        _ => None,
    },
    invoke: strip,
};

/// Those that are settled by SQL types.
pub(super) fn typed_definitions() -> impl Iterator<Item = &'static Typed> {
    [&PADDED, &STRIPPED, &format::FORMAT, &split::SPLIT_PART]
        .into_iter()
        .chain(count::DEFINITIONS)
        .chain(letter::DEFINITIONS)
        .chain(quote::DEFINITIONS)
}

fn pad(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let (texts, lengths) = (arrays[0].as_string::<i32>(), arrays[1].as_primitive::<Int32Type>());
    let padded = texts.iter().zip(lengths).map(|(text, length)| {
        let (text, length) = (text?, usize::try_from(length?).unwrap_or(0));
        Some(format!("{text:length$}"))
    });
    shaped(Arc::new(padded.collect::<StringArray>()), is_scalar)
}

fn strip(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let texts = arrays[0].as_string::<i32>().iter();
    let stripped = texts.map(|text| text.map(|text| text.trim_end_matches(' ')));
    shaped(Arc::new(stripped.collect::<StringArray>()), is_scalar)
}

pub(super) static DEFINITIONS: &[Definition] = &[
    Definition {
        name: "concat",
        resolve: |types| any("concat", types),
        invoke: |a| join(a, false),
    },
    Definition {
        name: "concat_ws",
        resolve: |types| any("concat_ws", types),
        invoke: |a| join(a, true),
    },
    // `Coercion` puts the answer in its place.
    Definition {
        name: "pg_typeof",
        resolve: |types| Ok(Resolved::new(types.to_vec(), Type::Text)),
        invoke: |_| Err(Error::internal("pg_typeof of an expression without a type").into()),
    },
];

fn any(name: &'static str, types: &[DataType]) -> Result<Resolved, Error> {
    if types.is_empty() {
        return Err(no_function(name, types));
    }
    // Their text would depend on the session's zone.
    if types.iter().any(|data_type| matches!(data_type, DataType::Timestamp(_, Some(_)))) {
        return Err(Error::unsupported(format!("{name} of a timestamp with time zone"))
            .with_hint("Cast it to text."));
    }
    let arguments = types
        .iter()
        .map(|data_type| if data_type.is_null() { DataType::Utf8 } else { data_type.clone() });
    Ok(Resolved::new(arguments.collect(), Type::Text))
}

/// The texts of all values that aren't NULL; the first is put between the others if it separates.
fn join(arguments: &ScalarFunctionArgs, separates: bool) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let format = TextFormat::default();
    let mut columns = vec![];
    for (array, field) in arrays.iter().zip(&arguments.arg_fields) {
        let kind = Type::of(field).unwrap_or(Type::Text);
        columns.push(TextColumn::new(&kind, array, &format)?);
    }
    let rows = arrays.first().map_or(0, |array| array.len());
    let mut builder = StringBuilder::new();
    let (mut separator, mut buffer) = (vec![], vec![]);
    for place in 0..rows {
        separator.clear();
        buffer.clear();
        let mut values = columns.iter();
        if separates {
            let has_separator =
                values.next().is_some_and(|column| column.write(place, &mut separator));
            if !has_separator {
                builder.append_null();
                continue;
            }
        }
        let mut is_first = true;
        for column in values {
            let start = buffer.len();
            if !is_first {
                buffer.extend_from_slice(&separator);
            }
            if column.write(place, &mut buffer) {
                is_first = false;
            } else {
                buffer.truncate(start);
            }
        }
        let text =
            std::str::from_utf8(&buffer).map_err(|error| Error::internal(error.to_string()))?;
        builder.append_value(text);
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}
