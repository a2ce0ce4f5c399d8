//! Values in binary format, to the text that is read as one.

use crate::{Error, SqlState, Type};
use bytes::Buf;

use super::{moment, numeric};

/// The text of a value of this type.
///
/// # Errors
///
/// 22P03 if the bytes are none of its values.
pub fn read(kind: &Type, bytes: &[u8]) -> Result<String, Error> {
    let incorrect =
        || Error::new(SqlState::INVALID_BINARY_REPRESENTATION, "incorrect binary data format");
    let mut body = bytes;
    let text = value(kind, &mut body)?.ok_or_else(incorrect)?;
    if !body.is_empty() {
        return Err(incorrect());
    }
    Ok(text)
}

/// Text of a client: UTF-8 without NUL.
///
/// # Errors
///
/// 22021 if it is anything else.
pub fn utf8(bytes: &[u8]) -> Result<&str, Error> {
    let (valid_up_to, length) = match std::str::from_utf8(bytes) {
        Ok(text) => match text.find('\0') {
            None => return Ok(text),
            Some(at) => (at, 1),
        },
        Err(error) => (error.valid_up_to(), error.error_len().unwrap_or(usize::MAX)),
    };
    let wrong = bytes[valid_up_to..].iter().take(length).map(|byte| format!(" 0x{byte:02x}"));
    let message =
        format!("invalid byte sequence for encoding \"UTF8\":{}", wrong.collect::<String>());
    Err(Error::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message))
}

/// Takes a value's text off the bytes; none if they are too short or wrong.
fn value(kind: &Type, body: &mut &[u8]) -> Result<Option<String>, Error> {
    Ok(match kind {
        Type::Boolean => body.try_get_u8().ok().map(|byte| (byte != 0).to_string()),
        Type::SmallInt => body.try_get_i16().ok().map(|value| value.to_string()),
        Type::Integer => body.try_get_i32().ok().map(|value| value.to_string()),
        Type::BigInt => body.try_get_i64().ok().map(|value| value.to_string()),
        Type::Oid
        | Type::Xid
        | Type::Regclass
        | Type::Regtype
        | Type::Regproc
        | Type::Regnamespace
        | Type::Regrole => body.try_get_u32().ok().map(|value| value.to_string()),
        Type::Real => body.try_get_f32().ok().map(|value| float(value.into(), value.to_string())),
        Type::Double => body.try_get_f64().ok().map(|value| float(value, value.to_string())),
        Type::Numeric(_) => numeric::text(rest(body)),
        Type::Text
        | Type::Varchar(_)
        | Type::Char(_)
        | Type::Name
        | Type::InternalChar
        | Type::Json
        | Type::Unknown => Some(utf8(rest(body))?.to_owned()),
        Type::Jsonb => match body.try_get_u8() {
            Ok(1) => Some(utf8(rest(body))?.to_owned()),
            _ => None,
        },
        Type::Bytea => Some(hexadecimal(rest(body))),
        Type::Uuid => body.try_get_u128().ok().map(|value| format!("{value:032x}")),
        Type::Date => body.try_get_i32().ok().map(moment::date).transpose()?,
        Type::Time => body.try_get_i64().ok().and_then(moment::time),
        Type::Timestamp => {
            body.try_get_i64().ok().map(|us| moment::timestamp(us, "")).transpose()?
        }
        Type::Timestamptz => {
            body.try_get_i64().ok().map(|us| moment::timestamp(us, "+00")).transpose()?
        }
        Type::Interval => interval(body),
        Type::Array(element) => array(element, body)?,
        Type::Int2Vector
        | Type::OidVector
        | Type::AclItem
        | Type::NodeTree
        | Type::AnyArray
        | Type::Void => {
            let message = "a value of this type in binary format";
            return Err(Error::unsupported(message));
        }
    })
}

fn rest<'a>(body: &mut &'a [u8]) -> &'a [u8] {
    std::mem::take(body)
}

/// Infinity has another name in PostgreSQL.
fn float(value: f64, text: String) -> String {
    match value {
        f64::INFINITY => "Infinity".to_owned(),
        f64::NEG_INFINITY => "-Infinity".to_owned(),
        _ => text,
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let digits = digits.map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)]));
    ['\\', 'x'].into_iter().chain(digits).collect()
}

fn interval(body: &mut &[u8]) -> Option<String> {
    let us = body.try_get_i64().ok()?;
    let days = body.try_get_i32().ok()?;
    let months = body.try_get_i32().ok()?;
    let sign = if us < 0 { "-" } else { "" };
    let us = us.unsigned_abs();
    let (hours, minutes) = (us / 3_600_000_000, us / 60_000_000 % 60);
    let (seconds, us) = (us / 1_000_000 % 60, us % 1_000_000);
    let time = format!("{sign}{hours:02}:{minutes:02}:{seconds:02}.{us:06}");
    Some(format!("{months} mons {days} days {time}"))
}

/// An array of one dimension, as `{"a","b",NULL}`.
fn array(element: &Type, body: &mut &[u8]) -> Result<Option<String>, Error> {
    let Some([dimensions, _flags, oid]) = numbers(body) else { return Ok(None) };
    if oid != element.oid().cast_signed() {
        let message = "wrong element type";
        return Err(Error::new(SqlState::DATATYPE_MISMATCH, message));
    }
    match dimensions {
        0 => return Ok(Some("{}".to_owned())),
        1 => {}
        _ => return Err(Error::unsupported("an array of several dimensions in binary format")),
    }
    let Some([length, _first]) = numbers(body) else { return Ok(None) };
    let mut text = String::from("{");
    for place in 0..length {
        if place > 0 {
            text.push(',');
        }
        let Some([bytes]) = numbers(body) else { return Ok(None) };
        if bytes == -1 {
            text.push_str("NULL");
            continue;
        }
        let Some(mut item) = usize::try_from(bytes).ok().and_then(|bytes| body.split_off(..bytes))
        else {
            return Ok(None);
        };
        let Some(value) = value(element, &mut item)?.filter(|_| item.is_empty()) else {
            return Ok(None);
        };
        text.push('"');
        text.push_str(&value.replace('\\', r"\\").replace('"', "\\\""));
        text.push('"');
    }
    text.push('}');
    Ok(Some(text))
}

fn numbers<const N: usize>(body: &mut &[u8]) -> Option<[i32; N]> {
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = body.try_get_i32().ok()?;
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array_of(items: &[Option<&str>]) -> Vec<u8> {
        let mut bytes = vec![];
        for number in [1, 0, 25, i32::try_from(items.len()).unwrap(), 1] {
            bytes.extend(number.to_be_bytes());
        }
        for item in items {
            let length = item.map_or(-1, |item| i32::try_from(item.len()).unwrap());
            bytes.extend(length.to_be_bytes());
            bytes.extend(item.unwrap_or_default().bytes());
        }
        bytes
    }

    #[test]
    fn common_types_become_text() {
        let us = 777_000_000_500_000_i64.to_be_bytes();
        let interval =
            [&1_000_000_i64.to_be_bytes()[..], &2_i32.to_be_bytes(), &3_i32.to_be_bytes()].concat();
        for (kind, bytes, expected) in [
            (Type::SmallInt, &(-7_i16).to_be_bytes()[..], "-7"),
            (Type::Integer, &70_000_i32.to_be_bytes(), "70000"),
            (Type::BigInt, &(-(1_i64 << 40)).to_be_bytes(), "-1099511627776"),
            (Type::Real, &0.1_f32.to_be_bytes(), "0.1"),
            (Type::Double, &f64::NEG_INFINITY.to_be_bytes(), "-Infinity"),
            (Type::Boolean, &[1], "true"),
            (Type::Text, "añ🎉".as_bytes(), "añ🎉"),
            (Type::Bytea, &[0, 0xff], "\\x00ff"),
            (Type::Date, &8992_i32.to_be_bytes(), "2024-08-14"),
            (Type::Date, &i32::MAX.to_be_bytes(), "infinity"),
            (Type::Timestamp, &us, "2024-08-15 01:20:00.500000"),
            (Type::Timestamptz, &us, "2024-08-15 01:20:00.500000+00"),
            (Type::Time, &3_600_000_000_i64.to_be_bytes(), "01:00:00.000000"),
            (Type::Interval, &interval, "3 mons 2 days 00:00:01.000000"),
            (Type::Jsonb, b"\x01{}", "{}"),
            (Type::Array(Box::new(Type::Text)), &array_of(&[]), "{}"),
            (
                Type::Array(Box::new(Type::Text)),
                &array_of(&[Some("a\"\\b"), None]),
                "{\"a\\\"\\\\b\",NULL}",
            ),
        ] {
            assert_eq!(read(&kind, bytes).unwrap(), expected, "{kind:?}");
        }
    }

    #[test]
    fn text_must_be_utf8_without_nul() {
        assert_eq!(utf8("añ🎉".as_bytes()).unwrap(), "añ🎉");
        for (bytes, shown) in [(&b"a\xffb"[..], " 0xff"), (b"\xc3", " 0xc3"), (b"a\0b", " 0x00")] {
            let error = utf8(bytes).unwrap_err();
            assert_eq!(error.state, SqlState::CHARACTER_NOT_IN_REPERTOIRE);
            assert!(error.message.ends_with(shown), "{}", error.message);
        }
    }

    #[test]
    fn wrong_bytes_are_refused() {
        for (kind, bytes) in [
            (Type::Integer, &[0, 0, 1][..]),
            (Type::Integer, &[0, 0, 0, 0, 1]),
            (Type::Boolean, &[]),
            (Type::Jsonb, b"\x02{}"),
            (Type::Uuid, &[1; 15]),
            (Type::Numeric(None), &[0, 1]),
            (Type::Array(Box::new(Type::Text)), &array_of(&[Some("abc")])[..25]),
        ] {
            let error = read(&kind, bytes).unwrap_err();
            assert_eq!(error.state, SqlState::INVALID_BINARY_REPRESENTATION, "{kind:?}");
        }
        let error = read(&Type::Text, b"a\0b").unwrap_err();
        assert_eq!(error.state, SqlState::CHARACTER_NOT_IN_REPERTOIRE);
    }
}
