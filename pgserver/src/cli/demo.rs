//! `stillframe demo`.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use stillframe::{DEMO_SCHEMA, Database, Options, stream};

use super::listen::{listen, local_address, must_be_loopback};
use super::{HTTP_LISTEN, PG_LISTEN, Ready, ServeError, signals, write_ready};

/// Everything in one process, with auctions that go on and views over them.
#[derive(Debug, Args)]
pub(super) struct Demo {
    /// How many hosts share the work.
    #[arg(long, default_value = "1", value_name = "N")]
    hosts: NonZeroU32,
    /// How many workers each host runs [default: the number of processors].
    #[arg(long, value_name = "W")]
    workers: Option<NonZeroU32>,
    /// How many events are written each second.
    #[arg(long, default_value = "1000", value_name = "N")]
    events: NonZeroU32,
    /// Where Postgres clients are served; port 0 is any that is free.
    #[arg(long, default_value = PG_LISTEN, value_name = "ADDRESS")]
    pg_listen: String,
    /// Where the status page is served; port 0 is any that is free.
    #[arg(long, default_value = HTTP_LISTEN, value_name = "ADDRESS")]
    http_listen: String,
    /// Write the addresses to this file, as JSON, once everything is ready.
    #[arg(long, value_name = "F")]
    ready_file: Option<PathBuf>,
}

impl Demo {
    pub(super) fn checks(&self) -> Vec<Result<(), ServeError>> {
        vec![must_be_loopback(&self.pg_listen), must_be_loopback(&self.http_listen)]
    }

    pub(super) async fn run(self) -> Result<(), ServeError> {
        let stop = signals().map_err(ServeError::Signals)?;
        let (pg, http) = (listen(&self.pg_listen).await?, listen(&self.http_listen).await?);
        let (pg_address, http_address) = (local_address(&pg)?, local_address(&http)?);
        let defaults = Options::default();
        let workers = self.workers.unwrap_or(defaults.workers);
        let options = Options { hosts: self.hosts, workers, ..defaults };
        let database = Arc::new(Database::open(options).await?);
        database.execute(DEMO_SCHEMA).await.map_err(ServeError::Demo)?;
        if let Some(file) = &self.ready_file {
            let ready = Ready { pg: pg_address, http: Some(http_address), hosts: None };
            write_ready(file, &ready)
                .map_err(|error| ServeError::ReadyFile(file.clone(), error))?;
        }
        println!(
            "stillframe: {} auction events a second; watch them at http://{http_address}/, or type\n\n  \
             psql postgres://stillframe@{pg_address}/stillframe\n\n  \
             select * from channels order by bids desc;\n  \
             select * from categories order by category;\n  \
             select name, city, sold, earned from sellers order by earned desc limit 5;\n  \
             select * from arrivals order by people desc limit 5;\n  \
             select count(*), max(price) from bid;   -- the same step as the views\n  \
             create materialized view mine as select bidder, count(*) from bid group by bidder;\n  \
             explain materialized view sellers;\n  \
             \\watch 1\n",
            self.events
        );
        let page = database.serve_page(http);
        let served = tokio::select! {
            () = database.serve(pg, stillframe::Access::trust(), stop) => Ok(()),
            failed = stream(&database, self.events.get()) => failed.map_err(ServeError::Demo),
            ended = page => ended.map_err(ServeError::Page),
            reason = database.failure() => Err(ServeError::EngineFailed(reason)),
        };
        if let Some(database) = Arc::into_inner(database) {
            database.close().await;
        }
        served
    }
}
