//! Record batches as bytes: Arrow's IPC stream format, one stream for each.

use std::io::Cursor;

use arrow::error::ArrowError;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use arrow::record_batch::RecordBatch;
use bytes::Bytes;

pub(crate) fn encode(batch: &RecordBatch) -> Result<Bytes, ArrowError> {
    let mut writer = StreamWriter::try_new(Vec::new(), batch.schema_ref())?;
    writer.write(batch)?;
    Ok(writer.into_inner()?.into())
}

pub(crate) fn decode(bytes: &Bytes) -> Result<RecordBatch, ArrowError> {
    let mut batches = StreamReader::try_new(Cursor::new(bytes), None)?;
    let missing = || ArrowError::IpcError("a batch is missing".to_owned());
    batches.next().ok_or_else(missing)?
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int32Array, RecordBatchOptions, StringArray};
    use arrow::datatypes::{DataType, Field, Schema};

    use super::*;

    #[test]
    fn batches_are_what_they_were() {
        let a = Arc::new(Int32Array::from(vec![Some(1), None, Some(3)])) as _;
        let b = Arc::new(StringArray::from(vec![Some("x"), Some(""), None])) as _;
        let fields =
            vec![Field::new("a", DataType::Int32, true), Field::new("b", DataType::Utf8, true)];
        let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![a, b]).unwrap();
        let none = Arc::new(Schema::empty());
        let only_rows = RecordBatch::try_new_with_options(
            none,
            vec![],
            &RecordBatchOptions::new().with_row_count(Some(7)),
        )
        .unwrap();
        for batch in [rows.clone(), rows.slice(1, 2), rows.slice(0, 0), only_rows] {
            assert_eq!(decode(&encode(&batch).unwrap()).unwrap(), batch);
        }
    }
}
