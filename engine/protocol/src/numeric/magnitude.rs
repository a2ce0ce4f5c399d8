//! Natural numbers of any length.
//!
//! Limbs of nine decimal digits, the lowest first, without zeros at the top. Decimal limbs make
//! shifts by powers of ten, rounding and text cheap, which is what a `numeric` needs most.

use std::cmp::Ordering;

const BASE: u32 = 1_000_000_000;
/// Decimal digits in a limb.
pub(super) const LIMB_DIGITS: u32 = 9;

/// A natural number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Magnitude(Vec<u32>);

impl Magnitude {
    pub(super) fn from_u128(mut value: u128) -> Self {
        let mut limbs = vec![];
        while value > 0 {
            limbs.push((value % u128::from(BASE)) as u32);
            value /= u128::from(BASE);
        }
        Self(limbs)
    }

    /// The number if it has at most 38 digits.
    pub(super) fn to_u128(&self) -> Option<u128> {
        if self.digits() > 38 {
            return None;
        }
        let limbs = self.0.iter().rev();
        Some(limbs.fold(0, |value, limb| value * u128::from(BASE) + u128::from(*limb)))
    }

    /// A number of limbs, the lowest first.
    pub(super) fn from_limbs(limbs: Vec<u32>) -> Self {
        Self(limbs).trimmed()
    }

    pub(super) fn limbs(&self) -> &[u32] {
        &self.0
    }

    /// A number of decimal digits (0 to 9, not characters), the highest first.
    pub(super) fn from_digits(digits: &[u8]) -> Self {
        let limbs = digits.rchunks(LIMB_DIGITS as usize);
        let limb = |chunk: &[u8]| chunk.iter().fold(0, |limb, digit| limb * 10 + u32::from(*digit));
        Self::from_limbs(limbs.map(limb).collect())
    }

    /// The decimal digits (0 to 9), the highest first; none of zero.
    pub(super) fn to_digits(&self) -> Vec<u8> {
        let mut digits = Vec::with_capacity(self.0.len() * LIMB_DIGITS as usize);
        for limb in self.0.iter().rev() {
            let mut unit = BASE / 10;
            while unit > 0 {
                digits.push((limb / unit % 10) as u8);
                unit /= 10;
            }
        }
        let zeros = digits.iter().take_while(|digit| **digit == 0).count();
        digits.drain(..zeros);
        digits
    }

    pub(super) fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn is_odd(&self) -> bool {
        self.0.first().is_some_and(|limb| limb % 2 == 1)
    }

    /// How many decimal digits there are; none of zero.
    pub(super) fn digits(&self) -> u32 {
        match self.0.last() {
            Some(top) => (self.0.len() as u32 - 1) * LIMB_DIGITS + top.ilog10() + 1,
            None => 0,
        }
    }

    fn trimmed(mut self) -> Self {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
        self
    }

    pub(super) fn add(&self, other: &Self) -> Self {
        let (long, short) =
            if self.0.len() >= other.0.len() { (self, other) } else { (other, self) };
        let mut limbs = Vec::with_capacity(long.0.len() + 1);
        let mut carry = 0;
        for (place, limb) in long.0.iter().enumerate() {
            let sum = limb + short.0.get(place).unwrap_or(&0) + carry;
            carry = u32::from(sum >= BASE);
            limbs.push(if sum >= BASE { sum - BASE } else { sum });
        }
        if carry > 0 {
            limbs.push(carry);
        }
        Self(limbs)
    }

    /// The difference; `other` isn't greater.
    pub(super) fn subtract(&self, other: &Self) -> Self {
        let mut limbs = Vec::with_capacity(self.0.len());
        let mut borrow = 0;
        for (place, limb) in self.0.iter().enumerate() {
            let taken = other.0.get(place).unwrap_or(&0) + borrow;
            borrow = u32::from(*limb < taken);
            limbs.push(if *limb < taken { limb + BASE - taken } else { limb - taken });
        }
        debug_assert_eq!(borrow, 0, "the smaller is subtracted");
        Self::from_limbs(limbs)
    }

    pub(super) fn multiply(&self, other: &Self) -> Self {
        if self.is_zero() || other.is_zero() {
            return Self::default();
        }
        let mut limbs = vec![0u32; self.0.len() + other.0.len()];
        for (place, left) in self.0.iter().enumerate() {
            let mut carry = 0u64;
            for (offset, right) in other.0.iter().enumerate() {
                let product =
                    u64::from(*left) * u64::from(*right) + u64::from(limbs[place + offset]) + carry;
                limbs[place + offset] = (product % u64::from(BASE)) as u32;
                carry = product / u64::from(BASE);
            }
            limbs[place + other.0.len()] = carry as u32;
        }
        Self::from_limbs(limbs)
    }

    /// Times a number of one limb at most.
    fn multiply_limb(&self, factor: u32) -> Self {
        let mut limbs = Vec::with_capacity(self.0.len() + 1);
        let mut carry = 0u64;
        for limb in &self.0 {
            let product = u64::from(*limb) * u64::from(factor) + carry;
            limbs.push((product % u64::from(BASE)) as u32);
            carry = product / u64::from(BASE);
        }
        limbs.push(carry as u32);
        Self::from_limbs(limbs)
    }

    fn divide_limb(&self, divisor: u32) -> (Self, u32) {
        let mut limbs = self.0.clone();
        let mut rest = 0u64;
        for limb in limbs.iter_mut().rev() {
            let dividend = rest * u64::from(BASE) + u64::from(*limb);
            *limb = (dividend / u64::from(divisor)) as u32;
            rest = dividend % u64::from(divisor);
        }
        (Self::from_limbs(limbs), rest as u32)
    }

    /// Quotient and remainder (Knuth, The Art of Computer Programming, 4.3.1, algorithm D). The
    /// divisor isn't zero.
    pub(super) fn divide(&self, divisor: &Self) -> (Self, Self) {
        if self.cmp(divisor) == Ordering::Less {
            return (Self::default(), self.clone());
        }
        if let [limb] = divisor.0.as_slice() {
            let (quotient, rest) = self.divide_limb(*limb);
            return (quotient, Self::from_u128(rest.into()));
        }
        let base = u64::from(BASE);
        // The divisor's top limb must be at least half the base.
        let factor = BASE / (divisor.0[divisor.0.len() - 1] + 1);
        let mut rest = self.multiply_limb(factor).0;
        let divisor = divisor.multiply_limb(factor).0;
        let length = divisor.len();
        rest.resize(rest.len().max(self.0.len()) + 1, 0);
        let (top, second) = (u64::from(divisor[length - 1]), u64::from(divisor[length - 2]));
        let mut quotient = vec![0u32; rest.len() - length];
        for place in (0..quotient.len()).rev() {
            let head = u64::from(rest[place + length]) * base + u64::from(rest[place + length - 1]);
            let mut digit = (head / top).min(base - 1);
            let mut left = head - digit * top;
            while left < base && digit * second > left * base + u64::from(rest[place + length - 2])
            {
                digit -= 1;
                left += top;
            }
            let mut borrow = 0i64;
            let mut carry = 0u64;
            for (offset, limb) in divisor.iter().enumerate() {
                let product = digit * u64::from(*limb) + carry;
                carry = product / base;
                let difference = i64::from(rest[place + offset]) - (product % base) as i64 + borrow;
                borrow = difference >> 63;
                rest[place + offset] = (difference - borrow * base as i64) as u32;
            }
            let difference = i64::from(rest[place + length]) - carry as i64 + borrow;
            if difference < 0 {
                // One too much was taken away, which happens rarely.
                digit -= 1;
                let mut carry = 0;
                for (offset, limb) in divisor.iter().enumerate() {
                    let sum = rest[place + offset] + limb + carry;
                    carry = u32::from(sum >= BASE);
                    rest[place + offset] = if sum >= BASE { sum - BASE } else { sum };
                }
                rest[place + length] = (difference + i64::from(carry)) as u32;
            } else {
                rest[place + length] = difference as u32;
            }
            quotient[place] = digit as u32;
        }
        rest.truncate(length);
        (Self::from_limbs(quotient), Self::from_limbs(rest).divide_limb(factor).0)
    }

    /// Times ten to a power.
    pub(super) fn shifted_up(&self, digits: u32) -> Self {
        if self.is_zero() || digits == 0 {
            return self.clone();
        }
        let whole = (digits / LIMB_DIGITS) as usize;
        let shifted = match digits % LIMB_DIGITS {
            0 => self.clone(),
            some => self.multiply_limb(10u32.pow(some)),
        };
        let mut limbs = vec![0; whole];
        limbs.extend(shifted.0);
        Self(limbs)
    }

    /// By ten to a power, cut; and how what is cut off compares with a half.
    pub(super) fn shifted_down(&self, digits: u32) -> (Self, Ordering) {
        let whole = (digits / LIMB_DIGITS) as usize;
        if whole > self.0.len() {
            return (Self::default(), Ordering::Less);
        }
        let (low, high) = self.0.split_at(whole);
        let is_clean = low.iter().all(|limb| *limb == 0);
        let high = Self(high.to_vec());
        match digits % LIMB_DIGITS {
            0 => {
                let half = match low.last() {
                    None => Ordering::Less,
                    Some(top) => top.cmp(&(BASE / 2)).then_with(|| {
                        let below = low[..low.len() - 1].iter().any(|limb| *limb > 0);
                        if below { Ordering::Greater } else { Ordering::Equal }
                    }),
                };
                (high.trimmed(), half)
            }
            some => {
                let unit = 10u32.pow(some);
                let (quotient, rest) = high.divide_limb(unit);
                let half = rest.cmp(&(unit / 2)).then(match is_clean {
                    true => Ordering::Equal,
                    false => Ordering::Greater,
                });
                (quotient, half)
            }
        }
    }

    /// The greatest number whose square isn't greater.
    pub(super) fn square_root(&self) -> Self {
        if self.is_zero() {
            return Self::default();
        }
        // Newton's method, from above.
        let mut root = Self::from_u128(1).shifted_up(self.digits().div_ceil(2));
        loop {
            let (next, _) = root.add(&self.divide(&root).0).divide_limb(2);
            if next.cmp(&root) != Ordering::Less {
                return root;
            }
            root = next;
        }
    }
}

impl PartialOrd for Magnitude {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Magnitude {
    fn cmp(&self, other: &Self) -> Ordering {
        let length = self.0.len().cmp(&other.0.len());
        length.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Magnitude {
        let digits: Vec<u8> = text.bytes().map(|digit| digit - b'0').collect();
        Magnitude::from_digits(&digits)
    }

    #[test]
    fn quotients_times_divisors_are_dividends() {
        let numbers = [
            "1",
            "7",
            "999999999",
            "1000000000",
            "500000000000000000",
            "999999999999999999",
            "123456789012345678901234567890123456789",
            "1000000000000000000000000000",
            "999999999000000000999999999000000001",
            "500000000499999999500000000499999999",
            "99999999999999999999999999999999999999999999999999999999999999999999999999999999",
        ];
        for left in numbers {
            for right in numbers {
                let (left, right) = (number(left), number(right));
                let product = left.multiply(&right);
                assert_eq!(product.divide(&right), (left.clone(), Magnitude::default()));
                for dividend in [product.add(&left), product.subtract(&Magnitude::from_u128(1))] {
                    let (quotient, rest) = dividend.divide(&right);
                    assert!(rest < right);
                    assert_eq!(quotient.multiply(&right).add(&rest), dividend);
                }
                let root = product.square_root();
                assert!(root.multiply(&root) <= product);
                let next = root.add(&Magnitude::from_u128(1));
                assert!(next.multiply(&next) > product);
            }
        }
    }

    #[test]
    fn shifts_tell_what_they_cut() {
        let cut = |text, digits| {
            let (number, half) = number(text).shifted_down(digits);
            (number.to_u128().unwrap(), half)
        };
        assert_eq!(cut("1250", 2), (12, Ordering::Equal));
        assert_eq!(cut("1251", 2), (12, Ordering::Greater));
        assert_eq!(cut("1249", 2), (12, Ordering::Less));
        assert_eq!(cut("7500000000", 9), (7, Ordering::Equal));
        assert_eq!(cut("7500000001", 9), (7, Ordering::Greater));
        assert_eq!(cut("5000000000000000000", 19), (0, Ordering::Equal));
        assert_eq!(cut("5000000001000000000", 19), (0, Ordering::Greater));
        assert_eq!(cut("9", 30), (0, Ordering::Less));
        assert_eq!(cut("5", 0), (5, Ordering::Less));
        assert_eq!(number("12").shifted_up(20), number("1200000000000000000000"));
    }
}
