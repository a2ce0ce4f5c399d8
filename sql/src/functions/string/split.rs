//! `split_part`.

use std::sync::Arc;

use arrow::array::{Array, AsArray, StringBuilder};
use arrow::datatypes::Int32Type;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use crate::functions::row::{arrays, raise, shaped};
use crate::functions::typed::{Settled, Typed, is_integer, is_text};
use crate::{SqlState, Type};

pub(super) static SPLIT_PART: Typed = Typed {
    name: "split_part",
    settle: |kinds| match kinds {
        [text, separator, number] if is_text(text) && is_text(separator) && is_integer(number) => {
            Some(Settled::new([Type::Text, Type::Text, Type::Integer], Type::Text))
        }
        _ => None,
    },
    invoke: split,
};

fn split(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let (texts, separators) = (arrays[0].as_string::<i32>(), arrays[1].as_string::<i32>());
    let numbers = arrays[2].as_primitive::<Int32Type>();
    let mut builder = StringBuilder::new();
    for row in 0..texts.len() {
        if arrays.iter().any(|array| array.is_null(row)) {
            builder.append_null();
            continue;
        }
        let number = numbers.value(row);
        if number == 0 {
            let message = "field position must not be zero";
            return Err(raise(SqlState::INVALID_PARAMETER_VALUE, message).into());
        }
        builder.append_value(part(texts.value(row), separators.value(row), number));
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

/// The part with a number; negative ones count from the end.
fn part<'a>(text: &'a str, separator: &str, number: i32) -> &'a str {
    let place = number.unsigned_abs() as usize - 1;
    if separator.is_empty() {
        return if place == 0 { text } else { "" };
    }
    let found = match number > 0 {
        true => text.split(separator).nth(place),
        false => {
            let parts: Vec<_> = text.split(separator).collect();
            parts.len().checked_sub(place + 1).map(|place| parts[place])
        }
    };
    found.unwrap_or("")
}
