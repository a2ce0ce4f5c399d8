//! Exact sums of floats.
//!
//! A finite float is an integer of 53 bits times a power of two. It is added to one of 64 positions
//! by its exponent, 32 exponents to a position, shifted left by what is left of the exponent. So
//! a position holds a sum of integers of at most 85 bits: 2^42 of them fit. Three more positions
//! count infinities and NaNs. The sum is rounded only when it is read, once and correctly, so that
//! it depends neither on the order of the rows nor on rows that are gone. (The idea is Kulisch's
//! long accumulator, kept sparse.)

use super::Accumulator;

/// How many positions a sum of floats takes.
pub(crate) const FLOAT_POSITIONS: usize = POWER_POSITIONS + 3;

const POWER_POSITIONS: usize = 64;
const INFINITY: usize = POWER_POSITIONS;
const NEGATIVE_INFINITY: usize = POWER_POSITIONS + 1;
const NAN: usize = POWER_POSITIONS + 2;

/// Exponents that share a position.
const EXPONENTS: usize = 32;
/// The exponent of the smallest float, 2^-1074.
const LEAST_EXPONENT: i32 = -1074;

const MANTISSA_BITS: u32 = 52;

/// Adds a float as often as `weight` says to the sum that starts at a position.
pub(crate) fn add_float(accumulator: &mut impl Accumulator, start: usize, value: f64, weight: i64) {
    let weight = i128::from(weight);
    if value.is_nan() {
        return accumulator.add(start + NAN, weight);
    }
    if value.is_infinite() {
        let position = if value > 0.0 { INFINITY } else { NEGATIVE_INFINITY };
        return accumulator.add(start + position, weight);
    }
    let bits = value.to_bits();
    let fraction = bits & ((1 << MANTISSA_BITS) - 1);
    let biased = (bits >> MANTISSA_BITS) as usize & 0x7FF;
    // Counted from the least exponent; subnormal numbers have the same as the smallest normal ones.
    let (mantissa, exponent) =
        if biased == 0 { (fraction, 0) } else { (fraction | 1 << MANTISSA_BITS, biased - 1) };
    let magnitude = i128::from(mantissa) << (exponent % EXPONENTS);
    let signed = if value.is_sign_negative() { -magnitude } else { magnitude };
    accumulator.add(start + exponent / EXPONENTS, signed.wrapping_mul(weight));
}

/// A sum of floats, read from an accumulator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum FloatSum {
    /// The number nearest to the sum.
    Number(f64),
    /// All rows are finite, and their sum is greater than any float.
    Overflow,
}

/// Words of 32 bits that hold any sum: the positions, and room for carries above.
const WORDS: usize = POWER_POSITIONS + 4;

impl FloatSum {
    /// Reads the sum that starts at a position.
    pub(crate) fn read(accumulator: &impl Accumulator, start: usize) -> Self {
        let (up, down) =
            (accumulator.get(start + INFINITY), accumulator.get(start + NEGATIVE_INFINITY));
        if accumulator.get(start + NAN) != 0 || (up != 0 && down != 0) {
            return Self::Number(f64::NAN);
        }
        if up != 0 || down != 0 {
            return Self::Number(if up != 0 { f64::INFINITY } else { f64::NEG_INFINITY });
        }
        // Digits of base 2^32, each with a sign; then carried so that all but the top are positive.
        let mut digits = [0i128; WORDS];
        accumulator.for_each(start, start + POWER_POSITIONS, |position, value| {
            digits[position - start] = value;
        });
        let negative = carry(&mut digits) < 0;
        if negative {
            digits.iter_mut().for_each(|digit| *digit = -*digit);
            carry(&mut digits);
        }
        let magnitude = round(&digits);
        if magnitude.is_infinite() {
            Self::Overflow
        } else {
            Self::Number(if negative { -magnitude } else { magnitude })
        }
    }
}

/// Moves all but 32 bits of each digit to the next; returns the top one, whose sign is the sum's.
fn carry(digits: &mut [i128; WORDS]) -> i128 {
    let mut carried = 0;
    let top = WORDS - 1;
    for digit in &mut digits[..top] {
        let value = *digit + carried;
        *digit = value & 0xFFFF_FFFF;
        carried = value >> 32;
    }
    digits[top] += carried;
    digits[top]
}

/// The float nearest to a sum, ties to even; all digits are positive and, but for the top one, less
/// than 2^32.
fn round(digits: &[i128; WORDS]) -> f64 {
    let Some(top) = digits.iter().rposition(|digit| *digit != 0) else { return 0.0 };
    // The top digits as one integer of up to 127 bits, and whether anything is left below.
    let low = top.saturating_sub(2);
    let mut window = digits[top];
    for place in (low..top).rev() {
        window = window << 32 | digits[place];
    }
    if digits[..low].iter().any(|digit| *digit != 0) {
        window |= 1;
    }
    // More than 64 bits are above the sticky one unless nothing was left below, so that rounding
    // the window rounds the sum. Scaling by powers of two is exact, but for subnormal results, whose
    // window has nothing below the least exponent.
    let exponent = LEAST_EXPONENT + 32 * low as i32;
    scale(window as f64, exponent)
}

fn scale(value: f64, mut exponent: i32) -> f64 {
    let mut value = value;
    while exponent > 1000 {
        value *= 2f64.powi(1000);
        exponent -= 1000;
    }
    while exponent < -1000 {
        value *= 2f64.powi(-1000);
        exponent += 1000;
    }
    value * 2f64.powi(exponent)
}

#[cfg(test)]
mod tests {
    use dbsp::algebra::HasZero;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::weight::Sparse;

    fn sum(values: &[f64]) -> FloatSum {
        let mut accumulator = Sparse::zero();
        values.iter().for_each(|value| add_float(&mut accumulator, 7, *value, 1));
        FloatSum::read(&accumulator, 7)
    }

    #[test]
    fn sums_are_exact() {
        assert_eq!(sum(&[]), FloatSum::Number(0.0));
        assert_eq!(sum(&[1e300, 1.0, -1e300]), FloatSum::Number(1.0));
        assert_eq!(sum(&[1e16, 1.0, 1.0]), FloatSum::Number(1e16 + 2.0));
        assert_eq!(sum(&[0.1; 10]), FloatSum::Number(1.0));
        assert_eq!(sum(&[f64::MAX, f64::MAX, -f64::MAX]), FloatSum::Number(f64::MAX));
        assert_eq!(sum(&[f64::MAX, f64::MAX]), FloatSum::Overflow);
        assert_eq!(sum(&[5e-324, 5e-324]), FloatSum::Number(1e-323));
        assert_eq!(sum(&[1.0, 1e-30, -1.0]), FloatSum::Number(1e-30));
        assert_eq!(sum(&[f64::INFINITY, 1.0]), FloatSum::Number(f64::INFINITY));
        let FloatSum::Number(nan) = sum(&[f64::INFINITY, f64::NEG_INFINITY]) else { panic!() };
        assert!(nan.is_nan());
    }

    #[test]
    fn a_tie_goes_to_the_even_neighbour() {
        let ulp = f64::powi(2.0, -52);
        assert_eq!(sum(&[1.0, ulp / 2.0]), FloatSum::Number(1.0));
        assert_eq!(sum(&[1.0 + ulp, ulp / 2.0]), FloatSum::Number(1.0 + 2.0 * ulp));
        assert_eq!(sum(&[1.0, ulp / 2.0, 5e-324]), FloatSum::Number(1.0 + ulp));
    }

    fn finite() -> impl Strategy<Value = f64> {
        any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |value| value.is_finite())
    }

    proptest! {
        /// One or two floats have sums that the processor rounds correctly too.
        #[test]
        fn it_rounds_as_the_processor_does(left in finite(), right in finite()) {
            prop_assert_eq!(sum(&[left]), FloatSum::Number(left + 0.0));
            let expected = left + right;
            if expected.is_infinite() {
                prop_assert_eq!(sum(&[left, right]), FloatSum::Overflow);
            } else {
                prop_assert_eq!(sum(&[left, right]), FloatSum::Number(expected + 0.0));
            }
        }

        #[test]
        fn deleted_rows_leave_nothing(kept in vec(finite(), 0..5), gone in vec(finite(), 0..9)) {
            let mut accumulator = Sparse::zero();
            for value in gone.iter().chain(&kept) {
                add_float(&mut accumulator, 0, *value, 3);
            }
            for value in gone.iter().rev() {
                add_float(&mut accumulator, 0, *value, -3);
            }
            for value in &kept {
                add_float(&mut accumulator, 0, *value, -2);
            }
            let mut expected = Sparse::zero();
            kept.iter().rev().for_each(|value| add_float(&mut expected, 0, *value, 1));
            prop_assert_eq!(accumulator, expected);
        }
    }
}
