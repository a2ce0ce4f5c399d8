//! From and to text, integers and floats.

use arrow::datatypes::i256;

use super::magnitude::Magnitude;
use super::{Finite, Numeric, SCALE_MAX, WHOLE_MAX, error, overflow};
use crate::RowError;

impl From<i128> for Numeric {
    fn from(value: i128) -> Self {
        Self::Finite(Finite::integer(value))
    }
}

impl From<i64> for Numeric {
    fn from(value: i64) -> Self {
        Self::from(i128::from(value))
    }
}

impl From<i256> for Numeric {
    fn from(value: i256) -> Self {
        Self::from_wide(value, 0)
    }
}

impl Numeric {
    /// A whole number of units of `10^-scale`.
    pub fn from_wide(units: i256, scale: u32) -> Self {
        if let Some(units) = units.to_i128() {
            return Self::from_units(units, scale);
        }
        let text = units.to_string();
        let digits: Vec<u8> = text.trim_start_matches('-').bytes().map(|b| b - b'0').collect();
        Self::Finite(Finite::new(units.is_negative(), Magnitude::from_digits(&digits), scale))
    }

    /// Reads a value in text.
    ///
    /// # Errors
    ///
    /// 22P02 if it isn't one, 22003 if it has too many digits.
    pub fn parse(text: &str) -> Result<Self, RowError> {
        let invalid =
            || error("22P02", &format!("invalid input syntax for type numeric: \"{text}\""));
        let trimmed = text.trim_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']);
        let (negative, number) = match trimmed.as_bytes().first() {
            Some(b'-') => (true, &trimmed[1..]),
            Some(b'+') => (false, &trimmed[1..]),
            _ => (false, trimmed),
        };
        let is = |word: &str| number.eq_ignore_ascii_case(word);
        if is("nan") && number.len() == trimmed.len() {
            return Ok(Self::NaN);
        }
        if is("inf") || is("infinity") {
            return Ok(if negative { Self::NegativeInfinity } else { Self::Infinity });
        }
        let (mantissa, exponent) = match number.find(['e', 'E']) {
            Some(place) => (&number[..place], Some(&number[place + 1..])),
            None => (number, None),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let characters = || whole.bytes().chain(fraction.bytes());
        if characters().next().is_none() || !characters().all(|byte| byte.is_ascii_digit()) {
            return Err(invalid());
        }
        let exponent = match exponent {
            Some(exponent) => exponent_of(exponent).ok_or_else(invalid)?,
            None => 0,
        };
        if exponent.unsigned_abs() >= i64::from(i32::MAX / 2).unsigned_abs() {
            return Err(overflow());
        }
        let digits: Vec<u8> = characters().map(|byte| byte - b'0').collect();
        let magnitude = Magnitude::from_digits(&digits);
        let written = fraction.len() as i64 - exponent;
        let scale = written.max(0);
        let zeros = (-written).max(0);
        if scale > i64::from(SCALE_MAX)
            || magnitude.digits() as i64 + zeros - scale > WHOLE_MAX.into()
        {
            return if magnitude.is_zero() && scale <= i64::from(SCALE_MAX) {
                Ok(Self::Finite(Finite::new(false, magnitude, scale as u32)))
            } else {
                Err(overflow())
            };
        }
        let magnitude = magnitude.shifted_up(zeros as u32);
        Self::checked(Finite::new(negative, magnitude, scale as u32))
    }

    /// The value of a float's shortest text with so many significant digits; PostgreSQL is sure of 15
    /// of a double's and of 6 of a real's.
    pub fn from_float(value: f64, digits: usize) -> Self {
        if value.is_nan() {
            return Self::NaN;
        }
        if value.is_infinite() {
            return if value > 0.0 { Self::Infinity } else { Self::NegativeInfinity };
        }
        let text = format!("{value:.*e}", digits.saturating_sub(1));
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let mantissa = match mantissa.contains('.') {
            true => mantissa.trim_end_matches('0').trim_end_matches('.'),
            false => mantissa,
        };
        Self::parse(&format!("{mantissa}e{exponent}")).unwrap_or(Self::NaN)
    }

    /// The nearest double; infinite if there is none.
    pub fn to_f64(&self) -> f64 {
        const EXACT: u128 = 1 << 53;
        match self {
            Self::NaN => f64::NAN,
            Self::Infinity => f64::INFINITY,
            Self::NegativeInfinity => f64::NEG_INFINITY,
            Self::Finite(number) => {
                if let Some(units) = number.magnitude.to_u128()
                    && units < EXACT
                    && number.scale <= 22
                {
                    // Both are exact, so the quotient is rounded once.
                    let value = units as f64 / 10f64.powi(number.scale as i32);
                    return if number.negative { -value } else { value };
                }
                self.to_string().parse().unwrap_or(f64::NAN)
            }
        }
    }

    /// The nearest integer, the one farther from zero of two; none if it has more than 38 digits or
    /// isn't a number.
    pub fn to_integer(&self) -> Option<i128> {
        match self {
            Self::Finite(number) if number.leading_place() <= 38 => {
                Self::Finite(number.rounded(0)).to_units(0)
            }
            _ => None,
        }
    }
}

/// An exponent: digits with a sign; bounded, so that what is too large stays so.
fn exponent_of(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let bound = i64::from(i32::MAX);
    let parsed = text.parse().unwrap_or(if text.starts_with('-') { -bound } else { bound });
    Some(i64::clamp(parsed, -bound, bound))
}
