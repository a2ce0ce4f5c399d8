//! Roots, powers and logarithms, with PostgreSQL's number of digits.
//!
//! Each is computed with more digits than are asked for, and rounded once.

use std::cmp::Ordering;

use super::arithmetic::{add, divide, multiply};
use super::magnitude::Magnitude;
use super::{
    DISPLAY_SCALE_MAX, Finite, Numeric, RESULT_SCALE_MAX, SIGNIFICANT_MIN, division_by_zero, error,
    overflow,
};
use crate::RowError;

use Numeric::{Finite as Number, Infinity, NaN, NegativeInfinity};

/// Digits that are computed beyond those that are kept.
const GUARD: u32 = 20;
/// The common logarithm of e.
const LOG10_E: f64 = std::f64::consts::LOG10_E;

fn bounded(scale: i32, operands: &[&Finite]) -> u32 {
    let own = operands.iter().map(|operand| operand.scale as i32).max().unwrap_or(0);
    scale.max(own).clamp(0, DISPLAY_SCALE_MAX) as u32
}

fn times(left: &Finite, right: &Finite, scale: u32) -> Finite {
    multiply(left, right).truncated(scale as i32)
}

fn integer(value: i128) -> Finite {
    Finite::integer(value)
}

fn to_f64(number: &Finite) -> f64 {
    Number(number.clone()).to_f64()
}

/// The logarithm of a number near 1, as twice the series of the inverse hyperbolic tangent.
fn ln_near_one(number: &Finite, scale: u32) -> Finite {
    let below = add(number, &integer(1));
    let ratio = divide(&add(number, &integer(-1)), &below, scale, false);
    let square = times(&ratio, &ratio, scale);
    let (mut power, mut sum, mut odd) = (ratio.clone(), ratio, 1);
    while !power.is_zero() {
        power = times(&power, &square, scale);
        odd += 2;
        sum = add(&sum, &divide(&power, &integer(odd), scale, false));
    }
    add(&sum, &sum)
}

/// The natural logarithm of a positive number, with an error of a few units of the scale.
fn ln(number: &Finite, scale: u32) -> Finite {
    // The number is a power of ten times one between a third and 3.4.
    let mut place = number.leading_place();
    let digits = number.magnitude.digits();
    let leading = number.magnitude.shifted_down(digits.saturating_sub(2)).0.to_u128().unwrap_or(10);
    let leading = if digits < 2 { leading * 10 } else { leading };
    if leading >= 34 {
        place += 1;
    }
    let scaled = match place {
        0.. => Finite::new(false, number.magnitude.clone(), number.scale + place.unsigned_abs()),
        _ => {
            let up = number.magnitude.shifted_up(place.unsigned_abs());
            Finite::new(false, up, number.scale)
        }
    };
    let near = ln_near_one(&scaled, scale);
    if place == 0 {
        return near;
    }
    let scale = scale + 6;
    // ln 10 = 3 ln 2 + ln 1.25
    let two = ln_near_one(&integer(2), scale);
    let rest = ln_near_one(&Finite::new(false, Magnitude::from_u128(125), 2), scale);
    let ten = add(&multiply(&two, &integer(3)), &rest);
    add(&near, &multiply(&ten, &integer(place.into())))
}

/// The exponential, rounded at a scale.
fn exp(number: &Finite, scale: u32) -> Result<Finite, RowError> {
    let value = to_f64(number);
    if value.abs() >= f64::from(RESULT_SCALE_MAX * 3) {
        return match number.negative {
            false => Err(overflow()),
            true => Ok(Finite::new(false, Magnitude::default(), scale)),
        };
    }
    // Halved until it is small, and squared as often.
    let whole_digits = (value.abs() * LOG10_E) as u32 + 2;
    let working = scale + 2 * whole_digits + GUARD;
    let halvings = if value.abs() > 0.01 { (value.abs() * 100.0).log2().ceil() as u32 } else { 0 };
    let power = Finite::integer(1i128 << halvings.min(100));
    let small = divide(number, &power, working, false);
    let small = Finite::new(false, small.magnitude, small.scale);
    let (mut term, mut sum, mut count) = (integer(1), integer(1), 0);
    while !term.is_zero() {
        count += 1;
        term = divide(&times(&term, &small, working), &integer(count), working, false);
        sum = add(&sum, &term);
    }
    for _ in 0..halvings {
        sum = times(&sum, &sum, working);
    }
    Ok(match number.negative {
        true => divide(&integer(1), &sum, scale, true),
        false => sum.rounded(scale as i32),
    })
}

/// The decimal weight of a logarithm, as PostgreSQL estimates it. (`estimate_ln_dweight`)
fn ln_weight(number: &Finite) -> i32 {
    if number.negative || number.is_zero() {
        return 0;
    }
    let tenth = |value| Finite::new(false, Magnitude::from_u128(value), 1);
    if number.compare_magnitudes(&tenth(9)) != Ordering::Less
        && number.compare_magnitudes(&tenth(11)) != Ordering::Greater
    {
        let distance = add(number, &integer(-1));
        return if distance.is_zero() { 0 } else { distance.leading_place() };
    }
    let digits = number.magnitude.digits();
    let (leading, _) = number.magnitude.shifted_down(digits.saturating_sub(8));
    let kept = digits.min(8) as i32;
    let leading = leading.to_u128().unwrap_or(1) as f64;
    let place = f64::from(number.leading_place() + 1 - kept);
    let logarithm = leading.ln() + place * std::f64::consts::LN_10;
    logarithm.abs().log10() as i32
}

/// A power with a whole exponent. (`power_var_int`)
fn power_of_integer(base: &Finite, exponent: i32, scale: u32) -> Result<Finite, RowError> {
    match exponent {
        0 => return Ok(integer(1).rounded(scale as i32)),
        1 => return Ok(base.rounded(scale as i32)),
        2 => return Ok(multiply(base, base).rounded(scale as i32)),
        _ => {}
    }
    if base.is_zero() {
        return match exponent {
            ..0 => Err(division_by_zero()),
            _ => Ok(Finite::new(false, Magnitude::default(), scale)),
        };
    }
    if exponent == -1 {
        return Ok(divide(&integer(1), base, scale, true));
    }
    let digits = base.magnitude.digits();
    let kept = digits.min(17);
    let leading = base.magnitude.shifted_down(digits - kept).0.to_u128().unwrap_or(1) as f64;
    let place = f64::from(base.leading_place() + 1 - kept as i32);
    let weight = f64::from(exponent) * (leading.log10() + place);
    if weight > 3.0 * f64::from(i16::MAX) * 4.0 {
        return Err(overflow());
    }
    if weight + 1.0 < -f64::from(scale) || weight + 1.0 < -f64::from(DISPLAY_SCALE_MAX) {
        return Ok(Finite::new(false, Magnitude::default(), scale));
    }
    // Significant digits of the result, and those that repeated rounding costs.
    let significant = (1 + scale as i32 + weight as i32).max(1) as u32 + GUARD;
    let cut = |number: Finite| {
        let excess = number.magnitude.digits().saturating_sub(significant);
        let scale = number.scale as i32 - excess as i32;
        if excess == 0 { number } else { number.truncated(scale) }
    };
    let (mut rest, mut square) = (exponent.unsigned_abs(), base.clone());
    let mut result = integer(1);
    while rest > 0 {
        if rest % 2 == 1 {
            result = cut(multiply(&result, &square));
        }
        rest /= 2;
        if rest > 0 {
            square = cut(multiply(&square, &square));
        }
        if result.leading_place().max(square.leading_place()) > i32::from(i16::MAX) * 4 {
            return match exponent {
                ..0 => Ok(Finite::new(false, Magnitude::default(), scale)),
                _ => Err(overflow()),
            };
        }
    }
    Ok(match exponent {
        ..0 => divide(&integer(1), &result, scale, true),
        _ => result.rounded(scale as i32),
    })
}

fn power(base: &Finite, exponent: &Finite) -> Result<Finite, RowError> {
    let whole = exponent.is_integral();
    let small = Number(exponent.clone()).to_units(0).and_then(|value| i32::try_from(value).ok());
    if let Some(exponent) = small.filter(|_| whole) {
        return power_of_integer(base, exponent, bounded(SIGNIFICANT_MIN, &[base]));
    }
    if base.is_zero() {
        return Ok(Finite::new(false, Magnitude::default(), SIGNIFICANT_MIN as u32));
    }
    // A negative base has a whole exponent here.
    let is_odd = exponent.truncated(0).magnitude.is_odd();
    let negative = base.negative && is_odd;
    let base = Finite::new(false, base.magnitude.clone(), base.scale);
    let base_weight = ln_weight(&base);
    let rough = bounded(8 - base_weight, &[]);
    let logarithm = ln(&base, rough + GUARD).rounded(rough as i32);
    let product = multiply(&logarithm, exponent).rounded(rough as i32);
    let value = to_f64(&product);
    if value.abs() > f64::from(RESULT_SCALE_MAX) * 3.01 {
        return match value > 0.0 {
            true => Err(overflow()),
            false => Ok(Finite::new(false, Magnitude::default(), DISPLAY_SCALE_MAX as u32)),
        };
    }
    let weight = (value * LOG10_E) as i32;
    let scale = bounded(SIGNIFICANT_MIN - weight, &[&base, exponent]);
    let exponent_digits = exponent.leading_place().max(0) as u32;
    let working = scale + weight.unsigned_abs() + exponent_digits + GUARD;
    let result = exp(&multiply(&ln(&base, working), exponent), scale)?;
    Ok(Finite::new(negative, result.magnitude, result.scale))
}

impl Numeric {
    /// `sqrt`.
    ///
    /// # Errors
    ///
    /// 2201F.
    pub fn sqrt(&self) -> Result<Self, RowError> {
        if self.signum() < 0 {
            return Err(error("2201F", "cannot take square root of a negative number"));
        }
        let Number(number) = self else { return Ok(self.clone()) };
        let (weight, _) = number.first_group();
        let weight = (weight + 1) * 4 / 2 - 1;
        let scale = bounded(SIGNIFICANT_MIN - weight, &[number]);
        Self::checked(square_root(number, scale))
    }

    /// `exp`.
    ///
    /// # Errors
    ///
    /// 22003.
    pub fn exp(&self) -> Result<Self, RowError> {
        let number = match self {
            NegativeInfinity => return Ok(Self::zero()),
            Number(number) => number,
            other => return Ok(other.clone()),
        };
        let bound = f64::from(RESULT_SCALE_MAX);
        let weight = (to_f64(number) * LOG10_E).clamp(-bound, bound);
        let scale = bounded(SIGNIFICANT_MIN - weight as i32, &[number]);
        Self::checked(exp(number, scale)?)
    }

    /// Refuses what has no logarithm.
    fn logarithmic(&self) -> Result<(), RowError> {
        match self.signum() {
            -1 => Err(error("2201E", "cannot take logarithm of a negative number")),
            0 if self.is_zero() => Err(error("2201E", "cannot take logarithm of zero")),
            _ => Ok(()),
        }
    }

    /// `ln`.
    ///
    /// # Errors
    ///
    /// 2201E.
    pub fn ln(&self) -> Result<Self, RowError> {
        self.logarithmic()?;
        let Number(number) = self else { return Ok(self.clone()) };
        let scale = bounded(SIGNIFICANT_MIN - ln_weight(number), &[number]);
        Self::checked(ln(number, scale + GUARD).rounded(scale as i32))
    }

    /// `log`: the logarithm of this value to a base.
    ///
    /// # Errors
    ///
    /// 2201E, 22012.
    pub fn log(&self, base: &Self) -> Result<Self, RowError> {
        if matches!(self, NaN) || matches!(base, NaN) {
            return Ok(NaN);
        }
        base.logarithmic()?;
        self.logarithmic()?;
        let (number, base) = match (self, base) {
            (Number(number), Number(base)) => (number, base),
            (Infinity, Number(base)) => {
                let one = base.compare_magnitudes(&integer(1));
                return match one {
                    Ordering::Equal => Err(division_by_zero()),
                    Ordering::Less => Ok(NegativeInfinity),
                    Ordering::Greater => Ok(Infinity),
                };
            }
            (Number(_), Infinity) => return Ok(Self::zero()),
            _ => return Ok(NaN),
        };
        let (base_weight, own_weight) = (ln_weight(base), ln_weight(number));
        let weight = own_weight - base_weight;
        let scale = bounded(SIGNIFICANT_MIN - weight, &[base, number]);
        let working = scale + weight.unsigned_abs() + 2 * base_weight.unsigned_abs() + GUARD;
        let below = ln(base, working);
        if base.compare_magnitudes(&integer(1)) == Ordering::Equal || below.is_zero() {
            return Err(division_by_zero());
        }
        Self::checked(divide(&ln(number, working), &below, scale, true))
    }

    /// `log10`.
    ///
    /// # Errors
    ///
    /// 2201E.
    pub fn log10(&self) -> Result<Self, RowError> {
        self.log(&Self::from(10i128))
    }

    /// `power`.
    ///
    /// # Errors
    ///
    /// 22003, 22012, 2201F.
    pub fn power(&self, exponent: &Self) -> Result<Self, RowError> {
        let one = Self::from(1i128);
        match (self, exponent) {
            (NaN, other) => return Ok(if other.is_zero() { one } else { NaN }),
            (base, NaN) => return Ok(if *base == one { one } else { NaN }),
            _ => {}
        }
        let is_whole = match exponent {
            Number(exponent) => exponent.is_integral(),
            _ => true,
        };
        if self.is_zero() && exponent.signum() < 0 {
            return Err(error("2201F", "zero raised to a negative power is undefined"));
        }
        if self.signum() < 0 && !is_whole {
            let message = "a negative number raised to a non-integer power yields a complex result";
            return Err(error("2201F", message));
        }
        match (self, exponent) {
            (Number(base), Number(exponent)) => {
                let result = power(base, exponent)?;
                Self::checked(result)
            }
            (base, Number(exponent)) => {
                let result = match (exponent.is_zero(), exponent.negative) {
                    (true, _) => one,
                    (false, true) => Self::zero(),
                    (false, false) => Infinity,
                };
                let is_odd = exponent.truncated(0).magnitude.is_odd();
                let flips = *base == NegativeInfinity && result == Infinity && is_odd;
                Ok(if flips { NegativeInfinity } else { result })
            }
            (base, exponent) => {
                let size = base.abs().cmp(&one);
                let grows = exponent.signum() > 0;
                Ok(match size {
                    Ordering::Equal => one,
                    Ordering::Greater if grows => Infinity,
                    Ordering::Less if !grows => Infinity,
                    _ => Self::zero(),
                })
            }
        }
    }
}

/// The square root, rounded at a scale. (PostgreSQL's is rounded exactly as well.)
pub(super) fn square_root(number: &Finite, scale: u32) -> Finite {
    let working = scale + 1;
    let units = match 2 * working >= number.scale {
        true => number.units(2 * working),
        false => number.truncated(2 * working as i32).magnitude,
    };
    // The root is cut, so a last digit of 5 or more rounds up whatever follows.
    Finite::new(false, units.square_root(), working).rounded(scale as i32)
}
