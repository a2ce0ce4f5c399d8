//! The contract of a host.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    Activation, Command, Epoch, Incarnation, RelationId, Report, Retention, ScanRequest,
    ScanStream, Shard, Staging, Step, TransactionId,
};

/// A process, or a part of one, that runs some of the engine's workers.
///
/// All calls are idempotent: who lost an answer asks again.
#[async_trait]
pub trait Host: Send + Sync + fmt::Debug {
    /// Joins an epoch.
    async fn activate(&self, activation: Activation) -> Result<Report, HostError>;

    /// Executes a command, or waits for its execution if it is under way, and reports when it is
    /// done. To drop the future doesn't stop the execution.
    async fn execute(&self, command: Arc<Command>) -> Result<Report, HostError>;

    /// Learns that its epoch has ended, or that another process has its place: the process owes to
    /// replace itself, if it is this incarnation, and to register fresh. A host without a process
    /// of its own has nothing to do: its coordinator never asks.
    async fn retire(&self, incarnation: Incarnation, reason: String) -> Result<(), HostError> {
        let _ = (incarnation, reason);
        Ok(())
    }

    /// Learns which frames must be kept.
    async fn retain(&self, epoch: Epoch, retention: Retention) -> Result<(), HostError>;

    /// Holds changes until their transaction enters a step.
    ///
    /// The changes are checked here (columns, types), so that no command can fail for them.
    async fn stage(&self, staging: Staging) -> Result<(), HostError>;

    /// Forgets what a transaction has staged.
    async fn unstage(&self, epoch: Epoch, transaction: TransactionId) -> Result<(), HostError>;

    /// Reads a shard. [`HostError::FrameGone`] if the step isn't kept; never another step's rows.
    async fn scan(&self, request: ScanRequest) -> Result<ScanStream, HostError>;

    /// The errors that rows of a view raise on this host's shards at a step, some of them if there
    /// are many; none means that the host's part of the view is right.
    async fn view_errors(
        &self,
        epoch: Epoch,
        step: Step,
        view: RelationId,
    ) -> Result<Vec<RowError>, HostError>;

    /// What the host's part of each relation amounts to at a step.
    async fn statistics(&self, epoch: Epoch, step: Step) -> Result<Statistics, HostError>;
}

/// Why a host didn't do what it was asked.
#[derive(Clone, Debug, Error, Serialize, Deserialize)]
pub enum HostError {
    /// The frame isn't kept: take a new lease.
    #[error("host no longer has step {0}")]
    FrameGone(Step),
    /// The caller or the host is of another epoch: start again with a new lease.
    #[error("host is part of epoch {current:?}, asked for epoch {asked}")]
    WrongEpoch {
        /// The caller's.
        asked: Epoch,
        /// The host's, if it has joined one.
        current: Option<Epoch>,
    },
    /// No such relation in that frame: plan again with the frame's catalog.
    #[error("relation {0} is not part of the step")]
    UnknownRelation(RelationId),
    /// A row makes an expression fail; the user's doing.
    #[error("{0}")]
    Row(RowError),
    /// The engine doesn't know how to do it; the user's doing.
    #[error("{0}")]
    Unsupported(String),
    /// The request makes no sense: our bug.
    #[error("{0}")]
    Invalid(String),
    /// The engine has failed and the host answers nothing any more.
    #[error("engine has failed: {0}")]
    Failed(String),
    /// The host can't be reached.
    #[error("host cannot be reached: {0}")]
    Unreachable(String),
}

/// An error that a row makes an expression raise.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RowError {
    /// Five characters.
    pub sqlstate: String,
    /// In PostgreSQL's words.
    pub message: String,
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RowError {}

/// What a host's part of each relation amounts to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistics {
    /// By relation and shard.
    pub relations: Vec<RelationStatistics>,
    /// The steps whose frames the host keeps, ascending.
    pub frames: Vec<Step>,
}

/// What one shard of a relation amounts to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelationStatistics {
    /// The relation.
    pub relation: RelationId,
    /// The shard.
    pub shard: Shard,
    /// Entries in its batches: the number of its rows, plus what isn't merged away yet.
    pub entries: u64,
}
