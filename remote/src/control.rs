//! What a host is asked and answers in few words: requests of tarpc, after a greeting that makes sure
//! that both sides mean each other.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::{SinkExt as _, StreamExt as _};
use stillframe_protocol::{
    Activation, Command, Epoch, Host, HostError, Incarnation, RelationId, Report, Retention,
    RowError, Statistics, Step, TransactionId,
};
use tarpc::client::RpcError;
use tarpc::context::{self, Context};
use tarpc::server::{BaseChannel, Channel as _};
use tokio::net::TcpListener;
use tokio_util::codec::Framed;

use crate::accept::accept_all;
use crate::codec::Codec;
use crate::message::{Greeting, Identity};
use crate::security::{Security, Socket};

/// For a command's answer that may take as long as it does: tarpc wants a limit.
const UNLIMITED: Duration = Duration::from_secs(24 * 60 * 60);

/// All that is asked of a [`Host`] without batches of rows.
#[tarpc::service]
pub(crate) trait Control {
    async fn activate(activation: Activation) -> Result<Report, HostError>;
    async fn execute(command: Arc<Command>) -> Result<Report, HostError>;
    async fn retire(incarnation: Incarnation, reason: String) -> Result<(), HostError>;
    async fn retain(epoch: Epoch, retention: Retention) -> Result<(), HostError>;
    async fn unstage(epoch: Epoch, transaction: TransactionId) -> Result<(), HostError>;
    async fn view_errors(
        epoch: Epoch,
        step: Step,
        view: RelationId,
    ) -> Result<Vec<RowError>, HostError>;
    async fn statistics(epoch: Epoch, step: Step) -> Result<Statistics, HostError>;
}

/// A request that is answered when it is done, however long that takes.
pub(crate) fn unlimited() -> Context {
    within(UNLIMITED)
}

/// A request that is given up after so long.
pub(crate) fn within(patience: Duration) -> Context {
    let mut context = context::current();
    context.deadline = Instant::now() + patience;
    context
}

/// Answers whoever means the process with this identity, for as long as this is polled.
pub async fn serve_control(
    listener: TcpListener,
    security: Security,
    identity: Identity,
    host: Arc<dyn Host>,
) {
    accept_all(listener, security, move |socket| {
        answer_all(socket, identity.clone(), Arc::clone(&host))
    })
    .await;
}

async fn answer_all(socket: Socket, identity: Identity, host: Arc<dyn Host>) -> io::Result<()> {
    let mut greetings = Framed::new(socket, Codec::<Identity, Greeting>::new());
    let Some(meant) = greetings.next().await else { return Ok(()) };
    if meant? != identity {
        return greetings.send(Greeting::Another(identity)).await;
    }
    greetings.send(Greeting::Welcome).await?;
    // The codec may have read further than the greeting.
    let requests = greetings.map_codec(|_| Codec::new());
    BaseChannel::with_defaults(requests)
        .execute(Answers { host }.serve())
        .for_each_concurrent(None, |answer| answer)
        .await;
    Ok(())
}

/// Answers with a host.
#[derive(Clone)]
struct Answers {
    host: Arc<dyn Host>,
}

impl Answers {
    /// To its end, whatever becomes of who has asked: it would be given up with the connection.
    async fn ask<T, F>(self, ask: impl FnOnce(Arc<dyn Host>) -> F) -> Result<T, HostError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, HostError>> + Send + 'static,
    {
        let asked = tokio::spawn(ask(self.host)).await;
        asked.unwrap_or_else(|_| Err(HostError::Failed("it panicked".to_owned())))
    }
}

impl Control for Answers {
    async fn activate(self, _: Context, activation: Activation) -> Result<Report, HostError> {
        self.ask(async move |host| host.activate(activation).await).await
    }

    async fn execute(self, _: Context, command: Arc<Command>) -> Result<Report, HostError> {
        self.ask(async move |host| host.execute(command).await).await
    }

    async fn retire(
        self,
        _: Context,
        incarnation: Incarnation,
        reason: String,
    ) -> Result<(), HostError> {
        self.ask(async move |host| host.retire(incarnation, reason).await).await
    }

    async fn retain(self, _: Context, epoch: Epoch, retention: Retention) -> Result<(), HostError> {
        self.ask(async move |host| host.retain(epoch, retention).await).await
    }

    async fn unstage(
        self,
        _: Context,
        epoch: Epoch,
        transaction: TransactionId,
    ) -> Result<(), HostError> {
        self.ask(async move |host| host.unstage(epoch, transaction).await).await
    }

    async fn view_errors(
        self,
        _: Context,
        epoch: Epoch,
        step: Step,
        view: RelationId,
    ) -> Result<Vec<RowError>, HostError> {
        self.ask(async move |host| host.view_errors(epoch, step, view).await).await
    }

    async fn statistics(
        self,
        _: Context,
        epoch: Epoch,
        step: Step,
    ) -> Result<Statistics, HostError> {
        self.ask(async move |host| host.statistics(epoch, step).await).await
    }
}

/// The way to a process's control, connected when it is needed and again when the connection is lost.
#[derive(Debug)]
pub(crate) struct ControlLink {
    address: SocketAddr,
    security: Security,
    identity: Identity,
    /// Counts the connections, so that one that was lost is given up once.
    connected: Mutex<(u64, Option<ControlClient>)>,
}

impl ControlLink {
    pub(crate) fn new(address: SocketAddr, security: Security, identity: Identity) -> Self {
        Self { address, security, identity, connected: Mutex::default() }
    }

    /// Asks; a connection that breaks is [`HostError::Unreachable`].
    pub(crate) async fn ask<T>(
        &self,
        ask: impl AsyncFnOnce(ControlClient) -> Result<Result<T, HostError>, RpcError>,
    ) -> Result<T, HostError> {
        let (number, client) = self.client().await?;
        match ask(client).await {
            Ok(answer) => answer,
            Err(error) => {
                let mut connected = self.lock();
                // Who is only slow keeps its connection: others wait on it for as long as it takes.
                if connected.0 == number && !matches!(error, RpcError::DeadlineExceeded) {
                    connected.1 = None;
                }
                Err(HostError::Unreachable(format!("{}: {error}", self.address)))
            }
        }
    }

    async fn client(&self) -> Result<(u64, ControlClient), HostError> {
        if let (number, Some(client)) = &*self.lock() {
            return Ok((*number, client.clone()));
        }
        // Whoever else connects meanwhile has a connection too; the last one is kept.
        let client = self.connect().await?;
        let mut connected = self.lock();
        connected.0 += 1;
        connected.1 = Some(client.clone());
        Ok((connected.0, client))
    }

    async fn connect(&self) -> Result<ControlClient, HostError> {
        let lost = |error: io::Error| HostError::Unreachable(format!("{}: {error}", self.address));
        let socket = self.security.open(self.address).await.map_err(lost)?;
        let mut greetings = Framed::new(socket, Codec::<Greeting, Identity>::new());
        greetings.send(self.identity.clone()).await.map_err(lost)?;
        match greetings.next().await {
            Some(Ok(Greeting::Welcome)) => {}
            Some(Ok(Greeting::Another(_))) => {
                let message = format!("another process is at {} now", self.address);
                return Err(HostError::Unreachable(message));
            }
            Some(Err(error)) => return Err(lost(error)),
            None => return Err(lost(io::ErrorKind::UnexpectedEof.into())),
        }
        let requests = greetings.map_codec(|_| Codec::new());
        let client = ControlClient::new(tarpc::client::Config::default(), requests);
        tokio::spawn(async move {
            if let Err(error) = client.dispatch.await {
                tracing::debug!(%error, "connection to a host was lost");
            }
        });
        Ok(client.client)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, (u64, Option<ControlClient>)> {
        self.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
