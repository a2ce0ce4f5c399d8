//! One `jsonb` from others.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Int32Type};
use arrow::error::ArrowError;

use super::{Row, each_text, read, text_at, texts, texts_at};
use crate::functions::row::raise;
use crate::functions::typed::{Settled, Typed, is_text};
use crate::text::json::Json;
use crate::{SqlState, Type};

pub(in crate::functions) static CONCATENATED: Typed = Typed {
    name: "jsonb ||",
    settle: |kinds| match kinds {
        [Type::Jsonb | Type::Unknown, Type::Jsonb | Type::Unknown] => {
            Some(Settled::new([Type::Jsonb, Type::Jsonb], Type::Jsonb))
        }
        _ => None,
    },
    invoke: |arguments| {
        each_text(arguments, |text, row, arrays| {
            let Some(other) = text_at(&arrays[1], row) else { return Ok(None) };
            Ok(Some(concatenated(read(text)?, read(other)?).text()))
        })
    },
};

pub(in crate::functions) static DELETE: Typed = Typed {
    name: "jsonb -",
    settle: |kinds| {
        let [Type::Jsonb, key] = kinds else { return None };
        let key = match key {
            Type::SmallInt | Type::Integer => Type::Integer,
            Type::Array(element) if is_text(element) => texts(),
            key if is_text(key) => Type::Text,
            _ => return None,
        };
        Some(Settled::new([Type::Jsonb, key], Type::Jsonb))
    },
    invoke: |arguments| {
        each_text(arguments, |text, row, arrays| {
            let keys = &arrays[1];
            if keys.is_null(row) {
                return Ok(None);
            }
            let mut value = read(text)?;
            match keys.data_type() {
                DataType::Int32 => {
                    let subscript = keys.as_primitive::<Int32Type>().value(row);
                    delete_element(&mut value, subscript)?;
                }
                DataType::List(_) => {
                    if !matches!(value, Json::Array(_) | Json::Object(_)) {
                        return Err(invalid("cannot delete from scalar"));
                    }
                    for key in texts_at(keys, row).into_iter().flatten().flatten() {
                        delete_key(&mut value, &key)?;
                    }
                }
                _ => delete_key(&mut value, text_at(keys, row).unwrap_or_default())?,
            }
            Ok(Some(value.text()))
        })
    },
};

pub(in crate::functions) static DELETE_PATH: Typed = Typed {
    name: "operator #-",
    settle: |kinds| match kinds {
        [Type::Jsonb, Type::Array(_) | Type::Unknown] => {
            Some(Settled::new([Type::Jsonb, texts()], Type::Jsonb))
        }
        _ => None,
    },
    invoke: |arguments| {
        each_text(arguments, |text, row, arrays| {
            let Some(path) = texts_at(&arrays[1], row) else { return Ok(None) };
            let mut value = read(text)?;
            if is_empty(&value) {
                return Ok(Some(value.text()));
            }
            if matches!(value, Json::Array(_) | Json::Object(_)) {
                change(&mut value, &path, None, false)?;
            } else {
                return Err(invalid("cannot delete path in scalar"));
            }
            Ok(Some(value.text()))
        })
    },
};

pub(super) static DEFINITIONS: &[Typed] = &[
    Typed {
        name: "jsonb_set",
        settle: |kinds| match kinds {
            [
                Type::Jsonb | Type::Unknown,
                Type::Array(_) | Type::Unknown,
                Type::Jsonb | Type::Unknown,
                rest @ ..,
            ] if matches!(rest, [] | [Type::Boolean | Type::Unknown]) => {
                let arguments = [Type::Jsonb, texts(), Type::Jsonb];
                let rest = rest.iter().map(|_| Type::Boolean);
                Some(Settled::new(arguments.into_iter().chain(rest), Type::Jsonb))
            }
            _ => None,
        },
        invoke: |arguments| {
            each_text(arguments, |text, row, arrays| {
                let Some(path) = texts_at(&arrays[1], row) else { return Ok(None) };
                let Some(new) = text_at(&arrays[2], row) else { return Ok(None) };
                let creates = match arrays.get(3) {
                    Some(flags) if flags.is_null(row) => return Ok(None),
                    Some(flags) => flags.as_boolean().value(row),
                    None => true,
                };
                let mut value = read(text)?;
                if !matches!(value, Json::Array(_) | Json::Object(_)) {
                    return Err(invalid("cannot set path in scalar"));
                }
                if creates || !is_empty(&value) {
                    change(&mut value, &path, Some(&read(new)?), creates)?;
                }
                Ok(Some(value.text()))
            })
        },
    },
    Typed {
        name: "jsonb_strip_nulls",
        settle: |kinds| match kinds {
            [Type::Jsonb | Type::Unknown] => Some(Settled::new([Type::Jsonb], Type::Jsonb)),
            _ => None,
        },
        invoke: |arguments| {
            each_text(arguments, |text, _, _| {
                let mut value = read(text)?;
                strip_nulls(&mut value);
                Ok(Some(value.text()))
            })
        },
    },
    Typed {
        name: "jsonb_pretty",
        settle: |kinds| match kinds {
            [Type::Jsonb | Type::Unknown] => Some(Settled::new([Type::Jsonb], Type::Text)),
            _ => None,
        },
        invoke: |arguments| {
            each_text(arguments, |text, _, _| {
                let mut out = String::new();
                pretty(&read(text)?, 0, &mut out);
                Ok(Some(out))
            })
        },
    },
];

pub(super) fn is_empty(value: &Json) -> bool {
    match value {
        Json::Array(elements) => elements.is_empty(),
        Json::Object(members) => members.is_empty(),
        _ => false,
    }
}

pub(super) fn invalid(message: &str) -> ArrowError {
    raise(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn concatenated(left: Json, right: Json) -> Json {
    let elements = |value| match value {
        Json::Array(elements) => elements,
        other => vec![other],
    };
    match (left, right) {
        (Json::Object(mut members), Json::Object(more)) => {
            members.extend(more);
            Json::object(members)
        }
        (left, right) => {
            let mut all = elements(left);
            all.extend(elements(right));
            Json::Array(all)
        }
    }
}

fn delete_key(value: &mut Json, key: &str) -> Row<()> {
    match value {
        Json::Object(members) => members.retain(|(known, _)| known != key),
        Json::Array(elements) => {
            elements.retain(|element| !matches!(element, Json::String(text) if text == key));
        }
        _ => return Err(invalid("cannot delete from scalar")),
    }
    Ok(())
}

/// Counted from 0, or backwards from -1.
fn place(length: usize, subscript: i64) -> Option<usize> {
    let place = if subscript < 0 { length as i64 + subscript } else { subscript };
    usize::try_from(place).ok()
}

fn delete_element(value: &mut Json, subscript: i32) -> Row<()> {
    match value {
        Json::Array(elements) => {
            let place = place(elements.len(), subscript.into()).filter(|at| *at < elements.len());
            if let Some(place) = place {
                elements.remove(place);
            }
            Ok(())
        }
        Json::Object(_) => Err(invalid("cannot delete from object using integer index")),
        _ => Err(invalid("cannot delete from scalar")),
    }
}

/// Puts a value at the end of a path, or deletes what is there. What the path doesn't reach stays.
pub(super) fn change(
    value: &mut Json,
    path: &[Option<String>],
    new: Option<&Json>,
    creates: bool,
) -> Row<()> {
    let Some((step, rest)) = path.split_first() else { return Ok(()) };
    let Some(step) = step else {
        let message = "path element at position 1 is null";
        return Err(raise(SqlState::NULL_VALUE_NOT_ALLOWED, message));
    };
    match value {
        Json::Object(members) => {
            let at = members.iter().position(|(key, _)| key == step);
            match (at, new, rest.is_empty()) {
                (Some(at), Some(new), true) => members[at].1 = new.clone(),
                (Some(at), None, true) => {
                    members.remove(at);
                }
                (Some(at), _, false) => change(&mut members[at].1, rest, new, creates)?,
                (None, Some(new), true) if creates => {
                    let mut all = std::mem::take(members);
                    all.push((step.clone(), new.clone()));
                    *value = Json::object(all);
                }
                (None, ..) => {}
            }
        }
        Json::Array(elements) => {
            let Ok(subscript) = step.trim().parse::<i64>() else {
                let message = format!("path element at position 1 is not an integer: \"{step}\"");
                return Err(raise(SqlState::INVALID_TEXT_REPRESENTATION, message));
            };
            let at = place(elements.len(), subscript).filter(|at| *at < elements.len());
            match (at, new, rest.is_empty()) {
                (Some(at), Some(new), true) => elements[at] = new.clone(),
                (Some(at), None, true) => {
                    elements.remove(at);
                }
                (Some(at), _, false) => change(&mut elements[at], rest, new, creates)?,
                (None, Some(new), true) if creates => {
                    let end = if subscript < 0 { 0 } else { elements.len() };
                    elements.insert(end, new.clone());
                }
                (None, ..) => {}
            }
        }
        _ => {}
    }
    Ok(())
}

fn strip_nulls(value: &mut Json) {
    match value {
        Json::Object(members) => {
            members.retain(|(_, value)| *value != Json::Null);
            members.iter_mut().for_each(|(_, value)| strip_nulls(value));
        }
        Json::Array(elements) => elements.iter_mut().for_each(strip_nulls),
        _ => {}
    }
}

fn pretty(value: &Json, depth: usize, out: &mut String) {
    let line = |depth: usize, out: &mut String| {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', depth * 4));
    };
    match value {
        Json::Array(elements) => {
            out.push('[');
            for (place, element) in elements.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                line(depth + 1, out);
                pretty(element, depth + 1, out);
            }
            line(depth, out);
            out.push(']');
        }
        Json::Object(members) => {
            out.push('{');
            for (place, (key, value)) in members.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                line(depth + 1, out);
                crate::text::json::quote(key, out);
                out.push_str(": ");
                pretty(value, depth + 1, out);
            }
            line(depth, out);
            out.push('}');
        }
        scalar => scalar.write(out),
    }
}
