//! Accepts Postgres connections and serves each in a task of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use stillframe_sql::{Database, Error, Session, SqlState};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::wire::{self, CancelKeys};

/// How many connections there may be at once.
const CONNECTIONS_MAX: usize = 10_000;
/// How many of them may not have said yet who they are.
const STRANGERS_MAX: usize = 500;
/// How long to wait when the system has no room for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long a connection may take to end when the server stops.
const STOP_TIME_MAX: Duration = Duration::from_secs(2);

/// Serves Postgres clients of a database until `stop` ends, and then ends their connections.
pub async fn serve(listener: TcpListener, database: Arc<Database>, stop: impl Future<Output = ()>) {
    let (stopping, hears_stop) = watch::channel(false);
    let server = Server {
        database,
        keys: CancelKeys::default(),
        stopping: hears_stop,
        connections: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
        strangers: Arc::new(Semaphore::new(STRANGERS_MAX)),
    };
    let mut tasks = JoinSet::new();
    tokio::pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => server.welcome(stream, peer, &mut tasks),
                Err(error) => {
                    tracing::warn!(%error, "connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            // Only to free what the task has left.
            Some(_) = tasks.join_next() => {}
        }
    }
    stopping.send_replace(true);
    let _ = timeout(STOP_TIME_MAX, async { while tasks.join_next().await.is_some() {} }).await;
}

/// What all connections share.
struct Server {
    database: Arc<Database>,
    keys: CancelKeys,
    stopping: watch::Receiver<bool>,
    connections: Arc<Semaphore>,
    strangers: Arc<Semaphore>,
}

impl Server {
    fn welcome(&self, stream: TcpStream, peer: SocketAddr, tasks: &mut JoinSet<()>) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, %peer, "connection lost");
            return;
        }
        let places = (
            Arc::clone(&self.connections).try_acquire_owned(),
            Arc::clone(&self.strangers).try_acquire_owned(),
        );
        match places {
            (Ok(connection), Ok(stranger)) => {
                tasks.spawn(self.serve(stream, connection, stranger));
            }
            _ => {
                tracing::warn!(%peer, "too many connections");
                tasks.spawn(turn_away(stream));
            }
        }
    }

    fn serve(
        &self,
        stream: TcpStream,
        connection: OwnedSemaphorePermit,
        stranger: OwnedSemaphorePermit,
    ) -> impl Future<Output = ()> + use<> {
        let (keys, stopping) = (self.keys.clone(), self.stopping.clone());
        let database = Arc::clone(&self.database);
        async move {
            let session = move |user: &str| Session::new(database, user);
            wire::serve(stream, keys, stopping, session, stranger).await;
            drop(connection);
        }
    }
}

/// Tells a client that there is no room.
async fn turn_away(mut stream: TcpStream) {
    let error = Error::new(SqlState::TOO_MANY_CONNECTIONS, "sorry, too many clients already");
    let _ = timeout(Duration::from_secs(1), wire::refuse(&mut stream, &error)).await;
}
