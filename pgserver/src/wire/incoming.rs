//! The receiving half of a connection: frames while idle, and while something is under way whatever
//! should stop it.

use std::future::{Future, pending};
use std::io;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use stillframe_sql::{Error, Progress, SqlState};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::watch;
use tokio::time::Instant;

use super::frontend::{Frame, length_max, violation};

/// How much is read ahead while a statement runs: enough to see that the client has gone.
const AHEAD_BYTES_MAX: usize = 64 << 10;
/// How much room a read has.
const READ_BYTES: usize = 4 << 10;
/// A buffer that has grown beyond this is given back once it is empty.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// Why a connection ends.
#[derive(Debug)]
pub(super) enum Ended {
    /// The client has said so.
    Terminated,
    /// The client is gone: nobody is there to be told anything.
    Gone,
    /// The client is told, and the connection closed.
    Fatal(Error),
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        tracing::debug!(%error, "connection lost");
        Self::Gone
    }
}

/// Why something under way was stopped.
#[derive(Debug)]
pub(super) enum Interruption {
    /// The statement has failed; the connection goes on.
    Statement(Error),
    /// The connection ends.
    Connection(Ended),
}

/// The receiving half of a connection.
pub(super) struct Incoming<R> {
    reader: R,
    buffer: BytesMut,
    /// Set by a cancel request.
    canceled: watch::Receiver<()>,
    /// Becomes true when the server stops.
    stopping: watch::Receiver<bool>,
    /// Whether what is under way can be stopped.
    progress: Progress,
}

impl<R: AsyncRead + Unpin> Incoming<R> {
    /// `buffer` is what was read already.
    pub(super) fn new(
        reader: R,
        buffer: BytesMut,
        canceled: watch::Receiver<()>,
        stopping: watch::Receiver<bool>,
        progress: Progress,
    ) -> Self {
        Self { reader, buffer, canceled, stopping, progress }
    }

    /// The next message. A cancel request that comes while the client is silent means nothing.
    pub(super) async fn next(&mut self) -> Result<Frame, Ended> {
        let mut waited = false;
        loop {
            if let Some(frame) = self.take_frame()? {
                if waited {
                    self.canceled.mark_unchanged();
                }
                return Ok(frame);
            }
            waited = true;
            tokio::select! {
                biased;
                _ = stopped(&mut self.stopping) => return Err(Ended::Fatal(shutdown())),
                read = read(&mut self.reader, &mut self.buffer) => {
                    if read? == 0 {
                        return Err(Ended::Gone);
                    }
                }
            }
        }
    }

    /// The next message of a COPY: a cancel request, a timeout and the server's end are heeded.
    pub(super) async fn next_of_copy(
        &mut self,
        deadline: Option<Instant>,
    ) -> Result<Frame, Interruption> {
        loop {
            if let Some(frame) = self.take_frame().map_err(Interruption::Connection)? {
                return Ok(frame);
            }
            tokio::select! {
                biased;
                _ = self.canceled.changed() => return Err(Interruption::Statement(canceled())),
                _ = stopped(&mut self.stopping) => {
                    return Err(Interruption::Connection(Ended::Fatal(shutdown())));
                }
                () = reached(deadline) => return Err(Interruption::Statement(timed_out())),
                read = read(&mut self.reader, &mut self.buffer) => match read {
                    Ok(0) => return Err(Interruption::Connection(Ended::Gone)),
                    Ok(_) => {}
                    Err(error) => return Err(Interruption::Connection(error.into())),
                }
            }
        }
    }

    /// Does some work, unless the client cancels it or goes, its time is over or the server stops.
    ///
    /// Work that is committing is not stopped by a cancel request or a timeout: it would seem
    /// undone and isn't.
    pub(super) async fn attend<T>(
        &mut self,
        deadline: Option<Instant>,
        work: impl Future<Output = T>,
    ) -> Result<T, Interruption> {
        tokio::pin!(work);
        let mut deadline = deadline;
        loop {
            tokio::select! {
                // Interruptions first: work that is always ready must be stoppable, too.
                biased;
                _ = self.canceled.changed() => {
                    if !self.progress.is_committing() {
                        return Err(Interruption::Statement(canceled()));
                    }
                }
                () = reached(deadline) => {
                    if !self.progress.is_committing() {
                        return Err(Interruption::Statement(timed_out()));
                    }
                    deadline = None;
                }
                () = stopped(&mut self.stopping) => {
                    return Err(Interruption::Connection(Ended::Fatal(shutdown())));
                }
                done = &mut work => return Ok(done),
                gone = gone(&mut self.reader, &mut self.buffer) => {
                    return Err(Interruption::Connection(gone));
                }
            }
        }
    }

    /// The first whole frame of the buffer.
    fn take_frame(&mut self) -> Result<Option<Frame>, Ended> {
        if self.buffer.is_empty() && self.buffer.capacity() > KEPT_BYTES_MAX {
            self.buffer = BytesMut::new();
        }
        let Some((&kind, rest)) = self.buffer.split_first() else { return Ok(None) };
        let Some(max) = length_max(kind) else {
            return Err(Ended::Fatal(violation(format!("invalid frontend message type {kind}"))));
        };
        let Some(length) = rest.first_chunk::<4>() else { return Ok(None) };
        let length = match usize::try_from(i32::from_be_bytes(*length)) {
            Ok(length) if (4..=max).contains(&length) => length,
            _ => return Err(Ended::Fatal(violation("invalid message length"))),
        };
        if self.buffer.len() <= length {
            return Ok(None);
        }
        let mut frame = self.buffer.split_to(1 + length);
        frame.advance(5);
        Ok(Some(Frame { kind, body: frame.freeze() }))
    }
}

async fn read<R: AsyncRead + Unpin>(reader: &mut R, buffer: &mut BytesMut) -> io::Result<usize> {
    if buffer.capacity() == buffer.len() {
        // Grows with what has come, not with what a length field promises.
        buffer.reserve(READ_BYTES.max(buffer.len()));
    }
    reader.read_buf(buffer).await
}

/// Ends when the client has gone; reads ahead until the buffer is full.
async fn gone<R: AsyncRead + Unpin>(reader: &mut R, buffer: &mut BytesMut) -> Ended {
    while buffer.len() < AHEAD_BYTES_MAX {
        match read(reader, buffer).await {
            Ok(0) => return Ended::Gone,
            Ok(_) => {}
            Err(error) => return error.into(),
        }
    }
    pending().await
}

async fn stopped(stopping: &mut watch::Receiver<bool>) {
    if stopping.wait_for(|stopping| *stopping).await.is_err() {
        // Nobody can stop the server any more.
        pending().await
    }
}

/// Ends at a time, if there is one.
pub(super) async fn reached(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => pending().await,
    }
}

/// When work that starts now and may take so long must end.
pub(super) fn deadline(time: Option<Duration>) -> Option<Instant> {
    time.and_then(|time| Instant::now().checked_add(time))
}

fn canceled() -> Error {
    Error::new(SqlState::QUERY_CANCELED, "canceling statement due to user request")
}

fn timed_out() -> Error {
    Error::new(SqlState::QUERY_CANCELED, "canceling statement due to statement timeout")
}

fn shutdown() -> Error {
    Error::new(SqlState::ADMIN_SHUTDOWN, "terminating connection due to administrator command")
}
