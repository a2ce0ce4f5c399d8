//! Bytes as text and back, and single bytes and bits.

use std::sync::Arc;

use arrow::array::{Array, AsArray, BinaryBuilder, Int32Array, StringBuilder};
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use arrow::error::ArrowError;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{ColumnarValue, Expr, ScalarFunctionArgs};

use super::bytes_at;
use crate::functions::cast;
use crate::functions::row::{arrays, raise, raise_error, shaped};
use crate::functions::typed::{Settled, Typed, is_integer, is_text};
use crate::text::bytea;
use crate::{SqlState, Type};

type Row<T> = std::result::Result<T, ArrowError>;

pub(super) static DEFINITIONS: &[Typed] = &[
    Typed {
        name: "encode",
        settle: |kinds| match kinds {
            [Type::Bytea | Type::Unknown, format] if is_text(format) => {
                Some(Settled::new([Type::Bytea, Type::Text], Type::Text))
            }
            _ => None,
        },
        invoke: |arguments| texts(arguments, encoded),
    },
    Typed {
        name: "decode",
        settle: |kinds| match kinds {
            [text, format] if is_text(text) && is_text(format) => {
                Some(Settled::new([Type::Text, Type::Text], Type::Bytea))
            }
            _ => None,
        },
        invoke: |arguments| bytes(arguments, decoded),
    },
    Typed {
        name: "convert_from",
        settle: |kinds| match kinds {
            [Type::Bytea | Type::Unknown, encoding] if is_text(encoding) => {
                Some(Settled::new([Type::Bytea, Type::Text], Type::Text))
            }
            _ => None,
        },
        invoke: |arguments| {
            texts(arguments, |bytes, encoding| {
                check_encoding(encoding)?;
                String::from_utf8(bytes.to_vec()).map_err(|_| {
                    let message = "invalid byte sequence for encoding \"UTF8\"";
                    raise(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message)
                })
            })
        },
    },
    Typed {
        name: "convert_to",
        settle: |kinds| match kinds {
            [text, encoding] if is_text(text) && is_text(encoding) => {
                Some(Settled::new([Type::Text, Type::Text], Type::Bytea))
            }
            _ => None,
        },
        invoke: |arguments| {
            bytes(arguments, |text, encoding| {
                check_encoding(encoding)?;
                Ok(text.to_vec())
            })
        },
    },
    Typed {
        name: "get_byte",
        settle: |kinds| at(kinds, Type::Integer),
        invoke: |arguments| {
            got(arguments, |bytes, place| {
                let index = index(place, bytes.len() as i64)?;
                Ok(i32::from(bytes[index]))
            })
        },
    },
    Typed {
        name: "get_bit",
        settle: |kinds| at(kinds, Type::BigInt),
        invoke: |arguments| {
            got(arguments, |bytes, place| {
                let index = index(place, bytes.len() as i64 * 8)?;
                Ok(i32::from(bytes[index / 8] >> (index % 8) & 1))
            })
        },
    },
    Typed {
        name: "set_byte",
        settle: |kinds| replaced(kinds, Type::Integer),
        invoke: |arguments| {
            changed(arguments, |bytes, place, value| {
                let index = index(place, bytes.len() as i64)?;
                bytes[index] = value as u8;
                Ok(())
            })
        },
    },
    Typed {
        name: "set_bit",
        settle: |kinds| replaced(kinds, Type::BigInt),
        invoke: |arguments| {
            changed(arguments, |bytes, place, value| {
                let index = index(place, bytes.len() as i64 * 8)?;
                let bit = 1 << (index % 8);
                match value {
                    0 => bytes[index / 8] &= !bit,
                    1 => bytes[index / 8] |= bit,
                    _ => {
                        let message = "new bit must be 0 or 1";
                        return Err(raise(SqlState::INVALID_PARAMETER_VALUE, message));
                    }
                }
                Ok(())
            })
        },
    },
];

/// The bytes in hexadecimal, which compare as they do.
pub(in crate::functions) fn hexadecimal(bytes: Expr) -> Expr {
    let format = cast::settled(ScalarValue::Utf8(Some("hex".to_owned())), &Type::Text);
    Expr::ScalarFunction(ScalarFunction::new_udf(DEFINITIONS[0].udf(), vec![bytes, format]))
}

fn at(kinds: &[Type], place: Type) -> Option<Settled> {
    match kinds {
        [Type::Bytea | Type::Unknown, index] if is_integer(index) || *index == place => {
            Some(Settled::new([Type::Bytea, place], Type::Integer))
        }
        _ => None,
    }
}

fn replaced(kinds: &[Type], place: Type) -> Option<Settled> {
    let [bytes, index, value] = kinds else { return None };
    at(&[bytes.clone(), index.clone()], place.clone())?;
    is_integer(value).then(|| Settled::new([Type::Bytea, place, Type::Integer], Type::Bytea))
}

fn index(place: i64, end: i64) -> Row<usize> {
    if (0..end).contains(&place) {
        return Ok(place as usize);
    }
    let message = format!("index {place} out of valid range, 0..{}", end - 1);
    Err(raise(SqlState::ARRAY_SUBSCRIPT_ERROR, message))
}

fn check_encoding(name: &str) -> Row<()> {
    if ["utf8", "utf-8", "unicode"].contains(&name.to_ascii_lowercase().as_str()) {
        return Ok(());
    }
    let message = format!("the encoding \"{name}\" is not supported");
    Err(raise(SqlState::FEATURE_NOT_SUPPORTED, message))
}

/// A number of an argument in a row.
fn number_at(array: &arrow::array::ArrayRef, row: usize) -> Option<i64> {
    if array.is_null(row) {
        return None;
    }
    Some(match array.data_type() {
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row),
        _ => array.as_primitive::<Int32Type>().value(row).into(),
    })
}

fn got(
    arguments: &ScalarFunctionArgs,
    get: impl Fn(&[u8], i64) -> Row<i32>,
) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let mut found = vec![];
    for row in 0..arrays[0].len() {
        let both = bytes_at(&arrays[0], row).zip(number_at(&arrays[1], row));
        found.push(both.map(|(bytes, place)| get(bytes, place)).transpose()?);
    }
    shaped(Arc::new(Int32Array::from(found)), is_scalar)
}

fn changed(
    arguments: &ScalarFunctionArgs,
    change: impl Fn(&mut [u8], i64, i64) -> Row<()>,
) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let mut builder = BinaryBuilder::new();
    for row in 0..arrays[0].len() {
        let bytes = bytes_at(&arrays[0], row);
        match (bytes, number_at(&arrays[1], row), number_at(&arrays[2], row)) {
            (Some(bytes), Some(place), Some(value)) => {
                let mut bytes = bytes.to_vec();
                change(&mut bytes, place, value)?;
                builder.append_value(bytes);
            }
            _ => builder.append_null(),
        }
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

fn texts(
    arguments: &ScalarFunctionArgs,
    compute: impl Fn(&[u8], &str) -> Row<String>,
) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let words = arrays[1].as_string::<i32>();
    let mut builder = StringBuilder::new();
    for row in 0..words.len() {
        match bytes_at(&arrays[0], row) {
            Some(bytes) if words.is_valid(row) => {
                builder.append_value(compute(bytes, words.value(row))?);
            }
            _ => builder.append_null(),
        }
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

fn bytes(
    arguments: &ScalarFunctionArgs,
    compute: impl Fn(&[u8], &str) -> Row<Vec<u8>>,
) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let words = arrays[1].as_string::<i32>();
    let mut builder = BinaryBuilder::new();
    for row in 0..words.len() {
        match bytes_at(&arrays[0], row) {
            Some(bytes) if words.is_valid(row) => {
                builder.append_value(compute(bytes, words.value(row))?);
            }
            _ => builder.append_null(),
        }
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn unknown(format: &str) -> ArrowError {
    let message = format!("unrecognized encoding: \"{format}\"");
    raise(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn encoded(bytes: &[u8], format: &str) -> Row<String> {
    Ok(match format.to_ascii_lowercase().as_str() {
        "hex" => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        "base64" => base64(bytes),
        "escape" => {
            let escape = |byte: &u8| match byte {
                0 | 0x80.. => format!("\\{byte:03o}"),
                b'\\' => "\\\\".to_owned(),
                plain => char::from(*plain).to_string(),
            };
            bytes.iter().map(escape).collect()
        }
        _ => return Err(unknown(format)),
    })
}

/// In lines of 76 characters, as PostgreSQL has it.
fn base64(bytes: &[u8]) -> String {
    let mut out = String::new();
    for (place, group) in bytes.chunks(3).enumerate() {
        if place > 0 && place % 19 == 0 {
            out.push('\n');
        }
        let bits = group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - group.len()));
        for digit in 0..4 {
            if digit > group.len() {
                out.push('=');
            } else {
                let index = bits >> (18 - 6 * digit) & 63;
                out.push(char::from(ALPHABET[index as usize]));
            }
        }
    }
    out
}

fn decoded(text: &[u8], format: &str) -> Row<Vec<u8>> {
    let invalid = |message: String| raise(SqlState::INVALID_PARAMETER_VALUE, message);
    let text = String::from_utf8_lossy(text);
    match format.to_ascii_lowercase().as_str() {
        "hex" => bytea(&format!("\\x{text}")).map_err(raise_error),
        "escape" if text.starts_with("\\x") => {
            Err(raise(SqlState::INVALID_TEXT_REPRESENTATION, "invalid input syntax for type bytea"))
        }
        "escape" => bytea(&text).map_err(raise_error),
        "base64" => {
            let mut out = vec![];
            let (mut bits, mut count, mut padding) = (0_u32, 0, 0);
            for character in text.chars().filter(|c| !matches!(c, ' ' | '\t' | '\n' | '\r')) {
                let digit = match character {
                    '=' if count + padding >= 2 => {
                        padding += 1;
                        0
                    }
                    '=' => {
                        return Err(invalid(
                            "unexpected \"=\" while decoding base64 sequence".into(),
                        ));
                    }
                    other => {
                        let found = ALPHABET.iter().position(|known| char::from(*known) == other);
                        let found = found.filter(|_| padding == 0);
                        found.ok_or_else(|| {
                            let message = "invalid symbol found while decoding base64 sequence";
                            invalid(message.replace("symbol", &format!("symbol \"{other}\"")))
                        })? as u32
                    }
                };
                bits = bits << 6 | digit;
                count += usize::from(character != '=');
                if count + padding == 4 {
                    out.extend(&bits.to_be_bytes()[1..4 - padding]);
                    (bits, count) = (0, 0);
                    if padding == 0 {
                        continue;
                    }
                    padding = 0;
                }
            }
            if count + padding > 0 {
                return Err(invalid("invalid base64 end sequence".into()));
            }
            Ok(out)
        }
        _ => Err(unknown(format)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_goes_there_and_back() {
        for length in 0..100_u8 {
            let bytes: Vec<u8> = (0..length).map(|byte| byte.wrapping_mul(37)).collect();
            assert_eq!(decoded(base64(&bytes).as_bytes(), "base64").unwrap(), bytes);
        }
        assert_eq!(base64(b"ab"), "YWI=");
        assert_eq!(base64(b"a"), "YQ==");
        assert!(decoded(b"YQ=", "base64").is_err());
        assert!(decoded(b"Y?==", "base64").is_err());
    }
}
