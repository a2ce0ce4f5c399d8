//! `numeric` in binary format: digits of base 10,000 with the power of the first one.

use bytes::{Buf, BufMut, BytesMut};

const BASE: u128 = 10_000;
const DIGITS: usize = 4;

const POSITIVE: u16 = 0x0000;
const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xc000;
const POSITIVE_INFINITY: u16 = 0xd000;
const NEGATIVE_INFINITY: u16 = 0xf000;

/// Adds `unscaled / 10^scale`.
pub(super) fn write(unscaled: i128, scale: u16, buffer: &mut BytesMut) {
    let places = usize::from(scale);
    let digits = format!("{:0width$}", unscaled.unsigned_abs(), width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    let sign = if unscaled < 0 { NEGATIVE } else { POSITIVE };
    write_digits(sign, whole, fraction, buffer);
}

/// Adds a value as it is written in text.
pub(super) fn write_text(text: &str, buffer: &mut BytesMut) {
    let (sign, number) = match text.strip_prefix('-') {
        Some(number) => (NEGATIVE, number),
        None => (POSITIVE, text),
    };
    let sign = match (sign, number) {
        (_, "NaN") => NAN,
        (POSITIVE, "Infinity") => POSITIVE_INFINITY,
        (_, "Infinity") => NEGATIVE_INFINITY,
        _ => {
            let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
            return write_digits(sign, whole, fraction, buffer);
        }
    };
    buffer.put_u32(0);
    buffer.put_u16(sign);
    buffer.put_u16(0);
}

fn write_digits(sign: u16, whole: &str, fraction: &str, buffer: &mut BytesMut) {
    let mut groups = vec![];
    let lead = whole.len() % DIGITS;
    groups.extend((lead > 0).then(|| group(&whole[..lead])));
    groups.extend(whole.as_bytes()[lead..].chunks(DIGITS).map(ascii_group));
    let mut weight = groups.len().cast_signed() - 1;
    groups.extend(fraction.as_bytes().chunks(DIGITS).map(|chunk| {
        let missing = u32::try_from(DIGITS - chunk.len()).expect("a chunk has 4 digits at most");
        ascii_group(chunk) * 10_u16.pow(missing)
    }));
    let zeros = groups.iter().take_while(|group| **group == 0).count();
    weight -= zeros.cast_signed();
    let end = groups.iter().rposition(|group| *group != 0).map_or(zeros, |last| last + 1);
    let groups = &groups[zeros..end];
    // A numeric has less than 2^15 groups before the point, and 2^14 digits behind it.
    buffer.put_u16(u16::try_from(groups.len()).expect("a numeric's groups"));
    buffer.put_i16(if groups.is_empty() { 0 } else { i16::try_from(weight).expect("a numeric's") });
    buffer.put_u16(sign);
    buffer.put_u16(u16::try_from(fraction.len()).expect("a numeric's digits"));
    for group in groups {
        buffer.put_u16(*group);
    }
}

fn ascii_group(digits: &[u8]) -> u16 {
    digits.iter().fold(0, |group, digit| group * 10 + u16::from(digit - b'0'))
}

fn group(digits: &str) -> u16 {
    ascii_group(digits.as_bytes())
}

/// The number as text; none if the bytes aren't a number's.
pub(super) fn text(mut bytes: &[u8]) -> Option<String> {
    let count = usize::from(bytes.try_get_u16().ok()?);
    let weight = bytes.try_get_i16().ok()?;
    let sign = bytes.try_get_u16().ok()?;
    let scale = usize::from(bytes.try_get_u16().ok()?);
    if bytes.len() != count * 2 {
        return None;
    }
    let mut text = match sign {
        POSITIVE => String::new(),
        NEGATIVE => "-".to_owned(),
        NAN => return Some("NaN".to_owned()),
        POSITIVE_INFINITY => return Some("Infinity".to_owned()),
        NEGATIVE_INFINITY => return Some("-Infinity".to_owned()),
        _ => return None,
    };
    let groups: Vec<u16> = bytes.chunks(2).map(|mut group| group.get_u16()).collect();
    if groups.iter().any(|group| u128::from(*group) >= BASE) {
        return None;
    }
    // The group that stands for 10,000 to this power.
    let group = |power: i32| {
        let place = i32::from(weight) - power;
        usize::try_from(place).ok().and_then(|place| groups.get(place)).copied().unwrap_or(0)
    };
    text.push_str(&group(i32::from(weight).max(0)).to_string());
    for power in (0..i32::from(weight)).rev() {
        text.push_str(&format!("{:04}", group(power)));
    }
    if scale > 0 {
        let mut fraction = String::new();
        let mut power = -1;
        while fraction.len() < scale {
            fraction.push_str(&format!("{:04}", group(power)));
            power -= 1;
        }
        text.push('.');
        text.push_str(&fraction[..scale]);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_as_they_went() {
        for (unscaled, scale, expected) in [
            (0, 0, "0"),
            (0, 5, "0.00000"),
            (1, 0, "1"),
            (-12_345_678, 3, "-12345.678"),
            (10_000, 0, "10000"),
            (1, 5, "0.00001"),
            (120_000_000, 4, "12000.0000"),
            (i128::MAX, 38, "1.70141183460469231731687303715884105727"),
            (i128::MIN, 0, "-170141183460469231731687303715884105728"),
        ] {
            let mut buffer = BytesMut::new();
            write(unscaled, scale, &mut buffer);
            assert_eq!(text(&buffer).as_deref(), Some(expected));
        }
    }

    #[test]
    fn has_postgresqls_layout() {
        let mut buffer = BytesMut::new();
        write(-12_345_678, 3, &mut buffer);
        let mut expected = BytesMut::new();
        for number in [3, 1, 0x4000, 3, 1, 2345, 6780] {
            expected.put_u16(number);
        }
        assert_eq!(buffer, expected);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        let bytes =
            |numbers: &[u16]| numbers.iter().flat_map(|n| n.to_be_bytes()).collect::<Vec<_>>();
        for wrong in [
            bytes(&[1, 0, 0, 0]),
            bytes(&[0, 0, 0]),
            bytes(&[1, 0, 0, 0, 10_000]),
            bytes(&[0, 0, 7, 0]),
            bytes(&[0, 0, 0, 0, 1]),
        ] {
            assert_eq!(text(&wrong), None, "{wrong:?}");
        }
        assert_eq!(text(&bytes(&[0, 0, NAN, 0])).as_deref(), Some("NaN"));
    }
}
