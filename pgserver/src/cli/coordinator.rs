//! `stillframe coordinator`.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use stillframe::{Cluster, ClusterOptions, Options};

use super::access::Clients;
use super::listen::{Peers, listen, local_address, must_be_loopback};
use super::{PG_LISTEN, Ready, ServeError, announce, listen_for_page, signals, write_ready};

/// Where hosts register unless something else is said.
pub(super) const LISTEN: &str = "127.0.0.1:5434";
/// The name of a cluster that was given none.
pub(super) const CLUSTER: &str = "stillframe";

/// A cluster whose hosts are processes.
#[derive(Debug, Args)]
pub(super) struct Coordinate {
    /// How many hosts share the work.
    #[arg(long, default_value = "1", value_name = "N")]
    hosts: NonZeroU32,
    /// How many workers each host runs [default: the number of processors].
    #[arg(long, value_name = "W")]
    workers: Option<NonZeroU32>,
    /// Where Postgres clients are served; port 0 is any that is free.
    #[arg(long, default_value = PG_LISTEN, value_name = "ADDRESS")]
    pg_listen: String,
    #[command(flatten)]
    clients: Clients,
    /// Where a page about the cluster is served, and /metrics for Prometheus [default: nowhere].
    #[arg(long, value_name = "ADDRESS")]
    http_listen: Option<String>,
    /// Where hosts register; port 0 is any that is free.
    #[arg(long, default_value = LISTEN, value_name = "ADDRESS")]
    listen: String,
    /// The cluster's name: hosts of another are refused.
    #[arg(long, default_value = CLUSTER, value_name = "NAME")]
    cluster: String,
    /// How many seconds a statement waits for hosts that are missing or silent.
    #[arg(long, default_value = "8", value_name = "SECONDS")]
    patience: NonZeroU32,
    /// Write the addresses to this file, as JSON, once clients and hosts can connect.
    #[arg(long, value_name = "F")]
    ready_file: Option<PathBuf>,
    #[command(flatten)]
    peers: Peers,
}

impl Coordinate {
    pub(super) fn checks(&self) -> Vec<Result<(), ServeError>> {
        vec![
            self.clients.allows(&self.pg_listen),
            self.clients.access().map(drop),
            self.http_listen.as_deref().map_or(Ok(()), must_be_loopback),
            self.peers.allows(&self.listen),
            self.peers.security().map(drop),
        ]
    }

    pub(super) async fn run(self) -> Result<(), ServeError> {
        let stop = signals().map_err(ServeError::Signals)?;
        let access = self.clients.access()?;
        let listener = listen(&self.pg_listen).await?;
        let registering = listen(&self.listen).await?;
        let (pg, hosts) = (local_address(&listener)?, local_address(&registering)?);
        let (page, http) = listen_for_page(self.http_listen.as_deref()).await?;
        let options = ClusterOptions {
            cluster: self.cluster,
            hosts: self.hosts,
            workers: self.workers.unwrap_or(Options::default().workers),
            patience: Duration::from_secs(u64::from(self.patience.get())),
            security: self.peers.security()?,
        };
        tracing::info!(hosts = options.hosts, workers = options.workers, "waiting for hosts");
        let cluster = Cluster::open(options, registering);
        if let Some(file) = &self.ready_file {
            write_ready(file, &Ready { pg, http, hosts: Some(hosts) })
                .map_err(|error| ServeError::ReadyFile(file.clone(), error))?;
        }
        announce(pg);
        let page = async {
            match page {
                Some(page) => cluster.serve_page(page).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = cluster.serve(listener, access, stop) => {}
            ended = page => ended.map_err(ServeError::Page)?,
        }
        tracing::info!("stopping");
        Ok(())
    }
}
