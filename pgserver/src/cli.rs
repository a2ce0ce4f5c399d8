//! The command line.

mod coordinator;
mod host;

use std::io::{self, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};
use serde::Serialize;
use stillframe::{Database, EngineError, Options};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// Where Postgres clients are served unless something else is said.
const PG_LISTEN: &str = "127.0.0.1:5433";

/// A SQL server whose materialized views are always up to date.
#[derive(Debug, Parser)]
#[command(name = "stillframe", version, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: Serve,
    /// What is logged, as in RUST_LOG, which counts where this isn't given.
    #[arg(long, global = true, value_name = "FILTER")]
    pub log: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run everything in one process (the default).
    Serve(Serve),
    /// Serve Postgres clients in front of hosts that are processes.
    Coordinator(coordinator::Coordinate),
    /// Run one host of a cluster.
    Host(host::RunHost),
}

/// Everything in one process.
#[derive(Debug, Args)]
pub struct Serve {
    /// How many hosts share the work.
    #[arg(long, default_value = "1", value_name = "N")]
    hosts: NonZeroU32,
    /// How many workers each host runs [default: the number of processors].
    #[arg(long, value_name = "W")]
    workers: Option<NonZeroU32>,
    /// Keep everything in memory: nothing survives the process (the default for now).
    #[arg(long)]
    in_memory: bool,
    /// Keep data in this directory (not possible yet).
    #[arg(long, value_name = "D", conflicts_with = "in_memory")]
    data_dir: Option<PathBuf>,
    /// Where Postgres clients are served; port 0 is any that is free.
    #[arg(long, default_value = PG_LISTEN, value_name = "ADDRESS")]
    pg_listen: String,
    /// Write the addresses to this file, as JSON, once everything is ready.
    #[arg(long, value_name = "F")]
    ready_file: Option<PathBuf>,
}

impl Arguments {
    /// Does what is asked, until a signal comes or it can't go on.
    pub async fn run(self) -> Result<(), ServeError> {
        match self.command {
            Some(Command::Serve(serve)) => serve.run().await,
            Some(Command::Coordinator(coordinate)) => coordinate.run().await,
            Some(Command::Host(host)) => host.run().await,
            None => self.serve.run().await,
        }
    }
}

/// Why nothing is served.
#[derive(Debug, Error)]
pub enum ServeError {
    /// Asked for what there is not yet.
    #[error(
        "--data-dir {} can't be used: nothing survives the process yet, run with --in-memory",
        .0.display()
    )]
    NotDurable(PathBuf),
    /// The address isn't one.
    #[error("cannot listen on {0}: {1}")]
    Listen(String, #[source] io::Error),
    /// Others than this machine could connect.
    #[error(
        "cannot listen on {0}: there are neither passwords nor TLS yet, so it must be a loopback \
         address"
    )]
    NotLoopback(String),
    /// The engine needs something that the system doesn't give.
    #[error("cannot start the engine: {0}")]
    Engine(#[from] EngineError),
    /// What it kept in memory is lost.
    #[error("the engine has failed: {0}")]
    EngineFailed(String),
    /// The coordinator's address isn't one.
    #[error("the coordinator's address {0} is none: {1}")]
    Coordinator(String, #[source] io::Error),
    /// What goes between them could be read and changed on the way.
    #[error(
        "cannot use the coordinator {0}: there is no TLS between processes yet, so it must be a \
         loopback address"
    )]
    CoordinatorNotLoopback(String),
    /// The coordinator doesn't want this host.
    #[error("the coordinator has refused this host: {0}")]
    Refused(String),
    /// The process can't start again in its own place.
    #[error("cannot replace the process: {0}")]
    Replace(#[source] io::Error),
    /// The ready file can't be written.
    #[error("cannot write {0:?}: {1}")]
    ReadyFile(PathBuf, #[source] io::Error),
    /// There are no threads to run on.
    #[error("cannot start threads: {0}")]
    Runtime(#[source] io::Error),
    /// Signals can't be listened to.
    #[error("cannot listen to signals: {0}")]
    Signals(#[source] io::Error),
}

/// What the ready file tells.
#[derive(Serialize)]
struct Ready {
    pg: SocketAddr,
    /// Where hosts register, if they are processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    hosts: Option<SocketAddr>,
}

impl Serve {
    /// Serves until a signal comes, or until the engine has failed: it keeps nothing that it could
    /// go on with.
    pub async fn run(self) -> Result<(), ServeError> {
        if let Some(directory) = self.data_dir {
            return Err(ServeError::NotDurable(directory));
        }
        let stop = signals().map_err(ServeError::Signals)?;
        let listener = listen(&self.pg_listen).await?;
        let address = local_address(&listener)?;
        let defaults = Options::default();
        let options = Options {
            hosts: self.hosts,
            workers: self.workers.unwrap_or(defaults.workers),
            ..defaults
        };
        tracing::info!(hosts = options.hosts, workers = options.workers, "starting");
        let database = Database::open(options).await?;
        if let Some(file) = &self.ready_file {
            write_ready(file, &Ready { pg: address, hosts: None })
                .map_err(|error| ServeError::ReadyFile(file.clone(), error))?;
        }
        announce(address);
        let (stop, failure) = stop_or_failure(stop, database.failure());
        database.serve(listener, stop).await;
        tracing::info!("stopping");
        database.close().await;
        match failure.await {
            Ok(reason) => Err(ServeError::EngineFailed(reason)),
            // It was a signal.
            Err(_) => Ok(()),
        }
    }
}

/// Ends when either does; a failure is told to the receiver.
fn stop_or_failure(
    stop: impl Future<Output = ()>,
    failure: impl Future<Output = String>,
) -> (impl Future<Output = ()>, oneshot::Receiver<String>) {
    let (tell, told) = oneshot::channel();
    let either = async move {
        tokio::select! {
            () = stop => {}
            // The receiver lives as long as the server.
            reason = failure => drop(tell.send(reason)),
        }
    };
    (either, told)
}

async fn listen(address: &str) -> Result<TcpListener, ServeError> {
    let failed = |error| ServeError::Listen(address.to_owned(), error);
    let addresses: Vec<_> = address.to_socket_addrs().map_err(failed)?.collect();
    if !addresses.iter().all(|address| address.ip().is_loopback()) {
        return Err(ServeError::NotLoopback(address.to_owned()));
    }
    TcpListener::bind(&addresses[..]).await.map_err(failed)
}

fn local_address(listener: &TcpListener) -> Result<SocketAddr, ServeError> {
    listener.local_addr().map_err(|error| ServeError::Listen("a socket".to_owned(), error))
}

/// Says on standard output where clients may connect. Whoever has closed it doesn't want to know.
fn announce(address: SocketAddr) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "stillframe: ready, postgres://stillframe@{address}/stillframe");
    let _ = out.flush();
}

/// Whole or not at all: whoever sees the file sees all of it.
fn write_ready(file: &Path, ready: &Ready) -> io::Result<()> {
    let mut name = file.as_os_str().to_owned();
    name.push(".new");
    let new = PathBuf::from(name);
    std::fs::write(&new, serde_json::to_vec(ready)?)?;
    std::fs::rename(&new, file)
}

/// Ends at the first signal to stop; a second one ends the process at once.
fn signals() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (stop, stopped) = oneshot::channel();
    tokio::spawn(async move {
        let mut next = async || {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        next().await;
        // Nobody listens any more if the server has ended by itself.
        let _ = stop.send(());
        next().await;
        std::process::exit(130);
    });
    Ok(async move {
        let _ = stopped.await;
    })
}
