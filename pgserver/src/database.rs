//! A whole cluster in this process: hosts, the coordinator over them, and SQL in front.

use std::sync::Arc;

use datafusion::arrow::record_batch::RecordBatch;
use futures::TryStreamExt;
use stillframe_coordinator as coordinator;
use stillframe_engine::{self as engine, EngineError, Functions, HostOptions, LocalHost};
use stillframe_protocol::{Host, HostError};
use stillframe_sql::{self as sql, Error, Frame, Response, Session};
use tokio::net::TcpListener;

use crate::{Options, server};

/// The user whose name statements run under when no client has told one.
const USER: &str = "stillframe";

/// A database that runs in this process.
///
/// Nothing of it survives the process.
///
/// ```
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use stillframe::{Database, Options};
///
/// let database = Database::open(Options::default()).await?;
/// database.execute("CREATE TABLE t (a int PRIMARY KEY, b int)").await?;
/// database.execute("CREATE MATERIALIZED VIEW v AS SELECT sum(b) AS total FROM t").await?;
/// database.execute("INSERT INTO t VALUES (1, 10), (2, 20)").await?;
/// let batches = database.query("SELECT total FROM v").await?;
/// assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 1);
/// database.close().await;
/// # Ok::<_, Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug)]
pub struct Database {
    hosts: Vec<Arc<LocalHost>>,
    front: Arc<sql::Database>,
}

impl Database {
    /// Starts a cluster. Must be called inside a Tokio runtime, on which it runs.
    ///
    /// # Errors
    ///
    /// If the system doesn't give what an engine needs: a directory, a port, threads.
    pub async fn open(options: Options) -> Result<Self, EngineError> {
        let workers = options.workers.get();
        let functions = Functions::new(sql::functions());
        let host_options = HostOptions {
            directory: options.temporary_directory,
            ..HostOptions::new(functions.clone())
        };
        let hosts = (0..options.hosts.get())
            .map(|_| LocalHost::start(host_options.clone()))
            .collect::<Result<Vec<_>, _>>()?;
        let faces: Vec<_> = hosts.iter().map(|host| Arc::clone(host) as Arc<dyn Host>).collect();
        let options = coordinator::Options { workers, ..coordinator::Options::default() };
        let coordinator = coordinator::start(options, faces.clone());
        let front = sql::Database::new(coordinator, faces, workers);
        let explained = functions.clone();
        front.check_with(Arc::new(move |program| engine::check(program, &functions)));
        front.explain_with(Box::new(move |plan, program| {
            engine::explain(plan, program, &explained)
                .map_err(|error| HostError::Invalid(error.to_string()))
        }));
        Ok(Self { hosts, front })
    }

    /// Runs statements, one after the other, each in a transaction of its own.
    ///
    /// # Errors
    ///
    /// That of the first statement that fails; those before it have taken effect.
    pub async fn execute(&self, text: &str) -> Result<(), Error> {
        let mut session = Session::new(Arc::clone(&self.front), USER);
        for statement in session.parse(text)? {
            let prepared = session.prepare(statement, &[]).await?;
            match session.execute(&prepared, vec![]).await? {
                Response::Complete { .. } => {}
                Response::Rows(rows) => {
                    rows.batches.try_for_each(|_| std::future::ready(Ok(()))).await?;
                }
                Response::CopyIn(_) => return Err(Error::unsupported("COPY without a client")),
            }
        }
        Ok(())
    }

    /// Runs one statement that returns rows, and collects them.
    ///
    /// # Errors
    ///
    /// The statement's; or if it isn't one that returns rows.
    pub async fn query(&self, text: &str) -> Result<Vec<RecordBatch>, Error> {
        let mut session = Session::new(Arc::clone(&self.front), USER);
        let mut statements = session.parse(text)?;
        let (Some(statement), true) = (statements.pop(), statements.is_empty()) else {
            return Err(Error::unsupported("a query of other than one statement"));
        };
        let prepared = session.prepare(statement, &[]).await?;
        match session.execute(&prepared, vec![]).await? {
            Response::Rows(rows) => rows.batches.try_collect().await,
            Response::Complete { .. } | Response::CopyIn(_) => {
                Err(Error::unsupported("a query without rows"))
            }
        }
    }

    /// Takes a lease on the newest frame: one step of every relation, for as long as it is held.
    ///
    /// # Errors
    ///
    /// If the cluster isn't ready.
    pub async fn frame(&self) -> Result<Arc<Frame>, Error> {
        Frame::take(&self.front).await
    }

    /// Serves Postgres clients until `stop` ends, and then ends their connections.
    pub async fn serve(&self, listener: TcpListener, stop: impl Future<Output = ()>) {
        server::serve(listener, Arc::clone(&self.front), stop).await;
    }

    /// Ends the cluster and waits until its threads and files are gone.
    pub async fn close(self) {
        drop(self.front);
        for host in &self.hosts {
            host.shut_down().await;
        }
    }
}
