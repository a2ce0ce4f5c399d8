//! What can go wrong inside the engine, apart from what a row does ([`RowError`]).
//!
//! [`RowError`]: stillframe_protocol::RowError

use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use stillframe_protocol::HostError;
use thiserror::Error;

/// Why the engine can't do what it was asked.
#[derive(Debug, Error)]
pub enum EngineError {
    /// A column has a type that rows can't hold.
    #[error("type {0} cannot be stored")]
    UnsupportedType(DataType),
    /// Columns aren't those that a relation has: the caller's bug.
    #[error("columns do not fit the relation: {0}")]
    WrongColumns(String),
    /// A program or an expression that makes no sense: the planner's bug.
    #[error("invalid plan: {0}")]
    InvalidPlan(String),
    /// A row is longer than 4 GiB.
    #[error("row is too long")]
    RowTooLong,
    /// Stored bytes aren't a row of their relation: our bug, or a broken disk.
    #[error("stored row is corrupt: {0}")]
    Corrupt(String),
    /// Arrow can't hold or compute it.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    /// The system refuses a thread, a socket or a directory.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// A circuit can't be built, or is broken.
    #[error(transparent)]
    Circuit(#[from] dbsp::Error),
    /// DataFusion can't build an expression.
    #[error(transparent)]
    DataFusion(#[from] DataFusionError),
}

impl From<EngineError> for HostError {
    fn from(error: EngineError) -> Self {
        // A kernel that refuses what it is to compute, before there are rows.
        if let EngineError::DataFusion(cause) = &error {
            let what = cause.find_root().strip_backtrace();
            return Self::Unsupported(format!("not supported in a materialized view: {what}"));
        }
        Self::Invalid(error.to_string())
    }
}
