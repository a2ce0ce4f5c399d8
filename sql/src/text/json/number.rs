//! JSON's numbers as PostgreSQL's `numeric` has them.

use crate::{Error, SqlState};

/// Digits before and after the point that PostgreSQL's `numeric` has room for.
const WHOLE_MAX: i64 = 131_072;
const FRACTION_MAX: i64 = 16_383;

/// The number without an exponent: `1e2` is 100, `1.50` stays.
pub(super) fn plain(text: &str) -> Result<String, Error> {
    let overflow = || {
        let message = "value overflows numeric format";
        Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
    };
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse().map_err(|_| overflow())?),
        None => (unsigned, 0_i64),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    // Digits before the point.
    let point = whole.len() as i64 + exponent;
    let is_zero = digits.bytes().all(|digit| digit == b'0');
    let fraction_len = (fraction.len() as i64 - exponent).max(0);
    if fraction_len > FRACTION_MAX || (!is_zero && point > WHOLE_MAX) {
        return Err(overflow());
    }
    let digit = |place: i64| match usize::try_from(place) {
        Ok(place) => digits.as_bytes().get(place).map_or('0', |digit| char::from(*digit)),
        Err(_) => '0',
    };
    let mut out = String::new();
    if !is_zero {
        out.push_str(sign);
    }
    let whole: String = if is_zero { String::new() } else { (0..point).map(digit).collect() };
    let whole = whole.trim_start_matches('0');
    out.push_str(if whole.is_empty() { "0" } else { whole });
    if fraction_len > 0 {
        out.push('.');
        out.extend((point..point + fraction_len).map(digit));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_are_written_out() {
        let cases = [
            ("1", "1"),
            ("1.50", "1.50"),
            ("1e3", "1000"),
            ("1.5e1", "15"),
            ("1.50e1", "15.0"),
            ("1.5e-3", "0.0015"),
            ("-12e-1", "-1.2"),
            ("0e10", "0"),
            ("0.00e1", "0.0"),
            ("-0", "0"),
            ("0.5e0", "0.5"),
        ];
        for (text, expected) in cases {
            assert_eq!(plain(text).unwrap(), expected, "{text}");
        }
        for text in ["1e400000", "1e-400000", "1e99999999999999999999"] {
            assert_eq!(plain(text).unwrap_err().state.code(), "22003", "{text}");
        }
    }
}
