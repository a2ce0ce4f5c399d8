//! Record batches on the way: as Arrow Flight's messages, and as bytes inside of another message.
//!
//! In a stream of Flight each schema begins the batches of one kind. Marks of ours, in messages that
//! are nothing else, say how a stream begins and ends.

use std::collections::HashMap;
use std::io::Cursor;

use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use arrow::ipc::{MessageHeader, root_as_message};
use arrow::record_batch::RecordBatch;
use arrow_flight::FlightData;
use arrow_flight::utils::{batches_to_flight_data, flight_data_to_arrow_batch};
use serde::de::DeserializeOwned;

use crate::codec::unpack;

/// A batch as bytes: Arrow's IPC stream format.
pub(crate) fn encode(batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    let mut writer = StreamWriter::try_new(Vec::new(), batch.schema_ref())?;
    writer.write(batch)?;
    writer.into_inner()
}

/// The batch of these bytes.
pub(crate) fn decode(bytes: &[u8]) -> Result<RecordBatch, ArrowError> {
    let mut batches = StreamReader::try_new(Cursor::new(bytes), None)?;
    let missing = || ArrowError::IpcError("a batch is missing".to_owned());
    batches.next().ok_or_else(missing)?
}

/// Flight's messages for batches that follow each other.
#[derive(Debug, Default)]
pub(crate) struct Sender {
    schema: Option<SchemaRef>,
}

impl Sender {
    /// The messages of a batch, with its schema in front if it is another one than before.
    pub(crate) fn send(&mut self, batch: RecordBatch) -> Result<Vec<FlightData>, ArrowError> {
        let schema = batch.schema();
        let mut messages = batches_to_flight_data(&schema, vec![batch])?;
        if self.schema.as_ref() == Some(&schema) {
            messages.remove(0);
        }
        self.schema = Some(schema);
        Ok(messages)
    }
}

/// What a message of Flight has brought.
#[derive(Debug)]
pub(crate) enum Received<Mark> {
    /// What follows is of another kind.
    Schema,
    /// Rows.
    Batch(RecordBatch),
    /// A mark of ours.
    Mark(Mark),
}

/// Understands Flight's messages, in order.
#[derive(Debug, Default)]
pub(crate) struct Receiver {
    schema: Option<SchemaRef>,
}

impl Receiver {
    pub(crate) fn receive<Mark: DeserializeOwned>(
        &mut self,
        message: FlightData,
    ) -> Result<Received<Mark>, ArrowError> {
        let malformed = |error: String| ArrowError::IpcError(error);
        if message.data_header.is_empty() {
            let mark = unpack(&message.app_metadata).map_err(|e| malformed(e.to_string()))?;
            return Ok(Received::Mark(mark));
        }
        let header = root_as_message(&message.data_header).map_err(|e| malformed(e.to_string()))?;
        if header.header_type() == MessageHeader::Schema {
            self.schema = Some(SchemaRef::new(Schema::try_from(&message)?));
            return Ok(Received::Schema);
        }
        let schema =
            self.schema.clone().ok_or_else(|| malformed("rows of no schema".to_owned()))?;
        Ok(Received::Batch(flight_data_to_arrow_batch(&message, schema, &HashMap::new())?))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int32Array, RecordBatchOptions, StringArray};
    use arrow::datatypes::{DataType, Field};

    use super::*;

    fn batches() -> [RecordBatch; 4] {
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
        [rows.clone(), rows.slice(1, 2), rows.slice(0, 0), only_rows]
    }

    #[test]
    fn batches_are_what_they_were() {
        for batch in batches() {
            assert_eq!(decode(&encode(&batch).unwrap()).unwrap(), batch);
        }
    }

    #[test]
    fn streams_of_batches_are_what_they_were() {
        let (mut sender, mut receiver) = (Sender::default(), Receiver::default());
        let mut received = vec![];
        let mut schemas = 0;
        for message in batches().into_iter().flat_map(|batch| sender.send(batch).unwrap()) {
            match receiver.receive::<()>(message).unwrap() {
                Received::Schema => schemas += 1,
                Received::Batch(batch) => received.push(batch),
                Received::Mark(()) => unreachable!("there is none"),
            }
        }
        assert_eq!((received.as_slice(), schemas), (batches().as_slice(), 2));
    }
}
