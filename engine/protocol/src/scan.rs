//! Reading one shard of one relation at one step.

use arrow::record_batch::RecordBatch;
use futures::stream::BoxStream;

use crate::{Epoch, Expression, HostError, RelationId, Step};

/// Asks a host for the rows of one of its shards.
///
/// The order of work is: keys, filters, limit, projection. Filters and projection speak of the
/// relation's stored columns.
#[derive(Clone, Debug)]
pub struct ScanRequest {
    /// The epoch of the lease.
    pub epoch: Epoch,
    /// The leased step.
    pub step: Step,
    /// Which relation.
    pub relation: RelationId,
    /// Which of the host's workers, from 0.
    pub worker: u32,
    /// Only rows whose leading stored columns equal a row of this batch. The batch has as many
    /// columns as the part of the primary key that is known, of the stored types; a key with a NULL
    /// meets nothing. Legal for tables with a primary key only.
    pub keys: Option<RecordBatch>,
    /// Boolean expressions that must all be true.
    pub filters: Vec<Expression>,
    /// At most so many rows.
    pub limit: Option<usize>,
    /// Which columns to return, in this order. With none, batches only have a number of rows.
    pub projection: Vec<usize>,
    /// About how many rows a batch should have.
    pub batch_rows: usize,
}

/// A piece of a scan's answer.
#[derive(Clone, Debug)]
pub enum ScanPart {
    /// Some rows.
    Batch(RecordBatch),
    /// The end: nothing is missing.
    End {
        /// How many rows were sent.
        rows: u64,
    },
}

/// A scan's answer. It ends with [`ScanPart::End`] or an error; whoever reads it must treat any
/// other end as a failure. To drop it stops the scan.
pub type ScanStream = BoxStream<'static, Result<ScanPart, HostError>>;
