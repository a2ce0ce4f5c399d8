//! All rows of a partition, and what they come to.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::DataFusionError;
use dbsp::dynamic::{DataTrait, DynUnit, Erase, WeightTrait};
use dbsp::operator::Aggregator;
use dbsp::trace::Cursor;
use dbsp::{Timestamp, ZWeight};
use stillframe_protocol::RowError;

use super::aggregates::Aggregates;
use super::limit::FirstRows;
use super::windows::Windows;
use crate::circuit::aggregate::Never;
use crate::circuit::error_entry::error_row;
use crate::row::{Codec, Row, RowBuffer};
use crate::{EngineError, row_error};

/// In the place of a row: there is a partition, whether it has rows or not. No field starts so.
pub(super) const PRESENT: &[u8] = &[0xFE];

/// Rows that a partition may have; they are held in memory at once while it is computed.
const ROWS_MAX: usize = 1 << 26;

/// Gathers the rows of a partition and computes what they come to.
#[derive(Clone)]
pub(super) struct Gather {
    plan: Arc<Plan>,
}

struct Plan {
    /// Of the stored rows.
    codec: Codec,
    /// The fields that are read.
    decoded: Vec<usize>,
    schema: SchemaRef,
    kernel: Kernel,
}

/// What is computed of a partition.
pub(super) enum Kernel {
    Aggregates(Aggregates),
    Windows(Windows),
    Limit(FirstRows),
}

/// The rows of a partition, in the order of their bytes.
pub(super) struct Partition<'a> {
    /// As they are stored. Equal ones are neighbours.
    pub(super) rows: Vec<&'a [u8]>,
    /// What is read of them.
    pub(super) batch: RecordBatch,
}

impl Gather {
    pub(super) fn new(
        codec: Codec,
        decoded: Vec<usize>,
        schema: SchemaRef,
        kernel: Kernel,
    ) -> Self {
        Self { plan: Arc::new(Plan { codec, decoded, schema, kernel }) }
    }
}

impl Plan {
    fn output(&self, rows: &RowBuffer, counts: &[ZWeight]) -> Result<Option<Row>, RowError> {
        let partition = self.partition(rows, counts)?;
        let failed = |error: DataFusionError| row_error(&error);
        match &self.kernel {
            Kernel::Aggregates(aggregates) => aggregates.row(&partition).map(Some).map_err(failed),
            Kernel::Windows(windows) => windows.sheet(&partition).map_err(failed)?.into_row(),
            Kernel::Limit(limit) => limit.sheet(&partition).map_err(failed)?.into_row(),
        }
    }

    fn partition<'a>(
        &self,
        rows: &'a RowBuffer,
        counts: &[ZWeight],
    ) -> Result<Partition<'a>, RowError> {
        let mut total = 0usize;
        for count in counts {
            let Ok(count) = usize::try_from(*count) else {
                return Err(internal("a stored row is there less often than never"));
            };
            total = total.saturating_add(count);
        }
        if total > ROWS_MAX {
            return Err(too_many(format!("a group or partition has more than {ROWS_MAX} rows")));
        }
        let mut repeated = Vec::with_capacity(total);
        for (row, count) in rows.rows().into_iter().zip(counts) {
            repeated.extend(std::iter::repeat_n(row, *count as usize));
        }
        let columns = self.codec.decode(&repeated, &self.decoded).map_err(|error| match error {
            EngineError::Arrow(error) => too_many(error.to_string()),
            error => internal(&error.to_string()),
        })?;
        let options = RecordBatchOptions::new().with_row_count(Some(total));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .map_err(|error| internal(&error.to_string()))?;
        Ok(Partition { rows: repeated, batch })
    }
}

pub(super) fn internal(message: &str) -> RowError {
    RowError { sqlstate: "XX000".to_owned(), message: message.to_owned() }
}

pub(super) fn too_many(message: String) -> RowError {
    RowError { sqlstate: "54000".to_owned(), message }
}

impl<T: Timestamp> Aggregator<Row, T, ZWeight> for Gather {
    type Accumulator = Row;
    type Semigroup = Never;
    type Output = Row;

    fn aggregate<K, R>(&self, cursor: &mut dyn Cursor<K, DynUnit, T, R>) -> Option<Row>
    where
        K: DataTrait + ?Sized,
        R: WeightTrait + ?Sized,
        Row: Erase<K>,
        ZWeight: Erase<R>,
    {
        let mut rows = RowBuffer::default();
        let mut counts: Vec<ZWeight> = vec![];
        let mut is_present = false;
        while cursor.key_valid() {
            let mut total: ZWeight = 0;
            cursor.map_times(&mut |_, weight| {
                // SAFETY: the cursor's weights are of this type.
                total += *unsafe { weight.downcast::<ZWeight>() };
            });
            if total != 0 {
                // SAFETY: the cursor's keys are rows.
                let row: &Row = unsafe { cursor.key().downcast() };
                if row.as_bytes() == PRESENT {
                    is_present = true;
                } else {
                    rows.push(row.as_bytes(), &[]);
                    counts.push(total);
                }
            }
            cursor.step_key();
        }
        if counts.is_empty() && !is_present {
            return None;
        }
        self.plan.output(&rows, &counts).unwrap_or_else(|error| Some(error_row(&error)))
    }

    fn finalize(&self, row: Row) -> Row {
        row
    }
}
