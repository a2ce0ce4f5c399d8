//! A host that is another process.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::{FlightData, Ticket};
use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream::{self, try_unfold};
use hyper_util::rt::TokioIo;
use stillframe_protocol::{
    Activation, Command, Epoch, Host, HostError, Incarnation, RelationId, Report, Retention,
    RowError, ScanPart, ScanRequest, ScanStream, Staging, Statistics, Step, TransactionId,
};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status, Streaming};
use tower::service_fn;

use crate::batches::{Received, Receiver};
use crate::bulk::{Mark, WINDOW_BYTES, address_to, staging_messages};
use crate::codec::{pack, unpack};
use crate::control::{ControlLink, unlimited, within};
use crate::message::{Addresses, Identity, ScanHead, invalid};
use crate::security::Security;

/// A host that is another process, reached when it is asked.
///
/// What its coordinator commands is waited for, however long it takes. What front ends ask is given up
/// with [`HostError::Unreachable`] when the process gives no sign of life for as long as their
/// patience lasts, or when a connection breaks, in the middle of a scan too.
#[derive(Debug)]
pub struct RemoteHost {
    addresses: Addresses,
    identity: Identity,
    patience: Duration,
    control: ControlLink,
    bulk: FlightServiceClient<Channel>,
}

impl RemoteHost {
    /// The process with this identity, at these addresses. Must be called inside a Tokio runtime.
    pub fn new(
        addresses: Addresses,
        identity: Identity,
        security: &Security,
        patience: Duration,
    ) -> Self {
        let control = ControlLink::new(addresses.control, security.clone(), identity.clone());
        let security = security.clone();
        let connect = service_fn(move |_| {
            let security = security.clone();
            async move { io::Result::Ok(TokioIo::new(security.open(addresses.bulk).await?)) }
        });
        // The name is for HTTP alone: whoever answers has shown by its certificate who it is.
        let channel = Endpoint::from_static("http://node.stillframe")
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES * 4)
            .http2_keep_alive_interval(patience / 4)
            .keep_alive_timeout(patience)
            .connect_with_connector_lazy(connect);
        let bulk = FlightServiceClient::new(channel)
            .max_decoding_message_size(usize::MAX)
            .max_encoding_message_size(usize::MAX);
        Self { addresses, identity, patience, control, bulk }
    }

    /// A request of Flight to this very process.
    fn request<T>(&self, message: T) -> Result<Request<T>, HostError> {
        let mut request = Request::new(message);
        address_to(request.metadata_mut(), &self.identity).map_err(invalid)?;
        Ok(request)
    }

    fn lost(&self, status: &Status) -> HostError {
        // The status says what became of the request; what it stands on says why.
        let mut reason = status.message().to_owned();
        let mut source = status.source();
        while let Some(error) = source {
            reason = format!("{reason}: {error}");
            source = error.source();
        }
        HostError::Unreachable(format!("{}: {reason}", self.addresses.bulk))
    }
}

/// A scan under way.
struct Scan {
    messages: Streaming<FlightData>,
    receiver: Receiver,
    rows: u64,
}

impl Scan {
    /// The next message, if there is one.
    async fn message(&mut self) -> Result<Received<Mark>, HostError> {
        let lost = |reason: String| HostError::Unreachable(reason);
        let message = self.messages.message().await.map_err(|e| lost(e.to_string()))?;
        let message = message.ok_or_else(|| lost("a scan stopped without an end".to_owned()))?;
        self.receiver.receive(message).map_err(|error| lost(error.to_string()))
    }

    /// The next part, and what is left after it.
    async fn next(mut self) -> Result<(ScanPart, Option<Self>), HostError> {
        loop {
            match self.message().await? {
                Received::Schema => {}
                Received::Batch(batch) => {
                    self.rows += batch.num_rows() as u64;
                    return Ok((ScanPart::Batch(batch), Some(self)));
                }
                Received::Mark(Mark::End { rows }) if rows == self.rows => {
                    return Ok((ScanPart::End { rows }, None));
                }
                Received::Mark(Mark::End { rows }) => {
                    let message = format!("{} rows of {rows} have come", self.rows);
                    return Err(HostError::Unreachable(message));
                }
                Received::Mark(Mark::Failed(error)) => return Err(error),
                Received::Mark(Mark::Begun) => return Err(invalid("a scan has begun twice")),
            }
        }
    }
}

#[async_trait]
impl Host for RemoteHost {
    async fn activate(&self, activation: Activation) -> Result<Report, HostError> {
        self.control.ask(async |control| control.activate(unlimited(), activation).await).await
    }

    async fn execute(&self, command: Arc<Command>) -> Result<Report, HostError> {
        self.control.ask(async |control| control.execute(unlimited(), command).await).await
    }

    async fn retire(&self, incarnation: Incarnation, reason: String) -> Result<(), HostError> {
        self.control
            .ask(async |control| control.retire(unlimited(), incarnation, reason).await)
            .await
    }

    async fn retain(&self, epoch: Epoch, retention: Retention) -> Result<(), HostError> {
        self.control.ask(async |control| control.retain(unlimited(), epoch, retention).await).await
    }

    async fn stage(&self, staging: Staging) -> Result<(), HostError> {
        let request = self.request(stream::iter(staging_messages(staging)?))?;
        let answers = self.bulk.clone().do_put(request).await;
        let mut answers = answers.map_err(|status| self.lost(&status))?.into_inner();
        let answer = answers.message().await.map_err(|status| self.lost(&status))?;
        let answer = answer.ok_or_else(|| invalid("changes without an answer"))?;
        unpack(&answer.app_metadata).map_err(invalid)?
    }

    async fn unstage(&self, epoch: Epoch, transaction: TransactionId) -> Result<(), HostError> {
        self.control
            .ask(async |control| control.unstage(within(self.patience), epoch, transaction).await)
            .await
    }

    async fn scan(&self, request: ScanRequest) -> Result<ScanStream, HostError> {
        let ticket = pack(&ScanHead::split(request)?).map_err(invalid)?;
        let answers = self.bulk.clone().do_get(self.request(Ticket { ticket })?).await;
        let messages = answers.map_err(|status| self.lost(&status))?.into_inner();
        let mut scan = Scan { messages, receiver: Receiver::default(), rows: 0 };
        match scan.message().await? {
            Received::Mark(Mark::Begun) => {}
            Received::Mark(Mark::Failed(error)) => return Err(error),
            other => return Err(invalid(format!("a scan has begun with {other:?}"))),
        }
        let parts = try_unfold(Some(scan), async |scan| match scan {
            Some(scan) => scan.next().await.map(Some),
            None => Ok(None),
        });
        Ok(parts.boxed())
    }

    async fn view_errors(
        &self,
        epoch: Epoch,
        step: Step,
        view: RelationId,
    ) -> Result<Vec<RowError>, HostError> {
        self.control
            .ask(async |control| {
                control.view_errors(within(self.patience), epoch, step, view).await
            })
            .await
    }

    async fn statistics(&self, epoch: Epoch, step: Step) -> Result<Statistics, HostError> {
        self.control
            .ask(async |control| control.statistics(within(self.patience), epoch, step).await)
            .await
    }
}
