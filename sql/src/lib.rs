//! SQL text to statements, plans and answers.
//!
//! A [`Session`] takes statements and answers with rows, a completion, or a COPY to be fed. It
//! knows the coordinator and the hosts by their contracts only, and nothing of the wire or of dbsp.
//!
//! Modules, in the order of a statement's life: `parser` makes [`Statement`]s of text; `session`
//! dispatches them; `frame` holds the lease a statement reads under, with the `catalog` of its
//! step; `query` plans and runs what reads, through `scan`; `view` compiles a query into a
//! maintained plan; `ddl`, `dml` and `copy` write.

mod activity;
mod advisory;
pub mod binary;
mod carrier;
mod catalog;
mod copy;
mod database;
mod ddl;
mod dml;
mod error;
mod expression;
mod facts;
#[cfg(test)]
mod fake;
mod frame;
mod functions;
mod names;
mod parser;
mod progress;
mod query;
mod resolve;
mod scan;
pub mod scram;
mod sequences;
mod session;
mod settings;
mod signal;
mod stack;
mod system;
mod text;
mod types;
mod view;
mod write;

pub use catalog::{
    Action, Catalog, Column, Constraint, ConstraintKind, Deferral, Generated, Relation,
    RelationKind, Role, Schema, Sequence,
};
pub use copy::{CopyIn, CopyOut};
pub use database::{
    Checker, Database, Explainer, NAME as DATABASE_NAME, OWNER, is_name as is_database_name,
};
pub use error::{Error, SqlState, Subject};
pub use frame::Frame;
pub use functions::functions;
pub use parser::Statement;
pub use progress::{Committing, Progress};
pub use session::{
    IdleLimit, Notice, OutputColumn, Parameter, Prepared, Request, Response, Rows, Session,
    TransactionStatus,
};
pub use settings::SERVER_VERSION;
pub use signal::Notification;
pub use text::{Excess, TextColumn, TextDecoder, TextFormat, TimeZone};
pub use types::Type;
