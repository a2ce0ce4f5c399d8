//! `stillframe host`.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::num::NonZeroU32;
use std::os::unix::process::CommandExt as _;

use clap::Args;
use stillframe::{End, HostProcess, HostProcessOptions, Options};

use super::coordinator::{CLUSTER, LISTEN};
use super::{ServeError, listen, signals};

/// Tells the process that takes the place of this one which epoch was the newest.
const NEWEST_EPOCH: &str = "STILLFRAME_NEWEST_EPOCH";

/// One host of a cluster. It need not be started after its coordinator.
#[derive(Debug, Args)]
pub(super) struct RunHost {
    /// Where the coordinator takes hosts in.
    #[arg(long, default_value = LISTEN, value_name = "ADDRESS")]
    coordinator: String,
    /// Where this host is reached; port 0 is any that is free.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS")]
    listen: String,
    /// How many workers it runs [default: the number of processors].
    #[arg(long, value_name = "W")]
    workers: Option<NonZeroU32>,
    /// The cluster's name.
    #[arg(long, default_value = CLUSTER, value_name = "NAME")]
    cluster: String,
    /// Its place among the hosts, from 0 [default: any that nobody has].
    #[arg(long, value_name = "P")]
    place: Option<u32>,
    /// The newest epoch that the process before this one has known of.
    #[arg(long, hide = true, env = NEWEST_EPOCH, default_value = "0")]
    newest_epoch: u64,
}

impl RunHost {
    pub(super) async fn run(self) -> Result<(), ServeError> {
        // While it is certainly there: the file may be another one later.
        let program = std::env::current_exe().map_err(ServeError::Replace)?;
        let stop = signals().map_err(ServeError::Signals)?;
        let coordinator = resolve(&self.coordinator)?;
        let listener = listen(&self.listen).await?;
        let options = HostProcessOptions {
            cluster: self.cluster,
            workers: self.workers.unwrap_or(Options::default().workers),
            place: self.place,
            coordinator,
            newest_epoch: self.newest_epoch,
        };
        let process = HostProcess::start(&options)?;
        let end = process.serve(options, listener, stop).await;
        match end {
            None => Ok(()),
            Some(End::Refused { reason }) => Err(ServeError::Refused(reason)),
            Some(End::Retires { reason, newest_epoch }) => {
                tracing::warn!(reason, epoch = newest_epoch.0, "starting again, empty");
                let error = std::process::Command::new(program)
                    .args(std::env::args_os().skip(1))
                    .env(NEWEST_EPOCH, newest_epoch.0.to_string())
                    .exec();
                Err(ServeError::Replace(error))
            }
        }
    }
}

fn resolve(address: &str) -> Result<SocketAddr, ServeError> {
    let failed = |error| ServeError::Coordinator(address.to_owned(), error);
    let resolved = address.to_socket_addrs().map_err(failed)?.next();
    let resolved = resolved.ok_or_else(|| failed(io::ErrorKind::AddrNotAvailable.into()))?;
    if !resolved.ip().is_loopback() {
        return Err(ServeError::CoordinatorNotLoopback(address.to_owned()));
    }
    Ok(resolved)
}
