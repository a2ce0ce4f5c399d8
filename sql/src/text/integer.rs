//! Integers in text.

use crate::text::{invalid_syntax, trim};
use crate::{Error, SqlState};

/// Reads an integer between `min` and `max`; `kind` is the type's name in errors.
pub(crate) fn integer(text: &str, min: i64, max: i64, kind: &str) -> Result<i64, Error> {
    let trimmed = trim(text);
    let digits = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(invalid_syntax(kind, text));
    }
    match trimmed.parse::<i64>() {
        Ok(value) if (min..=max).contains(&value) => Ok(value),
        _ => {
            let message = format!("value \"{text}\" is out of range for type {kind}");
            Err(Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message))
        }
    }
}

/// Appends an integer.
pub(super) fn write_integer(value: i64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_the_extremes() {
        for value in [0, 7, -7, 10, i64::MAX, i64::MIN] {
            let mut out = vec![];
            write_integer(value, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
        }
    }
}
