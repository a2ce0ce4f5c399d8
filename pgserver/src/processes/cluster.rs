//! The process of the coordinator, which serves Postgres clients too.

use std::io;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use stillframe_coordinator as coordinator;
use stillframe_coordinator::cluster::Requirements;
use stillframe_protocol::Epoch;
use stillframe_remote::{Places, Security, serve_registrations};
use stillframe_sql as sql;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::BUILD;
use crate::{Access, database, page, server};

/// A host that wasn't heard of for so long may lose its place to one that has none.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// What a cluster of processes is to be.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// Its name.
    pub cluster: String,
    /// How many hosts it has.
    pub hosts: NonZeroU32,
    /// How many workers each host runs.
    pub workers: NonZeroU32,
    /// How long a statement waits for hosts that are missing or silent.
    pub patience: Duration,
    /// How connections between its processes are secured.
    pub security: Security,
}

/// The coordinator of hosts that are processes, with SQL in front. It ends when it is dropped.
#[derive(Debug)]
pub struct Cluster {
    front: Arc<sql::Database>,
    registrations: JoinHandle<()>,
}

impl Cluster {
    /// Begins to take in hosts. Must be called inside a Tokio runtime, on which it runs.
    pub fn open(options: ClusterOptions, hosts: TcpListener) -> Self {
        let workers = options.workers.get();
        let requirements = Requirements {
            cluster: options.cluster,
            build: BUILD.to_owned(),
            hosts: options.hosts.get(),
            workers,
            silence_max: SILENCE_MAX,
        };
        let settings = coordinator::Options {
            // Whatever a coordinator before this one has made came earlier.
            epoch: Epoch(seconds_since_1970()),
            patience: options.patience,
            online: Some(coordinator::Online::default()),
            ..coordinator::Options::default()
        };
        let (coordinator, registrar) = coordinator::serve(settings, requirements);
        let places = Places::new(options.hosts.get());
        let front = database::front(&coordinator, places.hosts(), workers);
        let register = move |registration, host| {
            let registrar = registrar.clone();
            async move { registrar.register(registration, host).await }
        };
        let ClusterOptions { security, patience, .. } = options;
        let registrations =
            tokio::spawn(serve_registrations(hosts, security, places, patience, register));
        Self { front, registrations }
    }

    /// Serves Postgres clients until `stop` ends, and then ends their connections.
    pub async fn serve(
        &self,
        listener: TcpListener,
        access: Access,
        stop: impl Future<Output = ()>,
    ) {
        server::serve(listener, Arc::clone(&self.front), access, stop).await;
    }

    /// Serves a page about the cluster, and `/metrics` for Prometheus, for as long as this is polled.
    ///
    /// # Errors
    ///
    /// If the listener fails.
    pub async fn serve_page(&self, listener: TcpListener) -> io::Result<()> {
        page::serve(listener, Arc::clone(&self.front)).await
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.registrations.abort();
    }
}

fn seconds_since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs())
}
