//! Measures Stillframe against its peers: one table a run, with ratios to a peer of the same run.
//!
//! `docs/performance.md` says how it is run and what came out. Everything goes over the wire, but
//! for DataFusion, which has the data in memory in this process.

mod bulk;
mod frames;
mod load;
mod report;
mod scans;

use std::time::Duration;

use clap::Parser;
use stillframe_tests::Server;
use tokio_postgres::{Client, Config, NoTls};

use report::Report;

/// What goes wrong is told and ends the run.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Measures Stillframe against PostgreSQL and DataFusion.
#[derive(Clone, Debug, Parser)]
struct Options {
    /// A PostgreSQL server to compare with, as `host=... user=...`; without it there is no such ratio.
    #[arg(long, env = "STILLFRAME_POSTGRESQL")]
    postgresql: Option<String>,
    /// Hosts of the server under test.
    #[arg(long, default_value = "1")]
    hosts: u32,
    /// Workers of each.
    #[arg(long, default_value = "1")]
    workers: u32,
    /// How long each load lasts.
    #[arg(long, default_value = "5")]
    seconds: u64,
    /// Rows of the table that is scanned.
    #[arg(long, default_value = "5000000")]
    rows: u64,
    /// Rows that COPY loads.
    #[arg(long, default_value = "500000")]
    copied: u64,
    /// Only these parts: load, bulk, frames, scans.
    #[arg(long)]
    only: Vec<String>,
}

impl Options {
    fn time(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }

    fn wants(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == part)
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    let server = Server::start(options.hosts, options.workers);
    let stillframe = Target::of(&server);
    let postgresql = options.postgresql.as_deref().map(Target::parse).transpose()?;
    let mut report = Report::begin(&options);
    if options.wants("load") {
        load::measure(&options, &stillframe, postgresql.as_ref(), &mut report).await?;
        report.memory(server.front().id(), "after it");
    }
    if options.wants("bulk") {
        bulk::measure(&options, &stillframe, postgresql.as_ref(), &mut report).await?;
        report.memory(server.front().id(), "after it");
    }
    if options.wants("frames") {
        frames::measure(&options, &stillframe, &mut report).await?;
        report.memory(server.front().id(), "after it");
    }
    if options.wants("scans") {
        scans::measure(&options, &stillframe, &mut report).await?;
        report.memory(server.front().id(), "after it");
    }
    server.stop()?;
    Ok(())
}

/// A server to measure.
#[derive(Clone, Debug)]
struct Target(Config);

impl Target {
    fn of(server: &Server) -> Self {
        let mut config = Config::new();
        let address = server.address();
        config.host(address.ip().to_string()).port(address.port());
        config.user("stillframe").dbname("stillframe");
        Self(config)
    }

    fn parse(config: &str) -> Result<Self> {
        Ok(Self(config.parse()?))
    }

    /// A session.
    async fn connect(&self) -> Result<Client> {
        let (client, connection) = self.0.connect(NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    /// Runs statements one after the other, none of which returns anything.
    async fn run(&self, statements: &[&str]) -> Result<()> {
        let client = self.connect().await?;
        for sql in statements {
            client.batch_execute(sql).await.map_err(|error| format!("{sql}: {error:?}"))?;
        }
        Ok(())
    }
}
