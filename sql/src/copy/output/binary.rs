//! Rows in COPY's binary format.

use arrow::record_batch::RecordBatch;
use bytes::{BufMut, BytesMut};
use futures::StreamExt;
use futures::stream::{self, BoxStream};

use crate::binary::BinaryColumn;
use crate::copy::tuples::{END, SIGNATURE};
use crate::{Error, OutputColumn, SqlState};

/// The rows of batches. The header stands before the first, and the trailer is the last: readers
/// expect both of them there.
pub(super) fn rows(
    columns: Vec<OutputColumn>,
    batches: BoxStream<'static, Result<RecordBatch, Error>>,
) -> BoxStream<'static, Result<Vec<Vec<u8>>, Error>> {
    let parts = batches.map(Some).chain(stream::iter([None]));
    let mut header = Some(header());
    let rows = parts.map(move |part| {
        let mut rows = match part {
            Some(batch) => rows_of(&columns, &batch?)?,
            None => vec![END.to_be_bytes().to_vec()],
        };
        if let Some(first) = rows.first_mut()
            && let Some(header) = header.take()
        {
            first.splice(..0, header);
        }
        Ok(rows)
    });
    rows.boxed()
}

fn header() -> Vec<u8> {
    let mut header = SIGNATURE.to_vec();
    // No flags, and nothing after them.
    header.extend([0; 8]);
    header
}

fn rows_of(columns: &[OutputColumn], batch: &RecordBatch) -> Result<Vec<Vec<u8>>, Error> {
    let count = i16::try_from(columns.len())
        .map_err(|_| Error::new(SqlState::TOO_MANY_COLUMNS, "too many columns"))?;
    let values = columns.iter().zip(batch.columns());
    let values = values
        .map(|(column, values)| BinaryColumn::new(&column.kind, values))
        .collect::<Result<Vec<_>, _>>()?;
    let mut rows = Vec::with_capacity(batch.num_rows());
    let mut buffer = BytesMut::new();
    for row in 0..batch.num_rows() {
        buffer.clear();
        buffer.put_i16(count);
        values.iter().try_for_each(|values| values.write(row, &mut buffer))?;
        rows.push(buffer.to_vec());
    }
    Ok(rows)
}
