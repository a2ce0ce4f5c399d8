//! Between columns and rows: the format is arrow-row's, with ascending order and NULLs first.
//!
//! A field of a fixed width is a byte that says whether it is NULL, then as many bytes as its type
//! has. A field of text or bytes is one byte if it is NULL or empty, else blocks: four of 8 bytes
//! and then any number of 32, each followed by 0xFF if more follow and by its length if not. A list is
//! one byte if it is NULL or empty, else its elements' own fields as such bytes, and an empty one. So
//! fields can be found, cut out and put together without being decoded.

use arrow::array::{Array, ArrayRef, AsArray, ListArray, PrimitiveArray};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Float32Type, Float64Type, IntervalUnit, SchemaRef, TimeUnit,
};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use arrow_row::{RowConverter, SortField};
use std::sync::Arc;

use super::{Row, decode};
use crate::EngineError;

/// Turns rows of one schema into columns and back.
#[derive(Debug)]
pub struct Codec {
    schema: SchemaRef,
    widths: Vec<Width>,
    /// Where the leading fields of fixed widths start, and where the first field after them does.
    fixed_offsets: Vec<usize>,
    converter: RowConverter,
}

/// How many bytes a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    Fixed(usize),
    Variable,
    List,
}

impl Codec {
    /// A codec for rows of these columns; names and nullability don't matter to it.
    ///
    /// # Errors
    ///
    /// [`EngineError::UnsupportedType`].
    pub fn new(schema: SchemaRef) -> Result<Self, EngineError> {
        let types = || schema.fields().iter().map(|field| field.data_type());
        let widths = types().map(width).collect::<Result<Vec<_>, _>>()?;
        let mut fixed_offsets = vec![0];
        let mut offset = 0;
        for width in &widths {
            let Width::Fixed(bytes) = width else { break };
            offset += bytes;
            fixed_offsets.push(offset);
        }
        let converter = RowConverter::new(types().cloned().map(SortField::new).collect())?;
        Ok(Self { schema, widths, fixed_offsets, converter })
    }

    /// The columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Encodes the rows of a batch.
    ///
    /// # Errors
    ///
    /// [`EngineError::WrongColumns`] if the batch has other types than the schema.
    pub fn encode_batch(&self, batch: &RecordBatch) -> Result<Vec<Row>, EngineError> {
        self.encode(batch.columns(), batch.num_rows())
    }

    /// Encodes `row_count` rows, given by column. Floats are normalised: there is one zero and one
    /// NaN, so that equal bytes are equal values.
    ///
    /// # Errors
    ///
    /// [`EngineError::WrongColumns`] if the columns have other types than the schema.
    pub fn encode(&self, columns: &[ArrayRef], row_count: usize) -> Result<Vec<Row>, EngineError> {
        let fields = self.schema.fields();
        if columns.len() != fields.len() {
            let message = format!("{} columns instead of {}", columns.len(), fields.len());
            return Err(EngineError::WrongColumns(message));
        }
        for (column, field) in columns.iter().zip(fields) {
            if column.data_type() != field.data_type() || column.len() != row_count {
                return Err(EngineError::WrongColumns(format!(
                    "column \"{}\" has {} rows of {} instead of {row_count} of {}",
                    field.name(),
                    column.len(),
                    column.data_type(),
                    field.data_type()
                )));
            }
        }
        if columns.is_empty() || row_count == 0 {
            return Ok(vec![Row::default(); row_count]);
        }
        let rows = self.encode_contiguous(columns)?;
        let encode = |row: arrow_row::Row<'_>| match u32::try_from(row.as_ref().len()) {
            Ok(_) => Ok(Row::new(row.as_ref())),
            Err(_) => Err(EngineError::RowTooLong),
        };
        rows.iter().map(encode).collect()
    }

    /// Decodes some columns of rows, in the order of `projection`, into a batch.
    ///
    /// # Errors
    ///
    /// [`EngineError::Corrupt`] if the bytes aren't rows of the schema, an Arrow error if a column
    /// of text gets longer than 2 GiB.
    pub fn decode_batch(
        &self,
        rows: &[&[u8]],
        projection: &[usize],
    ) -> Result<RecordBatch, EngineError> {
        let columns = self.decode(rows, projection)?;
        let schema = Arc::new(self.schema.project(projection)?);
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
    }

    /// Decodes some columns of rows, in the order of `projection`. Only they are touched, and the
    /// lengths of the fields before them.
    ///
    /// # Errors
    ///
    /// As [`Self::decode_batch`].
    pub fn decode(
        &self,
        rows: &[&[u8]],
        projection: &[usize],
    ) -> Result<Vec<ArrayRef>, EngineError> {
        let fields = self.fields_by_column(rows, projection);
        fields
            .iter()
            .zip(projection)
            .map(|(fields, column)| decode::column(self.schema.field(*column).data_type(), fields))
            .collect()
    }

    /// The encoded fields of each of some columns.
    fn fields_by_column<'a>(&self, rows: &[&'a [u8]], columns: &[usize]) -> Vec<Vec<&'a [u8]>> {
        let mut result: Vec<Vec<&[u8]>> =
            columns.iter().map(|_| Vec::with_capacity(rows.len())).collect();
        let fixed_count = self.fixed_offsets.len() - 1;
        let (fixed, walked): (Vec<usize>, Vec<usize>) =
            (0..columns.len()).partition(|place| columns[*place] < fixed_count);
        for place in fixed {
            let column = columns[place];
            let range = self.fixed_offsets[column]..self.fixed_offsets[column + 1];
            result[place].extend(rows.iter().map(|row| &row[range.clone()]));
        }
        let Some(last) = walked.iter().map(|place| columns[*place]).max() else { return result };
        let mut offsets = FieldOffsets::default();
        for row in rows {
            self.walk_to(row, last + 1, &mut offsets);
            for place in &walked {
                result[*place].push(offsets.field(row, columns[*place]));
            }
        }
        result
    }

    /// Finds all fields of a row.
    #[inline]
    pub fn walk(&self, row: &[u8], offsets: &mut FieldOffsets) {
        self.walk_to(row, self.widths.len(), offsets);
    }

    /// Encodes columns of the schema's types into one buffer.
    pub(crate) fn encode_contiguous(
        &self,
        columns: &[ArrayRef],
    ) -> Result<arrow_row::Rows, EngineError> {
        let columns: Vec<ArrayRef> = columns.iter().map(normalise_floats).collect();
        Ok(self.converter.convert_columns(&columns)?)
    }

    /// How many bytes the first `columns` fields of a row have.
    #[inline]
    pub fn prefix_len(&self, row: &[u8], columns: usize) -> usize {
        if let Some(offset) = self.fixed_offsets.get(columns) {
            return *offset;
        }
        let fixed = self.fixed_offsets.len() - 1;
        let mut offset = self.fixed_offsets[fixed];
        for width in &self.widths[fixed..columns] {
            offset += field_len(*width, &row[offset..]);
        }
        offset
    }

    /// Finds the first fields of a row.
    #[inline]
    pub(crate) fn walk_to(&self, row: &[u8], columns: usize, offsets: &mut FieldOffsets) {
        let FieldOffsets(offsets) = offsets;
        offsets.clear();
        let fixed = columns.min(self.fixed_offsets.len() - 1);
        offsets.extend_from_slice(&self.fixed_offsets[..=fixed]);
        let mut offset = self.fixed_offsets[fixed];
        for width in &self.widths[fixed..columns] {
            offset += field_len(*width, &row[offset..]);
            offsets.push(offset);
        }
    }
}

/// Where the fields of a row start and end; filled by [`Codec::walk`] and used again for the next.
#[derive(Clone, Debug, Default)]
pub struct FieldOffsets(Vec<usize>);

impl FieldOffsets {
    /// The bytes of one field of the row that was walked last.
    #[inline]
    pub fn field<'a>(&self, row: &'a [u8], column: usize) -> &'a [u8] {
        &row[self.0[column]..self.0[column + 1]]
    }

    /// The bytes of neighbouring fields of the row that was walked last.
    #[inline]
    pub(crate) fn fields<'a>(&self, row: &'a [u8], columns: &std::ops::Range<usize>) -> &'a [u8] {
        &row[self.0[columns.start]..self.0[columns.end]]
    }
}

/// Rows put together from parts, in one allocation.
#[derive(Debug, Default)]
pub struct RowBuffer {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl RowBuffer {
    /// Adds a row that consists of these two parts.
    #[inline]
    pub fn push(&mut self, head: &[u8], tail: &[u8]) {
        self.bytes.extend_from_slice(head);
        self.bytes.extend_from_slice(tail);
        self.ends.push(self.bytes.len());
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Forgets all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// The rows.
    pub fn rows(&self) -> Vec<&[u8]> {
        let mut start = 0;
        let row = |end: &usize| &self.bytes[std::mem::replace(&mut start, *end)..*end];
        self.ends.iter().map(row).collect()
    }
}

fn width(data_type: &DataType) -> Result<Width, EngineError> {
    Ok(match data_type {
        DataType::Null | DataType::Boolean => Width::Fixed(2),
        DataType::Int16 => Width::Fixed(3),
        DataType::Int32 | DataType::Float32 | DataType::Date32 => Width::Fixed(5),
        DataType::Int64
        | DataType::Float64
        | DataType::Time64(TimeUnit::Microsecond)
        | DataType::Timestamp(TimeUnit::Microsecond, _) => Width::Fixed(9),
        DataType::Decimal128(..) | DataType::Interval(IntervalUnit::MonthDayNano) => {
            Width::Fixed(17)
        }
        DataType::Utf8 | DataType::Binary | DataType::LargeBinary => Width::Variable,
        DataType::List(element) if !element.data_type().is_nested() => {
            width(element.data_type())?;
            Width::List
        }
        other => return Err(EngineError::UnsupportedType(other.clone())),
    })
}

/// The length of the field at the start of `bytes`.
#[inline]
fn field_len(width: Width, bytes: &[u8]) -> usize {
    match width {
        Width::Fixed(length) => length,
        Width::Variable => decode::blocks(bytes, |_| ()),
        Width::List => {
            let mut offset = 0;
            loop {
                let length = decode::blocks(&bytes[offset..], |_| ());
                offset += length;
                if length <= 1 {
                    return offset;
                }
            }
        }
    }
}

fn normalise_floats(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::Float32 => normalise::<Float32Type>(
            column,
            |value| value.is_nan() || value.to_bits() == (-0.0f32).to_bits(),
            |value| if value.is_nan() { f32::NAN } else { value + 0.0 },
        ),
        DataType::Float64 => normalise::<Float64Type>(
            column,
            |value| value.is_nan() || value.to_bits() == (-0.0f64).to_bits(),
            |value| if value.is_nan() { f64::NAN } else { value + 0.0 },
        ),
        DataType::List(element) if element.data_type().is_floating() => {
            let lists = column.as_list::<i32>();
            let values = normalise_floats(lists.values());
            if Arc::ptr_eq(&values, lists.values()) {
                return Arc::clone(column);
            }
            let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
            Arc::new(ListArray::new(Arc::clone(element), offsets, values, nulls))
        }
        _ => Arc::clone(column),
    }
}

fn normalise<T: ArrowPrimitiveType>(
    column: &ArrayRef,
    differs: impl Fn(T::Native) -> bool,
    normal: impl Fn(T::Native) -> T::Native,
) -> ArrayRef {
    let values: &PrimitiveArray<T> = column.as_primitive();
    if values.values().iter().any(|value| differs(*value)) {
        Arc::new(values.unary::<_, T>(normal))
    } else {
        Arc::clone(column)
    }
}

#[cfg(test)]
mod tests;
