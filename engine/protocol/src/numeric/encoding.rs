//! Values as bytes.
//!
//! The first byte tells infinities, negative numbers, zero, positive numbers and NaN apart. A number
//! goes on with its exponent (the place of its first digit), then its significant digits in pairs,
//! each a byte of 1 to 100, and a 0; of a negative number these bytes are inverted. So bytes compare
//! as numbers do, and equal numbers have equal bytes. The last two bytes are the display scale.

use super::magnitude::Magnitude;
use super::{Finite, Numeric};

const NEGATIVE_INFINITY: u8 = 0;
const NEGATIVE: u8 = 1;
const ZERO: u8 = 2;
const POSITIVE: u8 = 3;
const INFINITY: u8 = 4;
const NAN: u8 = 5;

/// Bytes of the display scale.
const SCALE_BYTES: usize = 2;

/// Exponents from here up to its negation are one byte: 1 to 254, with the sum of both for 0.
const SHORT_EXPONENT_MIN: i32 = -126;
const SHORT_EXPONENT_BIAS: i32 = 127;
/// What is added to other exponents, which have three bytes.
const LONG_EXPONENT_BIAS: i32 = 1 << 23;

/// The part of an encoded value that equal numbers share, and that compares as they do.
pub fn key(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().saturating_sub(SCALE_BYTES)]
}

impl Numeric {
    /// Appends the value's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let number = match self {
            Self::NegativeInfinity => return out.extend([NEGATIVE_INFINITY, 0, 0]),
            Self::Infinity => return out.extend([INFINITY, 0, 0]),
            Self::NaN => return out.extend([NAN, 0, 0]),
            Self::Finite(number) => number,
        };
        let scale = (number.scale as u16).to_be_bytes();
        if number.is_zero() {
            out.push(ZERO);
            return out.extend(scale);
        }
        out.push(if number.negative { NEGATIVE } else { POSITIVE });
        let start = out.len();
        let exponent = number.leading_place();
        if (SHORT_EXPONENT_MIN..=-SHORT_EXPONENT_MIN).contains(&exponent) {
            out.push((exponent + SHORT_EXPONENT_BIAS) as u8);
        } else {
            out.push(if exponent < 0 { 0 } else { u8::MAX });
            out.extend_from_slice(&((exponent + LONG_EXPONENT_BIAS) as u32).to_be_bytes()[1..]);
        }
        let digits = number.magnitude.to_digits();
        let significant = digits.iter().rposition(|digit| *digit != 0).map_or(0, |last| last + 1);
        for pair in digits[..significant].chunks(2) {
            out.push(pair[0] * 10 + pair.get(1).unwrap_or(&0) + 1);
        }
        out.push(0);
        if number.negative {
            out[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
        out.extend(scale);
    }

    /// The value's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![];
        self.encode(&mut bytes);
        bytes
    }

    /// Reads a value that [`Self::encode`] has written; none if the bytes aren't one.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (key, scale) = bytes.split_last_chunk::<SCALE_BYTES>()?;
        let scale = u32::from(u16::from_be_bytes(*scale));
        let (class, rest) = key.split_first()?;
        let negative = match *class {
            NEGATIVE_INFINITY => return Some(Self::NegativeInfinity),
            INFINITY => return Some(Self::Infinity),
            NAN => return Some(Self::NaN),
            ZERO => return Some(Self::Finite(Finite::new(false, Magnitude::default(), scale))),
            NEGATIVE => true,
            POSITIVE => false,
            _ => return None,
        };
        let plain = |byte: u8| if negative { !byte } else { byte };
        let (first, rest) = rest.split_first()?;
        let (exponent, rest) = match plain(*first) {
            0 | u8::MAX => {
                let (long, rest) = rest.split_first_chunk::<3>()?;
                let [high, middle, low] = long.map(plain);
                let biased = u32::from_be_bytes([0, high, middle, low]);
                (biased as i32 - LONG_EXPONENT_BIAS, rest)
            }
            short => (i32::from(short) - SHORT_EXPONENT_BIAS, rest),
        };
        let (_end, pairs) = rest.split_last()?;
        let mut digits = Vec::with_capacity(pairs.len() * 2);
        for pair in pairs {
            let pair = plain(*pair).checked_sub(1)?;
            digits.extend([pair / 10, pair % 10]);
        }
        let magnitude = Magnitude::from_digits(&digits);
        // The digits end at this place; the scale says how many more zeros there are.
        let end = exponent - (digits.len() as i32 - 1);
        let zeros = scale as i32 + end;
        let magnitude = match u32::try_from(zeros) {
            Ok(zeros) => magnitude.shifted_up(zeros),
            // The zero that fills the last pair.
            Err(_) => magnitude.shifted_down(zeros.unsigned_abs()).0,
        };
        Some(Self::Finite(Finite::new(negative, magnitude, scale)))
    }
}
