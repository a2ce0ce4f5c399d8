//! Single fields as arrow-row encodes them.

/// Appends a NULL of `width` bytes.
#[inline]
pub(crate) fn put_null(row: &mut Vec<u8>, width: usize) {
    row.resize(row.len() + width, 0);
}

#[inline]
pub(crate) fn put_int64(row: &mut Vec<u8>, value: i64) {
    row.push(1);
    row.extend_from_slice(&(value ^ i64::MIN).to_be_bytes());
}

#[inline]
pub(crate) fn put_int128(row: &mut Vec<u8>, value: i128) {
    row.push(1);
    row.extend_from_slice(&(value ^ i128::MIN).to_be_bytes());
}

/// The value must be normal: no negative zero, no NaN but the one.
#[inline]
pub(crate) fn put_float32(row: &mut Vec<u8>, value: f32) {
    let bits = value.to_bits() as i32;
    let ordered = bits ^ ((bits >> 31) as u32 >> 1) as i32;
    row.push(1);
    row.extend_from_slice(&(ordered ^ i32::MIN).to_be_bytes());
}

/// As [`put_float32`].
#[inline]
pub(crate) fn put_float64(row: &mut Vec<u8>, value: f64) {
    let bits = value.to_bits() as i64;
    put_int64(row, bits ^ ((bits >> 63) as u64 >> 1) as i64);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::row::{float32, float64, int64, int128, value};

    fn put<T>(put: impl Fn(&mut Vec<u8>, T), value: T) -> Vec<u8> {
        let mut row = vec![];
        put(&mut row, value);
        row
    }

    proptest! {
        #[test]
        fn fields_are_decoded_again(
            small in any::<i64>(), large in any::<i128>(), single in any::<f32>(),
            double in any::<f64>(),
        ) {
            prop_assert_eq!(value(&put(put_int64, small)).map(int64), Some(small));
            prop_assert_eq!(value(&put(put_int128, large)).map(int128), Some(large));
            let decoded = value(&put(put_float32, single)).map(float32).unwrap();
            prop_assert_eq!(decoded.to_bits(), single.to_bits());
            let decoded = value(&put(put_float64, double)).map(float64).unwrap();
            prop_assert_eq!(decoded.to_bits(), double.to_bits());
            prop_assert!(value(&put(put_null, 9)).is_none());
        }
    }
}
