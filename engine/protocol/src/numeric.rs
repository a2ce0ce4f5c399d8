//! Values of `numeric`: decimal numbers of any length, with the scale that they are shown with.
//!
//! Everything is computed as PostgreSQL 15 does, down to the number of digits that come out. A value
//! travels as bytes ([`Numeric::encode`]): a key, whose order and equality are those of numbers, and
//! behind it the display scale. So `1.0` and `1.00` are different bytes with one key.

mod arithmetic;
mod convert;
mod encoding;
mod exponential;
mod magnitude;
mod spread;
mod sum;

use std::cmp::Ordering;
use std::fmt;

use magnitude::Magnitude;

use crate::RowError;

pub use encoding::key;
pub use spread::Spread;
pub use sum::{DigitSum, Position};

/// Digits after the point that a value can have at most.
pub const SCALE_MAX: u32 = 16_383;
/// Digits before the point that a value can have at most.
const WHOLE_MAX: u32 = 131_072;
/// Significant digits that PostgreSQL gives a result that has to be rounded at least.
const SIGNIFICANT_MIN: i32 = 16;
/// Digits after the point that PostgreSQL gives a rounded result at most.
const DISPLAY_SCALE_MAX: i32 = 1000;
/// Digits that are asked of `round` and `trunc`, and exponents of results, at most.
const RESULT_SCALE_MAX: i32 = 2000;

/// A value of `numeric`.
#[derive(Clone, Debug)]
pub enum Numeric {
    /// `-Infinity`.
    NegativeInfinity,
    /// A number.
    Finite(Finite),
    /// `Infinity`.
    Infinity,
    /// `NaN`, which equals itself and is greater than everything else.
    NaN,
}

/// A number: a whole number of units of `10^-scale`. Zero isn't negative.
#[derive(Clone, Debug)]
pub struct Finite {
    negative: bool,
    magnitude: Magnitude,
    scale: u32,
}

impl Finite {
    fn new(negative: bool, magnitude: Magnitude, scale: u32) -> Self {
        Self { negative: negative && !magnitude.is_zero(), magnitude, scale }
    }

    fn integer(value: i128) -> Self {
        Self::new(value < 0, Magnitude::from_u128(value.unsigned_abs()), 0)
    }

    fn is_zero(&self) -> bool {
        self.magnitude.is_zero()
    }

    /// The magnitude in units of a scale that isn't less than its own.
    fn units(&self, scale: u32) -> Magnitude {
        self.magnitude.shifted_up(scale - self.scale)
    }

    fn compare_magnitudes(&self, other: &Self) -> Ordering {
        if self.scale == other.scale {
            return self.magnitude.cmp(&other.magnitude);
        }
        let scale = self.scale.max(other.scale);
        self.units(scale).cmp(&other.units(scale))
    }

    /// Where the first digit stands: 0 right before the point, -1 right behind it. Zero has none.
    fn leading_place(&self) -> i32 {
        self.magnitude.digits() as i32 - 1 - self.scale as i32
    }

    /// Rounded half away from zero to a scale, which may be negative; the scale that is shown then
    /// is 0.
    fn rounded(&self, scale: i32) -> Self {
        self.at_scale(scale, true)
    }

    /// Cut to a scale, which may be negative.
    fn truncated(&self, scale: i32) -> Self {
        self.at_scale(scale, false)
    }

    fn at_scale(&self, scale: i32, rounds: bool) -> Self {
        let own = self.scale as i32;
        if scale >= own {
            return Self::new(self.negative, self.units(scale as u32), scale as u32);
        }
        let (mut kept, half) = self.magnitude.shifted_down((own - scale) as u32);
        if rounds && half != Ordering::Less {
            kept = kept.add(&Magnitude::from_u128(1));
        }
        if scale < 0 {
            kept = kept.shifted_up(scale.unsigned_abs());
        }
        Self::new(self.negative, kept, scale.max(0) as u32)
    }

    fn is_integral(&self) -> bool {
        self.scale == 0 || self.compare_magnitudes(&self.truncated(0)) == Ordering::Equal
    }

    /// PostgreSQL's weight, and its first digit of base 10000; zeros of zero.
    fn first_group(&self) -> (i32, i32) {
        if self.is_zero() {
            return (0, 0);
        }
        let place = self.leading_place();
        let weight = place.div_euclid(4);
        let wanted = place.rem_euclid(4) as u32 + 1;
        let has = self.magnitude.digits();
        let group = match has >= wanted {
            true => self.magnitude.shifted_down(has - wanted).0,
            false => self.magnitude.shifted_up(wanted - has),
        };
        (weight, group.to_u128().unwrap_or(0) as i32)
    }
}

impl Numeric {
    /// Zero.
    pub fn zero() -> Self {
        Self::Finite(Finite::integer(0))
    }

    /// A whole number of units of `10^-scale`.
    pub fn from_units(units: i128, scale: u32) -> Self {
        let magnitude = Magnitude::from_u128(units.unsigned_abs());
        Self::Finite(Finite::new(units < 0, magnitude, scale))
    }

    /// The value in units of `10^-scale`, if it is a whole number of less than 39 digits of them.
    pub fn to_units(&self, scale: u32) -> Option<i128> {
        let Self::Finite(number) = self else { return None };
        let units = match number.scale <= scale {
            true => number.units(scale),
            false => {
                let cut = number.truncated(scale as i32);
                let is_whole = cut.compare_magnitudes(number) == Ordering::Equal;
                is_whole.then_some(cut.magnitude)?
            }
        };
        let units = i128::try_from(units.to_u128()?).ok()?;
        Some(if number.negative { -units } else { units })
    }

    /// Digits after the point that are shown; none of what isn't a number.
    pub fn scale(&self) -> Option<u32> {
        match self {
            Self::Finite(number) => Some(number.scale),
            _ => None,
        }
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        matches!(self, Self::Finite(number) if number.is_zero())
    }

    /// -1, 0 or 1; 0 of NaN.
    fn signum(&self) -> i32 {
        match self {
            Self::NegativeInfinity => -1,
            Self::Finite(number) if number.is_zero() => 0,
            Self::Finite(number) if number.negative => -1,
            Self::NaN => 0,
            Self::Finite(_) | Self::Infinity => 1,
        }
    }

    /// The value, unless it has too many digits.
    fn checked(number: Finite) -> Result<Self, RowError> {
        if number.scale > SCALE_MAX || number.leading_place() >= WHOLE_MAX as i32 {
            return Err(overflow());
        }
        Ok(Self::Finite(number))
    }
}

impl PartialEq for Numeric {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Numeric {}

impl PartialOrd for Numeric {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Numeric {
    /// As numbers compare, whatever their scales.
    fn cmp(&self, other: &Self) -> Ordering {
        let rank = |value: &Self| match value {
            Self::NegativeInfinity => 0,
            Self::Finite(_) => 1,
            Self::Infinity => 2,
            Self::NaN => 3,
        };
        match (self, other) {
            (Self::Finite(left), Self::Finite(right)) => match (left.negative, right.negative) {
                (false, true) => Ordering::Greater,
                (true, false) => Ordering::Less,
                (false, false) => left.compare_magnitudes(right),
                (true, true) => right.compare_magnitudes(left),
            },
            _ => rank(self).cmp(&rank(other)),
        }
    }
}

impl fmt::Display for Numeric {
    /// As PostgreSQL writes it, with all digits of its scale.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = match self {
            Self::NegativeInfinity => return f.write_str("-Infinity"),
            Self::Infinity => return f.write_str("Infinity"),
            Self::NaN => return f.write_str("NaN"),
            Self::Finite(number) => number,
        };
        let digits = number.magnitude.to_digits();
        let scale = number.scale as usize;
        let mut text = String::with_capacity(digits.len().max(scale) + 3);
        if number.negative {
            text.push('-');
        }
        let whole = digits.len().saturating_sub(scale);
        if whole == 0 {
            text.push('0');
        }
        let characters =
            |digits: &[u8]| digits.iter().map(|digit| char::from(digit + b'0')).collect();
        let append: String = characters(&digits[..whole]);
        text.push_str(&append);
        if scale > 0 {
            text.push('.');
            text.extend(std::iter::repeat_n('0', scale - (digits.len() - whole)));
            let append: String = characters(&digits[whole..]);
            text.push_str(&append);
        }
        f.write_str(&text)
    }
}

fn error(sqlstate: &str, message: &str) -> RowError {
    RowError { sqlstate: sqlstate.to_owned(), message: message.to_owned() }
}

/// 22003: more digits than there can be.
pub fn overflow() -> RowError {
    error("22003", "value overflows numeric format")
}

fn division_by_zero() -> RowError {
    error("22012", "division by zero")
}

#[cfg(test)]
mod tests;
