//! Functions that return the parts of matches, or what stands between matches.

use std::sync::Arc;

use arrow::array::{Array, AsArray, ListBuilder, StringBuilder};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::count::{Arguments, Parameter, settled};
use super::{Found, Last, Regex, not_global};
use crate::Type;
use crate::functions::pattern::similar_to_escape;
use crate::functions::row::{arrays, shaped};
use crate::functions::typed::{Settled, Typed};

pub(super) static DEFINITIONS: &[Typed] = &[
    Typed { name: "regexp_match", settle: |kinds| texts(kinds, list()), invoke: first },
    Typed {
        name: "regexp_matches list",
        settle: |kinds| texts(kinds, Type::Array(Box::new(list()))),
        invoke: every,
    },
    Typed {
        name: "regexp_split_to_array",
        settle: |kinds| texts(kinds, list()),
        invoke: |arguments| split(arguments, "regexp_split_to_array"),
    },
    Typed {
        name: "regexp_split_to_table list",
        settle: |kinds| texts(kinds, list()),
        invoke: |arguments| split(arguments, "regexp_split_to_table"),
    },
];

fn list() -> Type {
    Type::Array(Box::new(Type::Text))
}

fn texts(kinds: &[Type], returns: Type) -> Option<Settled> {
    settled(kinds, &[Parameter::Text; 3], returns)
}

type Lists = ListBuilder<StringBuilder>;

/// Appends the parts of a match, or all of it if it has none.
fn append(builder: &mut Lists, text: &str, found: &Found) {
    if found.groups.is_empty() {
        builder.values().append_value(&text[found.whole.clone()]);
    }
    for group in &found.groups {
        builder.values().append_option(group.clone().map(|group| &text[group]));
    }
    builder.append(true);
}

fn first(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let mut last = Last::default();
    let mut builder = ListBuilder::new(StringBuilder::new());
    for row in 0..arrays[0].len() {
        let Some(arguments) = Arguments::of(&arrays, row) else {
            builder.append_null();
            continue;
        };
        let (regex, options) = last.get(arguments.text(1), arguments.text(2))?;
        not_global("regexp_match", options)?;
        let text = arguments.text(0);
        match regex.captures(text, 0) {
            Some(found) => append(&mut builder, text, &found),
            None => builder.append_null(),
        }
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

/// A list for each row; with nothing in it if there is nothing.
fn every(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let mut last = Last::default();
    let mut builder = ListBuilder::new(ListBuilder::new(StringBuilder::new()));
    for row in 0..arrays[0].len() {
        if let Some(arguments) = Arguments::of(&arrays, row) {
            let (regex, options) = last.get(arguments.text(1), arguments.text(2))?;
            let text = arguments.text(0);
            let count = if options.is_global { usize::MAX } else { 1 };
            for found in regex.all(text, 0).take(count) {
                append(builder.values(), text, &found);
            }
        }
        builder.append(true);
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

/// Matches of nothing at the beginning, at the end and behind another match don't divide.
fn pieces<'a>(regex: &Regex, text: &'a str) -> Vec<&'a str> {
    let mut pieces = vec![];
    let (mut start, mut end) = (0, 0);
    for found in regex.all(text, 0) {
        let whole = found.whole;
        if whole.start < text.len() && whole.end > end {
            pieces.push(&text[start..whole.start]);
            start = whole.end;
        }
        end = whole.end;
    }
    pieces.push(&text[start..]);
    pieces
}

fn split(arguments: &ScalarFunctionArgs, function: &str) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let mut last = Last::default();
    let mut builder = ListBuilder::new(StringBuilder::new());
    let is_table = function.ends_with("_table");
    for row in 0..arrays[0].len() {
        match Arguments::of(&arrays, row) {
            Some(arguments) => {
                let (regex, options) = last.get(arguments.text(1), arguments.text(2))?;
                not_global(function, options)?;
                for piece in pieces(&regex, arguments.text(0)) {
                    builder.values().append_value(piece);
                }
                builder.append(true);
            }
            None => builder.append(is_table),
        }
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

/// `substring(text, expression)`, and with an escape `substring(text similar ...)`: the first part in
/// parentheses, or all.
pub(in crate::functions) fn substring(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let mut last = Last::default();
    let mut builder = StringBuilder::new();
    let has_escape = arrays.len() > 2;
    for row in 0..arrays[0].as_string::<i32>().len() {
        let Some(arguments) = Arguments::of(&arrays, row) else {
            builder.append_null();
            continue;
        };
        let text = arguments.text(0);
        let regex = match has_escape {
            true => last.get(&similar_to_escape(arguments.text(1), arguments.text(2))?, "")?.0,
            false => last.get(arguments.text(1), "")?.0,
        };
        let found = regex.captures(text, 0).and_then(|found| match found.groups.first() {
            Some(first) => first.clone(),
            None => Some(found.whole),
        });
        builder.append_option(found.map(|found| &text[found]));
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}
