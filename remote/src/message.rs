//! What is said between processes.

use std::net::SocketAddr;

use arrow::record_batch::RecordBatch;
use serde::{Deserialize, Serialize};
use stillframe_protocol::{
    Changes, CoordinatorError, Epoch, Expression, HostError, Incarnation, Registration, RelationId,
    ScanRequest, Staging, Standing, Step, Table, TransactionId,
};

use crate::batches;

/// The process that is meant, and what it must be to be understood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The cluster's name.
    pub cluster: String,
    /// What it was built from.
    pub build: String,
    /// The life of the process.
    pub incarnation: Incarnation,
}

/// Where a process is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addresses {
    /// By requests.
    pub control: SocketAddr,
    /// With rows.
    pub bulk: SocketAddr,
}

/// The answer to an [`Identity`], which is the first message of a connection to a host's control.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Greeting {
    /// It is the one that is meant.
    Welcome,
    /// It is this one.
    Another(Identity),
}

/// Sent by the process of a host to the coordinator.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Register {
    pub(crate) registration: Registration,
    pub(crate) addresses: Addresses,
}

/// The answer to [`Register`].
pub(crate) type Registered = Result<Standing, CoordinatorError>;

/// [`Staging`] without the rows, which follow in the order of the changes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StagingHead {
    epoch: Epoch,
    transaction: TransactionId,
    sequence: u64,
    changes: Vec<(RelationId, Vec<i64>)>,
    tables: Vec<Table>,
}

/// [`ScanRequest`], with the keys as bytes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ScanHead {
    epoch: Epoch,
    step: Step,
    relation: RelationId,
    worker: u32,
    #[serde(with = "serde_bytes")]
    keys: Option<Vec<u8>>,
    filters: Vec<Expression>,
    limit: Option<usize>,
    projection: Vec<usize>,
    batch_rows: usize,
}

impl StagingHead {
    pub(crate) fn split(staging: Staging) -> (Self, Vec<RecordBatch>) {
        let Staging { epoch, transaction, sequence, changes, tables } = staging;
        let (changes, rows) =
            changes.into_iter().map(|c| ((c.relation, c.weights), c.rows)).unzip();
        (Self { epoch, transaction, sequence, changes, tables }, rows)
    }

    pub(crate) fn join(self, rows: Vec<RecordBatch>) -> Result<Staging, HostError> {
        let Self { epoch, transaction, sequence, changes, tables } = self;
        if changes.len() != rows.len() {
            return Err(invalid("changes without their rows"));
        }
        let changes = changes.into_iter().zip(rows);
        let changes =
            changes.map(|((relation, weights), rows)| Changes { relation, rows, weights });
        Ok(Staging { epoch, transaction, sequence, changes: changes.collect(), tables })
    }
}

impl ScanHead {
    pub(crate) fn split(request: ScanRequest) -> Result<Self, HostError> {
        let ScanRequest { epoch, step, relation, worker, keys, .. } = request;
        let ScanRequest { filters, limit, projection, batch_rows, .. } = request;
        let keys = keys.as_ref().map(batches::encode).transpose().map_err(invalid)?;
        Ok(Self { epoch, step, relation, worker, keys, filters, limit, projection, batch_rows })
    }

    pub(crate) fn join(self) -> Result<ScanRequest, HostError> {
        let Self { epoch, step, relation, worker, keys, filters, limit, projection, batch_rows } =
            self;
        let keys = keys.as_deref().map(batches::decode).transpose().map_err(invalid)?;
        Ok(ScanRequest {
            epoch,
            step,
            relation,
            worker,
            keys,
            filters,
            limit,
            projection,
            batch_rows,
        })
    }
}

pub(crate) fn invalid(error: impl ToString) -> HostError {
    HostError::Invalid(error.to_string())
}
