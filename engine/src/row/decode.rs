//! Encoded fields back into Arrow's arrays.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, LargeBinaryArray, NullArray, OffsetBufferBuilder,
    PrimitiveArray, StringArray,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type,
    Int32Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, Time64MicrosecondType,
    TimestampMicrosecondType,
};

use arrow_row::{RowConverter, SortField};

use crate::EngineError;

/// The first byte of a text or bytes field that is neither NULL nor empty.
pub(super) const NON_EMPTY: u8 = 2;
pub(super) const SMALL_BLOCK: usize = 8;
pub(super) const SMALL_BLOCKS: usize = 4;
pub(super) const BLOCK: usize = 32;
/// Follows a block that isn't the last.
pub(super) const CONTINUATION: u8 = 0xFF;

/// Decodes the fields of one column.
pub(super) fn column(data_type: &DataType, fields: &[&[u8]]) -> Result<ArrayRef, EngineError> {
    Ok(match data_type {
        DataType::Null => Arc::new(NullArray::new(fields.len())),
        DataType::Boolean => {
            let values = BooleanBuffer::collect_bool(fields.len(), |row| fields[row][1] != 0);
            Arc::new(BooleanArray::new(values, nulls(fields)))
        }
        DataType::Int16 => primitive::<Int16Type>(data_type, fields, int16),
        DataType::Int32 => primitive::<Int32Type>(data_type, fields, int32),
        DataType::Date32 => primitive::<Date32Type>(data_type, fields, int32),
        DataType::Int64 => primitive::<Int64Type>(data_type, fields, int64),
        DataType::Time64(_) => primitive::<Time64MicrosecondType>(data_type, fields, int64),
        DataType::Timestamp(..) => primitive::<TimestampMicrosecondType>(data_type, fields, int64),
        DataType::Float32 => primitive::<Float32Type>(data_type, fields, float32),
        DataType::Float64 => primitive::<Float64Type>(data_type, fields, float64),
        DataType::Decimal128(..) => primitive::<Decimal128Type>(data_type, fields, int128),
        DataType::Interval(_) => {
            primitive::<IntervalMonthDayNanoType>(data_type, fields, |field| {
                IntervalMonthDayNano::new(int32(field), int32(&field[4..]), int64(&field[8..]))
            })
        }
        DataType::Utf8 => {
            let (offsets, values) = concatenated(fields)?;
            let text = StringArray::try_new(offsets, values, nulls(fields));
            Arc::new(text.map_err(|error| EngineError::Corrupt(error.to_string()))?)
        }
        DataType::Binary => {
            let (offsets, values) = concatenated(fields)?;
            Arc::new(BinaryArray::try_new(offsets, values, nulls(fields))?)
        }
        DataType::List(_) => {
            let converter = RowConverter::new(vec![SortField::new(data_type.clone())])?;
            let parser = converter.parser();
            let mut columns =
                converter.convert_rows(fields.iter().map(|field| parser.parse(field)))?;
            columns
                .pop()
                .ok_or_else(|| EngineError::Corrupt("a list without a column".to_owned()))?
        }
        DataType::LargeBinary => {
            let (offsets, values) = concatenated(fields)?;
            let lengths = offsets.lengths();
            let offsets = OffsetBuffer::<i64>::from_lengths(lengths);
            Arc::new(LargeBinaryArray::try_new(offsets, values, nulls(fields))?)
        }
        other => return Err(EngineError::UnsupportedType(other.clone())),
    })
}

/// Whether an encoded field is NULL.
#[inline]
pub(crate) fn is_null(field: &[u8]) -> bool {
    field[0] == 0
}

/// The value behind the NULL byte of a field, if it isn't NULL.
#[inline]
pub(crate) fn value(field: &[u8]) -> Option<&[u8]> {
    if is_null(field) { None } else { Some(&field[1..]) }
}

#[inline]
pub(crate) fn int16(value: &[u8]) -> i16 {
    i16::from_be_bytes(array(value)) ^ i16::MIN
}

#[inline]
pub(crate) fn int32(value: &[u8]) -> i32 {
    i32::from_be_bytes(array(value)) ^ i32::MIN
}

#[inline]
pub(crate) fn int64(value: &[u8]) -> i64 {
    i64::from_be_bytes(array(value)) ^ i64::MIN
}

#[inline]
pub(crate) fn int128(value: &[u8]) -> i128 {
    i128::from_be_bytes(array(value)) ^ i128::MIN
}

#[inline]
pub(crate) fn float32(value: &[u8]) -> f32 {
    let bits = int32(value);
    f32::from_bits((bits ^ ((bits >> 31) as u32 >> 1) as i32) as u32)
}

#[inline]
pub(crate) fn float64(value: &[u8]) -> f64 {
    let bits = int64(value);
    f64::from_bits((bits ^ ((bits >> 63) as u64 >> 1) as i64) as u64)
}

#[inline]
fn array<const N: usize>(value: &[u8]) -> [u8; N] {
    *value.first_chunk().expect("a field has the width of its type")
}

/// Calls `visit` with each block of a text or bytes field at the start of `bytes` and returns the
/// field's length.
#[inline]
pub(super) fn blocks<'a>(bytes: &'a [u8], mut visit: impl FnMut(&'a [u8])) -> usize {
    if bytes[0] != NON_EMPTY {
        return 1;
    }
    let mut offset = 1;
    for number in 0.. {
        let size = if number < SMALL_BLOCKS { SMALL_BLOCK } else { BLOCK };
        let (block, rest) = bytes[offset..].split_at(size);
        offset += size + 1;
        if rest[0] != CONTINUATION {
            visit(&block[..rest[0] as usize]);
            break;
        }
        visit(block);
    }
    offset
}

/// The bytes of a text or bytes field; none if it is NULL.
pub(crate) fn bytes(field: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(field.len());
    blocks(field, |block| value.extend_from_slice(block));
    value
}

fn nulls(fields: &[&[u8]]) -> Option<NullBuffer> {
    let valid = BooleanBuffer::collect_bool(fields.len(), |row| !is_null(fields[row]));
    Some(NullBuffer::new(valid)).filter(|nulls| nulls.null_count() > 0)
}

fn primitive<T: ArrowPrimitiveType>(
    data_type: &DataType,
    fields: &[&[u8]],
    decode: impl Fn(&[u8]) -> T::Native,
) -> ArrayRef {
    let nulls = nulls(fields);
    // A NULL's bytes are zeros, which decode to some value that nobody sees.
    let values: ScalarBuffer<T::Native> = fields.iter().map(|field| decode(&field[1..])).collect();
    Arc::new(PrimitiveArray::<T>::new(values, nulls).with_data_type(data_type.clone()))
}

fn concatenated(fields: &[&[u8]]) -> Result<(OffsetBuffer<i32>, Buffer), EngineError> {
    let mut values = Vec::with_capacity(fields.iter().map(|field| field.len()).sum());
    let mut offsets = OffsetBufferBuilder::<i32>::new(fields.len());
    for field in fields {
        let start = values.len();
        blocks(field, |block| values.extend_from_slice(block));
        if values.len() > i32::MAX as usize {
            let message = "a column of a batch is longer than 2 GiB".to_owned();
            return Err(arrow::error::ArrowError::ComputeError(message).into());
        }
        offsets.push_length(values.len() - start);
    }
    Ok((offsets.finish(), values.into()))
}
