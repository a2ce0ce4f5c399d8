//! Takes in what processes of hosts tell of themselves.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use stillframe_protocol::{CoordinatorError, Host, Incarnation, Registration, Standing};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::message::{Identity, Register, Registered};
use crate::wire::{Connection, WireError};
use crate::{Places, RemoteHost};

/// How long to wait when the system has no room for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The way to each process that has registered and may get a place.
type Ways = Arc<Mutex<HashMap<Incarnation, Arc<dyn Host>>>>;

/// Hands registrations on, each with the way to its process, for as long as this is polled.
pub async fn serve_registrations<R, F>(listener: TcpListener, places: Arc<Places>, register: R)
where
    R: Fn(Registration, Arc<dyn Host>) -> F + Clone + Send + 'static,
    F: Future<Output = Result<Standing, CoordinatorError>> + Send,
{
    let ways = Ways::default();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    let (places, ways) = (Arc::clone(&places), Arc::clone(&ways));
                    let register = register.clone();
                    connections.spawn(async move {
                        let served = match Connection::new(stream) {
                            Ok(connection) => take_in(connection, &places, &ways, register).await,
                            Err(error) => Err(error),
                        };
                        match served {
                            Ok(()) | Err(WireError::Closed | WireError::Io(_)) => {}
                            Err(error) => tracing::warn!(%error, %peer, "connection was ended"),
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            // Only to free what the task has left.
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn take_in<R, F>(
    mut connection: Connection,
    places: &Arc<Places>,
    ways: &Ways,
    register: R,
) -> Result<(), WireError>
where
    R: Fn(Registration, Arc<dyn Host>) -> F,
    F: Future<Output = Result<Standing, CoordinatorError>>,
{
    loop {
        let (Register { registration, address }, _) = connection.receive().await?;
        let Registration { cluster, build, incarnation, .. } = registration.clone();
        let way = {
            let mut ways = ways.lock().unwrap_or_else(PoisonError::into_inner);
            let identity = Identity { cluster, build, incarnation };
            let way = || places.candidate(Arc::new(RemoteHost::new(address, identity)));
            Arc::clone(ways.entry(incarnation).or_insert_with(way))
        };
        let standing: Registered = register(registration, way).await;
        if !matches!(standing, Ok(Standing::Waits { .. } | Standing::Member { .. })) {
            ways.lock().unwrap_or_else(PoisonError::into_inner).remove(&incarnation);
        }
        connection.send(&standing, vec![]).await?;
    }
}
