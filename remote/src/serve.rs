//! Answers other processes with a host of this one.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{FutureExt as _, StreamExt as _};
use stillframe_protocol::{Host, HostError, ScanPart, ScanRequest};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::batches;
use crate::message::{Answer, Greeting, Identity, Request, invalid};
use crate::wire::{Connection, WireError};

/// How long to wait when the system has no room for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Answers whoever means the process with this identity, for as long as this is polled.
pub async fn serve(listener: TcpListener, identity: Identity, host: Arc<dyn Host>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    let (identity, host) = (identity.clone(), Arc::clone(&host));
                    connections.spawn(async move {
                        let served = match Connection::new(stream) {
                            Ok(connection) => answer_all(connection, &identity, &*host).await,
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

async fn answer_all(
    mut connection: Connection,
    identity: &Identity,
    host: &dyn Host,
) -> Result<(), WireError> {
    let (meant, _) = connection.receive::<Identity>().await?;
    if meant != *identity {
        return connection.send(&Greeting::Another(identity.clone()), vec![]).await;
    }
    connection.send(&Greeting::Welcome, vec![]).await?;
    loop {
        let (request, pieces) = connection.receive::<Request>().await?;
        let answered = AssertUnwindSafe(answer(&mut connection, host, request, &pieces));
        let answer = match answered.catch_unwind().await {
            Ok(answer) => answer?,
            Err(_) => Err(HostError::Failed("it panicked".to_owned())),
        };
        let answer = answer.unwrap_or_else(Answer::Failed);
        connection.send(&answer, vec![]).await?;
    }
}

/// The last answer to a request.
async fn answer(
    connection: &mut Connection,
    host: &dyn Host,
    request: Request,
    pieces: &[Bytes],
) -> Result<Result<Answer, HostError>, WireError> {
    let done = |()| Answer::Done;
    Ok(match request {
        Request::Activate(activation) => host.activate(activation).await.map(Answer::Report),
        Request::Execute(command) => host.execute(command).await.map(Answer::Report),
        Request::Retire { incarnation, reason } => host.retire(incarnation, reason).await.map(done),
        Request::Retain { epoch, retention } => host.retain(epoch, retention).await.map(done),
        Request::Stage(head) => match head.join(pieces) {
            Ok(staging) => host.stage(staging).await.map(done),
            Err(error) => Err(error),
        },
        Request::Unstage { epoch, transaction } => host.unstage(epoch, transaction).await.map(done),
        Request::Scan(head) => match head.join(pieces) {
            Ok(request) => scan(connection, host, request).await?,
            Err(error) => Err(error),
        },
        Request::ViewErrors { epoch, step, view } => {
            host.view_errors(epoch, step, view).await.map(Answer::RowErrors)
        }
        Request::Statistics { epoch, step } => {
            host.statistics(epoch, step).await.map(Answer::Statistics)
        }
    })
}

/// Sends all batches of a scan. Whoever has gone stops it.
async fn scan(
    connection: &mut Connection,
    host: &dyn Host,
    request: ScanRequest,
) -> Result<Result<Answer, HostError>, WireError> {
    let mut parts = match host.scan(request).await {
        Ok(parts) => parts,
        Err(error) => return Ok(Err(error)),
    };
    connection.send(&Answer::Done, vec![]).await?;
    while let Some(part) = parts.next().await {
        match part {
            Ok(ScanPart::Batch(batch)) => match batches::encode(&batch) {
                Ok(piece) => connection.send(&Answer::Batch, vec![piece]).await?,
                Err(error) => return Ok(Err(invalid(error))),
            },
            Ok(ScanPart::End { rows }) => return Ok(Ok(Answer::End { rows })),
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(Err(HostError::Failed("a scan stopped without an end".to_owned())))
}
