//! A cluster whose hosts are processes: what runs in each.

mod cluster;
mod host;

pub use cluster::{Cluster, ClusterOptions};
pub use host::{HostProcess, HostProcessOptions};

/// What this process was built from.
const BUILD: &str = env!("CARGO_PKG_VERSION");
