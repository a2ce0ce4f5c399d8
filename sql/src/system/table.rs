//! A table that is made for one statement.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanBuilder, Float32Builder, Int16Builder, Int32Builder, Int64Builder,
    ListBuilder, StringBuilder, TimestampMicrosecondBuilder, new_null_array,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::catalog::{MemTable, TableProvider};

use crate::Type;

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Cell {
    Null,
    Boolean(bool),
    Integer(i64),
    Text(String),
    /// Microseconds since 1970-01-01 UTC.
    Time(i64),
    /// An array of integers.
    List(Vec<i64>),
}

impl From<bool> for Cell {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

impl From<i64> for Cell {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<u64> for Cell {
    fn from(value: u64) -> Self {
        i64::try_from(value).map_or(Self::Null, Self::Integer)
    }
}

impl From<u32> for Cell {
    fn from(value: u32) -> Self {
        Self::Integer(value.into())
    }
}

impl From<i32> for Cell {
    fn from(value: i32) -> Self {
        Self::Integer(value.into())
    }
}

impl From<i16> for Cell {
    fn from(value: i16) -> Self {
        Self::Integer(value.into())
    }
}

impl From<&str> for Cell {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Cell {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// Columns and rows; all rows are as long as there are columns.
pub(super) struct SystemTable {
    pub(super) columns: Vec<(&'static str, Type)>,
    pub(super) rows: Vec<Vec<Cell>>,
}

impl SystemTable {
    /// A table with these columns and no rows.
    pub(super) fn empty(columns: Vec<(&'static str, Type)>) -> Self {
        Self { columns, rows: vec![] }
    }

    pub(super) fn schema(&self) -> SchemaRef {
        schema(&self.columns)
    }

    pub(super) fn batch(&self) -> RecordBatch {
        let columns = self.columns.iter().enumerate();
        let arrays = columns.map(|(place, (_, kind))| array(&kind.arrow(), place, &self.rows));
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows.len()));
        RecordBatch::try_new_with_options(self.schema(), arrays.collect(), &options)
            .expect("arrays are made of the schema's types, all equally long")
    }

    pub(super) fn provider(self) -> Arc<dyn TableProvider> {
        let table = MemTable::try_new(self.schema(), vec![vec![self.batch()]]);
        Arc::new(table.expect("the batch is of the table's schema"))
    }
}

pub(super) fn schema(columns: &[(&'static str, Type)]) -> SchemaRef {
    let fields = columns.iter().map(|(name, kind)| kind.field(name, true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// A column; a cell that isn't of the type is NULL.
fn array(data_type: &DataType, place: usize, rows: &[Vec<Cell>]) -> ArrayRef {
    let cells = rows.iter().map(|row| &row[place]);
    macro_rules! integers {
        ($builder:ty) => {{
            let mut builder = <$builder>::new();
            for cell in cells {
                builder.append_option(match cell {
                    Cell::Integer(value) => (*value).try_into().ok(),
                    _ => None,
                });
            }
            Arc::new(builder.finish())
        }};
    }
    match data_type {
        DataType::Boolean => {
            let mut builder = BooleanBuilder::new();
            for cell in cells {
                builder.append_option(match cell {
                    Cell::Boolean(value) => Some(*value),
                    _ => None,
                });
            }
            Arc::new(builder.finish())
        }
        DataType::Int16 => integers!(Int16Builder),
        DataType::Int32 => integers!(Int32Builder),
        DataType::Int64 => integers!(Int64Builder),
        DataType::Float32 => {
            let mut builder = Float32Builder::new();
            for cell in cells {
                builder.append_option(match cell {
                    // Counts of rows, which PostgreSQL keeps as real.
                    Cell::Integer(value) => Some(*value as f32),
                    _ => None,
                });
            }
            Arc::new(builder.finish())
        }
        DataType::Utf8 => {
            let mut builder = StringBuilder::new();
            for cell in cells {
                builder.append_option(match cell {
                    Cell::Text(value) => Some(value),
                    _ => None,
                });
            }
            Arc::new(builder.finish())
        }
        DataType::Timestamp(_, zone) => {
            let mut builder = TimestampMicrosecondBuilder::new();
            for cell in cells {
                builder.append_option(match cell {
                    Cell::Time(value) => Some(*value),
                    _ => None,
                });
            }
            Arc::new(builder.finish().with_timezone_opt(zone.clone()))
        }
        DataType::List(field) => {
            let mut builder = ListBuilder::new(Int64Builder::new());
            for cell in cells {
                builder.append_option(match cell {
                    Cell::List(values) => Some(values.iter().copied().map(Some)),
                    _ => None,
                });
            }
            let wide: ArrayRef = Arc::new(builder.finish());
            match field.data_type() {
                DataType::Int64 => wide,
                DataType::Int16 => cast(&wide, data_type).expect("numbers of columns are small"),
                _ => new_null_array(data_type, rows.len()),
            }
        }
        other => new_null_array(other, rows.len()),
    }
}
