//! Exact operations, and quotients with PostgreSQL's number of digits.

use std::cmp::Ordering;

use super::magnitude::Magnitude;
use super::{
    DISPLAY_SCALE_MAX, Finite, Numeric, RESULT_SCALE_MAX, SCALE_MAX, SIGNIFICANT_MIN,
    division_by_zero, error,
};
use crate::RowError;

use Numeric::{Finite as Number, Infinity, NaN, NegativeInfinity};

/// The sum of two numbers, with the larger scale.
pub(super) fn add(left: &Finite, right: &Finite) -> Finite {
    let scale = left.scale.max(right.scale);
    let (a, b) = (left.units(scale), right.units(scale));
    if left.negative == right.negative {
        return Finite::new(left.negative, a.add(&b), scale);
    }
    match a.cmp(&b) {
        Ordering::Less => Finite::new(right.negative, b.subtract(&a), scale),
        _ => Finite::new(left.negative, a.subtract(&b), scale),
    }
}

pub(super) fn multiply(left: &Finite, right: &Finite) -> Finite {
    let magnitude = left.magnitude.multiply(&right.magnitude);
    Finite::new(left.negative != right.negative, magnitude, left.scale + right.scale)
}

/// The quotient at a scale, rounded half away from zero or cut. The divisor isn't zero.
pub(super) fn divide(left: &Finite, right: &Finite, scale: u32, rounds: bool) -> Finite {
    // left / right = (l / 10^ls) / (r / 10^rs), in units of 10^-scale.
    let up = scale as i64 + i64::from(right.scale) - i64::from(left.scale);
    let (dividend, divisor) = match u32::try_from(up) {
        Ok(up) => (left.magnitude.shifted_up(up), right.magnitude.clone()),
        Err(_) => (left.magnitude.clone(), right.magnitude.shifted_up(up.unsigned_abs() as u32)),
    };
    let (mut quotient, rest) = dividend.divide(&divisor);
    if rounds && rest.add(&rest).cmp(&divisor) != Ordering::Less {
        quotient = quotient.add(&Magnitude::from_u128(1));
    }
    Finite::new(left.negative != right.negative, quotient, scale)
}

/// How many digits after the point a quotient gets: at least 16 significant ones, and no less than
/// the operands have. (`select_div_scale`)
pub(super) fn quotient_scale(left: &Finite, right: &Finite) -> u32 {
    let ((left_weight, left_first), (right_weight, right_first)) =
        (left.first_group(), right.first_group());
    let weight = left_weight - right_weight - i32::from(left_first <= right_first);
    let scale = (SIGNIFICANT_MIN - weight * 4).max(left.scale as i32).max(right.scale as i32);
    scale.clamp(0, DISPLAY_SCALE_MAX) as u32
}

fn negated(number: &Finite) -> Finite {
    Finite::new(!number.negative, number.magnitude.clone(), number.scale)
}

impl Numeric {
    /// `-x`.
    #[must_use]
    pub fn negate(&self) -> Self {
        match self {
            NaN => NaN,
            Infinity => NegativeInfinity,
            NegativeInfinity => Infinity,
            Number(number) => Number(negated(number)),
        }
    }

    /// `abs`.
    #[must_use]
    pub fn abs(&self) -> Self {
        if self.signum() < 0 { self.negate() } else { self.clone() }
    }

    /// `sign`: a whole number.
    #[must_use]
    pub fn sign(&self) -> Self {
        match self {
            NaN => NaN,
            other => Self::from(i128::from(other.signum())),
        }
    }

    /// `+`.
    ///
    /// # Errors
    ///
    /// 22003.
    pub fn add(&self, other: &Self) -> Result<Self, RowError> {
        match (self, other) {
            (Number(left), Number(right)) => Self::checked(add(left, right)),
            (NaN, _) | (_, NaN) => Ok(NaN),
            (Infinity, NegativeInfinity) | (NegativeInfinity, Infinity) => Ok(NaN),
            (Number(_), infinite) | (infinite, _) => Ok(infinite.clone()),
        }
    }

    /// `-`.
    ///
    /// # Errors
    ///
    /// 22003.
    pub fn subtract(&self, other: &Self) -> Result<Self, RowError> {
        self.add(&other.negate())
    }

    /// `*`.
    ///
    /// # Errors
    ///
    /// 22003.
    pub fn multiply(&self, other: &Self) -> Result<Self, RowError> {
        match (self, other) {
            (Number(left), Number(right)) => {
                let product = multiply(left, right);
                let scale = product.scale.min(SCALE_MAX);
                Self::checked(product.rounded(scale as i32))
            }
            (NaN, _) | (_, NaN) => Ok(NaN),
            _ => Ok(match self.signum() * other.signum() {
                0 => NaN,
                1 => Infinity,
                _ => NegativeInfinity,
            }),
        }
    }

    /// `/`.
    ///
    /// # Errors
    ///
    /// 22003, 22012.
    pub fn divide(&self, other: &Self) -> Result<Self, RowError> {
        match (self, other) {
            (NaN, _) | (_, NaN) => Ok(NaN),
            (_, Number(right)) if right.is_zero() => Err(division_by_zero()),
            (Number(left), Number(right)) => {
                Self::checked(divide(left, right, quotient_scale(left, right), true))
            }
            (Number(_), _) => Ok(Self::zero()),
            (_, Number(_)) => Ok(match self.signum() * other.signum() {
                1 => Infinity,
                _ => NegativeInfinity,
            }),
            _ => Ok(NaN),
        }
    }

    /// `div`: the quotient without its fraction.
    ///
    /// # Errors
    ///
    /// 22003, 22012.
    pub fn divide_whole(&self, other: &Self) -> Result<Self, RowError> {
        match (self, other) {
            (Number(left), Number(right)) if !right.is_zero() => {
                Self::checked(divide(left, right, 0, false))
            }
            _ => self.divide(other),
        }
    }

    /// `%` and `mod`: the sign is the dividend's.
    ///
    /// # Errors
    ///
    /// 22012.
    pub fn modulo(&self, other: &Self) -> Result<Self, RowError> {
        match (self, other) {
            (NaN, _) | (_, NaN) => Ok(NaN),
            (_, Number(right)) if right.is_zero() => Err(division_by_zero()),
            (Number(left), Number(right)) => {
                let scale = left.scale.max(right.scale);
                let (_, rest) = left.units(scale).divide(&right.units(scale));
                Ok(Number(Finite::new(left.negative, rest, scale)))
            }
            (Number(_), _) => Ok(self.clone()),
            _ => Ok(NaN),
        }
    }

    /// `round`: half away from zero, with so many digits after the point.
    ///
    /// # Errors
    ///
    /// 22003.
    pub fn round(&self, digits: i32) -> Result<Self, RowError> {
        match self {
            Number(number) => {
                Self::checked(number.rounded(digits.clamp(-RESULT_SCALE_MAX, RESULT_SCALE_MAX)))
            }
            other => Ok(other.clone()),
        }
    }

    /// `trunc`.
    ///
    /// # Errors
    ///
    /// 22003.
    pub fn truncate(&self, digits: i32) -> Result<Self, RowError> {
        match self {
            Number(number) => {
                Self::checked(number.truncated(digits.clamp(-RESULT_SCALE_MAX, RESULT_SCALE_MAX)))
            }
            other => Ok(other.clone()),
        }
    }

    fn to_whole(&self, away: impl Fn(bool) -> bool) -> Result<Self, RowError> {
        let Number(number) = self else { return Ok(self.clone()) };
        let whole = number.truncated(0);
        if away(number.negative) && whole.compare_magnitudes(number) != Ordering::Equal {
            let next = whole.magnitude.add(&Magnitude::from_u128(1));
            return Self::checked(Finite::new(number.negative, next, 0));
        }
        Ok(Number(whole))
    }

    /// `ceil`.
    ///
    /// # Errors
    ///
    /// 22003.
    pub fn ceil(&self) -> Result<Self, RowError> {
        self.to_whole(|negative| !negative)
    }

    /// `floor`.
    ///
    /// # Errors
    ///
    /// 22003.
    pub fn floor(&self) -> Result<Self, RowError> {
        self.to_whole(|negative| negative)
    }

    /// The value as a `numeric(precision, scale)`.
    ///
    /// # Errors
    ///
    /// 22003, with what is wrong as a second string, PostgreSQL's detail.
    pub fn fit(&self, precision: u32, scale: i32) -> Result<Self, (RowError, String)> {
        let refuse = |what: String| {
            let detail = format!("A field with precision {precision}, scale {scale} {what}");
            Err((error("22003", "numeric field overflow"), detail))
        };
        let number = match self {
            NaN => return Ok(NaN),
            Number(number) => number.rounded(scale),
            _ => return refuse("cannot hold an infinite value.".to_owned()),
        };
        let whole = precision as i32 - scale;
        if !number.is_zero() && number.leading_place() >= whole {
            let limit = if whole == 0 { "1".to_owned() } else { format!("10^{whole}") };
            return refuse(format!("must round to an absolute value less than {limit}."));
        }
        Ok(Number(number))
    }

    /// `min_scale`: the digits after the point that say something.
    pub fn min_scale(&self) -> Option<u32> {
        let Number(number) = self else { return None };
        let digits = number.magnitude.to_digits();
        let zeros = digits.iter().rev().take_while(|digit| **digit == 0).count() as u32;
        Some(if digits.is_empty() { 0 } else { number.scale.saturating_sub(zeros) })
    }

    /// `trim_scale`.
    #[must_use]
    pub fn trim_scale(&self) -> Self {
        match (self, self.min_scale()) {
            (Number(number), Some(scale)) => Number(number.truncated(scale as i32)),
            _ => self.clone(),
        }
    }

    /// `gcd`, with the larger scale.
    #[must_use]
    pub fn gcd(&self, other: &Self) -> Self {
        let (Number(left), Number(right)) = (self, other) else { return NaN };
        let scale = left.scale.max(right.scale);
        let (mut a, mut b) = (left.units(scale), right.units(scale));
        while !b.is_zero() {
            let (_, rest) = a.divide(&b);
            a = std::mem::replace(&mut b, rest);
        }
        Number(Finite::new(false, a, scale))
    }

    /// `lcm`, with the larger scale.
    ///
    /// # Errors
    ///
    /// 22003.
    pub fn lcm(&self, other: &Self) -> Result<Self, RowError> {
        let (Number(left), Number(right)) = (self, other) else { return Ok(NaN) };
        let scale = left.scale.max(right.scale);
        let Number(gcd) = self.gcd(other) else { return Ok(NaN) };
        if gcd.is_zero() || left.is_zero() || right.is_zero() {
            return Ok(Number(Finite::new(false, Magnitude::default(), scale)));
        }
        let (whole, _) = left.units(scale).divide(&gcd.units(scale));
        Self::checked(Finite::new(false, whole.multiply(&right.units(scale)), scale))
    }
}
