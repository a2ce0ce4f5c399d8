//! Accepts Postgres connections and serves each in a task of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use stillframe_sql::{Database, Error, Session, SqlState};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::access::Access;
use crate::wire::{self, Admitted, CancelKeys, Entrance};

/// How many connections there may be, and how many of them may not have said yet who they are.
const LIMITS: Limits = Limits { connections: 10_000, strangers: 500 };
/// How long to wait when the system has no room for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long a connection may take to end when the server stops.
const STOP_TIME_MAX: Duration = Duration::from_secs(2);

/// How many connections there may be at once.
struct Limits {
    connections: usize,
    strangers: usize,
}

/// Serves Postgres clients of a database until `stop` ends, and then ends their connections.
pub async fn serve(
    listener: TcpListener,
    database: Arc<Database>,
    access: Access,
    stop: impl Future<Output = ()>,
) {
    serve_limited(listener, database, access, stop, &LIMITS).await;
}

async fn serve_limited(
    listener: TcpListener,
    database: Arc<Database>,
    access: Access,
    stop: impl Future<Output = ()>,
    limits: &Limits,
) {
    let (stopping, hears_stop) = watch::channel(false);
    let server = Server {
        database,
        access: Arc::new(access),
        keys: CancelKeys::default(),
        stopping: hears_stop,
        connections: Arc::new(Semaphore::new(limits.connections)),
        strangers: Arc::new(Semaphore::new(limits.strangers)),
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
    access: Arc<Access>,
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
        let peer = stream.peer_addr().ok();
        let (database, access) = (Arc::clone(&self.database), Arc::clone(&self.access));
        async move {
            let entrance = Entrance { keys: &keys, access: &access, stopping };
            let roles = Arc::clone(&database);
            let role = async move |user: String| roles.role(&user).await;
            let session = move |admitted: Admitted| {
                let Admitted { user, process, is_superuser } = admitted;
                let mut session = Session::new(database, &user).of_process(process);
                if let Some(peer) = peer {
                    session = session.of_client(peer);
                }
                if is_superuser { session } else { session.restricted() }
            };
            wire::serve(stream, entrance, role, session, stranger).await;
            drop(connection);
        }
    }
}

/// Tells a client that there is no room.
async fn turn_away(mut stream: TcpStream) {
    let error = Error::new(SqlState::TOO_MANY_CONNECTIONS, "sorry, too many clients already");
    let _ = timeout(Duration::from_secs(1), wire::refuse(&mut stream, &error)).await;
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::oneshot;

    use super::*;
    use crate::Options;

    /// Says who it is, and reads to the end of what it is told at once.
    async fn greet(mut stream: TcpStream) -> Vec<u8> {
        let startup = b"\0\0\0\x10\0\x03\0\0user\0u\0\0";
        // Whoever is turned away may not get to say it.
        let _ = stream.write_all(startup).await;
        let mut told = vec![0; 5];
        let _ = stream.read_exact(&mut told).await;
        if told[0] == b'E' {
            let _ = stream.read_to_end(&mut told).await;
        }
        told
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn strangers_are_few_and_clients_end_with_the_server() {
        let options = Options { workers: NonZeroU32::MIN, ..Options::default() };
        let database = crate::Database::open(options).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let limits = Limits { connections: 10, strangers: 1 };
        let front = Arc::clone(&database.front);
        let server = tokio::spawn(async move {
            let stopped = async { drop(stopped.await) };
            serve_limited(listener, front, Access::trust(), stopped, &limits).await;
        });

        let silent = TcpStream::connect(address).await.unwrap();
        let refused = greet(TcpStream::connect(address).await.unwrap()).await;
        let refused = String::from_utf8_lossy(&refused).into_owned();
        assert!(refused.contains("53300"), "{refused}");

        drop(silent);
        let admitted = async {
            while greet(TcpStream::connect(address).await.unwrap()).await[0] != b'R' {
                tokio::task::yield_now().await;
            }
        };
        timeout(Duration::from_secs(20), admitted).await.expect("there is room again");

        stop.send(()).unwrap();
        timeout(Duration::from_secs(20), server).await.expect("the server ends").unwrap();
        database.close().await;
    }
}
