//! Floats in text.
//!
//! PostgreSQL writes the shortest decimal that lies *strictly* between the two midpoints to the
//! float's neighbours (Ryu without accepting the bounds); Rust accepts the midpoints of even
//! floats. The two differ where a midpoint is a short decimal: `1e23` is `9.999999999999999e+22`.

use std::fmt::{LowerExp, Write};

use crate::text::{invalid_syntax, trim};
use crate::{Error, SqlState};

/// Appends a `double precision`.
pub(crate) fn write_double(value: f64, extra_float_digits: i32, out: &mut Vec<u8>) {
    if !value.is_finite() || value == 0.0 {
        return write_special(value, out);
    }
    if extra_float_digits <= 0 {
        let precision = (15 + extra_float_digits).max(1);
        let digits = Decimal::rounded(value, precision as usize);
        return digits.write(precision, true, out);
    }
    let mut digits = Decimal::shortest(value);
    let bits = value.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i32;
    let fraction = bits & ((1 << 52) - 1);
    let midpoints = midpoints(fraction, exponent, 52, 1075);
    if digits.is_any_of(&midpoints) {
        digits = longer(&digits, &midpoints, |precision| {
            let candidate = Decimal::rounded(value, precision);
            (candidate.value() == Some(value)).then_some(candidate)
        });
    }
    digits.write(15, false, out);
}

/// Appends a `real`.
pub(crate) fn write_real(value: f32, extra_float_digits: i32, out: &mut Vec<u8>) {
    if !value.is_finite() || value == 0.0 {
        return write_special(f64::from(value), out);
    }
    if extra_float_digits <= 0 {
        let precision = (6 + extra_float_digits).max(1);
        let digits = Decimal::rounded(value, precision as usize);
        return digits.write(precision, true, out);
    }
    let mut digits = Decimal::shortest(value);
    let bits = value.to_bits();
    let exponent = ((bits >> 23) & 0xff) as i32;
    let fraction = u64::from(bits & ((1 << 23) - 1));
    let midpoints = midpoints(fraction, exponent, 23, 150);
    if digits.is_any_of(&midpoints) {
        digits = longer(&digits, &midpoints, |precision| {
            let candidate = Decimal::rounded(value, precision);
            (candidate.value() == Some(value)).then_some(candidate)
        });
    }
    digits.write(6, false, out);
}

fn write_special(value: f64, out: &mut Vec<u8>) {
    let text: &[u8] = if value.is_nan() {
        b"NaN"
    } else if value == 0.0 {
        if value.is_sign_negative() { b"-0" } else { b"0" }
    } else if value > 0.0 {
        b"Infinity"
    } else {
        b"-Infinity"
    };
    out.extend_from_slice(text);
}

/// An odd number times a power of two.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Binary {
    odd: u128,
    exponent: i32,
}

impl Binary {
    fn new(value: u128, exponent: i32) -> Self {
        let zeros = value.trailing_zeros();
        Self { odd: value >> zeros, exponent: exponent + zeros as i32 }
    }
}

/// The midpoints between a float and its two neighbours.
fn midpoints(fraction: u64, exponent: i32, fraction_bits: u32, bias: i32) -> [Binary; 2] {
    let (mantissa, exponent) = match exponent {
        0 => (fraction, 1 - bias),
        exponent => (fraction | (1 << fraction_bits), exponent - bias),
    };
    let mantissa = u128::from(mantissa);
    let above = Binary::new(2 * mantissa + 1, exponent - 1);
    // Below a power of two floats lie twice as densely.
    let below = if fraction == 0 && mantissa > 1 {
        Binary::new(4 * mantissa - 1, exponent - 2)
    } else {
        Binary::new(2 * mantissa - 1, exponent - 1)
    };
    [below, above]
}

/// The shortest rounding that reads back the same and is no midpoint.
fn longer(
    digits: &Decimal,
    midpoints: &[Binary; 2],
    candidate: impl Fn(usize) -> Option<Decimal>,
) -> Decimal {
    (digits.length + 1..=17)
        .filter_map(candidate)
        .find(|candidate| !candidate.is_any_of(midpoints))
        .unwrap_or_else(|| digits.clone())
}

/// Significant decimal digits, with the exponent of the first.
#[derive(Clone)]
struct Decimal {
    negative: bool,
    digits: [u8; 17],
    length: usize,
    exponent: i32,
}

impl Decimal {
    fn shortest(value: impl LowerExp) -> Self {
        let mut text = Scientific::default();
        write!(text, "{value:e}").expect("the longest float fits");
        text.decimal()
    }

    fn rounded(value: impl LowerExp, digits: usize) -> Self {
        let mut text = Scientific::default();
        write!(text, "{value:.*e}", digits.min(17) - 1).expect("the longest float fits");
        text.decimal()
    }

    fn digits(&self) -> &[u8] {
        &self.digits[..self.length]
    }

    fn value<F: std::str::FromStr>(&self) -> Option<F> {
        let mut text = Vec::with_capacity(32);
        self.write(0, false, &mut text);
        std::str::from_utf8(&text).ok()?.parse().ok()
    }

    /// Whether it is exactly one of these.
    fn is_any_of(&self, midpoints: &[Binary; 2]) -> bool {
        // A midpoint needs all bits of its float and one more, and five to a power of more than 27
        // has more than any. So a decimal with more zeros, or with decimals, is none; the few with
        // decimals that could be one lie where floats have 17 digits anyway.
        let scale = self.exponent + 1 - self.length as i32;
        if !(0..=27).contains(&scale) {
            return false;
        }
        let digits = self.digits().iter().fold(0, |sum, digit| sum * 10 + u128::from(digit - b'0'));
        let Some(value) = digits.checked_mul(5u128.pow(scale as u32)) else { return false };
        let exact = Binary::new(value, scale);
        midpoints.contains(&exact)
    }

    /// Appends it: positional below `positional_max` integer digits, else with an exponent.
    fn write(&self, positional_max: i32, strip: bool, out: &mut Vec<u8>) {
        if self.negative {
            out.push(b'-');
        }
        let mut digits = self.digits();
        if strip {
            while digits.len() > 1 && digits.ends_with(b"0") {
                digits = &digits[..digits.len() - 1];
            }
        }
        if !(-4..positional_max).contains(&self.exponent) {
            out.push(digits[0]);
            if digits.len() > 1 {
                out.push(b'.');
                out.extend_from_slice(&digits[1..]);
            }
            let sign = if self.exponent < 0 { '-' } else { '+' };
            write_ascii(format_args!("e{sign}{:02}", self.exponent.unsigned_abs()), out);
        } else if self.exponent < 0 {
            out.extend_from_slice(b"0.");
            out.resize(out.len() + (-self.exponent - 1) as usize, b'0');
            out.extend_from_slice(digits);
        } else {
            let whole = self.exponent as usize + 1;
            if digits.len() > whole {
                out.extend_from_slice(&digits[..whole]);
                out.push(b'.');
                out.extend_from_slice(&digits[whole..]);
            } else {
                out.extend_from_slice(digits);
                out.resize(out.len() + whole - digits.len(), b'0');
            }
        }
    }
}

/// Appends what is formatted.
fn write_ascii(text: std::fmt::Arguments<'_>, out: &mut Vec<u8>) {
    use std::io::Write;
    out.write_fmt(text).expect("a vector takes everything");
}

/// What Rust writes for `{:e}`.
#[derive(Default)]
struct Scientific {
    bytes: [u8; 32],
    length: usize,
}

impl Write for Scientific {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.length + text.len();
        let place = self.bytes.get_mut(self.length..end).ok_or(std::fmt::Error)?;
        place.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

impl Scientific {
    fn decimal(&self) -> Decimal {
        let mut decimal = Decimal { negative: false, digits: [0; 17], length: 0, exponent: 0 };
        let mut bytes = self.bytes[..self.length].iter();
        for byte in bytes.by_ref() {
            match byte {
                b'-' => decimal.negative = true,
                b'e' => break,
                b'.' => {}
                digit => {
                    decimal.digits[decimal.length] = *digit;
                    decimal.length += 1;
                }
            }
        }
        let exponent = std::str::from_utf8(bytes.as_slice()).ok();
        decimal.exponent =
            exponent.and_then(|text| text.parse().ok()).expect("an exponent ends the number");
        decimal
    }
}

/// Reads a `double precision`.
pub(crate) fn double(text: &str) -> Result<f64, Error> {
    parse(text, "double precision", f64::is_infinite, |value| *value == 0.0)
}

/// Reads a `real`.
pub(crate) fn real(text: &str) -> Result<f32, Error> {
    parse(text, "real", f32::is_infinite, |value| *value == 0.0)
}

fn parse<F: Copy + std::str::FromStr>(
    text: &str,
    kind: &str,
    is_infinite: impl Fn(F) -> bool,
    is_zero: impl Fn(&F) -> bool,
) -> Result<F, Error> {
    let trimmed = trim(text);
    let value: F = trimmed.parse().map_err(|_| invalid_syntax(kind, text))?;
    let number = trimmed.trim_start_matches(['+', '-']);
    let is_number = number.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    let mantissa = number.split(['e', 'E']).next().unwrap_or(number);
    let underflows = is_zero(&value) && mantissa.contains(|digit| ('1'..='9').contains(&digit));
    if is_number && (is_infinite(value) || underflows) {
        let message = format!("\"{trimmed}\" is out of range for type {kind}");
        return Err(Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn double_text(value: f64) -> String {
        let mut out = vec![];
        write_double(value, 1, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn real_text(value: f32) -> String {
        let mut out = vec![];
        write_real(value, 1, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn doubles_are_written_as_postgresql_does() {
        let cases = [
            (1e23, "9.999999999999999e+22"),
            (5e-324, "5e-324"),
            (9007199254740993.0, "9.007199254740992e+15"),
            (1e15, "1e+15"),
            (1e14, "100000000000000"),
            (123456789012345678.0, "1.2345678901234568e+17"),
            (18014398509481984.0, "1.8014398509481984e+16"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-1.5, "-1.5"),
            (0.1 + 0.2, "0.30000000000000004"),
            (-0.0, "-0"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ];
        for (value, expected) in cases {
            assert_eq!(double_text(value), expected);
        }
    }

    #[test]
    fn reals_are_written_as_postgresql_does() {
        let cases = [
            (1e6, "1e+06"),
            (999999.0, "999999"),
            (1234567.0, "1.234567e+06"),
            (16777216.0, "1.6777216e+07"),
            (33554432.0, "3.3554432e+07"),
            (1.1754944e-38, "1.1754944e-38"),
            (0.1, "0.1"),
        ];
        for (value, expected) in cases {
            assert_eq!(real_text(value), expected);
        }
    }

    #[test]
    fn fewer_digits_are_rounded() {
        let mut out = vec![];
        write_double(1.0 / 3.0, 0, &mut out);
        out.push(b' ');
        write_double(100.0, 0, &mut out);
        assert_eq!(out, b"0.333333333333333 100");
    }

    #[test]
    fn what_a_double_cannot_hold_is_refused() {
        assert_eq!(double(" 1e3 ").unwrap(), 1000.0);
        assert!(double("inf").unwrap().is_infinite());
        assert_eq!(double("1e400").unwrap_err().state, SqlState::NUMERIC_VALUE_OUT_OF_RANGE);
        assert_eq!(double("1e-400").unwrap_err().state, SqlState::NUMERIC_VALUE_OUT_OF_RANGE);
        assert_eq!(double("abc").unwrap_err().state, SqlState::INVALID_TEXT_REPRESENTATION);
        assert_eq!(double("").unwrap_err().state, SqlState::INVALID_TEXT_REPRESENTATION);
    }
}
