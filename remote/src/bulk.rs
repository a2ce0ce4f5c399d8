//! Rows between processes: Arrow Flight. A scan is a `DoGet`, staged changes are a `DoPut`.
//!
//! What a host answers, its errors too, is part of the stream. A status of gRPC means that the host
//! wasn't reached, or isn't the one that was meant.

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use arrow_flight::flight_service_server::{FlightService, FlightServiceServer};
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo,
    HandshakeRequest, HandshakeResponse, PollInfo, PutResult, SchemaResult, Ticket,
};
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt as _};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use serde::{Deserialize, Serialize};
use stillframe_protocol::{Host, HostError, ScanPart, ScanStream, Staging};
use tokio::net::TcpListener;
use tonic::metadata::{BinaryMetadataValue, MetadataMap};
use tonic::{Request, Response, Status, Streaming};

use crate::accept::accept_all;
use crate::batches::{Received, Receiver, Sender};
use crate::codec::{pack, unpack};
use crate::message::{Identity, ScanHead, StagingHead, invalid};
use crate::security::Security;

/// Whom a request means.
const IDENTITY_KEY: &str = "stillframe-identity-bin";
/// How much of one stream, and of all of a connection, is under way at once.
pub(crate) const WINDOW_BYTES: u32 = 4 << 20;

/// What a stream of rows says beside them.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Mark {
    /// The scan has begun.
    Begun,
    /// It has ended, after so many rows.
    End {
        /// All of them.
        rows: u64,
    },
    /// It has failed.
    Failed(HostError),
}

impl Mark {
    fn message(&self) -> Result<FlightData, Status> {
        let mark = pack(self).map_err(|error| Status::internal(error.to_string()))?;
        Ok(FlightData::new().with_app_metadata(mark))
    }
}

/// Makes a request mean the process with this identity.
pub(crate) fn address_to(metadata: &mut MetadataMap, identity: &Identity) -> io::Result<()> {
    let value = BinaryMetadataValue::from_bytes(&pack(identity)?);
    metadata.insert_bin(IDENTITY_KEY, value);
    Ok(())
}

/// Answers whoever means the process with this identity, for as long as this is polled.
pub async fn serve_bulk(
    listener: TcpListener,
    security: Security,
    identity: Identity,
    host: Arc<dyn Host>,
) {
    // Rows are as long as they are.
    let service = FlightServiceServer::new(Bulk { identity, host })
        .max_decoding_message_size(usize::MAX)
        .max_encoding_message_size(usize::MAX);
    let mut http = auto::Builder::new(TokioExecutor::new()).http2_only();
    http.http2()
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES * 4);
    accept_all(listener, security, move |socket| {
        let (http, service) = (http.clone(), TowerToHyperService::new(service.clone()));
        async move {
            let served = http.serve_connection(TokioIo::new(socket), service).await;
            served.map_err(io::Error::other)
        }
    })
    .await;
}

/// A host behind Flight.
struct Bulk {
    identity: Identity,
    host: Arc<dyn Host>,
}

impl Bulk {
    fn check(&self, metadata: &MetadataMap) -> Result<(), Status> {
        let meant = metadata.get_bin(IDENTITY_KEY).and_then(|value| value.to_bytes().ok());
        let meant = meant.and_then(|bytes| unpack::<Identity>(&bytes).ok());
        if meant.as_ref() != Some(&self.identity) {
            return Err(Status::failed_precondition("another process is here now"));
        }
        Ok(())
    }
}

/// The messages of a scan, which ends with a mark.
fn scanned(parts: ScanStream) -> BoxStream<'static, Result<FlightData, Status>> {
    let state = Some((parts, Sender::default()));
    let messages = stream::unfold(state, async |state| {
        let (mut parts, mut sender) = state?;
        let mark = match parts.next().await {
            Some(Ok(ScanPart::Batch(batch))) => match sender.send(batch) {
                Ok(messages) => {
                    let messages = messages.into_iter().map(Ok).collect();
                    return Some((messages, Some((parts, sender))));
                }
                Err(error) => Mark::Failed(invalid(error)),
            },
            Some(Ok(ScanPart::End { rows })) => Mark::End { rows },
            Some(Err(error)) => Mark::Failed(error),
            None => Mark::Failed(HostError::Failed("a scan stopped without an end".to_owned())),
        };
        Some((vec![mark.message()], None))
    });
    messages.flat_map(stream::iter).boxed()
}

/// The changes that these messages bring, of which the first one tells what they are.
async fn staged(mut messages: Streaming<FlightData>) -> Result<Staging, Status> {
    let malformed = |error: String| Status::invalid_argument(error);
    let first = messages.message().await?.ok_or_else(|| malformed("no changes".to_owned()))?;
    let mut receiver = Receiver::default();
    let head = receiver.receive::<StagingHead>(first).map_err(|e| malformed(e.to_string()))?;
    let Received::Mark(head) = head else { return Err(malformed("changes of nothing".to_owned())) };
    let mut rows: Vec<RecordBatch> = vec![];
    while let Some(message) = messages.message().await? {
        match receiver.receive::<StagingHead>(message).map_err(|e| malformed(e.to_string()))? {
            Received::Batch(batch) => rows.push(batch),
            Received::Schema => {}
            Received::Mark(_) => return Err(malformed("changes of two transactions".to_owned())),
        }
    }
    head.join(rows).map_err(|error| malformed(error.to_string()))
}

/// The messages of changes.
pub(crate) fn staging_messages(staging: Staging) -> Result<Vec<FlightData>, HostError> {
    let (head, rows) = StagingHead::split(staging);
    let head = pack(&head).map_err(invalid)?;
    let mut messages = vec![FlightData::new().with_app_metadata(head)];
    let mut sender = Sender::default();
    for batch in rows {
        messages.extend(sender.send(batch).map_err(invalid)?);
    }
    Ok(messages)
}

/// Answers that come one after the other.
type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

fn unsupported<T>() -> Result<T, Status> {
    Err(Status::unimplemented("hosts are only scanned and staged"))
}

#[tonic::async_trait]
impl FlightService for Bulk {
    type HandshakeStream = Answers<HandshakeResponse>;
    type ListFlightsStream = Answers<FlightInfo>;
    type DoGetStream = BoxStream<'static, Result<FlightData, Status>>;
    type DoPutStream = Answers<PutResult>;
    type DoActionStream = Answers<arrow_flight::Result>;
    type ListActionsStream = Answers<ActionType>;
    type DoExchangeStream = Answers<FlightData>;

    /// A scan: the ticket is a [`ScanHead`].
    async fn do_get(
        &self,
        request: Request<Ticket>,
    ) -> Result<Response<Self::DoGetStream>, Status> {
        self.check(request.metadata())?;
        let malformed = |error: String| Status::invalid_argument(error);
        let head = unpack::<ScanHead>(&request.into_inner().ticket);
        let head = head.map_err(|error| malformed(error.to_string()))?;
        let request = head.join().map_err(|error| malformed(error.to_string()))?;
        let parts = match self.host.scan(request).await {
            Ok(parts) => parts,
            Err(error) => {
                let failed = Mark::Failed(error).message();
                return Ok(Response::new(stream::iter([failed]).boxed()));
            }
        };
        let begun = stream::iter([Mark::Begun.message()]);
        Ok(Response::new(begun.chain(scanned(parts)).boxed()))
    }

    /// Changes, answered by one result.
    async fn do_put(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoPutStream>, Status> {
        self.check(request.metadata())?;
        let staging = staged(request.into_inner()).await?;
        let host = Arc::clone(&self.host);
        // To its end, whatever becomes of who has asked.
        let staged = tokio::spawn(async move { host.stage(staging).await }).await;
        let staged = staged.unwrap_or_else(|_| Err(HostError::Failed("it panicked".to_owned())));
        let app_metadata = pack(&staged).map_err(|error| Status::internal(error.to_string()))?;
        Ok(Response::new(stream::iter([Ok(PutResult { app_metadata })]).boxed()))
    }

    async fn handshake(
        &self,
        _: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Self::HandshakeStream>, Status> {
        unsupported()
    }

    async fn list_flights(
        &self,
        _: Request<Criteria>,
    ) -> Result<Response<Self::ListFlightsStream>, Status> {
        unsupported()
    }

    async fn get_flight_info(
        &self,
        _: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        unsupported()
    }

    async fn poll_flight_info(
        &self,
        _: Request<FlightDescriptor>,
    ) -> Result<Response<PollInfo>, Status> {
        unsupported()
    }

    async fn get_schema(
        &self,
        _: Request<FlightDescriptor>,
    ) -> Result<Response<SchemaResult>, Status> {
        unsupported()
    }

    async fn do_action(
        &self,
        _: Request<Action>,
    ) -> Result<Response<Self::DoActionStream>, Status> {
        unsupported()
    }

    async fn list_actions(
        &self,
        _: Request<Empty>,
    ) -> Result<Response<Self::ListActionsStream>, Status> {
        unsupported()
    }

    async fn do_exchange(
        &self,
        _: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoExchangeStream>, Status> {
        unsupported()
    }
}
