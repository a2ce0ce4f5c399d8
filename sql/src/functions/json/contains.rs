//! What a `jsonb` contains.

use datafusion::logical_expr::ColumnarValue;

use super::key::same_number;
use super::{each_condition, read, text_at, texts, texts_at};
use crate::Type;
use crate::functions::typed::{Settled, Typed, is_text};
use crate::text::json::Json;

pub(in crate::functions) static CONTAINS: Typed = Typed {
    name: "jsonb @>",
    settle: both,
    invoke: |arguments| {
        each_condition(arguments, |text, row, arrays| {
            let Some(part) = text_at(&arrays[1], row) else { return Ok(None) };
            Ok(Some(contains(&read(text)?, &read(part)?)))
        })
    },
};

pub(in crate::functions) static CONTAINED: Typed = Typed {
    name: "jsonb <@",
    settle: both,
    invoke: |arguments| {
        each_condition(arguments, |text, row, arrays| {
            let Some(whole) = text_at(&arrays[1], row) else { return Ok(None) };
            Ok(Some(contains(&read(whole)?, &read(text)?)))
        })
    },
};

pub(in crate::functions) static HAS: Typed = Typed {
    name: "operator ?",
    settle: |kinds| match kinds {
        [Type::Jsonb, key] if is_text(key) => {
            Some(Settled::new([Type::Jsonb, Type::Text], Type::Boolean))
        }
        _ => None,
    },
    invoke: |arguments| {
        each_condition(arguments, |text, row, arrays| {
            let Some(key) = text_at(&arrays[1], row) else { return Ok(None) };
            Ok(Some(has(&read(text)?, key)))
        })
    },
};

pub(in crate::functions) static HAS_ANY: Typed =
    Typed { name: "operator ?|", settle: keys, invoke: |arguments| has_keys(arguments, false) };

pub(in crate::functions) static HAS_ALL: Typed =
    Typed { name: "operator ?&", settle: keys, invoke: |arguments| has_keys(arguments, true) };

fn both(kinds: &[Type]) -> Option<Settled> {
    match kinds {
        [Type::Jsonb | Type::Unknown, Type::Jsonb | Type::Unknown] => {
            Some(Settled::new([Type::Jsonb, Type::Jsonb], Type::Boolean))
        }
        _ => None,
    }
}

fn keys(kinds: &[Type]) -> Option<Settled> {
    let [Type::Jsonb, keys] = kinds else { return None };
    let is_texts = match keys {
        Type::Array(element) => is_text(element),
        other => *other == Type::Unknown,
    };
    is_texts.then(|| Settled::new([Type::Jsonb, texts()], Type::Boolean))
}

fn has_keys(
    arguments: &datafusion::logical_expr::ScalarFunctionArgs,
    all: bool,
) -> datafusion::common::Result<ColumnarValue> {
    each_condition(arguments, |text, row, arrays| {
        let Some(keys) = texts_at(&arrays[1], row) else { return Ok(None) };
        let value = read(text)?;
        let mut found = keys.iter().flatten().map(|key| has(&value, key));
        Ok(Some(if all { found.all(|has| has) } else { found.any(|has| has) }))
    })
}

/// Whether it is a key, an element that is a string, or the string itself.
fn has(value: &Json, key: &str) -> bool {
    let is_key = |value: &Json| matches!(value, Json::String(string) if string == key);
    match value {
        Json::Object(_) => value.get(key).is_some(),
        Json::Array(elements) => elements.iter().any(is_key),
        value => is_key(value),
    }
}

/// Scalars alone count as arrays of themselves.
fn contains(whole: &Json, part: &Json) -> bool {
    let is_scalar = |value: &Json| !matches!(value, Json::Array(_) | Json::Object(_));
    match (whole, part) {
        (Json::Array(elements), part) if is_scalar(part) => {
            elements.iter().any(|element| same(element, part))
        }
        (whole, part) if is_scalar(whole) && is_scalar(part) => same(whole, part),
        (whole, part) => container(whole, part),
    }
}

fn container(whole: &Json, part: &Json) -> bool {
    match (whole, part) {
        (Json::Object(_), Json::Object(members)) => members.iter().all(|(key, value)| {
            whole.get(key).is_some_and(|known| match value {
                Json::Array(_) | Json::Object(_) => container(known, value),
                scalar => same(known, scalar),
            })
        }),
        (Json::Array(elements), Json::Array(wanted)) => wanted.iter().all(|wanted| match wanted {
            Json::Array(_) | Json::Object(_) => {
                elements.iter().any(|element| container(element, wanted))
            }
            scalar => elements.iter().any(|element| same(element, scalar)),
        }),
        _ => false,
    }
}

/// Whether two scalars are equal.
fn same(left: &Json, right: &Json) -> bool {
    match (left, right) {
        (Json::Number(left), Json::Number(right)) => same_number(left, right),
        (Json::Array(_) | Json::Object(_), _) => false,
        (left, right) => left == right,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_as_in_postgresql() {
        let cases = [
            ("{\"a\":1,\"b\":2}", "{\"a\":1.0}", true),
            ("{\"a\":{\"b\":[1,2]}}", "{\"a\":{\"b\":[2]}}", true),
            ("[1,[2,3]]", "[[3]]", true),
            ("[1,2]", "[2,2,1]", true),
            ("[\"a\"]", "\"a\"", true),
            ("\"a\"", "[\"a\"]", false),
            ("\"a\"", "\"a\"", true),
            ("[[1]]", "[1]", false),
            ("{\"a\":[1]}", "{\"a\":1}", false),
            ("[]", "[]", true),
            ("{}", "[]", false),
        ];
        for (whole, part, expected) in cases {
            let found = contains(&read(whole).unwrap(), &read(part).unwrap());
            assert_eq!(found, expected, "{whole} @> {part}");
        }
    }
}
