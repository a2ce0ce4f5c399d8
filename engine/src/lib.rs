//! One host's engine: circuits, frames and scans. The only crate that names dbsp.

mod circuit;
mod error;
mod expression;
mod row;
mod weight;

pub use circuit::{Circuit, RelationOutput, ShardSnapshot, Snapshot, TableInput, construct};
pub use error::EngineError;
pub use expression::{Functions, compile, row_error};
pub use row::{Codec, FieldOffsets, Row, RowBuffer};
