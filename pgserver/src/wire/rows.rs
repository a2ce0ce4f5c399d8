//! Rows to DataRow messages, in the format that the client has asked for by column.

use arrow::array::{Array, ArrayRef};
use arrow::record_batch::RecordBatch;
use bytes::{BufMut, BytesMut};
use pgwire::messages::data::{FieldDescription, RowDescription};
use stillframe_sql::{Error, OutputColumn, SqlState, Type};

use super::binary;
use super::frontend::violation;
use super::outgoing::PIECE_BYTES;

/// How many columns a result may have, as in PostgreSQL.
const COLUMNS_MAX: usize = 1664;
/// How long a message may be.
const ROW_BYTES_MAX: usize = 0x3fff_fffe;

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

/// Writes the rows of one batch.
pub(super) struct RowWriter {
    columns: Vec<Column>,
    rows: usize,
}

struct Column {
    values: ArrayRef,
    kind: Type,
    format: Format,
}

impl RowWriter {
    pub(super) fn new(
        batch: &RecordBatch,
        columns: &[OutputColumn],
        formats: Option<&[Format]>,
    ) -> Result<Self, Error> {
        if batch.num_columns() != columns.len() {
            return Err(Error::internal(format!(
                "a result of {} columns has a batch of {}",
                columns.len(),
                batch.num_columns()
            )));
        }
        let column = |(place, column): (usize, &OutputColumn)| Column {
            values: batch.column(place).clone(),
            kind: column.kind.clone(),
            format: formats.map_or(Format::Text, |formats| formats[place]),
        };
        let columns = columns.iter().enumerate().map(column).collect();
        Ok(Self { columns, rows: batch.num_rows() })
    }

    /// How many rows there are.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Adds rows from `from` on, up to `to` at most or until there is a piece to send; returns the
    /// next row.
    pub(super) fn write(
        &self,
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

    fn write_row(&self, row: usize, buffer: &mut BytesMut) -> Result<(), Error> {
        buffer.put_u8(b'D');
        let start = buffer.len();
        buffer.put_u32(0);
        buffer.put_u16(u16::try_from(self.columns.len()).expect("the width was checked"));
        for column in &self.columns {
            column.write(row, buffer)?;
        }
        patch_length(buffer, start, buffer.len() - start)
    }
}

impl Column {
    fn write(&self, row: usize, buffer: &mut BytesMut) -> Result<(), Error> {
        if self.values.is_null(row) {
            buffer.put_i32(-1);
            return Ok(());
        }
        let start = buffer.len();
        buffer.put_u32(0);
        match self.format {
            Format::Text => {
                let text = arrow::util::display::array_value_to_string(&self.values, row)
                    .map_err(|error| Error::internal(error.to_string()))?;
                buffer.put_slice(text.as_bytes());
            }
            Format::Binary => binary::write(&self.kind, &self.values, row, buffer)?,
        }
        patch_length(buffer, start, buffer.len() - start - 4)
    }
}

/// Writes a length into the four bytes that were left for it.
pub(super) fn patch_length(
    buffer: &mut BytesMut,
    start: usize,
    length: usize,
) -> Result<(), Error> {
    if length > ROW_BYTES_MAX {
        let message = "a row is too long to be sent";
        return Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    let length = u32::try_from(length).expect("a message has less than 1 GiB");
    buffer[start..start + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}
