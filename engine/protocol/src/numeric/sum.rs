//! Sums as vectors of integers, to and from which values are added and taken away.
//!
//! A sum has a position for each nine digits, one for each display scale, and three for what isn't a
//! number. So what is left after some values are gone is exact, and shown with the largest scale of
//! those that are still there, as in PostgreSQL.

use super::magnitude::{LIMB_DIGITS, Magnitude};
use super::{Finite, Numeric, SCALE_MAX, WHOLE_MAX, overflow};
use crate::RowError;

/// A position of a sum.
pub type Position = usize;

/// Nines of digits behind the point.
const FRACTION_LIMBS: usize = SCALE_MAX.div_ceil(LIMB_DIGITS) as usize;
/// Nines of digits before the point, and room for carries.
const WHOLE_LIMBS: usize = WHOLE_MAX.div_ceil(LIMB_DIGITS) as usize + 4;
const LIMBS: usize = FRACTION_LIMBS + WHOLE_LIMBS;
const SCALES: Position = LIMBS;
const NOT_A_NUMBER: Position = SCALES + SCALE_MAX as usize + 1;
const INFINITE: Position = NOT_A_NUMBER + 1;
const NEGATIVE_INFINITE: Position = NOT_A_NUMBER + 2;

/// Reads and writes sums.
#[derive(Clone, Copy, Debug)]
pub struct DigitSum;

impl DigitSum {
    /// How many positions a sum takes.
    pub const POSITIONS: usize = NEGATIVE_INFINITE + 1;
    /// The first position that isn't of digits.
    pub const DIGITS_END: Position = LIMBS;

    /// Calls `add` with what a value adds to the positions of a sum.
    pub fn parts(value: &Numeric, mut add: impl FnMut(Position, i128)) {
        let number = match value {
            Numeric::NaN => return add(NOT_A_NUMBER, 1),
            Numeric::Infinity => return add(INFINITE, 1),
            Numeric::NegativeInfinity => return add(NEGATIVE_INFINITE, 1),
            Numeric::Finite(number) => number,
        };
        add(SCALES + number.scale as usize, 1);
        let fraction = number.scale.div_ceil(LIMB_DIGITS);
        let aligned = number.magnitude.shifted_up(fraction * LIMB_DIGITS - number.scale);
        let first = FRACTION_LIMBS - fraction as usize;
        for (place, limb) in aligned.limbs().iter().enumerate().filter(|(_, limb)| **limb > 0) {
            let limb = i128::from(*limb);
            add(first + place, if number.negative { -limb } else { limb });
        }
    }

    /// Reads a sum from the positions that aren't zero, which are ascending.
    ///
    /// # Errors
    ///
    /// 22003.
    pub fn read(positions: impl Iterator<Item = (Position, i128)>) -> Result<Numeric, RowError> {
        let mut digits: Vec<i128> = vec![];
        let mut lowest = 0;
        let mut scale = 0;
        let (mut nan, mut up, mut down) = (false, false, false);
        for (position, value) in positions {
            match position {
                ..SCALES => {
                    if digits.is_empty() {
                        lowest = position;
                    }
                    digits.resize(position - lowest, 0);
                    digits.push(value);
                }
                SCALES..NOT_A_NUMBER => scale = (position - SCALES) as u32,
                NOT_A_NUMBER => nan = true,
                INFINITE => up = true,
                _ => down = true,
            }
        }
        match (nan, up, down) {
            (true, ..) | (_, true, true) => return Ok(Numeric::NaN),
            (_, true, _) => return Ok(Numeric::Infinity),
            (_, _, true) => return Ok(Numeric::NegativeInfinity),
            _ => {}
        }
        let (negative, limbs) = carried(digits);
        // The lowest limb stands where its position says.
        let magnitude = Magnitude::from_limbs(limbs);
        let exponent = (lowest as i64 - FRACTION_LIMBS as i64) * i64::from(LIMB_DIGITS);
        let shift = exponent + i64::from(scale);
        let magnitude = match u32::try_from(shift) {
            Ok(shift) => magnitude.shifted_up(shift),
            // Digits below the largest scale add up to nothing.
            Err(_) => magnitude.shifted_down(shift.unsigned_abs() as u32).0,
        };
        Numeric::checked(Finite::new(negative, magnitude, scale)).map_err(|_| overflow())
    }
}

/// Limbs with a sign each as limbs with one sign.
fn carried(mut digits: Vec<i128>) -> (bool, Vec<u32>) {
    const BASE: i128 = 10i128.pow(LIMB_DIGITS);
    // A sum of 2^63 limbs has 94 bits: five more limbs take its carries.
    digits.extend([0; 5]);
    let carry = |digits: &mut [i128]| {
        let mut carried = 0;
        for digit in digits {
            let value = *digit + carried;
            *digit = value.rem_euclid(BASE);
            carried = value.div_euclid(BASE);
        }
        carried
    };
    let negative = carry(&mut digits) < 0;
    if negative {
        // What was carried is -1: the digits are those of the complement.
        digits.iter_mut().for_each(|digit| *digit = -*digit);
        digits.push(1);
        carry(&mut digits);
    }
    (negative, digits.into_iter().map(|digit| digit as u32).collect())
}
