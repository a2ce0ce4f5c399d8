//! What is said between processes.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use stillframe_protocol::{
    Activation, Changes, Command, CoordinatorError, Epoch, Expression, HostError, Incarnation,
    Registration, RelationId, Report, Retention, RowError, ScanRequest, Staging, Standing,
    Statistics, Step, TransactionId,
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

/// The answer to an [`Identity`], which is the first message of a connection to a host.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Greeting {
    /// It is the one that is meant.
    Welcome,
    /// It is this one.
    Another(Identity),
}

/// What a host is asked.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    Activate(Activation),
    Execute(Arc<Command>),
    Retire {
        incarnation: Incarnation,
        reason: String,
    },
    Retain {
        epoch: Epoch,
        retention: Retention,
    },
    /// With the rows of each change.
    Stage(StagingHead),
    Unstage {
        epoch: Epoch,
        transaction: TransactionId,
    },
    /// With the keys, if there are any.
    Scan(ScanHead),
    ViewErrors {
        epoch: Epoch,
        step: Step,
        view: RelationId,
    },
    Statistics {
        epoch: Epoch,
        step: Step,
    },
}

/// What a host answers. A scan is answered by `Done` when it has begun, any number of batches, and
/// `End`; an error may take the place of any of them.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    Done,
    Report(Report),
    RowErrors(Vec<RowError>),
    Statistics(Statistics),
    /// With the batch.
    Batch,
    End {
        rows: u64,
    },
    Failed(HostError),
}

/// Sent by the process of a host to the coordinator.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Register {
    pub(crate) registration: Registration,
    /// Where the process is reached.
    pub(crate) address: SocketAddr,
}

/// The answer to [`Register`].
pub(crate) type Registered = Result<Standing, CoordinatorError>;

/// [`Staging`] without the rows.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StagingHead {
    epoch: Epoch,
    transaction: TransactionId,
    sequence: u64,
    changes: Vec<(RelationId, Vec<i64>)>,
}

/// [`ScanRequest`] without the keys.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ScanHead {
    epoch: Epoch,
    step: Step,
    relation: RelationId,
    worker: u32,
    filters: Vec<Expression>,
    limit: Option<usize>,
    projection: Vec<usize>,
    batch_rows: usize,
}

impl StagingHead {
    pub(crate) fn split(staging: Staging) -> Result<(Self, Vec<Bytes>), HostError> {
        let Staging { epoch, transaction, sequence, changes } = staging;
        let pieces = changes.iter().map(|changes| batches::encode(&changes.rows));
        let pieces = pieces.collect::<Result<_, _>>().map_err(invalid)?;
        let changes = changes.into_iter().map(|c| (c.relation, c.weights)).collect();
        Ok((Self { epoch, transaction, sequence, changes }, pieces))
    }

    pub(crate) fn join(self, pieces: &[Bytes]) -> Result<Staging, HostError> {
        let Self { epoch, transaction, sequence, changes } = self;
        if changes.len() != pieces.len() {
            return Err(invalid("changes without their rows"));
        }
        let changes = changes.into_iter().zip(pieces).map(|((relation, weights), rows)| {
            let rows = batches::decode(rows).map_err(invalid)?;
            Ok(Changes { relation, rows, weights })
        });
        let changes = changes.collect::<Result<_, HostError>>()?;
        Ok(Staging { epoch, transaction, sequence, changes })
    }
}

impl ScanHead {
    pub(crate) fn split(request: ScanRequest) -> Result<(Self, Vec<Bytes>), HostError> {
        let ScanRequest { epoch, step, relation, worker, keys, .. } = request;
        let ScanRequest { filters, limit, projection, batch_rows, .. } = request;
        let keys = keys.iter().map(batches::encode);
        let keys = keys.collect::<Result<_, _>>().map_err(invalid)?;
        let head = Self { epoch, step, relation, worker, filters, limit, projection, batch_rows };
        Ok((head, keys))
    }

    pub(crate) fn join(self, pieces: &[Bytes]) -> Result<ScanRequest, HostError> {
        let Self { epoch, step, relation, worker, filters, limit, projection, batch_rows } = self;
        let keys = pieces.first().map(batches::decode).transpose().map_err(invalid)?;
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
