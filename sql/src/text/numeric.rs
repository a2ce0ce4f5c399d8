//! `numeric` in text, and its rounding.

use stillframe_protocol::{RowError, numeric};

use crate::text::{invalid_syntax, trim};
use crate::{Error, SqlState};

/// Digits that a `numeric` can have here: those of an Arrow `Decimal128`.
pub(crate) const MAX_PRECISION: u8 = 38;

/// A decimal number as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numeric {
    /// The value times ten to the power of `scale`.
    pub unscaled: i128,
    /// Digits after the point.
    pub scale: u8,
}

impl Numeric {
    /// Reads a number. Digits that don't fit are a 22003; digits after the point are first rounded
    /// to `scale_max`.
    pub fn parse(text: &str, scale_max: u8) -> Result<Self, Error> {
        let trimmed = trim(text);
        let (negative, number) = match trimmed.as_bytes().first() {
            Some(b'-') => (true, &trimmed[1..]),
            Some(b'+') => (false, &trimmed[1..]),
            _ => (false, trimmed),
        };
        if ["inf", "infinity"].iter().any(|word| number.eq_ignore_ascii_case(word)) {
            return Err(out_of_digits());
        }
        if number.eq_ignore_ascii_case("nan") {
            return Err(Error::unsupported(format!("{trimmed} as a numeric")));
        }
        let (mantissa, exponent) = split_exponent(number).ok_or_else(|| invalid(text))?;
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = || whole.bytes().chain(fraction.bytes());
        if digits().next().is_none() || !digits().all(|byte| byte.is_ascii_digit()) {
            return Err(invalid(text));
        }
        // The digit before the point has place 0.
        let point = whole.len() as i64 + exponent;
        let written_scale = (fraction.len() as i64 - exponent).max(0);
        let scale = written_scale.min(i64::from(scale_max)) as u8;
        let kept = point + i64::from(scale);
        let mut unscaled = 0i128;
        let mut push = |digit: u8| {
            unscaled = unscaled
                .checked_mul(10)
                .and_then(|value| value.checked_add(i128::from(digit)))
                .filter(|value| *value < 10i128.pow(u32::from(MAX_PRECISION)))?;
            Some(())
        };
        let mut place = 0;
        for byte in digits() {
            if place >= kept {
                break;
            }
            push(byte - b'0').ok_or_else(out_of_digits)?;
            place += 1;
        }
        if unscaled != 0 {
            for _ in place..kept {
                unscaled = unscaled
                    .checked_mul(10)
                    .filter(|value| *value < 10i128.pow(u32::from(MAX_PRECISION)))
                    .ok_or_else(out_of_digits)?;
            }
        }
        if kept >= 0 && digits().nth(kept as usize).is_some_and(|next| next >= b'5') {
            unscaled += 1;
        }
        let unscaled = if negative { -unscaled } else { unscaled };
        Ok(Self { unscaled, scale })
    }
}

/// The mantissa and the exponent; none if the exponent isn't one.
fn split_exponent(number: &str) -> Option<(&str, i64)> {
    let Some((mantissa, exponent)) = number.split_once(['e', 'E']) else {
        return Some((number, 0));
    };
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // An exponent this large is out of range whatever the digits are.
    let bound = i64::from(i32::MAX);
    let exponent =
        exponent.parse().unwrap_or(if exponent.starts_with('-') { -bound } else { bound });
    Some((mantissa, exponent.clamp(-bound, bound)))
}

fn invalid(text: &str) -> Error {
    invalid_syntax("numeric", text)
}

/// 22003: more digits than there can be.
pub(crate) fn out_of_digits() -> Error {
    Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value overflows numeric format")
        .with_detail(format!("A numeric has at most {MAX_PRECISION} digits here."))
}

/// 22003: the value has more digits before the point than the type leaves it.
pub(crate) fn out_of_precision(precision: u8, scale: i8) -> Error {
    let limit = i32::from(precision) - i32::from(scale);
    let limit = if limit == 0 { "1".to_owned() } else { format!("10^{limit}") };
    Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow").with_detail(format!(
        "A field with precision {precision}, scale {scale} must round to an absolute value less \
         than {limit}."
    ))
}

/// The value at another scale, rounded half away from zero; none if it has too many digits.
pub(crate) fn rescale(unscaled: i128, from: i8, to: i8) -> Option<i128> {
    let up = i32::from(to) - i32::from(from);
    if up >= 0 {
        if unscaled == 0 {
            return Some(0);
        }
        return 10i128.checked_pow(up as u32)?.checked_mul(unscaled);
    }
    let Some(divisor) = 10i128.checked_pow(up.unsigned_abs()) else { return Some(0) };
    let quotient = unscaled / divisor;
    let remainder = (unscaled % divisor).unsigned_abs();
    // Twice the remainder may not fit; its complement does.
    let rounds_away = remainder >= divisor.unsigned_abs() - remainder;
    Some(if rounds_away { quotient + unscaled.signum() } else { quotient })
}

/// Reads a value of any number of digits.
pub(crate) fn numeric(text: &str) -> Result<numeric::Numeric, Error> {
    numeric::Numeric::parse(text).map_err(|RowError { sqlstate, message }| {
        match sqlstate.as_str() {
            "22P02" => invalid(text),
            _ => Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message),
        }
    })
}

/// Units, precision and scale of the decimal that a value is; none if it has too many digits.
pub(crate) fn decimal_digits(value: &numeric::Numeric) -> Option<(i128, u8, i8)> {
    let scale = value.scale().filter(|scale| *scale <= u32::from(MAX_PRECISION))?;
    let units = value.to_units(scale)?;
    let digits = units.unsigned_abs().checked_ilog10().map_or(1, |log| log + 1);
    Some((units, digits.max(scale) as u8, scale as i8))
}

/// Appends an encoded value with all digits of its scale.
pub(crate) fn write_numeric(bytes: &[u8], out: &mut Vec<u8>) {
    if let Some(value) = numeric::Numeric::decode(bytes) {
        out.extend_from_slice(value.to_string().as_bytes());
    }
}

/// Appends a number with all digits of its scale.
pub(crate) fn write_decimal(unscaled: i128, scale: i8, out: &mut Vec<u8>) {
    let mut digits = [0; 39];
    let mut start = digits.len();
    let mut rest = unscaled.unsigned_abs();
    // Division of 64 bits is several times cheaper.
    while rest > u128::from(u64::MAX) {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let mut rest = rest as u64;
    while rest > 0 {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let digits = &digits[start..];
    if unscaled < 0 {
        out.push(b'-');
    }
    if scale <= 0 {
        match digits {
            [] => out.push(b'0'),
            digits => {
                out.extend_from_slice(digits);
                out.resize(out.len() + usize::from(scale.unsigned_abs()), b'0');
            }
        }
        return;
    }
    let scale = scale as usize;
    if digits.len() > scale {
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        out.extend_from_slice(whole);
        out.push(b'.');
        out.extend_from_slice(fraction);
    } else {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + scale - digits.len(), b'0');
        out.extend_from_slice(digits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(unscaled: i128, scale: i8) -> String {
        let mut out = vec![];
        write_decimal(unscaled, scale, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_keep_their_scale() {
        assert_eq!(text(0, 2), "0.00");
        assert_eq!(text(-5, 2), "-0.05");
        assert_eq!(text(12345, 2), "123.45");
        assert_eq!(text(7, 0), "7");
        assert_eq!(text(7, -2), "700");
        assert_eq!(text(i128::MAX, 0), i128::MAX.to_string());
    }

    #[test]
    fn numbers_are_read_and_rounded() {
        let parse = |text, scale| Numeric::parse(text, scale).map(|n| (n.unscaled, n.scale));
        assert_eq!(parse(" 1.50 ", 38), Ok((150, 2)));
        assert_eq!(parse("1e3", 38), Ok((1000, 0)));
        assert_eq!(parse("1.5e-3", 38), Ok((15, 4)));
        assert_eq!(parse("-1234.125", 2), Ok((-123413, 2)));
        assert_eq!(parse("0.004", 2), Ok((0, 2)));
        assert_eq!(parse("0.005", 2), Ok((1, 2)));
        assert_eq!(parse("5e-3", 2), Ok((1, 2)));
        assert_eq!(parse("5e-4", 2), Ok((0, 2)));
        assert_eq!(parse("5e-40", 2), Ok((0, 2)));
        assert_eq!(parse(".5", 0), Ok((1, 0)));
        assert_eq!(parse("5.", 0), Ok((5, 0)));
        assert_eq!(parse("0e2000000000", 0), Ok((0, 0)));
        for bad in ["", ".", "abc", "1.2.3", "1e", "1 2", "--1", "0x10"] {
            let error = Numeric::parse(bad, 38).unwrap_err();
            assert_eq!(error.state, SqlState::INVALID_TEXT_REPRESENTATION, "{bad}");
        }
        for large in ["1e38", "1e2000000000", "123456789012345678901234567890123456789"] {
            let error = Numeric::parse(large, 0).unwrap_err();
            assert_eq!(error.state, SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "{large}");
        }
    }

    #[test]
    fn rounding_is_half_away_from_zero() {
        assert_eq!(rescale(25, 1, 0), Some(3));
        assert_eq!(rescale(-25, 1, 0), Some(-3));
        assert_eq!(rescale(24, 1, 0), Some(2));
        assert_eq!(rescale(i128::MAX, 38, 0), Some(2));
        assert_eq!(rescale(5, 0, 2), Some(500));
        assert_eq!(rescale(10i128.pow(37), 0, 2), None);
        assert_eq!(rescale(1, 100, 0), Some(0));
    }
}
