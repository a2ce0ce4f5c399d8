//! The digits of numbers as pictures take them.

use stillframe_protocol::numeric::Numeric;

use super::Row;
use super::pattern::Picture;
use crate::SqlState;
use crate::functions::numeric::raised;
use crate::functions::row::{out_of_range, raise};

/// A number for a picture.
#[derive(Debug)]
pub(super) struct Shown {
    /// The digits, with a point; or `#`s where they don't fit; or all of the text, if it is Roman or
    /// scientific.
    pub digits: String,
    pub is_negative: bool,
    /// How many places stay empty before the digits.
    pub spaces: usize,
    /// Digits before the point, those of `V` included.
    pub whole: usize,
    /// Digits behind it: a float may have fewer than the picture.
    pub fraction: usize,
}

/// The decimal digits that a `real` and a `double precision` have for sure.
const REAL_DIGITS: usize = 6;
const DOUBLE_DIGITS: usize = 15;

impl Shown {
    pub(super) fn of_integer(value: i32, picture: &Picture) -> Row<Self> {
        if picture.is_roman {
            return Ok(Self::of_text(roman(value)));
        }
        if picture.is_scientific {
            return Ok(Self::of_text(scientific_float(f64::from(value), picture)));
        }
        let factor = 10i32.checked_pow(picture.shift as u32);
        let shifted = factor.and_then(|factor| value.checked_mul(factor));
        let shifted = shifted.ok_or_else(|| out_of_range("integer"))?;
        Ok(Self::of_whole(i64::from(shifted), picture))
    }

    pub(super) fn of_bigint(value: i64, picture: &Picture) -> Row<Self> {
        if picture.is_roman {
            let value = i32::try_from(value).map_err(|_| out_of_range("integer"))?;
            return Ok(Self::of_text(roman(value)));
        }
        if picture.is_scientific {
            return Ok(Self::of_text(scientific(&Numeric::from(value), picture)));
        }
        let factor = 10i64.checked_pow(picture.shift as u32);
        let shifted = factor.and_then(|factor| value.checked_mul(factor));
        Ok(Self::of_whole(shifted.ok_or_else(|| out_of_range("bigint"))?, picture))
    }

    fn of_whole(value: i64, picture: &Picture) -> Self {
        let mut digits = value.unsigned_abs().to_string();
        if picture.fraction > 0 {
            digits.push('.');
            digits.extend(std::iter::repeat_n('0', picture.fraction));
        }
        Self::fitted(digits, value < 0, picture.fraction, picture)
    }

    pub(super) fn of_numeric(value: &Numeric, picture: &Picture) -> Row<Self> {
        if picture.is_roman {
            if value.scale().is_none() {
                let message =
                    format!("cannot convert {} to integer", value.to_string().to_lowercase());
                let message = message.replace("nan", "NaN").replace("-infinity", "infinity");
                return Err(raise(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            let whole = value.round(0).map_err(raised)?.to_integer();
            let whole = whole.and_then(|whole| i32::try_from(whole).ok());
            return Ok(Self::of_text(roman(whole.ok_or_else(|| out_of_range("integer"))?)));
        }
        if picture.is_scientific {
            return Ok(Self::of_text(scientific(value, picture)));
        }
        let factor = Numeric::parse(&format!("1e{}", picture.shift)).map_err(raised)?;
        let value = match picture.shift {
            0 => value.clone(),
            _ => value.multiply(&factor).map_err(raised)?,
        };
        let text = value.round(picture.fraction as i32).map_err(raised)?.to_string();
        Ok(Self::signed(&text, picture.fraction, picture))
    }

    pub(super) fn of_real(value: f32, picture: &Picture) -> Row<Self> {
        Self::of_float(f64::from(value), REAL_DIGITS, picture, |value| {
            f64::from(value as f32 * 10f32.powi(picture.shift as i32))
        })
    }

    pub(super) fn of_double(value: f64, picture: &Picture) -> Row<Self> {
        let factor = 10f64.powi(picture.shift as i32);
        Self::of_float(value, DOUBLE_DIGITS, picture, |value| value * factor)
    }

    fn of_float(
        value: f64,
        digits_max: usize,
        picture: &Picture,
        shift: impl Fn(f64) -> f64,
    ) -> Row<Self> {
        if picture.is_roman {
            let rounded = value.round_ties_even();
            let is_integer = rounded >= f64::from(i32::MIN) && rounded <= f64::from(i32::MAX);
            return Ok(Self::of_text(roman(if is_integer { rounded as i32 } else { 0 })));
        }
        if picture.is_scientific {
            return Ok(Self::of_text(scientific_float(value, picture)));
        }
        let value = if picture.shift > 0 { shift(value) } else { value };
        let whole = printed(value.abs(), 0).len();
        let fraction = match digits_max.checked_sub(whole) {
            Some(room) => picture.fraction.min(room),
            None => 0,
        };
        Ok(Self::signed(&printed(value, fraction), fraction, picture))
    }

    fn signed(text: &str, fraction: usize, picture: &Picture) -> Self {
        match text.strip_prefix('-') {
            Some(digits) => Self::fitted(digits.to_owned(), true, fraction, picture),
            None => Self::fitted(text.to_owned(), false, fraction, picture),
        }
    }

    fn fitted(digits: String, is_negative: bool, fraction: usize, picture: &Picture) -> Self {
        let whole = picture.whole + picture.shift;
        let length = digits.find('.').unwrap_or(digits.len());
        let (digits, spaces) = match whole.checked_sub(length) {
            Some(spaces) => (digits, spaces),
            None => (hashes(whole, fraction), 0),
        };
        Self { digits, is_negative, spaces, whole, fraction }
    }

    /// What is written as it is.
    fn of_text(text: String) -> Self {
        Self { digits: text, is_negative: false, spaces: 0, whole: 0, fraction: 0 }
    }
}

/// `#`s around a point.
fn hashes(whole: usize, fraction: usize) -> String {
    format!("{}.{}", "#".repeat(whole), "#".repeat(fraction))
}

/// As C's `%.*f` does.
fn printed(value: f64, digits: usize) -> String {
    match value {
        value if value.is_nan() => "NaN".to_owned(),
        value if value.is_infinite() && value > 0.0 => "Infinity".to_owned(),
        value if value.is_infinite() => "-Infinity".to_owned(),
        value => format!("{value:.digits$}"),
    }
}

fn no_scientific(picture: &Picture) -> String {
    format!(" {}.{}", "#".repeat(picture.whole), "#".repeat(picture.fraction + 4))
}

/// As C's `%+.*e` does, with a blank for the plus.
fn scientific_float(value: f64, picture: &Picture) -> String {
    if !value.is_finite() {
        return no_scientific(picture);
    }
    let digits = picture.fraction;
    let written = format!("{value:.digits$e}");
    let (significand, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if significand.starts_with('-') { "" } else { " " };
    let direction = if exponent < 0 { '-' } else { '+' };
    format!("{sign}{significand}e{direction}{:02}", exponent.unsigned_abs())
}

/// One digit before the point.
fn scientific(value: &Numeric, picture: &Picture) -> String {
    if value.scale().is_none() {
        return no_scientific(picture);
    }
    let text = value.to_string();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => (" ", text.as_str()),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    let first = all.bytes().position(|digit| digit != b'0');
    let exponent = first.map_or(0, |first| whole.len() as i32 - 1 - first as i32);
    let significant = first.map_or("0", |first| &all[first..]);
    let (one, others) = significant.split_at(1);
    let significand = Numeric::parse(&format!("{one}.{others}0"))
        .and_then(|significand| significand.round(picture.fraction as i32));
    let significand = significand.map_or_else(|_| one.to_owned(), |rounded| rounded.to_string());
    let direction = if exponent < 0 { '-' } else { '+' };
    format!("{sign}{significand}e{direction}{:02}", exponent.unsigned_abs())
}

/// A number in Roman digits, if there are any for it.
fn roman(number: i32) -> String {
    const DIGITS: [(i32, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    if !(1..=3999).contains(&number) {
        return "#".repeat(15);
    }
    let mut rest = number;
    let mut written = String::new();
    for (value, digit) in DIGITS {
        while rest >= value {
            written.push_str(digit);
            rest -= value;
        }
    }
    written
}
