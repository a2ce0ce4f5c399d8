//! `regexp_replace`.

use std::sync::Arc;

use arrow::array::{Array, StringBuilder};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::count::Arguments;
use super::{Found, Last, Regex, bad, offset, positive};
use crate::functions::row::{arrays, raise, shaped};
use crate::functions::typed::{Settled, Typed, is_integer, is_text};
use crate::{SqlState, Type};

pub(super) static DEFINITIONS: &[Typed] = &[Typed {
    name: "regexp_replace",
    settle: |kinds| {
        let (texts, rest) = kinds.split_at_checked(3)?;
        if !texts.iter().all(is_text) {
            return None;
        }
        let rest = match rest {
            [] => vec![],
            [flags] if is_text(flags) => vec![Type::Text],
            [start] if is_integer(start) => vec![Type::Integer],
            [start, number] if is_integer(start) && is_integer(number) => {
                vec![Type::Integer; 2]
            }
            [start, number, flags] if is_integer(start) && is_integer(number) && is_text(flags) => {
                vec![Type::Integer, Type::Integer, Type::Text]
            }
            _ => return None,
        };
        let wanted = [Type::Text, Type::Text, Type::Text].into_iter().chain(rest);
        Some(Settled::new(wanted, Type::Text))
    },
    invoke: replace,
}];

fn replace(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let has_flags = arrays.len() == 4 && arguments.args[3].data_type().is_string();
    let mut last = Last::default();
    let mut builder = StringBuilder::new();
    for row in 0..arrays[0].len() {
        let Some(arguments) = Arguments::of(&arrays, row) else {
            builder.append_null();
            continue;
        };
        let (text, pattern, by) = (arguments.text(0), arguments.text(1), arguments.text(2));
        if has_flags {
            let flags = arguments.text(3);
            if let Some(digit) = flags.chars().next().filter(char::is_ascii_digit) {
                let message = format!("invalid regular expression option: \"{digit}\"");
                return Err(raise(SqlState::INVALID_PARAMETER_VALUE, message).into());
            }
            let (regex, options) = last.get(pattern, flags)?;
            let number = usize::from(!options.is_global);
            builder.append_value(replaced(&regex, text, by, 0, number));
            continue;
        }
        let start = positive("start", arguments.number(3, 1))?;
        let number = arguments.number(4, 1);
        let number = usize::try_from(number).map_err(|_| bad("n", number))?;
        let (regex, _) = last.get(pattern, arguments.text(5))?;
        match offset(text, start) {
            Some(start) => builder.append_value(replaced(&regex, text, by, start, number)),
            None => builder.append_value(text),
        }
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

/// The text with the match of a number replaced, or all if that is 0.
fn replaced(regex: &Regex, text: &str, by: &str, start: usize, number: usize) -> String {
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for (found, place) in regex.all(text, start).zip(1..) {
        if number == 0 || place == number {
            out.push_str(&text[copied..found.whole.start]);
            append(&mut out, text, &found, by);
            copied = found.whole.end;
        }
        if place == number {
            break;
        }
    }
    out.push_str(&text[copied..]);
    out
}

/// Appends what stands in a match's place: `\1` is its first part, `\&` all of it.
fn append(out: &mut String, text: &str, found: &Found, by: &str) {
    let mut rest = by.chars();
    while let Some(next) = rest.next() {
        if next != '\\' {
            out.push(next);
            continue;
        }
        let behind = rest.clone().next();
        match behind {
            Some(digit @ '1'..='9') => {
                let group = digit as usize - '1' as usize;
                if let Some(Some(group)) = found.groups.get(group) {
                    out.push_str(&text[group.clone()]);
                }
            }
            Some('&') => out.push_str(&text[found.whole.clone()]),
            Some('\\') => out.push('\\'),
            _ => {
                out.push('\\');
                continue;
            }
        }
        rest.next();
    }
}
