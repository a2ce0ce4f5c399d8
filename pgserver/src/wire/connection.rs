//! One client's connection, from its first byte to its last.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use bytes::BytesMut;
use futures::FutureExt;
use pgwire::messages::response::{
    NotificationResponse, ReadyForQuery, TransactionStatus as WireStatus,
};
use pgwire::messages::startup::{Authentication, BackendKeyData, SecretKey};
use stillframe_sql::{Error, Notification, Role, TransactionStatus};
use tokio::io::{AsyncRead, AsyncWrite, ReadHalf, WriteHalf};
use tokio::sync::watch;
use tokio::time::timeout;

use super::authentication::authenticate;
use super::backend::Backend;
use super::cancel::{CancelKey, CancelKeys};
use super::channel::Channel;
use super::extended::Extended;
use super::frontend::{Frame, Message, violation};
use super::incoming::{Ended, Incoming, Interruption, deadline, reached};
use super::outgoing::{Outgoing, Severity};
use super::parameters::Parameters;
use super::startup::{self, Client, Opening, Rejection, STARTUP_TIME_MAX};
use crate::access::Access;

/// How long a last word to a client may take.
const GOODBYE_TIME_MAX: Duration = Duration::from_secs(1);

/// What connections come in by.
pub(crate) struct Entrance<'a> {
    pub(crate) keys: &'a CancelKeys,
    pub(crate) access: &'a Access,
    /// Becomes true when connections end.
    pub(crate) stopping: watch::Receiver<bool>,
}

/// Who has come in.
pub(crate) struct Admitted {
    pub(crate) user: String,
    /// Stands in for the number of a process.
    pub(crate) process: i32,
    pub(crate) is_superuser: bool,
}

/// Serves one connection. `role` looks a role up, `session` makes the session of who has come in,
/// `started` is dropped as soon as the client has one.
pub(crate) async fn serve<S, B, P, F>(
    stream: S,
    entrance: Entrance<'_>,
    role: impl FnOnce(String) -> F,
    session: impl FnOnce(Admitted) -> B,
    started: P,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    B: Backend,
    P: Send,
    F: Future<Output = Result<Option<Role>, Error>>,
{
    let Entrance { keys, access, stopping } = entrance;
    let mut buffer = BytesMut::new();
    let mut stream = Some(Channel::Plain(stream));
    let opened = async {
        let opening = startup::open(&mut stream, &mut buffer, access).await?;
        let Opening::Session(client) = &opening else { return Ok((opening, false)) };
        let channel = stream.as_mut().ok_or(Rejection::Gone)?;
        let role = role(client.user.clone());
        let authentication = &access.authentication;
        let shown = authenticate(channel, &mut buffer, authentication, &client.user, role);
        let is_superuser = shown.await?;
        Ok((opening, is_superuser))
    };
    let opened = timeout(STARTUP_TIME_MAX, opened).await;
    let Some(mut stream) = stream else { return };
    let (opening, is_superuser) = match opened {
        Ok(Ok(opened)) => opened,
        Ok(Err(Rejection::Refused(error))) => {
            tracing::debug!(%error, "connection refused");
            let _ = timeout(GOODBYE_TIME_MAX, startup::refuse(&mut stream, &error)).await;
            return;
        }
        Ok(Err(Rejection::Gone)) | Err(_) => return,
    };
    let client = match opening {
        Opening::Session(client) => client,
        Opening::Cancel { process, secret } => return keys.cancel(process, secret),
    };
    let (key, canceled) = keys.register();
    let admitted = Admitted { user: client.user.clone(), process: key.process, is_superuser };
    let session = session(admitted);
    let (reader, writer) = tokio::io::split(stream);
    let mut connection = Connection {
        incoming: Incoming::new(reader, buffer, canceled, stopping, session.progress()),
        outgoing: Outgoing::new(writer),
        session,
        parameters: Parameters::default(),
        extended: Extended::default(),
        is_ready: false,
    };
    connection.run(&key, client, started).await;
}

/// A connection with a session.
pub(super) struct Connection<B: Backend, R, W> {
    pub(super) session: B,
    pub(super) incoming: Incoming<R>,
    pub(super) outgoing: Outgoing<W>,
    pub(super) parameters: Parameters,
    pub(super) extended: Extended<B>,
    /// Whether the client was told that the next request may come, and none has.
    is_ready: bool,
}

impl<B, S> Connection<B, ReadHalf<S>, WriteHalf<S>>
where
    B: Backend,
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    /// Serves the client until the end, and says why if it is ours.
    async fn run<P: Send>(&mut self, key: &CancelKey, client: Client, started: P) {
        tracing::debug!(conn = key.process, user = client.user, "connected");
        let served = AssertUnwindSafe(async {
            self.greet(key, client).await?;
            drop(started);
            self.serve().await
        })
        .catch_unwind()
        .await;
        let ended = match served {
            Ok(Err(ended)) => ended,
            Ok(Ok(never)) => match never {},
            Err(panic) => {
                let panic = panic_text(panic.as_ref());
                tracing::error!(conn = key.process, panic, "connection has panicked");
                Ended::Fatal(Error::internal(format!("a mistake in the server: {panic}")))
            }
        };
        match ended {
            Ended::Terminated => tracing::debug!(conn = key.process, "disconnected"),
            Ended::Gone => tracing::debug!(conn = key.process, "client has gone"),
            Ended::Fatal(error) => {
                tracing::debug!(conn = key.process, %error, "connection ended");
                if self.outgoing.put_error(Severity::Fatal, &error).is_ok() {
                    let _ = timeout(GOODBYE_TIME_MAX, self.outgoing.close()).await;
                }
            }
        }
    }
}

/// What [`Connection::serve`] returns besides the reason of its end: nothing.
enum Never {}

impl<B, R, W> Connection<B, R, W>
where
    B: Backend,
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    /// Tells the client that it has a session.
    async fn greet(&mut self, key: &CancelKey, client: Client) -> Result<(), Ended> {
        if let Some(negotiation) = &client.negotiation {
            self.outgoing.put(negotiation)?;
        }
        for (name, value) in &client.settings {
            self.session.set(name, value).map_err(Ended::Fatal)?;
        }
        self.outgoing.put(&Authentication::Ok)?;
        self.tell_settings()?;
        let secret = SecretKey::I32(key.secret);
        self.outgoing.put(&BackendKeyData::new(key.process, secret))?;
        self.ready().await
    }

    /// One message after the other.
    async fn serve(&mut self) -> Result<Never, Ended> {
        loop {
            let frame = self.next_frame().await?;
            self.is_ready = false;
            // On the heap, so that an idle connection holds nothing of it.
            Box::pin(self.on_frame(frame)).await?;
        }
    }

    /// The next message. A client that has nothing to wait for is told what others tell it, and may
    /// be silent for some time only if its settings say so.
    async fn next_frame(&mut self) -> Result<Frame, Ended> {
        if !self.is_ready {
            return self.incoming.next().await;
        }
        let limit = self.session.idle_limit();
        let deadline = deadline(limit.as_ref().map(|limit| limit.time));
        loop {
            let notified = self.session.notified();
            tokio::select! {
                biased;
                frame = self.incoming.next() => return frame,
                () = notified => {
                    self.tell_notifications()?;
                    self.flush().await?;
                }
                () = reached(deadline) => {
                    let error = limit.map(|limit| limit.error);
                    return Err(error.map_or(Ended::Gone, Ended::Fatal));
                }
            }
        }
    }

    async fn on_frame(&mut self, frame: Frame) -> Result<(), Ended> {
        let kind = frame.kind;
        if self.extended.is_skipping() && !matches!(kind, b'S' | b'X') {
            return Ok(());
        }
        if Message::is_extended(kind) {
            return self.on_extended(frame).await;
        }
        let message = match Message::read(frame) {
            Ok(message) => message,
            Err(error) => {
                self.fail(&error).await?;
                return self.ready().await;
            }
        };
        match message {
            Message::Query(text) => {
                let done = self.query(&text).await;
                self.settle(done).await?;
                self.extended.leave(self.session.status());
                self.ready().await
            }
            Message::Sync => {
                let done = self.sync().await;
                self.settle(done).await?;
                self.extended.leave(self.session.status());
                self.extended.synced();
                self.ready().await
            }
            Message::Terminate => Err(Ended::Terminated),
            // What is left of a COPY that has failed.
            Message::CopyData(_) | Message::CopyDone | Message::CopyFail(_) => Ok(()),
            _ => {
                let error = if kind == b'F' {
                    Error::unsupported("the function call protocol")
                } else {
                    return Err(Ended::Fatal(violation(format!(
                        "unexpected message type 0x{kind:02X}"
                    ))));
                };
                self.fail(&error).await?;
                self.ready().await
            }
        }
    }

    /// Passes over a statement's error, having told the client.
    pub(super) async fn settle(&mut self, done: Result<(), Interruption>) -> Result<(), Ended> {
        match done {
            Ok(()) => Ok(()),
            Err(Interruption::Statement(error)) => self.fail(&error).await,
            Err(Interruption::Connection(ended)) => Err(ended),
        }
    }

    /// Tells the client of a statement's error, at once.
    pub(super) async fn fail(&mut self, error: &Error) -> Result<(), Ended> {
        self.session.fail();
        self.tell_notices()?;
        self.outgoing.put_error(Severity::Error, error)?;
        self.flush().await
    }

    /// Tells the client that the next request may come.
    async fn ready(&mut self) -> Result<(), Ended> {
        self.tell_notifications()?;
        self.tell_settings()?;
        let status = match self.session.status() {
            TransactionStatus::Idle => WireStatus::Idle,
            TransactionStatus::Open => WireStatus::Transaction,
            TransactionStatus::Failed => WireStatus::Error,
        };
        self.outgoing.put(&ReadyForQuery::new(status))?;
        self.is_ready = true;
        self.flush().await
    }

    /// Sends what there is, if the client stays.
    pub(super) async fn flush(&mut self) -> Result<(), Ended> {
        loop {
            match self.incoming.attend(None, self.outgoing.flush()).await {
                Ok(sent) => return Ok(sent?),
                // There is no statement that could be canceled.
                Err(Interruption::Statement(_)) => {}
                Err(Interruption::Connection(ended)) => return Err(ended),
            }
        }
    }

    pub(super) fn tell_notices(&mut self) -> Result<(), Ended> {
        for notice in self.session.take_notices() {
            self.outgoing.put_notice(notice.severity, &notice.error)?;
        }
        Ok(())
    }

    fn tell_notifications(&mut self) -> Result<(), Ended> {
        for Notification { process, channel, payload } in self.session.take_notifications() {
            self.outgoing.put(&NotificationResponse::new(process, channel, payload))?;
        }
        Ok(())
    }

    fn tell_settings(&mut self) -> Result<(), Ended> {
        for change in self.parameters.changes(self.session.reported_settings()) {
            self.outgoing.put(&change)?;
        }
        Ok(())
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("unknown")
}
