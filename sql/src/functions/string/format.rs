//! `format`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringBuilder};
use arrow::error::ArrowError;

use super::quote::literal;
use crate::functions::row::{arrays, raise, shaped};
use crate::functions::typed::{Settled, Typed, Wanted, is_text};
use crate::{SqlState, Type};

pub(super) static FORMAT: Typed = Typed {
    name: "format",
    settle: |kinds| {
        let (pattern, values) = kinds.split_first()?;
        let mut arguments = vec![Wanted::As(Type::Text)];
        arguments.extend(values.iter().map(|_| Wanted::Shown));
        is_text(pattern).then_some(Settled { arguments, returns: Type::Text })
    },
    invoke: |arguments| {
        let (arrays, is_scalar) = arrays(arguments)?;
        let mut builder = StringBuilder::new();
        for (row, pattern) in arrays[0].as_string::<i32>().iter().enumerate() {
            match pattern {
                Some(pattern) => {
                    let values = Values { arrays: &arrays[1..], row, next: 0 };
                    builder.append_value(formatted(pattern, values)?);
                }
                None => builder.append_null(),
            }
        }
        shaped(Arc::new(builder.finish()), is_scalar)
    },
};

type Row<T> = std::result::Result<T, ArrowError>;

fn invalid(message: impl Into<String>) -> ArrowError {
    raise(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// The arguments of a row, and which of them comes next.
struct Values<'a> {
    arrays: &'a [ArrayRef],
    row: usize,
    next: usize,
}

impl<'a> Values<'a> {
    /// The argument with a number, from 1, or the next.
    fn take(&mut self, number: Option<usize>) -> Row<Option<&'a str>> {
        let place = match number {
            Some(0) => {
                return Err(invalid(
                    "format specifies argument 0, but arguments are numbered from 1",
                ));
            }
            Some(number) => number - 1,
            None => self.next,
        };
        self.next = place + 1;
        let array =
            self.arrays.get(place).ok_or_else(|| invalid("too few arguments for format()"))?;
        let texts = array.as_string::<i32>();
        Ok(texts.is_valid(self.row).then(|| texts.value(self.row)))
    }
}

fn formatted(pattern: &str, mut values: Values<'_>) -> Row<String> {
    let mut out = String::new();
    let mut rest = pattern;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(behind) = rest.strip_prefix('%') {
            out.push('%');
            rest = behind;
            continue;
        }
        rest = specified(rest, &mut values, &mut out)?;
    }
    out.push_str(rest);
    Ok(out)
}

/// A number at the beginning.
fn number(text: &str) -> Row<(Option<usize>, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    if end == 0 {
        return Ok((None, text));
    }
    let value = text[..end]
        .parse::<i32>()
        .map_err(|_| raise(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "number is out of range"))?;
    Ok((usize::try_from(value).ok(), &text[end..]))
}

fn unterminated() -> ArrowError {
    invalid("unterminated format() type specifier")
}

/// What follows a `%`: a place, a width and a letter; returns what follows that.
fn specified<'a>(text: &'a str, values: &mut Values<'_>, out: &mut String) -> Row<&'a str> {
    let (mut place, mut width, mut is_left) = (None, None, false);
    let mut rest = text;
    let (first, behind) = number(rest)?;
    match (first, behind.strip_prefix('$')) {
        (Some(number), Some(behind)) => {
            if number == 0 {
                let message = "format specifies argument 0, but arguments are numbered from 1";
                return Err(invalid(message));
            }
            place = Some(number);
            rest = behind;
        }
        (Some(number), None) => {
            width = Some(number);
            rest = behind;
        }
        (None, _) => {}
    }
    if width.is_none() {
        while let Some(behind) = rest.strip_prefix('-') {
            is_left = true;
            rest = behind;
        }
        if let Some(behind) = rest.strip_prefix('*') {
            let (argument, behind) = number(behind)?;
            let (argument, behind) = match (argument, behind.strip_prefix('$')) {
                (Some(argument), Some(behind)) => (Some(argument), behind),
                (Some(_), None) => {
                    return Err(invalid("width argument position must be ended by \"$\""));
                }
                (None, _) => (None, behind),
            };
            let value = values.take(argument)?.unwrap_or("0");
            let wanted = value.parse::<i32>().map_err(|_| {
                let message = format!("invalid input syntax for type integer: \"{value}\"");
                raise(SqlState::INVALID_TEXT_REPRESENTATION, message)
            })?;
            is_left |= wanted < 0;
            width = Some(wanted.unsigned_abs() as usize);
            rest = behind;
        } else {
            let (found, behind) = number(rest)?;
            width = found;
            rest = behind;
        }
    }
    let letter = rest.chars().next().ok_or_else(unterminated)?;
    rest = &rest[letter.len_utf8()..];
    if !matches!(letter, 's' | 'I' | 'L') {
        let message = format!("unrecognized format() type specifier \"{letter}\"");
        return Err(invalid(message));
    }
    let value = values.take(place)?;
    let shown = match (letter, value) {
        ('s', value) => value.unwrap_or("").to_owned(),
        ('L', Some(value)) => literal(value),
        ('L', None) => "NULL".to_owned(),
        (_, Some(value)) => crate::names::quote_ident(value),
        (_, None) => {
            let message = "null values cannot be formatted as an SQL identifier";
            return Err(raise(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        }
    };
    let width = width.unwrap_or(0);
    match is_left {
        true => out.push_str(&format!("{shown:<width$}")),
        false => out.push_str(&format!("{shown:>width$}")),
    }
    Ok(rest)
}
