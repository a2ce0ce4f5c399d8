//! A whole cluster in this process: hosts, the coordinator over them, and SQL in front.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::record_batch::RecordBatch;
use futures::TryStreamExt;
use stillframe_coordinator as coordinator;
use stillframe_engine::{self as engine, EngineError, Functions, HostOptions, LocalHost};
use stillframe_protocol::{Coordinator, CoordinatorError, Host, HostError};
use stillframe_sql::{self as sql, Error, Frame, Response, Session};
use tokio::net::TcpListener;

use crate::{Access, Options, page, server};

/// The user whose name statements run under when no client has told one.
const USER: &str = "stillframe";
/// How often the engine is looked at, whether it has failed.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

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
    coordinator: Arc<dyn Coordinator>,
    pub(crate) front: Arc<sql::Database>,
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
        let host_options =
            HostOptions { directory: options.temporary_directory, ..HostOptions::new(functions) };
        let hosts = (0..options.hosts.get())
            .map(|_| LocalHost::start(host_options.clone()))
            .collect::<Result<Vec<_>, _>>()?;
        let faces: Vec<_> = hosts.iter().map(|host| Arc::clone(host) as Arc<dyn Host>).collect();
        let online = Some(coordinator::Online::default());
        let options = coordinator::Options { workers, online, ..coordinator::Options::default() };
        let coordinator = coordinator::start(options, faces.clone());
        let front = front(&coordinator, faces, workers);
        Ok(Self { hosts, coordinator, front })
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
                Response::CopyIn(_) | Response::CopyOut(_) => {
                    return Err(Error::unsupported("COPY without a client"));
                }
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
        if prepared.columns().is_none() {
            return Err(Error::unsupported("a query that returns no rows"));
        }
        match session.execute(&prepared, vec![]).await? {
            Response::Rows(rows) => rows.batches.try_collect().await,
            Response::Complete { .. } | Response::CopyIn(_) | Response::CopyOut(_) => {
                Err(Error::internal("a statement with columns returns no rows"))
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

    /// Ends when the engine has failed, and tells why. Nothing can be done with the database then.
    pub fn failure(&self) -> impl Future<Output = String> + Send + use<> {
        let coordinator = Arc::clone(&self.coordinator);
        async move {
            loop {
                if let Err(CoordinatorError::Failed(reason)) = coordinator.status().await {
                    return reason;
                }
                tokio::time::sleep(LOOK_INTERVAL).await;
            }
        }
    }

    /// Ends the cluster and waits until its threads and files are gone.
    pub async fn close(self) {
        drop((self.front, self.coordinator));
        for host in &self.hosts {
            host.shut_down().await;
        }
    }
}

/// SQL in front of a cluster.
pub(crate) fn front(
    coordinator: &Arc<dyn Coordinator>,
    hosts: Vec<Arc<dyn Host>>,
    workers: u32,
) -> Arc<sql::Database> {
    let functions = Functions::new(sql::functions());
    let front = sql::Database::new(Arc::clone(coordinator), hosts, workers);
    let explained = functions.clone();
    front.check_with(Arc::new(move |program| engine::check(program, &functions)));
    front.explain_with(Box::new(move |plan, program| {
        engine::explain(plan, program, &explained).map_err(HostError::from)
    }));
    front
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use datafusion::arrow::array::AsArray;
    use datafusion::arrow::datatypes::Int64Type;
    use stillframe_sql::SqlState;

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_program_has_a_database_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let options = Options {
            hosts: NonZeroU32::new(2).unwrap(),
            workers: NonZeroU32::MIN,
            temporary_directory: Some(directory.path().to_owned()),
        };
        let database = Database::open(options).await.unwrap();
        database
            .execute(
                "CREATE TABLE t (a int PRIMARY KEY, b int);
                 CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t;
                 INSERT INTO t VALUES (1, 10), (2, 20)",
            )
            .await
            .unwrap();
        let before = database.frame().await.unwrap();
        database.execute("INSERT INTO t VALUES (3, 30)").await.unwrap();
        let after = database.frame().await.unwrap();
        assert!(before.step() < after.step());

        let batches = database.query("SELECT n FROM v").await.unwrap();
        let counts: Vec<i64> = batches
            .iter()
            .flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec())
            .collect();
        assert_eq!(counts, [3]);

        let error = database.execute("INSERT INTO t VALUES (3, 30)").await.unwrap_err();
        assert_eq!(error.state, SqlState::UNIQUE_VIOLATION);
        for wrong in ["SELECT 1; SELECT 2", "DELETE FROM t", ""] {
            let error = database.query(wrong).await.unwrap_err();
            assert_eq!(error.state, SqlState::FEATURE_NOT_SUPPORTED, "{wrong}");
        }

        drop((before, after));
        database.close().await;
        let left = std::fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(left, 0, "temporary directories are gone");
    }
}
