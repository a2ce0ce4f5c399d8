//! Stillframe in a Rust program: a database that keeps views up to date, with the PostgreSQL
//! server in front of it.
//!
//! [`Database::open`] starts a whole cluster in this process. Statements go in by
//! [`Database::execute`] and [`Database::query`], or from Postgres clients by [`Database::serve`];
//! [`serve`] is for one that was assembled from other parts. [`Cluster`] and [`HostProcess`] are the
//! parts of one whose hosts are processes.

mod access;
mod database;
mod demo;
mod options;
mod page;
mod processes;
mod server;
mod table;
mod wire;

pub use access::{Access, AccessError};
pub use database::Database;
pub use datafusion;
pub use demo::{DEMO_SCHEMA, stream};
pub use options::Options;
pub use processes::{Cluster, ClusterOptions, HostListeners, HostProcess, HostProcessOptions};
pub use server::serve;
pub use stillframe_engine::EngineError;
pub use stillframe_remote::{
    AUTHORITY_FILE, AUTHORITY_KEY_FILE, CERTIFICATE_FILE, CertificatesError, End, KEY_FILE,
    NODE_NAME, Security, SecurityError, make_certificates,
};
pub use stillframe_sql::{Error, Frame, SqlState};
