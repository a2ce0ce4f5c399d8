//! The sending half of a connection: messages are gathered and leave in pieces.

use std::io;

use bytes::BytesMut;
use pgwire::messages::Message;
use pgwire::messages::response::{ErrorResponse, NoticeResponse};
use stillframe_sql::{Error, SqlState, Subject};
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::incoming::Ended;

/// About how many bytes of messages are gathered before they are sent.
pub(super) const PIECE_BYTES: usize = 32 << 10;

/// The sending half of a connection.
pub(super) struct Outgoing<W> {
    writer: W,
    /// Whole messages that aren't sent yet.
    pub(super) buffer: BytesMut,
}

impl<W: AsyncWrite + Unpin> Outgoing<W> {
    pub(super) fn new(writer: W) -> Self {
        Self { writer, buffer: BytesMut::new() }
    }

    /// Adds a message.
    pub(super) fn put(&mut self, message: &impl Message) -> Result<(), Ended> {
        let whole = self.buffer.len();
        message.encode(&mut self.buffer).map_err(|error| {
            self.buffer.truncate(whole);
            let message = format!("message cannot be sent: {error}");
            Ended::Fatal(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message))
        })
    }

    /// Adds an error.
    pub(super) fn put_error(&mut self, severity: Severity, error: &Error) -> Result<(), Ended> {
        self.put(&ErrorResponse::new(fields(severity.name(), error)))
    }

    /// Adds a notice; `severity` as PostgreSQL spells it.
    pub(super) fn put_notice(&mut self, severity: &str, notice: &Error) -> Result<(), Ended> {
        self.put(&NoticeResponse::new(fields(severity, notice)))
    }

    /// Whether it is time to send.
    pub(super) fn is_full(&self) -> bool {
        self.buffer.len() >= PIECE_BYTES
    }

    /// Sends what there is. May be dropped: what was not sent yet stays.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        self.writer.write_all_buf(&mut self.buffer).await?;
        if self.buffer.capacity() > 2 * PIECE_BYTES {
            self.buffer = BytesMut::new();
        }
        self.writer.flush().await
    }

    /// Sends what there is and that there will be no more.
    pub(super) async fn close(&mut self) -> io::Result<()> {
        self.flush().await?;
        self.writer.shutdown().await
    }
}

/// What an error does to the connection.
#[derive(Clone, Copy, Debug)]
pub(super) enum Severity {
    /// It goes on.
    Error,
    /// It ends.
    Fatal,
}

impl Severity {
    fn name(self) -> &'static str {
        match self {
            Self::Error => "ERROR",
            Self::Fatal => "FATAL",
        }
    }
}

/// The fields of an error or a notice, by the letters of the protocol.
fn fields(severity: &str, error: &Error) -> Vec<(u8, String)> {
    let mut fields = vec![
        (b'S', severity.to_owned()),
        (b'V', severity.to_owned()),
        (b'C', error.state.code().to_owned()),
        (b'M', clean(&error.message)),
    ];
    fields.extend(error.detail.as_deref().map(|detail| (b'D', clean(detail))));
    fields.extend(error.hint.as_deref().map(|hint| (b'H', clean(hint))));
    fields.extend(error.context.as_deref().map(|context| (b'W', clean(context))));
    fields.extend(error.position.map(|position| (b'P', position.to_string())));
    if let Some(subject) = &error.subject {
        let Subject { schema, table, column, constraint } = subject.as_ref();
        let named = [(b's', Some(schema)), (b't', Some(table))];
        let named = named.into_iter().chain([(b'c', column.as_ref()), (b'n', constraint.as_ref())]);
        fields.extend(named.filter_map(|(letter, name)| Some((letter, clean(name?)))));
    }
    fields
}

/// A NUL would end the field.
fn clean(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
