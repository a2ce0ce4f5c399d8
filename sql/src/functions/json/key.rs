//! `jsonb` as bytes that compare as PostgreSQL compares the values: equal values have equal bytes, also
//! when their numbers are written with other digits.

use std::sync::Arc;

use arrow::array::{Array, AsArray, BinaryBuilder, StringArray};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::read;
use crate::Type;
use crate::functions::row::{arrays, shaped};
use crate::functions::typed::{Settled, Typed};
use crate::text::json::Json;

pub(in crate::functions) static KEY: Typed = Typed {
    name: "jsonb key",
    settle: |kinds| match kinds {
        [Type::Jsonb] => Some(Settled::new([Type::Jsonb], Type::Bytea)),
        _ => None,
    },
    invoke: keys,
};

/// Bytes that are ordered by the key and then by the text: it follows the key, and its length that.
pub(in crate::functions) static SORTED: Typed = Typed {
    name: "jsonb sorted",
    settle: KEY.settle,
    invoke: |arguments| {
        let (arrays, is_scalar) = arrays(arguments)?;
        let mut builder = BinaryBuilder::new();
        for text in arrays[0].as_string::<i32>() {
            let Some(text) = text else {
                builder.append_null();
                continue;
            };
            let mut bytes = key(&read(text)?);
            bytes.extend_from_slice(text.as_bytes());
            bytes.extend((text.len() as u32).to_be_bytes());
            builder.append_value(&bytes);
        }
        shaped(Arc::new(builder.finish()), is_scalar)
    },
};

/// The value of such bytes.
pub(in crate::functions) static OF_SORTED: Typed = Typed {
    name: "jsonb of sorted",
    settle: |kinds| match kinds {
        [Type::Bytea] => Some(Settled::new([Type::Bytea], Type::Jsonb)),
        _ => None,
    },
    invoke: |arguments| {
        let (arrays, is_scalar) = arrays(arguments)?;
        let values = arrays[0].as_binary::<i32>().iter();
        let found = values.map(|bytes| {
            let (rest, length) = bytes?.split_last_chunk::<4>()?;
            let start = rest.len().checked_sub(u32::from_be_bytes(*length) as usize)?;
            std::str::from_utf8(&rest[start..]).ok()
        });
        shaped(Arc::new(found.collect::<StringArray>()), is_scalar)
    },
};

fn keys(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let values = arrays[0].as_string::<i32>();
    let mut builder = BinaryBuilder::new();
    for row in 0..values.len() {
        if values.is_null(row) {
            builder.append_null();
            continue;
        }
        builder.append_value(key(&read(values.value(row))?));
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

/// An empty array sorts before everything, but only on the outside.
fn key(value: &Json) -> Vec<u8> {
    let mut bytes = vec![];
    match value {
        Json::Array(elements) if elements.is_empty() => bytes.push(0),
        value => write(value, &mut bytes),
    }
    bytes
}

/// In PostgreSQL's order of kinds: Object > Array > Boolean > Number > String > Null.
fn write(value: &Json, out: &mut Vec<u8>) {
    match value {
        Json::Null => out.push(1),
        Json::String(text) => {
            out.push(2);
            string(text, out);
        }
        Json::Number(digits) => {
            out.push(3);
            number(digits, out);
        }
        Json::Boolean(value) => out.extend([4, u8::from(*value)]),
        Json::Array(elements) => {
            out.push(5);
            out.extend((elements.len() as u32).to_be_bytes());
            elements.iter().for_each(|element| write(element, out));
        }
        Json::Object(members) => {
            out.push(6);
            out.extend((members.len() as u32).to_be_bytes());
            for (key, value) in members {
                string(key, out);
                write(value, out);
            }
        }
    }
}

/// No string has a zero byte in it.
fn string(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

/// The sign, how many digits stand before the point, and the digits that count; backwards for
/// negative numbers.
fn number(text: &str, out: &mut Vec<u8>) {
    let (exponent, digits) = significant(text);
    if digits.is_empty() {
        out.push(1);
        return;
    }
    let is_negative = text.starts_with('-');
    out.push(if is_negative { 0 } else { 2 });
    let start = out.len();
    out.extend(((exponent as i64) ^ i64::MIN).to_be_bytes());
    out.extend_from_slice(digits.as_bytes());
    out.push(0);
    if is_negative {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// How many digits stand before the point (fewer than none if zeros follow it), and all digits from
/// the first to the last that isn't zero.
fn significant(text: &str) -> (isize, String) {
    let unsigned = text.trim_start_matches('-');
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let all = format!("{whole}{fraction}");
    let leading = all.len() - all.trim_start_matches('0').len();
    let digits = all.trim_matches('0').to_owned();
    (whole.len() as isize - leading as isize, digits)
}

/// Whether two numbers are equal.
pub(super) fn same_number(left: &str, right: &str) -> bool {
    let (left_digits, right_digits) = (significant(left), significant(right));
    left_digits.1 == right_digits.1
        && (left_digits.1.is_empty()
            || (left_digits.0 == right_digits.0 && left.starts_with('-') == right.starts_with('-')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Vec<u8> {
        super::key(&read(text).unwrap())
    }

    #[test]
    fn keys_compare_as_values_do() {
        let ascending = [
            "[]",
            "null",
            "\"\"",
            "\"a\"",
            "\"ab\"",
            "-100",
            "-99.5",
            "-1",
            "-0.01",
            "0",
            "0.001",
            "0.01",
            "1",
            "1.5",
            "2",
            "10",
            "100",
            "false",
            "true",
            "[null]",
            "[1]",
            "[2]",
            "[1,1]",
            "{}",
            "{\"a\":1}",
            "{\"a\":2}",
            "{\"b\":1}",
            "{\"a\":1,\"b\":1}",
        ];
        for pair in ascending.windows(2) {
            assert!(key(pair[0]) < key(pair[1]), "{} < {}", pair[0], pair[1]);
        }
        for (left, right) in [("1", "1.0"), ("0", "0.00"), ("-10", "-1e1"), ("[0.10]", "[0.1]")] {
            assert_eq!(key(left), key(right));
            assert!(left.starts_with('[') || same_number(left, &right.replace("1e1", "10")));
        }
    }
}
