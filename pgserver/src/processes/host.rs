//! The process of a host.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use stillframe_engine::{EngineError, Functions, HostOptions, LocalHost};
use stillframe_protocol::{Epoch, Host, HostId, Incarnation, Registration};
use stillframe_remote::{End, Identity, Member, join, serve};
use stillframe_sql as sql;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::BUILD;

/// An engine that waits for hosts that are gone waits for ever; nobody waits for it longer than this.
const END_TIME_MAX: Duration = Duration::from_secs(2);

/// What a host's process is to be.
#[derive(Clone, Debug)]
pub struct HostProcessOptions {
    /// The cluster's name.
    pub cluster: String,
    /// How many workers it runs.
    pub workers: NonZeroU32,
    /// Its place among the hosts, from 0; any, if there is none.
    pub place: Option<u32>,
    /// Where its coordinator takes hosts in.
    pub coordinator: SocketAddr,
    /// The newest epoch that the process before this one has known of; 0 if there was none.
    pub newest_epoch: u64,
}

/// The only host of this process.
#[derive(Debug)]
pub struct HostProcess {
    host: Arc<LocalHost>,
    /// For all that it writes; goes with it, even if the engine is left behind.
    directory: TempDir,
}

impl HostProcess {
    /// Starts a host that is part of nothing yet.
    ///
    /// # Errors
    ///
    /// If the system doesn't give what an engine needs: a directory, a port, threads.
    pub fn start(_: &HostProcessOptions) -> Result<Self, EngineError> {
        let directory = tempfile::Builder::new().prefix("stillframe-host-").tempdir()?;
        let options = HostOptions {
            directory: Some(directory.path().to_owned()),
            ..HostOptions::new(Functions::new(sql::functions()))
        };
        Ok(Self { host: LocalHost::start(options)?, directory })
    }

    /// Is part of the cluster until it can't go on as it is, or until `stop` ends; that is none. Then
    /// all is gone that it had, but for threads that wait for other hosts.
    pub async fn serve(
        self,
        options: HostProcessOptions,
        listener: TcpListener,
        stop: impl Future<Output = ()>,
    ) -> Option<End> {
        let incarnation = Incarnation(rand::random());
        let member = Member::new(incarnation, Arc::clone(&self.host) as Arc<dyn Host>);
        let identity =
            Identity { cluster: options.cluster.clone(), build: BUILD.to_owned(), incarnation };
        let registration = Registration {
            cluster: options.cluster,
            build: BUILD.to_owned(),
            incarnation,
            place: options.place.map(HostId),
            workers: options.workers.get(),
            fresh: true,
            newest_epoch: Epoch(options.newest_epoch),
        };
        let end = match listener.local_addr() {
            Ok(address) => {
                let served = serve(listener, identity, Arc::clone(&member) as Arc<dyn Host>);
                tokio::select! {
                    end = join(options.coordinator, address, registration, &member) => Some(end),
                    () = served => None,
                    () = stop => None,
                }
            }
            Err(error) => Some(End::Refused { reason: error.to_string() }),
        };
        let _ = timeout(END_TIME_MAX, self.host.shut_down()).await;
        if let Err(error) = self.directory.close() {
            tracing::warn!(%error, "temporary files are left behind");
        }
        end
    }
}
