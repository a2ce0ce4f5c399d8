//! A cluster whose hosts are processes: what runs in each.

mod cluster;
mod host;

pub use cluster::{Cluster, ClusterOptions};
pub use host::{HostListeners, HostProcess, HostProcessOptions};

/// What this process was built from.
const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), "-", env!("STILLFRAME_SOURCES"));
