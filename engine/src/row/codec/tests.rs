use std::sync::Arc;

use arrow::array::{
    BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array,
    Int16Array, Int32Array, Int64Array, IntervalMonthDayNanoArray, LargeBinaryArray, ListArray,
    ListBuilder, NullArray, StringArray, StringBuilder, Time64MicrosecondArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{Field, Int64Type, IntervalMonthDayNano, Schema};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;

const ROWS: usize = 12;

/// A column of any supported type, with NULLs.
fn column() -> impl Strategy<Value = ArrayRef> {
    fn optional<T: std::fmt::Debug>(
        strategy: impl Strategy<Value = T>,
    ) -> impl Strategy<Value = Vec<Option<T>>> {
        vec(option::weighted(0.8, strategy), ROWS)
    }
    fn array(values: impl arrow::array::Array + 'static) -> ArrayRef {
        Arc::new(values)
    }
    prop_oneof![
        Just(array(NullArray::new(ROWS))),
        optional(any::<bool>()).prop_map(|values| array(BooleanArray::from(values))),
        optional(any::<i16>()).prop_map(|values| array(Int16Array::from(values))),
        optional(any::<i32>()).prop_map(|values| array(Int32Array::from(values))),
        optional(any::<i64>()).prop_map(|values| array(Int64Array::from(values))),
        optional(any::<f32>()).prop_map(|values| array(Float32Array::from(values))),
        optional(any::<f64>()).prop_map(|values| array(Float64Array::from(values))),
        optional(any::<i32>()).prop_map(|values| array(Date32Array::from(values))),
        optional(0i64..86_400_000_000)
            .prop_map(|values| array(Time64MicrosecondArray::from(values))),
        optional(any::<i64>()).prop_map(|values| array(TimestampMicrosecondArray::from(values))),
        optional(any::<i64>()).prop_map(|values| {
            array(TimestampMicrosecondArray::from(values).with_timezone("UTC"))
        }),
        optional(-(10i128.pow(38) - 1)..10i128.pow(38)).prop_map(|values| {
            let decimals = Decimal128Array::from(values);
            array(decimals.with_precision_and_scale(38, 6).unwrap())
        }),
        optional((any::<i32>(), any::<i32>(), any::<i64>())).prop_map(|values| {
            let interval =
                |(months, days, nanoseconds)| IntervalMonthDayNano::new(months, days, nanoseconds);
            let values: Vec<_> = values.into_iter().map(|value| value.map(interval)).collect();
            array(IntervalMonthDayNanoArray::from(values))
        }),
        optional("[a-c]{0,80}").prop_map(|values| array(StringArray::from(values))),
        optional("\\PC{0,12}").prop_map(|values| array(StringArray::from(values))),
        optional(vec(option::weighted(0.8, "[a-b]{0,40}"), 0..4)).prop_map(|values| {
            let mut builder = ListBuilder::new(StringBuilder::new());
            for value in values {
                match value {
                    Some(value) => builder.append_value(value),
                    None => builder.append_null(),
                }
            }
            array(builder.finish())
        }),
        optional(vec(option::weighted(0.8, any::<i64>()), 0..4)).prop_map(|values| {
            array(ListArray::from_iter_primitive::<Int64Type, _, _>(values))
        }),
        optional(vec(any::<u8>(), 0..70)).prop_map(|values| {
            let values: Vec<Option<&[u8]>> = values.iter().map(Option::as_deref).collect();
            array(BinaryArray::from(values))
        }),
        optional(vec(any::<u8>(), 0..70)).prop_map(|values| {
            let values: Vec<Option<&[u8]>> = values.iter().map(Option::as_deref).collect();
            array(LargeBinaryArray::from(values))
        }),
    ]
}

fn codec(columns: &[ArrayRef]) -> Codec {
    let field = |(place, column): (usize, &ArrayRef)| {
        Field::new(format!("c{place}"), column.data_type().clone(), true)
    };
    let fields: Vec<Field> = columns.iter().enumerate().map(field).collect();
    Codec::new(Arc::new(Schema::new(fields))).unwrap()
}

fn bytes(rows: &[Row]) -> Vec<&[u8]> {
    rows.iter().map(Row::as_bytes).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_is_encoded_is_decoded(columns in vec(column(), 1..9)) {
        let codec = codec(&columns);
        let rows = codec.encode(&columns, ROWS).unwrap();
        let all: Vec<usize> = (0..columns.len()).collect();
        let decoded = codec.decode(&bytes(&rows), &all).unwrap();
        for (decoded, column) in decoded.iter().zip(&columns) {
            prop_assert_eq!(decoded, &normalise_floats(column));
        }
        // Any columns in any order, each alone too.
        let backwards: Vec<usize> = all.iter().rev().copied().collect();
        let reversed = codec.decode_batch(&bytes(&rows), &backwards).unwrap();
        prop_assert_eq!(reversed.num_rows(), ROWS);
        for (place, column) in backwards.iter().enumerate() {
            prop_assert_eq!(reversed.column(place), &decoded[*column]);
            prop_assert_eq!(&codec.decode(&bytes(&rows), &[*column]).unwrap()[0], &decoded[*column]);
        }
    }

    #[test]
    fn rows_compare_as_arrow_says(columns in vec(column(), 1..4)) {
        let codec = codec(&columns);
        let rows = codec.encode(&columns, ROWS).unwrap();
        let sorted: Vec<arrow::compute::SortColumn> = columns
            .iter()
            .filter(|column| *column.data_type() != DataType::Null)
            .map(|column| arrow::compute::SortColumn {
                values: normalise_floats(column),
                options: Some(arrow::compute::SortOptions { descending: false, nulls_first: true }),
            })
            .collect();
        prop_assume!(!sorted.is_empty());
        let comparator = arrow::compute::LexicographicalComparator::try_new(&sorted).unwrap();
        for left in 0..ROWS {
            for right in 0..ROWS {
                prop_assert_eq!(rows[left].cmp(&rows[right]), comparator.compare(left, right));
            }
        }
    }

    #[test]
    fn fields_are_cut_where_they_end(columns in vec(column(), 1..9)) {
        let whole = codec(&columns);
        let rows = whole.encode(&columns, ROWS).unwrap();
        let alone: Vec<Vec<Row>> = columns
            .iter()
            .map(|column| codec(&[Arc::clone(column)]).encode(&[Arc::clone(column)], ROWS).unwrap())
            .collect();
        let mut offsets = FieldOffsets::default();
        for (number, row) in rows.iter().enumerate() {
            whole.walk(row.as_bytes(), &mut offsets);
            let mut prefix = 0;
            for (column, alone) in alone.iter().enumerate() {
                prop_assert_eq!(whole.prefix_len(row.as_bytes(), column), prefix);
                let field = offsets.field(row.as_bytes(), column);
                prop_assert_eq!(field, alone[number].as_bytes());
                prefix += field.len();
            }
            prop_assert_eq!(whole.prefix_len(row.as_bytes(), columns.len()), row.len());
        }
    }
}

#[test]
fn there_is_one_zero_and_one_nan() {
    let negative_nan = f64::from_bits(f64::NAN.to_bits() | 1 << 63 | 1);
    let values: ArrayRef =
        Arc::new(Float64Array::from(vec![0.0, -0.0, f64::NAN, negative_nan, f64::INFINITY]));
    let rows = codec(std::slice::from_ref(&values)).encode(&[values], 5).unwrap();
    assert_eq!(rows[0], rows[1]);
    assert_eq!(rows[2], rows[3]);
    assert!(rows[2] > rows[4], "NaN is greater than infinity, as in PostgreSQL");
}

#[test]
fn wrong_columns_are_refused() {
    let values: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let codec = codec(std::slice::from_ref(&values));
    let other: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    assert!(matches!(codec.encode(&[other], 2), Err(EngineError::WrongColumns(_))));
    assert!(matches!(codec.encode(&[], 2), Err(EngineError::WrongColumns(_))));
    assert!(matches!(codec.encode(&[values], 3), Err(EngineError::WrongColumns(_))));
}

#[test]
fn other_types_are_refused() {
    for data_type in [DataType::UInt8, DataType::Utf8View, DataType::Date64] {
        let schema = Arc::new(Schema::new(vec![Field::new("c", data_type, true)]));
        assert!(matches!(Codec::new(schema), Err(EngineError::UnsupportedType(_))));
    }
}

#[test]
fn rows_without_columns_are_counted() {
    let codec = Codec::new(Arc::new(Schema::empty())).unwrap();
    let rows = codec.encode(&[], 3).unwrap();
    assert_eq!(rows, vec![Row::default(); 3]);
    assert_eq!(codec.decode_batch(&bytes(&rows), &[]).unwrap().num_rows(), 3);
}

#[test]
fn more_columns_than_any_fixed_buffer() {
    let columns: Vec<ArrayRef> = (0..100)
        .map(|number| Arc::new(StringArray::from(vec![format!("value {number}")])) as ArrayRef)
        .collect();
    let codec = codec(&columns);
    let rows = codec.encode(&columns, 1).unwrap();
    assert_eq!(&codec.decode(&bytes(&rows), &[99]).unwrap()[0], &columns[99]);
}

#[test]
fn a_row_buffer_puts_parts_together() {
    let mut buffer = RowBuffer::default();
    buffer.push(b"ab", b"c");
    buffer.push(b"", b"");
    buffer.push(b"", b"de");
    assert_eq!(buffer.rows(), [&b"abc"[..], b"", b"de"]);
    buffer.clear();
    assert!(buffer.is_empty() && buffer.rows().is_empty());
}
