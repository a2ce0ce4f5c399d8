//! One host's engine: circuits, frames and scans. The only crate that names dbsp.
//!
//! [`LocalHost`] is the crate's face: it is driven through [`stillframe_protocol::Host`] and knows
//! nothing of leases, SQL or clients.

mod check;
mod circuit;
pub mod cluster;
mod engine;
mod error;
mod exchange;
mod expression;
mod frames;
mod host;
mod live;
mod row;
mod scan;
mod sequence;
mod staging;
mod state;
mod storage;
mod weight;

pub use check::check;
pub use circuit::{
    Circuit, RelationOutput, ShardSnapshot, Snapshot, TableInput, construct, explain,
};
pub use error::EngineError;
pub use exchange::{Duplex, ExchangeOptions, LostTasks, Secure};
pub use expression::{Functions, compile, row_error};
pub use host::{HostOptions, LocalHost};
pub use row::{Codec, FieldOffsets, Row, RowBuffer};

/// The allocator that dbsp is made for; whoever builds a program may want it.
pub use dbsp::mimalloc::MiMalloc as Allocator;
