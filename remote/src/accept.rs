//! Takes in connections, each of which is served on its own.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::Security;
use crate::security::Socket;

/// How long to wait when the system has no room for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves every connection to a listener for as long as this is polled; when it is dropped, all end.
pub(crate) async fn accept_all<F>(
    listener: TcpListener,
    security: Security,
    serve: impl Fn(Socket) -> F + Send + Sync + 'static,
) where
    F: Future<Output = io::Result<()>> + Send,
{
    let serve = Arc::new(serve);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    let (security, serve) = (security.clone(), Arc::clone(&serve));
                    connections.spawn(async move {
                        let served = match security.accept(stream).await {
                            Ok(socket) => serve(socket).await,
                            Err(error) => Err(error),
                        };
                        match served {
                            // Peers come and go; a message that makes no sense, or a peer that
                            // isn't one, is worth a line.
                            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                                tracing::warn!(%error, %peer, "connection was ended");
                            }
                            Ok(()) | Err(_) => {}
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
