//! `~` and its relatives.

use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanBuilder};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::Last;
use crate::Type;
use crate::functions::row::{arrays, shaped};
use crate::functions::typed::{Settled, Typed, Wanted, is_text};

/// `x ~ y`
pub(in crate::functions) static MATCHES: Typed =
    Typed { name: "operator ~", settle: texts, invoke: |arguments| matched(arguments, "", true) };

/// `x ~* y`
pub(in crate::functions) static MATCHES_ANY_CASE: Typed =
    Typed { name: "operator ~*", settle: texts, invoke: |arguments| matched(arguments, "i", true) };

/// `x !~ y`
pub(in crate::functions) static MISMATCHES: Typed =
    Typed { name: "operator !~", settle: texts, invoke: |arguments| matched(arguments, "", false) };

/// `x !~* y`
pub(in crate::functions) static MISMATCHES_ANY_CASE: Typed = Typed {
    name: "operator !~*",
    settle: texts,
    invoke: |arguments| matched(arguments, "i", false),
};

fn texts(kinds: &[Type]) -> Option<Settled> {
    match kinds {
        [text, pattern] if is_text(text) && is_text(pattern) => Some(Settled {
            arguments: vec![Wanted::Shown, Wanted::As(Type::Text)],
            returns: Type::Boolean,
        }),
        _ => None,
    }
}

fn matched(arguments: &ScalarFunctionArgs, flags: &str, expected: bool) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let (texts, patterns) = (arrays[0].as_string::<i32>(), arrays[1].as_string::<i32>());
    let mut last = Last::default();
    let mut builder = BooleanBuilder::with_capacity(texts.len());
    for (text, pattern) in texts.iter().zip(patterns) {
        builder.append_option(match (text, pattern) {
            (Some(text), Some(pattern)) => {
                Some(last.get(pattern, flags)?.0.is_match(text) == expected)
            }
            _ => None,
        });
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}
