//! `json` and `jsonb` in text.
//!
//! A `json` is its text as it was written. A `jsonb` is carried as the text that PostgreSQL shows:
//! members by the length of their keys and then by the keys, each key once, numbers without
//! exponents. So what was read once needs no further check.

mod number;
mod parse;
mod scan;

pub(crate) use parse::{Detail, parse};
pub(crate) use scan::{elements, kind, members};

use std::fmt::Write;

use crate::Error;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Null,
    Boolean(bool),
    /// Its digits, without an exponent.
    Number(String),
    String(String),
    Array(Vec<Json>),
    /// Ordered as `jsonb` has them, each key once.
    Object(Vec<(String, Json)>),
}

/// 22P02 unless the text is JSON.
pub(crate) fn check(text: &str) -> Result<(), Error> {
    parse(text, Detail::Form).map(|_| ())
}

/// The text that `jsonb` has for a value.
pub(crate) fn canonical(text: &str) -> Result<String, Error> {
    let mut out = String::with_capacity(text.len());
    parse(text, Detail::Values)?.write(&mut out);
    Ok(out)
}

impl Json {
    /// An object of members in any order; of several with one key the last holds.
    pub(crate) fn object(mut members: Vec<(String, Self)>) -> Self {
        // Stable, so that the last of a key stays the last.
        members.sort_by(|(left, _), (right, _)| by_key(left, right));
        let mut kept: Vec<(String, Self)> = Vec::with_capacity(members.len());
        for member in members {
            match kept.last_mut() {
                Some(last) if last.0 == member.0 => *last = member,
                _ => kept.push(member),
            }
        }
        Self::Object(kept)
    }

    /// The value of a number, as a text that PostgreSQL's `numeric` has.
    pub(crate) fn number(text: &str) -> Result<Self, Error> {
        number::plain(text).map(Self::Number)
    }

    /// The word that `jsonb_typeof` has for it.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean(_) => "boolean",
            Self::Number(_) => "number",
            Self::String(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) => "object",
        }
    }

    /// The member of an object with a key.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => {
                let place = members.binary_search_by(|(known, _)| by_key(known, key)).ok()?;
                Some(&members[place].1)
            }
            _ => None,
        }
    }

    /// Appends the text.
    pub(crate) fn write(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Boolean(true) => out.push_str("true"),
            Self::Boolean(false) => out.push_str("false"),
            Self::Number(digits) => out.push_str(digits),
            Self::String(text) => quote(text, out),
            Self::Array(elements) => {
                out.push('[');
                for (place, element) in elements.iter().enumerate() {
                    if place > 0 {
                        out.push_str(", ");
                    }
                    element.write(out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (place, (key, value)) in members.iter().enumerate() {
                    if place > 0 {
                        out.push_str(", ");
                    }
                    quote(key, out);
                    out.push_str(": ");
                    value.write(out);
                }
                out.push('}');
            }
        }
    }

    /// The text.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }
}

/// The order in which `jsonb` keeps its keys.
pub(crate) fn by_key(left: &str, right: &str) -> std::cmp::Ordering {
    left.len().cmp(&right.len()).then_with(|| left.cmp(right))
}

/// Appends a string with its quotes, as PostgreSQL escapes it.
pub(crate) fn quote(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control < ' ' => {
                write!(out, "\\u{:04x}", control as u32).expect("a string takes everything");
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jsonb_has_one_text_for_a_value() {
        let cases = [
            ("{\"b\":1,\"a\":2,\"a\":3}", "{\"a\": 3, \"b\": 1}"),
            ("{\"bb\":1, \"c\":2}", "{\"c\": 2, \"bb\": 1}"),
            (" [1 , 2.50,1e2, -0, 1.5E-3,12e-1 ] ", "[1, 2.50, 100, 0, 0.0015, 1.2]"),
            ("\"\\u00e9\\n\\/\\ud83c\\udf89\"", "\"é\\n/🎉\""),
            ("[]", "[]"),
            ("{}", "{}"),
            ("null", "null"),
            ("-1.50", "-1.50"),
            ("-0.0", "0.0"),
        ];
        for (text, expected) in cases {
            let once = canonical(text).unwrap();
            assert_eq!(once, expected);
            assert_eq!(canonical(&once).unwrap(), expected);
        }
    }

    #[test]
    fn what_is_no_json_is_refused() {
        let bad = [
            "",
            " ",
            "{bad}",
            "{",
            "[1,]",
            "{\"a\"}",
            "{\"a\":1,}",
            "01",
            "1.",
            ".5",
            "+1",
            "\"",
            "tru",
            "nullx",
            "[1] 2",
            "\"\\x\"",
            "\"a\nb\"",
            "\"\\u12\"",
            "'a'",
            "--1",
            "1e",
        ];
        for text in bad {
            let state = check(text).unwrap_err().state;
            assert_eq!(state.code(), "22P02", "{text}");
        }
        assert!(check("\"\\u0000\"").is_ok());
        assert_eq!(canonical("\"\\u0000\"").unwrap_err().state.code(), "22P05");
        assert_eq!(canonical("\"\\ud83c\"").unwrap_err().state.code(), "22P02");
        assert_eq!(check(&"[".repeat(100_000)).unwrap_err().state.code(), "54001");
    }
}
