//! The patterns of LIKE and SIMILAR TO.

use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanBuilder, StringBuilder};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use datafusion::common::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{ColumnarValue, Expr, ScalarFunctionArgs};

use crate::functions::row::{arrays, raise, shaped};
use crate::functions::scalar::{Definition, Function, Resolved, no_function};
use crate::{Error, SqlState, Type};

pub(super) static DEFINITIONS: &[Definition] = &[
    Definition {
        name: "like_escape",
        resolve: |types| texts("like_escape", types, Type::Text),
        invoke: |arguments| {
            rewritten(arguments, |pattern, escape| {
                Ok(like_escape(pattern, escape_character(escape)?))
            })
        },
    },
    Definition {
        name: "similar_to_escape",
        resolve: |types| match types {
            [text] if text.is_null() || *text == DataType::Utf8 => {
                Ok(Resolved::new(vec![DataType::Utf8], Type::Text))
            }
            _ => texts("similar_to_escape", types, Type::Text),
        },
        invoke: |arguments| rewritten(arguments, similar_to_escape),
    },
];

/// LIKE where a pattern isn't a constant, or ends with an escape.
pub(super) static LIKE: Definition = Definition {
    name: "like",
    resolve: |types| texts("like", types, Type::Boolean),
    invoke: |arguments| matches(arguments, false),
};

/// The same without regard to case.
pub(super) static ILIKE: Definition = Definition {
    name: "ilike",
    resolve: |types| texts("ilike", types, Type::Boolean),
    invoke: |arguments| matches(arguments, true),
};

/// Two texts.
fn texts(name: &'static str, types: &[DataType], returns: Type) -> Result<Resolved, Error> {
    let is_text = |data_type: &DataType| matches!(data_type, DataType::Utf8 | DataType::Null);
    if types.len() != 2 || !types.iter().all(is_text) {
        return Err(no_function(name, types));
    }
    Ok(Resolved::new(vec![DataType::Utf8; 2], returns))
}

/// Computes a pattern of each pair of a pattern and its escape character.
fn rewritten(
    arguments: &ScalarFunctionArgs,
    rewrite: fn(&str, &str) -> Result<String, ArrowError>,
) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let patterns = arrays[0].as_string::<i32>();
    let escapes = arrays.get(1).map(|escapes| escapes.as_string::<i32>());
    let mut builder = StringBuilder::new();
    for (row, pattern) in patterns.iter().enumerate() {
        let escape = match escapes {
            Some(escapes) => escapes.is_valid(row).then(|| escapes.value(row)),
            None => Some("\\"),
        };
        match pattern.zip(escape) {
            Some((pattern, escape)) => builder.append_value(rewrite(pattern, escape)?),
            None => builder.append_null(),
        }
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

/// The pattern of LIKE in which the backslash escapes, of one with another escape character.
pub(super) fn like_pattern(pattern: &str, escape: &str) -> Result<String, Error> {
    let mut characters = escape.chars();
    let first = characters.next();
    if characters.next().is_some() {
        let error = Error::new(SqlState::INVALID_ESCAPE_SEQUENCE, "invalid escape string");
        return Err(error.with_hint("Escape string must be empty or one character."));
    }
    Ok(like_escape(pattern, first))
}

/// A call of our own LIKE.
pub(super) fn matched(ignores_case: bool, text: Expr, pattern: Expr) -> ScalarFunction {
    let definition = if ignores_case { &ILIKE } else { &LIKE };
    ScalarFunction::new_udf(Function::udf(definition), vec![text, pattern])
}

/// Whether a pattern of LIKE ends with an escape and nothing behind it: it may be an error.
pub(super) fn dangles(pattern: &str) -> bool {
    pattern.chars().rev().take_while(|character| *character == '\\').count() % 2 == 1
}

fn escape_character(escape: &str) -> Result<Option<char>, ArrowError> {
    let mut characters = escape.chars();
    let first = characters.next();
    if characters.next().is_some() {
        return Err(raise(SqlState::INVALID_ESCAPE_SEQUENCE, "invalid escape string"));
    }
    Ok(first)
}

/// The pattern of LIKE in which the backslash escapes.
fn like_escape(pattern: &str, escape: Option<char>) -> String {
    if escape == Some('\\') {
        return pattern.to_owned();
    }
    let mut written = String::with_capacity(pattern.len());
    let mut is_escaped = false;
    for character in pattern.chars() {
        if Some(character) == escape && !is_escaped {
            written.push('\\');
            is_escaped = true;
            continue;
        }
        if character == '\\' && !is_escaped {
            written.push('\\');
        }
        written.push(character);
        is_escaped = false;
    }
    written
}

/// The regular expression that says what a pattern of SIMILAR TO says.
pub(super) fn similar_to_escape(pattern: &str, escape: &str) -> Result<String, ArrowError> {
    let escape = escape_character(escape)?;
    let mut written = String::from("^(?:");
    let mut characters = pattern.chars();
    let (mut in_class, mut separators) = (false, 0);
    while let Some(character) = characters.next() {
        if Some(character) == escape {
            match characters.next() {
                // What stands between two of these is what `substring` returns; what is before it is
                // as short as possible.
                Some('"') if !in_class => {
                    separators += 1;
                    match separators {
                        1 => written.push_str("){1,1}?("),
                        2 => written.push_str("){1,1}(?:"),
                        _ => {
                            let message = "SQL regular expression may not contain more than two \
                                           escape-double-quote separators";
                            return Err(raise(SqlState::from_code("2200C"), message));
                        }
                    }
                }
                Some(next) => written.extend(['\\', next]),
                None => {}
            }
            continue;
        }
        match character {
            '\\' => written.push_str("\\\\"),
            other if in_class => {
                in_class = other != ']';
                written.push(other);
            }
            '[' => {
                in_class = true;
                written.push('[');
            }
            '%' => written.push_str(".*"),
            '_' => written.push('.'),
            '(' => written.push_str("(?:"),
            '.' | '^' | '$' => written.extend(['\\', character]),
            other => written.push(other),
        }
    }
    written.push_str(")$");
    Ok(written)
}

fn matches(arguments: &ScalarFunctionArgs, ignores_case: bool) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let (texts, patterns) = (arrays[0].as_string::<i32>(), arrays[1].as_string::<i32>());
    let mut builder = BooleanBuilder::with_capacity(texts.len());
    let characters = |text: &str| -> Vec<char> {
        match ignores_case {
            true => text.chars().flat_map(char::to_lowercase).collect(),
            false => text.chars().collect(),
        }
    };
    for (text, pattern) in texts.iter().zip(patterns) {
        builder.append_option(match (text, pattern) {
            (Some(text), Some(pattern)) => {
                Some(is_match(&characters(text), &characters(pattern))? == Match::Yes)
            }
            _ => None,
        });
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

/// How a text and a pattern go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Match {
    Yes,
    No,
    /// The text has ended before the pattern: a shorter rest can't match either.
    Short,
}

/// As PostgreSQL does it, which finds an escape without a character only when it gets there.
fn is_match(mut text: &[char], mut pattern: &[char]) -> Result<Match, ArrowError> {
    let dangling = || {
        raise(SqlState::INVALID_ESCAPE_SEQUENCE, "LIKE pattern must not end with escape character")
    };
    while let (Some((first, text_rest)), Some((wanted, rest))) =
        (text.split_first(), pattern.split_first())
    {
        match wanted {
            '%' => {
                let rest_start = rest.iter().position(|next| *next != '%' && *next != '_');
                let wildcards = &rest[..rest_start.unwrap_or(rest.len())];
                let singles = wildcards.iter().filter(|next| **next == '_').count();
                let Some(mut text) = text.get(singles..) else { return Ok(Match::Short) };
                let rest = &rest[wildcards.len()..];
                match rest {
                    [] => return Ok(Match::Yes),
                    ['\\'] => return Err(dangling()),
                    _ => {}
                }
                while !text.is_empty() {
                    match is_match(text, rest)? {
                        Match::No => text = &text[1..],
                        other => return Ok(other),
                    }
                }
                return Ok(Match::Short);
            }
            '\\' => {
                let (escaped, rest) = rest.split_first().ok_or_else(dangling)?;
                if escaped != first {
                    return Ok(Match::No);
                }
                pattern = rest;
            }
            '_' => pattern = rest,
            other if other == first => pattern = rest,
            _ => return Ok(Match::No),
        }
        text = text_rest;
    }
    if !text.is_empty() {
        return Ok(Match::No);
    }
    let is_done = pattern.iter().all(|next| *next == '%');
    Ok(if is_done { Match::Yes } else { Match::Short })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(text: &str, pattern: &str) -> Option<bool> {
        let characters = |text: &str| text.chars().collect::<Vec<_>>();
        let matched = is_match(&characters(text), &characters(pattern));
        matched.ok().map(|matched| matched == Match::Yes)
    }

    #[test]
    fn patterns_match_as_in_postgresql() {
        for (text, pattern, expected) in [
            ("abc", "a%", Some(true)),
            ("abc", "%c", Some(true)),
            ("abc", "a_c", Some(true)),
            ("abc", "a_", Some(false)),
            ("abc", "%%_%", Some(true)),
            ("", "%", Some(true)),
            ("", "_", Some(false)),
            ("a%c", r"a\%c", Some(true)),
            ("abc", r"a\%c", Some(false)),
            (r"a\c", r"a\\c", Some(true)),
            ("aéb", "a_b", Some(true)),
            ("abab", "%ab", Some(true)),
            ("aXbXc", "a%X%c", Some(true)),
            (r"a\", r"a\", None),
            ("b", r"a\", Some(false)),
            ("ab", r"%\", None),
        ] {
            assert_eq!(like(text, pattern), expected, "{text} LIKE {pattern}");
        }
    }

    #[test]
    fn other_escape_characters_become_backslashes() {
        assert_eq!(like_escape("a!%b!!", Some('!')), r"a\%b\!");
        assert_eq!(like_escape(r"a\b", Some('!')), r"a\\b");
        assert_eq!(like_escape(r"a\b%", None), r"a\\b%");
        assert_eq!(like_escape(r"a\b%", Some('\\')), r"a\b%");
    }

    #[test]
    fn sql_patterns_become_regular_expressions() {
        for (pattern, escape, expected) in [
            ("(a|x)%", "\\", "^(?:(?:a|x).*)$"),
            (r"a\%.c", "\\", r"^(?:a\%\.c)$"),
            ("[a%]_", "!", "^(?:[a%].)$"),
            ("a#\"%#\"f", "#", "^(?:a){1,1}?(.*){1,1}(?:f)$"),
        ] {
            assert_eq!(similar_to_escape(pattern, escape).unwrap(), expected);
        }
        assert!(similar_to_escape("a", "##").is_err());
    }
}
