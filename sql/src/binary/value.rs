//! Values of Arrow arrays in binary format.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type,
    Int32Type, Int64Type, IntervalMonthDayNanoType, Time64MicrosecondType,
    TimestampMicrosecondType,
};
use bytes::{BufMut, BytesMut};
use stillframe_protocol::numeric::Numeric;

use super::{moment, numeric, patch_length};
use crate::carrier::carried;
use crate::{Error, SqlState, Type};

/// The length that a NULL has instead of one.
const NULL: i32 = -1;

/// The values of one column, ready to be written in binary format.
#[derive(Debug)]
pub struct BinaryColumn {
    kind: Type,
    values: ArrayRef,
    nulls: Option<NullBuffer>,
}

impl BinaryColumn {
    /// The values of an array, as a type. What the array holds must be what carries the type, or
    /// what a cast without loss can bring into that form.
    ///
    /// # Errors
    ///
    /// 0A000 for an array that can't be brought into it, and for the names of objects: `regclass`
    /// and its like are names by the time they get here.
    pub fn new(kind: &Type, array: &ArrayRef) -> Result<Self, Error> {
        if kind.is_name_of_object() && array.data_type() == &DataType::Utf8 {
            return Err(Error::unsupported(format!("a {kind} in binary format"))
                .with_hint("Cast it to oid or to text."));
        }
        let values = carried(kind, array)?;
        let nulls = values.logical_nulls();
        Ok(Self { kind: kind.clone(), values, nulls })
    }

    /// Adds a value with its length before it.
    ///
    /// # Errors
    ///
    /// 42883 for a type that PostgreSQL has no binary format of, 54000 for a value that is too long.
    pub fn write(&self, row: usize, buffer: &mut BytesMut) -> Result<(), Error> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            buffer.put_i32(NULL);
            return Ok(());
        }
        let start = buffer.len();
        buffer.put_u32(0);
        write(&self.kind, &self.values, row, buffer)?;
        patch_length(buffer, start, buffer.len() - start - 4)
    }
}

/// Adds a value that isn't NULL, without its length.
fn write(kind: &Type, values: &ArrayRef, row: usize, buffer: &mut BytesMut) -> Result<(), Error> {
    match kind {
        Type::Boolean => buffer.put_u8(boolean(values, row)?.into()),
        Type::SmallInt => buffer.put_i16(narrow(integer(values, row)?)?),
        Type::Integer => buffer.put_i32(narrow(integer(values, row)?)?),
        Type::BigInt => buffer.put_i64(integer(values, row)?),
        Type::Oid
        | Type::Regclass
        | Type::Regtype
        | Type::Regproc
        | Type::Regnamespace
        | Type::Regrole
        | Type::Xid => {
            buffer.put_u32(narrow(integer(values, row)?)?);
        }
        Type::Real => buffer.put_f32(primitive::<Float32Type>(values, row)?),
        Type::Double => buffer.put_f64(primitive::<Float64Type>(values, row)?),
        Type::Numeric(_) => write_numeric(values, row, buffer)?,
        Type::Char(Some(characters)) => {
            let text = text(values, row)?;
            buffer.put_slice(text.as_bytes());
            buffer.put_bytes(b' ', (*characters as usize).saturating_sub(text.chars().count()));
        }
        Type::Text
        | Type::Varchar(_)
        | Type::Char(None)
        | Type::Name
        | Type::InternalChar
        | Type::Json
        | Type::NodeTree
        | Type::AnyArray
        | Type::Unknown => buffer.put_slice(text(values, row)?.as_bytes()),
        Type::Jsonb => {
            // The version of jsonb's binary format.
            buffer.put_u8(1);
            buffer.put_slice(text(values, row)?.as_bytes());
        }
        Type::Uuid => buffer.put_slice(&uuid(text(values, row)?)?),
        Type::Bytea => buffer.put_slice(bytes(values, row)?),
        Type::Date => {
            buffer.put_i32(moment::date_since_2000(primitive::<Date32Type>(values, row)?)?);
        }
        Type::Time => {
            buffer.put_i64(primitive::<Time64MicrosecondType>(values, row)?);
        }
        Type::Timestamp | Type::Timestamptz => {
            buffer
                .put_i64(moment::since_2000(primitive::<TimestampMicrosecondType>(values, row)?)?);
        }
        Type::Interval => {
            let interval = primitive::<IntervalMonthDayNanoType>(values, row)?;
            buffer.put_i64(interval.nanoseconds / 1000);
            buffer.put_i32(interval.days);
            buffer.put_i32(interval.months);
        }
        Type::Array(element) => write_array(element, 1, values, row, buffer)?,
        Type::Int2Vector => write_array(&Type::SmallInt, 0, values, row, buffer)?,
        Type::OidVector => write_array(&Type::Oid, 0, values, row, buffer)?,
        Type::AclItem => {
            let message = "no binary output function available for type aclitem";
            return Err(Error::new(SqlState::UNDEFINED_FUNCTION, message));
        }
        Type::Void => {}
    }
    Ok(())
}

fn integer(values: &ArrayRef, row: usize) -> Result<i64, Error> {
    Ok(match values.data_type() {
        DataType::Int16 => primitive::<Int16Type>(values, row)?.into(),
        DataType::Int32 => primitive::<Int32Type>(values, row)?.into(),
        DataType::Int64 => primitive::<Int64Type>(values, row)?,
        _ => return Err(odd(values)),
    })
}

fn boolean(values: &ArrayRef, row: usize) -> Result<bool, Error> {
    Ok(values.as_boolean_opt().ok_or_else(|| odd(values))?.value(row))
}

fn primitive<T: ArrowPrimitiveType>(values: &ArrayRef, row: usize) -> Result<T::Native, Error> {
    Ok(values.as_primitive_opt::<T>().ok_or_else(|| odd(values))?.value(row))
}

fn narrow<T: TryFrom<i64>>(value: i64) -> Result<T, Error> {
    T::try_from(value).map_err(|_| Error::internal(format!("{value} is out of its type's range")))
}

fn text(values: &ArrayRef, row: usize) -> Result<&str, Error> {
    Ok(match values.data_type() {
        DataType::Utf8 => values.as_string::<i32>().value(row),
        DataType::Utf8View => values.as_string_view().value(row),
        _ => return Err(odd(values)),
    })
}

fn bytes(values: &ArrayRef, row: usize) -> Result<&[u8], Error> {
    Ok(match values.data_type() {
        DataType::Binary => values.as_binary::<i32>().value(row),
        DataType::LargeBinary => values.as_binary::<i64>().value(row),
        _ => return Err(odd(values)),
    })
}

fn write_numeric(values: &ArrayRef, row: usize, buffer: &mut BytesMut) -> Result<(), Error> {
    if let DataType::LargeBinary = values.data_type() {
        let value = Numeric::decode(bytes(values, row)?).ok_or_else(|| odd(values))?;
        numeric::write_text(&value.to_string(), buffer);
        return Ok(());
    }
    let DataType::Decimal128(_, scale) = values.data_type() else { return Err(odd(values)) };
    let scale = u16::try_from(*scale).map_err(|_| odd(values))?;
    numeric::write(primitive::<Decimal128Type>(values, row)?, scale, buffer);
    Ok(())
}

fn uuid(text: &str) -> Result<[u8; 16], Error> {
    let digits: String = text.chars().filter(|character| *character != '-').collect();
    u128::from_str_radix(&digits, 16)
        .map(u128::to_be_bytes)
        .map_err(|_| Error::internal("a uuid has other characters than hexadecimal digits"))
}

/// `first` is the subscript of the first element.
fn write_array(
    element: &Type,
    first: i32,
    values: &ArrayRef,
    row: usize,
    buffer: &mut BytesMut,
) -> Result<(), Error> {
    if let Type::Array(_) = element {
        return Err(Error::unsupported("an array of several dimensions in binary format"));
    }
    let list = values.as_list_opt::<i32>().ok_or_else(|| odd(values))?;
    let items = BinaryColumn::new(element, &list.value(row))?;
    let (count, nulls) =
        (items.values.len(), items.nulls.as_ref().map_or(0, NullBuffer::null_count));
    buffer.put_i32(i32::from(count > 0));
    buffer.put_i32(i32::from(nulls > 0));
    buffer.put_u32(element.oid());
    if count == 0 {
        return Ok(());
    }
    buffer.put_i32(i32::try_from(count).map_err(|_| odd(values))?);
    buffer.put_i32(first);
    (0..count).try_for_each(|item| items.write(item, buffer))
}

fn odd(values: &ArrayRef) -> Error {
    Error::internal(format!("a value comes as {}, which its type doesn't", values.data_type()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        BooleanArray, Date32Array, Decimal128Array, Float64Array, Int16Array, Int64Array,
        IntervalMonthDayNanoArray, ListArray, ListBuilder, NullArray, StringArray, StringViewArray,
        TimestampMicrosecondArray, UInt64Array,
    };
    use arrow::datatypes::{Int32Type as I32, IntervalMonthDayNano};

    use super::*;

    fn written(kind: &Type, values: impl Array + 'static) -> Vec<u8> {
        let mut buffer = BytesMut::new();
        let column = BinaryColumn::new(kind, &(Arc::new(values) as ArrayRef)).unwrap();
        column.write(0, &mut buffer).unwrap();
        assert_eq!(buffer[..4], u32::try_from(buffer.len() - 4).unwrap().to_be_bytes());
        buffer[4..].to_vec()
    }

    #[test]
    fn values_are_written_as_postgresql_does() {
        assert_eq!(written(&Type::Boolean, BooleanArray::from(vec![true])), [1]);
        assert_eq!(written(&Type::SmallInt, Int16Array::from(vec![-2])), [0xff, 0xfe]);
        assert_eq!(
            written(&Type::Oid, Int64Array::from(vec![4_000_000_000])),
            [0xee, 0x6b, 0x28, 0]
        );
        assert_eq!(written(&Type::Double, Float64Array::from(vec![1.0])), 1_f64.to_be_bytes());
        assert_eq!(written(&Type::Text, StringViewArray::from(vec!["añ"])), "añ".as_bytes());
        assert_eq!(written(&Type::Jsonb, StringArray::from(vec!["{}"])), b"\x01{}");
        let uuid = "00010203-0405-0607-0809-0a0b0c0d0e0f";
        assert_eq!(
            written(&Type::Uuid, StringArray::from(vec![uuid])),
            (0..16).collect::<Vec<_>>()
        );
        assert_eq!(written(&Type::Date, Date32Array::from(vec![10_958])), 1_i32.to_be_bytes());
        let moment = TimestampMicrosecondArray::from(vec![946_684_800_000_001]);
        assert_eq!(written(&Type::Timestamp, moment), 1_i64.to_be_bytes());
        let interval = IntervalMonthDayNano::new(2, 3, 4_000);
        assert_eq!(
            written(&Type::Interval, IntervalMonthDayNanoArray::from(vec![interval])),
            [&4_i64.to_be_bytes()[..], &3_i32.to_be_bytes(), &2_i32.to_be_bytes()].concat()
        );
        let numeric = Decimal128Array::from(vec![15]).with_precision_and_scale(4, 1).unwrap();
        let expected = [0, 2, 0, 0, 0, 0, 0, 1, 0, 1, 5000_u16.to_be_bytes()[0], 0x88];
        assert_eq!(written(&Type::Numeric(None), numeric), expected);
        let mut buffer = BytesMut::new();
        let nothing: ArrayRef = Arc::new(NullArray::new(1));
        BinaryColumn::new(&Type::Unknown, &nothing).unwrap().write(0, &mut buffer).unwrap();
        assert_eq!(buffer[..], NULL.to_be_bytes());
        assert_eq!(written(&Type::BigInt, UInt64Array::from(vec![7])), 7_i64.to_be_bytes());
        let mut lists = ListBuilder::new(UInt64Array::builder(1));
        lists.append_value([Some(7)]);
        let expected = [1, 0, 20, 1, 1, 8, 0, 7].into_iter().flat_map(i32::to_be_bytes);
        let kind = Type::Array(Box::new(Type::BigInt));
        assert_eq!(written(&kind, lists.finish()), expected.collect::<Vec<_>>());
        let list = ListArray::from_iter_primitive::<I32, _, _>([Some([Some(7), None])]);
        let expected: Vec<u8> =
            [1, 1, 23, 2, 1, 4, 7, -1].into_iter().flat_map(i32::to_be_bytes).collect();
        assert_eq!(written(&Type::Array(Box::new(Type::Integer)), list), expected);
    }

    #[test]
    fn a_value_that_comes_otherwise_than_its_type_is_our_mistake() {
        let values: ArrayRef = Arc::new(StringArray::from(vec!["1"]));
        for kind in [Type::Boolean, Type::Integer, Type::Double, Type::Date, Type::Bytea] {
            let column = BinaryColumn::new(&kind, &values).unwrap();
            let error = column.write(0, &mut BytesMut::new()).unwrap_err();
            assert_eq!(error.state, SqlState::INTERNAL_ERROR, "{kind:?}");
        }
        let error = BinaryColumn::new(&Type::Regclass, &values).unwrap_err();
        assert_eq!(error.state, SqlState::FEATURE_NOT_SUPPORTED);
    }
}
