//! `jsonb_insert`, `jsonb_set_lax` and `json_strip_nulls`.

use arrow::array::{Array, AsArray};

use super::change::{change, invalid, is_empty};
use super::{Row, each_text, read, text_at, texts, texts_at};
use crate::functions::row::{raise, raise_error};
use crate::functions::typed::{Settled, Typed, is_text};
use crate::text::json::{self, Json, quote};
use crate::{SqlState, Type};

pub(super) static DEFINITIONS: &[Typed] = &[
    Typed {
        name: "jsonb_insert",
        settle: |kinds| changed(kinds, 1),
        invoke: |arguments| {
            each_text(arguments, |text, row, arrays| {
                let Some(path) = texts_at(&arrays[1], row) else { return Ok(None) };
                let Some(new) = text_at(&arrays[2], row) else { return Ok(None) };
                let is_behind = match arrays.get(3) {
                    Some(flags) if flags.is_null(row) => return Ok(None),
                    Some(flags) => flags.as_boolean().value(row),
                    None => false,
                };
                let mut value = read(text)?;
                check(&value)?;
                insert(&mut value, &path, 1, &read(new)?, is_behind)?;
                Ok(Some(value.text()))
            })
        },
    },
    Typed {
        name: "jsonb_set_lax",
        settle: |kinds| changed(kinds, 2),
        invoke: |arguments| {
            each_text(arguments, |text, row, arrays| {
                let Some(path) = texts_at(&arrays[1], row) else { return Ok(None) };
                let creates = match arrays.get(3) {
                    Some(flags) if flags.is_null(row) => return Ok(None),
                    Some(flags) => flags.as_boolean().value(row),
                    None => true,
                };
                let treatment = match arrays.get(4) {
                    Some(treatments) => text_at(treatments, row),
                    None => Some("use_json_null"),
                };
                let new = text_at(&arrays[2], row);
                set(text, &path, new, creates, treatment).map(Some)
            })
        },
    },
    Typed {
        name: "json_strip_nulls",
        settle: |kinds| match kinds {
            [Type::Json | Type::Unknown] => Some(Settled::new([Type::Json], Type::Json)),
            _ => None,
        },
        invoke: |arguments| {
            each_text(arguments, |text, _, _| {
                let mut out = String::new();
                without_nulls(text, &mut out)?;
                Ok(Some(out))
            })
        },
    },
];

/// A `jsonb`, a path, another `jsonb`, and options behind them.
fn changed(kinds: &[Type], options_max: usize) -> Option<Settled> {
    let (first, options) = kinds.split_at_checked(3)?;
    let [Type::Jsonb | Type::Unknown, Type::Array(_) | Type::Unknown, Type::Jsonb | Type::Unknown] =
        first
    else {
        return None;
    };
    let fits = options.len() <= options_max
        && options.first().is_none_or(|flag| matches!(flag, Type::Boolean | Type::Unknown))
        && options.get(1).is_none_or(is_text);
    let options = [Type::Boolean, Type::Text].into_iter().take(options.len());
    let arguments = [Type::Jsonb, texts(), Type::Jsonb].into_iter().chain(options);
    fits.then(|| Settled::new(arguments, Type::Jsonb))
}

fn check(value: &Json) -> Row<()> {
    match value {
        Json::Array(_) | Json::Object(_) => Ok(()),
        _ => Err(invalid("cannot set path in scalar")),
    }
}

/// Inserts a value at a path; what is there already stays beside it.
fn insert(
    value: &mut Json,
    path: &[Option<String>],
    position: usize,
    new: &Json,
    is_behind: bool,
) -> Row<()> {
    let Some((step, rest)) = path.split_first() else { return Ok(()) };
    let Some(step) = step else {
        let message = format!("path element at position {position} is null");
        return Err(raise(SqlState::NULL_VALUE_NOT_ALLOWED, message));
    };
    match value {
        Json::Object(members) => {
            match (members.iter().position(|(key, _)| key == step), rest.is_empty()) {
                (Some(_), true) => return Err(invalid("cannot replace existing key")),
                (Some(at), false) => {
                    insert(&mut members[at].1, rest, position + 1, new, is_behind)?;
                }
                (None, true) => {
                    let mut all = std::mem::take(members);
                    all.push((step.clone(), new.clone()));
                    *value = Json::object(all);
                }
                (None, false) => {}
            }
        }
        Json::Array(elements) => {
            let subscript = step.trim().parse::<i32>().map_err(|_| {
                let message =
                    format!("path element at position {position} is not an integer: \"{step}\"");
                raise(SqlState::INVALID_TEXT_REPRESENTATION, message)
            })?;
            let length = elements.len();
            let from_end = subscript.unsigned_abs() as usize;
            let at = if subscript >= 0 { Some(from_end) } else { length.checked_sub(from_end) };
            match (at, rest.is_empty()) {
                (Some(at), true) if at < length => {
                    elements.insert(at + usize::from(is_behind), new.clone());
                }
                (Some(_), true) => elements.push(new.clone()),
                (None, true) => elements.insert(0, new.clone()),
                (Some(at), false) if at < length => {
                    insert(&mut elements[at], rest, position + 1, new, is_behind)?;
                }
                (_, false) => {}
            }
        }
        _ => {}
    }
    Ok(())
}

/// `jsonb_set`, and what is to be done if the new value is NULL.
fn set(
    text: &str,
    path: &[Option<String>],
    new: Option<&str>,
    creates: bool,
    treatment: Option<&str>,
) -> Row<String> {
    let mut value = read(text)?;
    let wrong = "null_value_treatment must be \"delete_key\", \"return_target\", \
                 \"use_json_null\", or \"raise_exception\"";
    let Some(treatment) = treatment else { return Err(invalid(wrong)) };
    let new = match (new, treatment) {
        (Some(new), _) => Some(read(new)?),
        (None, "use_json_null") => Some(Json::Null),
        (None, "delete_key") => None,
        (None, "return_target") => return Ok(value.text()),
        (None, "raise_exception") => {
            let message = "JSON value must not be null";
            return Err(raise(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        }
        (None, _) => return Err(invalid(wrong)),
    };
    if new.is_none() {
        if !matches!(value, Json::Array(_) | Json::Object(_)) {
            return Err(invalid("cannot delete path in scalar"));
        }
        change(&mut value, path, None, false)?;
        return Ok(value.text());
    }
    check(&value)?;
    if creates || !is_empty(&value) {
        change(&mut value, path, new.as_ref(), creates)?;
    }
    Ok(value.text())
}

/// Appends a text of JSON without the members of objects that are null, and without blanks.
fn without_nulls(text: &str, out: &mut String) -> Row<()> {
    match json::kind(text) {
        b'{' => {
            out.push('{');
            let mut is_first = true;
            for (key, value) in json::members(text).map_err(raise_error)? {
                if json::kind(value) == b'n' {
                    continue;
                }
                if !std::mem::take(&mut is_first) {
                    out.push(',');
                }
                quote(&key, out);
                out.push(':');
                without_nulls(value, out)?;
            }
            out.push('}');
        }
        b'[' => {
            out.push('[');
            for (place, element) in json::elements(text).into_iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                without_nulls(element, out)?;
            }
            out.push(']');
        }
        b'"' => {
            if let Json::String(text) = read(text)? {
                quote(&text, out);
            }
        }
        _ => out.push_str(text.trim()),
    }
    Ok(())
}
