//! `stillframe host`.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::os::unix::process::CommandExt as _;

use clap::Args;
use stillframe::{End, HostListeners, HostProcess, HostProcessOptions, Options};

use super::coordinator::{CLUSTER, LISTEN};
use super::listen::{Peers, listen, local_address, resolve};
use super::{ServeError, signals};

/// Tells the process that takes the place of this one which epoch was the newest.
const NEWEST_EPOCH: &str = "STILLFRAME_NEWEST_EPOCH";

/// One host of a cluster. It need not be started after its coordinator.
#[derive(Debug, Args)]
pub(super) struct RunHost {
    /// Where the coordinator takes hosts in.
    #[arg(long, default_value = LISTEN, value_name = "ADDRESS")]
    coordinator: String,
    /// Where this host is asked; port 0 is any that is free.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS")]
    listen: String,
    /// The port of the same address where it is asked for rows; 0 is any that is free.
    #[arg(long, default_value = "0", value_name = "PORT")]
    bulk_port: u16,
    /// The ports of the same address by which the workers of other hosts reach its own, in turns; at
    /// least 3 [default: any that are free].
    #[arg(long, value_name = "FIRST-LAST", value_parser = ports)]
    exchange_ports: Option<RangeInclusive<u16>>,
    /// At which address other processes reach it, if not where it listens.
    #[arg(long, value_name = "IP")]
    advertise: Option<IpAddr>,
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
    #[command(flatten)]
    peers: Peers,
}

/// Ports from the first to the last.
fn ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let ports = text.split_once('-').and_then(|(first, last)| {
        let ports = first.trim().parse().ok()?..=last.trim().parse().ok()?;
        (*ports.start() > 0 && ports.len() >= PORTS_MIN).then_some(ports)
    });
    ports.ok_or_else(|| format!("at least {PORTS_MIN} ports are needed, as in 7100-7131"))
}

/// While a circuit is replaced there are the old one's, the new one's and that of the next.
const PORTS_MIN: usize = 3;

impl RunHost {
    pub(super) fn checks(&self) -> Vec<Result<(), ServeError>> {
        vec![
            self.peers.allows(&self.coordinator),
            self.peers.allows(&self.listen),
            self.peers.security().map(drop),
            self.address().map(drop),
        ]
    }

    /// Where it listens, which must be where others reach it, if nothing else is advertised.
    fn address(&self) -> Result<SocketAddr, ServeError> {
        let address = resolve(&self.listen)?[0];
        if address.ip().is_unspecified() && self.advertise.is_none() {
            return Err(ServeError::Unspecified(self.listen.clone()));
        }
        Ok(address)
    }

    pub(super) async fn run(self) -> Result<(), ServeError> {
        // While it is certainly there: the file may be another one later.
        let program = std::env::current_exe().map_err(ServeError::Replace)?;
        let stop = signals().map_err(ServeError::Signals)?;
        let coordinator = resolve(&self.coordinator)?[0];
        let control = listen(&self.listen).await?;
        let ip = local_address(&control)?.ip();
        let bulk = listen(&SocketAddr::from((ip, self.bulk_port)).to_string()).await?;
        let options = HostProcessOptions {
            cluster: self.cluster,
            workers: self.workers.unwrap_or(Options::default().workers),
            place: self.place,
            coordinator,
            newest_epoch: self.newest_epoch,
            exchange: ip,
            exchange_ports: self.exchange_ports,
            advertise: self.advertise,
            security: self.peers.security()?,
        };
        let process = HostProcess::start(&options)?;
        let end = process.serve(options, HostListeners { control, bulk }, stop).await;
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
