//! Single fields as arrow-row encodes them.

use super::decode::{BLOCK, CONTINUATION, NON_EMPTY, SMALL_BLOCK, SMALL_BLOCKS};

/// The only byte of a text or bytes field that is empty.
const EMPTY: u8 = 1;

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

/// A field of text or bytes, in the blocks that `decode` reads.
pub(crate) fn put_bytes(row: &mut Vec<u8>, value: &[u8]) {
    if value.is_empty() {
        return row.push(EMPTY);
    }
    row.push(NON_EMPTY);
    let (small, large) = value.split_at(value.len().min(SMALL_BLOCK * SMALL_BLOCKS));
    let blocks = small.chunks(SMALL_BLOCK).map(|block| (block, SMALL_BLOCK));
    let mut blocks = blocks.chain(large.chunks(BLOCK).map(|block| (block, BLOCK))).peekable();
    while let Some((block, size)) = blocks.next() {
        row.extend_from_slice(block);
        row.resize(row.len() + size - block.len(), 0);
        row.push(if blocks.peek().is_some() { CONTINUATION } else { block.len() as u8 });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, BinaryArray};
    use arrow::datatypes::DataType;
    use arrow_row::{RowConverter, SortField};
    use proptest::prelude::*;

    use super::*;
    use crate::row::{bytes, float32, float64, int64, int128, value};

    fn put<T>(put: impl Fn(&mut Vec<u8>, T), value: T) -> Vec<u8> {
        let mut row = vec![];
        put(&mut row, value);
        row
    }

    proptest! {
        #[test]
        fn bytes_are_those_of_arrow_row(value in proptest::collection::vec(any::<u8>(), 0..200)) {
            let array: ArrayRef = Arc::new(BinaryArray::from_vec(vec![&value]));
            let converter = RowConverter::new(vec![SortField::new(DataType::Binary)]).unwrap();
            let rows = converter.convert_columns(&[array]).unwrap();
            let mut field = vec![];
            put_bytes(&mut field, &value);
            prop_assert_eq!(&field[..], rows.row(0).data());
            prop_assert_eq!(bytes(&field), value);
        }

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
