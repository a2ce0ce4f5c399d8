//! The command line.

mod access;
mod certificates;
mod config;
mod coordinator;
mod demo;
mod host;
mod listen;

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};
use serde::Serialize;
use stillframe::{AccessError, CertificatesError, Database, EngineError, Options, SecurityError};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use access::Clients;
use listen::{listen, local_address, must_be_loopback};

/// Where Postgres clients are served unless something else is said.
const PG_LISTEN: &str = "127.0.0.1:5433";
/// Where the demo's page is served unless something else is said.
const HTTP_LISTEN: &str = "127.0.0.1:5480";

/// A SQL server whose materialized views are always up to date.
#[derive(Debug, Parser)]
#[command(name = "stillframe", version)]
#[command(args_conflicts_with_subcommands = true, args_override_self = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: Serve,
    /// What is logged, as in RUST_LOG, which counts where this isn't given.
    #[arg(long, global = true, value_name = "FILTER")]
    pub log: Option<String>,
    /// Take options from a TOML file, too: those of the section that has the command's name. What is
    /// given on the command line counts.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run everything in one process (the default).
    Serve(Serve),
    /// Serve Postgres clients in front of hosts that are processes.
    Coordinator(coordinator::Coordinate),
    /// Run one host of a cluster.
    Host(host::RunHost),
    /// Run everything in one process, with auctions that go on and views over them.
    Demo(demo::Demo),
    /// Check a file of options, and tell all that is wrong with it.
    CheckConfig(config::CheckConfig),
    /// Make certificates for a test cluster.
    MakeCerts(certificates::MakeCertificates),
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
    #[command(flatten)]
    clients: Clients,
    /// Where a page about the cluster is served, and /metrics for Prometheus [default: nowhere].
    #[arg(long, value_name = "ADDRESS")]
    http_listen: Option<String>,
    /// Write the addresses to this file, as JSON, once everything is ready.
    #[arg(long, value_name = "F")]
    ready_file: Option<PathBuf>,
}

impl Arguments {
    /// What a command line asks for, and the file of options that it names. A mistake on the command
    /// line ends the process.
    ///
    /// # Errors
    ///
    /// With all that is wrong with the file.
    pub fn of(given: Vec<OsString>) -> Result<Self, ServeError> {
        let arguments = Self::parse_from(&given);
        let Some(file) = &arguments.config else { return Ok(arguments) };
        let command = match &arguments.command {
            Some(Command::Serve(_)) | None => "serve",
            Some(Command::Coordinator(_)) => "coordinator",
            Some(Command::Host(_)) => "host",
            Some(Command::Demo(_)) => "demo",
            Some(Command::CheckConfig(_) | Command::MakeCerts(_)) => return Ok(arguments),
        };
        let line = config::with_file(given, command, file)?;
        Self::try_parse_from(line)
            .map_err(|error| ServeError::Config(file.clone(), vec![error.to_string()]))
    }

    /// Does what is asked, until a signal comes or it can't go on.
    pub async fn run(self) -> Result<(), ServeError> {
        if let Some(problem) = self.problems().into_iter().next() {
            return Err(problem);
        }
        match self.command {
            Some(Command::Serve(serve)) => serve.run().await,
            Some(Command::Coordinator(coordinate)) => coordinate.run().await,
            Some(Command::Host(host)) => host.run().await,
            Some(Command::Demo(demo)) => demo.run().await,
            Some(Command::CheckConfig(check)) => check.run(),
            Some(Command::MakeCerts(make)) => make.run(),
            None => self.serve.run().await,
        }
    }

    /// All that keeps it from being done.
    fn problems(&self) -> Vec<ServeError> {
        let checks = match &self.command {
            Some(Command::Serve(serve)) => serve.checks(),
            Some(Command::Coordinator(coordinate)) => coordinate.checks(),
            Some(Command::Host(host)) => host.checks(),
            Some(Command::Demo(demo)) => demo.checks(),
            Some(Command::CheckConfig(_) | Command::MakeCerts(_)) => vec![],
            None => self.serve.checks(),
        };
        checks.into_iter().filter_map(Result::err).collect()
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
    /// An address can't be listened on.
    #[error("cannot listen on {0}: {1}")]
    Listen(String, #[source] io::Error),
    /// An address isn't one.
    #[error("{0} is no address: {1}")]
    Address(String, #[source] io::Error),
    /// Others than this machine could connect.
    #[error(
        "cannot serve clients on {0}: it must be a loopback address, or clients need passwords and \
         TLS (--auth scram --tls-cert F --tls-key F --tls-require)"
    )]
    NotLoopback(String),
    /// What goes between processes could be read and changed on the way.
    #[error(
        "cannot use {0} without certificates: it must be a loopback address, or --certs be given \
         (stillframe make-certs makes some)"
    )]
    NotSecured(String),
    /// Others can't be told to come to any address.
    #[error("cannot be reached at {0}: say with --advertise at which of its addresses")]
    Unspecified(String),
    /// A password is given that nobody is asked for.
    #[error("--password-file {} needs --auth scram: nobody is asked for a password", .0.display())]
    NoPasswords(PathBuf),
    /// The password can't be read.
    #[error("cannot read the password in {}: {reason}", .file.display())]
    PasswordFile {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Clients can't come in as they should.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The certificates can't be used.
    #[error(transparent)]
    Security(#[from] SecurityError),
    /// There are no certificates.
    #[error(transparent)]
    Certificates(#[from] CertificatesError),
    /// All that is wrong with a file of options.
    #[error("{}: {}", .0.display(), .1.join(&format!("\nstillframe: {}: ", .0.display())))]
    Config(PathBuf, Vec<String>),
    /// The engine needs something that the system doesn't give.
    #[error("cannot start the engine: {0}")]
    Engine(#[from] EngineError),
    /// What it kept in memory is lost.
    #[error("the engine has failed: {0}")]
    EngineFailed(String),
    /// The page can't be served.
    #[error("cannot serve the page: {0}")]
    Page(#[source] io::Error),
    /// The demo's own statements fail.
    #[error("the demo has failed: {0}")]
    Demo(#[source] stillframe::Error),
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
    /// Where the page is, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    http: Option<SocketAddr>,
    /// Where hosts register, if they are processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    hosts: Option<SocketAddr>,
}

impl Serve {
    fn checks(&self) -> Vec<Result<(), ServeError>> {
        let durable = match &self.data_dir {
            Some(directory) => Err(ServeError::NotDurable(directory.clone())),
            None => Ok(()),
        };
        let page = self.http_listen.as_deref().map_or(Ok(()), must_be_loopback);
        vec![durable, self.clients.allows(&self.pg_listen), self.clients.access().map(drop), page]
    }

    /// Serves until a signal comes, or until the engine has failed: it keeps nothing that it could
    /// go on with.
    pub async fn run(self) -> Result<(), ServeError> {
        let stop = signals().map_err(ServeError::Signals)?;
        let access = self.clients.access()?;
        let listener = listen(&self.pg_listen).await?;
        let address = local_address(&listener)?;
        let (page, http) = listen_for_page(self.http_listen.as_deref()).await?;
        let defaults = Options::default();
        let options = Options {
            hosts: self.hosts,
            workers: self.workers.unwrap_or(defaults.workers),
            ..defaults
        };
        tracing::info!(hosts = options.hosts, workers = options.workers, "starting");
        let database = Database::open(options).await?;
        if let Some(file) = &self.ready_file {
            write_ready(file, &Ready { pg: address, http, hosts: None })
                .map_err(|error| ServeError::ReadyFile(file.clone(), error))?;
        }
        announce(address);
        let (stop, failure) = stop_or_failure(stop, database.failure());
        let page = async {
            match page {
                Some(page) => database.serve_page(page).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = database.serve(listener, access, stop) => {}
            ended = page => ended.map_err(ServeError::Page)?,
        }
        tracing::info!("stopping");
        database.close().await;
        match failure.await {
            Ok(reason) => Err(ServeError::EngineFailed(reason)),
            // It was a signal.
            Err(_) => Ok(()),
        }
    }
}

/// Listens for those who want the page, if there is to be one.
async fn listen_for_page(
    address: Option<&str>,
) -> Result<(Option<TcpListener>, Option<SocketAddr>), ServeError> {
    let Some(address) = address else { return Ok((None, None)) };
    let listener = listen(address).await?;
    let address = local_address(&listener)?;
    Ok((Some(listener), Some(address)))
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
