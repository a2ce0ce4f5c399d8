//! Rows to DataRow messages, in the format that the client has asked for by column.

use arrow::array::ArrayRef;
use arrow::record_batch::RecordBatch;
use bytes::{BufMut, BytesMut};
use pgwire::messages::data::{FieldDescription, RowDescription};
use stillframe_sql::binary::{BinaryColumn, checked_length, patch_length};
use stillframe_sql::{Error, OutputColumn, SqlState, TextColumn, TextFormat};

use super::frontend::violation;
use super::outgoing::PIECE_BYTES;

/// How many columns a result may have, as in PostgreSQL.
const COLUMNS_MAX: usize = 1664;
/// The length that stands for NULL.
const NULL: i32 = -1;

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    Binary,
}

impl Format {
    fn of(code: i16) -> Result<Self, Error> {
        match code {
            0 => Ok(Self::Text),
            1 => Ok(Self::Binary),
            code => Err(Error::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("unsupported format code: {code}"),
            )),
        }
    }

    fn code(self) -> i16 {
        match self {
            Self::Text => 0,
            Self::Binary => 1,
        }
    }

    /// By place, the formats that Bind's codes mean: none is text, one is for all.
    pub(super) fn spread(codes: &[i16], count: usize, what: &str) -> Result<Vec<Self>, Error> {
        match codes {
            [] => Ok(vec![Self::Text; count]),
            [code] => Ok(vec![Self::of(*code)?; count]),
            codes if codes.len() == count => codes.iter().map(|code| Self::of(*code)).collect(),
            codes => Err(violation(format!(
                "bind message has {} {what} formats but {count} {what}s",
                codes.len()
            ))),
        }
    }
}

/// Tells the client what columns come; without formats all are text.
pub(super) fn description(columns: &[OutputColumn], formats: Option<&[Format]>) -> RowDescription {
    let field = |(place, column): (usize, &OutputColumn)| {
        let (relation, number) = column.origin.unwrap_or((0, 0));
        let format = formats.map_or(Format::Text, |formats| formats[place]);
        FieldDescription::new(
            column.name.replace('\0', "\u{fffd}"),
            relation.cast_signed(),
            number,
            column.kind.oid(),
            column.kind.length(),
            column.kind.modifier(),
            format.code(),
        )
    };
    RowDescription::new(columns.iter().enumerate().map(field).collect())
}

/// Refuses a result with more columns than PostgreSQL has.
pub(super) fn check_width(columns: &[OutputColumn]) -> Result<(), Error> {
    if columns.len() <= COLUMNS_MAX {
        return Ok(());
    }
    let message = format!("target lists can have at most {COLUMNS_MAX} entries");
    Err(Error::new(SqlState::TOO_MANY_COLUMNS, message))
}

/// What all rows of a result have in common.
pub(super) struct Layout {
    pub(super) columns: Vec<OutputColumn>,
    /// By column.
    pub(super) formats: Vec<Format>,
    /// How values are written in text.
    pub(super) text: TextFormat,
}

/// Writes the rows of one batch.
pub(super) struct RowWriter {
    columns: Vec<Column>,
    rows: usize,
    /// A value that is being written.
    scratch: Vec<u8>,
}

enum Column {
    Text(TextColumn),
    Binary(BinaryColumn),
}

impl RowWriter {
    pub(super) fn new(batch: &RecordBatch, layout: &Layout) -> Result<Self, Error> {
        let (expected, found) = (layout.columns.len(), batch.num_columns());
        if expected != found {
            let message = format!("a result of {expected} columns has a batch of {found}");
            return Err(Error::internal(message));
        }
        let places = layout.columns.iter().zip(&layout.formats).zip(batch.columns());
        let column = |((column, format), values): ((&OutputColumn, &Format), &ArrayRef)| {
            Ok(match format {
                Format::Text => Column::Text(TextColumn::new(&column.kind, values, &layout.text)?),
                Format::Binary => Column::Binary(BinaryColumn::new(&column.kind, values)?),
            })
        };
        let columns = places.map(column).collect::<Result<_, Error>>()?;
        Ok(Self { columns, rows: batch.num_rows(), scratch: vec![] })
    }

    /// How many rows there are.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Adds rows from `from` on, up to `to` at most or until there is a piece to send; returns the
    /// next row.
    pub(super) fn write(
        &mut self,
        from: usize,
        to: usize,
        buffer: &mut BytesMut,
    ) -> Result<usize, Error> {
        let mut row = from;
        while row < to && buffer.len() < PIECE_BYTES {
            let whole = buffer.len();
            if let Err(error) = self.write_row(row, buffer) {
                // A row that is begun must not be sent.
                buffer.truncate(whole);
                return Err(error);
            }
            row += 1;
        }
        Ok(row)
    }

    fn write_row(&mut self, row: usize, buffer: &mut BytesMut) -> Result<(), Error> {
        buffer.put_u8(b'D');
        let start = buffer.len();
        buffer.put_u32(0);
        buffer.put_u16(u16::try_from(self.columns.len()).expect("the width was checked"));
        for column in &self.columns {
            column.write(row, buffer, &mut self.scratch)?;
        }
        patch_length(buffer, start, buffer.len() - start)
    }
}

impl Column {
    fn write(&self, row: usize, buffer: &mut BytesMut, scratch: &mut Vec<u8>) -> Result<(), Error> {
        match self {
            Self::Text(values) => {
                scratch.clear();
                if values.write(row, scratch) {
                    buffer.put_u32(checked_length(scratch.len())?);
                    buffer.put_slice(scratch);
                } else {
                    buffer.put_i32(NULL);
                }
            }
            Self::Binary(values) => values.write(row, buffer)?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::StringArray;
    use arrow::datatypes::{DataType, Field, Schema};

    use stillframe_sql::Type;

    use super::*;

    #[test]
    fn a_row_that_fails_is_not_begun() {
        let uuid = "00010203-0405-0607-0809-0a0b0c0d0e0f";
        let values = StringArray::from(vec![Some(uuid), None, Some("no uuid")]);
        let schema = Schema::new(vec![Field::new("u", DataType::Utf8, true)]);
        let batch = RecordBatch::try_new(Arc::new(schema), vec![Arc::new(values)]).unwrap();
        let layout = Layout {
            columns: vec![OutputColumn { name: "u".to_owned(), kind: Type::Uuid, origin: None }],
            formats: vec![Format::Binary],
            text: TextFormat::default(),
        };
        let mut writer = RowWriter::new(&batch, &layout).unwrap();
        let mut buffer = BytesMut::new();
        assert_eq!(writer.write(0, 2, &mut buffer).unwrap(), 2);
        let whole = buffer.clone();
        // D, its length, one column: 16 bytes, and NULL.
        assert_eq!(whole.len(), (1 + 4 + 2 + 4 + 16) + (1 + 4 + 2 + 4));
        assert_eq!(whole[..11], [b'D', 0, 0, 0, 26, 0, 1, 0, 0, 0, 16]);
        writer.write(2, 3, &mut buffer).unwrap_err();
        assert_eq!(buffer, whole);
    }

    #[test]
    fn a_batch_is_written_a_piece_at_a_time() {
        let long = "x".repeat(1000);
        let values = StringArray::from(vec![long.as_str(); 100]);
        let schema = Schema::new(vec![Field::new("t", DataType::Utf8, true)]);
        let batch = RecordBatch::try_new(Arc::new(schema), vec![Arc::new(values)]).unwrap();
        let layout = Layout {
            columns: vec![OutputColumn { name: "t".to_owned(), kind: Type::Text, origin: None }],
            formats: vec![Format::Text],
            text: TextFormat::default(),
        };
        let mut writer = RowWriter::new(&batch, &layout).unwrap();
        let mut buffer = BytesMut::new();
        let next = writer.write(0, 100, &mut buffer).unwrap();
        assert!((30..40).contains(&next), "{next}");
        assert!(buffer.len() < PIECE_BYTES + 2000);
    }
}
