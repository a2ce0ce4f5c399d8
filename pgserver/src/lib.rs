//! Stillframe in a Rust program: the cluster, its SQL, and the Postgres server in front of it.

mod server;
mod wire;

pub use datafusion;
pub use server::serve;
