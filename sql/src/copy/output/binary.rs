//! Rows in COPY's binary format.

use arrow::array::Array;
use arrow::record_batch::RecordBatch;
use bytes::{BufMut, BytesMut};
use futures::StreamExt;
use futures::stream::{self, BoxStream};

use crate::binary::{patch_length, write};
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
    let mut rows = Vec::with_capacity(batch.num_rows());
    let mut buffer = BytesMut::new();
    for row in 0..batch.num_rows() {
        buffer.clear();
        buffer.put_i16(count);
        for (column, values) in columns.iter().zip(batch.columns()) {
            if values.is_null(row) {
                buffer.put_i32(-1);
                continue;
            }
            let start = buffer.len();
            buffer.put_u32(0);
            write(&column.kind, values, row, &mut buffer)?;
            let length = buffer.len() - start - 4;
            patch_length(&mut buffer, start, length)?;
        }
        rows.push(buffer.to_vec());
    }
    Ok(rows)
}
