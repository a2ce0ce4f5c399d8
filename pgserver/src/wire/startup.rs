//! The start of a connection: what comes before a session is there.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use bytes::BytesMut;
use pgwire::messages::response::{GssEncResponse, SslResponse};
use pgwire::messages::startup::{NegotiateProtocolVersion, Startup};
use pgwire::messages::{DecodeContext, Message, ProtocolVersion};
use stillframe_sql::{DATABASE_NAME, Error, SqlState, is_database_name};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::channel::Channel;
use super::frontend::violation;
use super::outgoing::{Outgoing, Severity};
use crate::access::Access;

/// How long a client may take until it has said who it is.
pub(super) const STARTUP_TIME_MAX: Duration = Duration::from_secs(30);

/// How long a startup packet may be, its length field included, as in PostgreSQL.
const PACKET_BYTES_MAX: usize = 10_000;
/// A packet's length and code.
const HEADER_BYTES: usize = 8;

/// The codes that stand in the place of a protocol version.
const CANCEL_CODE: u32 = 80_877_102;
const SSL_CODE: u32 = 80_877_103;
const GSS_CODE: u32 = 80_877_104;

/// What a client wants of the connection.
#[derive(Debug)]
pub(super) enum Opening {
    /// A session.
    Session(Client),
    /// That another session stops what it does. Nothing is answered.
    Cancel {
        /// Its process id.
        process: i32,
        /// Its secret.
        secret: i32,
    },
}

/// Who wants a session.
#[derive(Debug)]
pub(super) struct Client {
    /// The user's name.
    pub(super) user: String,
    /// The settings it starts with, the later ones of a name in force.
    pub(super) settings: Vec<(String, String)>,
    /// What to tell it about the protocol, if it has asked for more than there is.
    pub(super) negotiation: Option<NegotiateProtocolVersion>,
}

/// Why there will be no session.
#[derive(Debug)]
pub(super) enum Rejection {
    /// The client has gone, or never spoke our protocol.
    Gone,
    /// The client is told.
    Refused(Error),
}

impl From<io::Error> for Rejection {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

impl From<Error> for Rejection {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

/// Reads packets until it is clear what the client wants. `buffer` is where they are read into;
/// what follows the packet stays there. Where there is TLS, the stream is secured if the client asks;
/// it is gone if that fails.
pub(super) async fn open<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut Option<Channel<S>>,
    buffer: &mut BytesMut,
    access: &Access,
) -> Result<Opening, Rejection> {
    let (mut asked_ssl, mut asked_gss) = (false, false);
    loop {
        let channel = stream.as_mut().ok_or(Rejection::Gone)?;
        let packet = read_packet(channel, buffer).await?;
        match code(&packet) {
            SSL_CODE if !asked_ssl && !channel.is_secured() => {
                asked_ssl = true;
                let Some(tls) = &access.tls else {
                    answer_encryption(channel, buffer, &SslResponse::Refuse).await?;
                    continue;
                };
                answer_encryption(channel, buffer, &SslResponse::Accept).await?;
                if let Some(Channel::Plain(plain)) = stream.take() {
                    *stream = Some(Channel::Secured(Box::new(tls.accept(plain).await?)));
                }
            }
            GSS_CODE if !asked_gss && !channel.is_secured() => {
                asked_gss = true;
                answer_encryption(channel, buffer, &GssEncResponse::Refuse).await?;
            }
            // Nobody may learn a session's secret on the way.
            CANCEL_CODE if access.requires_tls && !channel.is_secured() => {
                return Err(Rejection::Gone);
            }
            CANCEL_CODE => return cancel(&packet),
            version => {
                let client = client(version, packet)?;
                if access.requires_tls && !channel.is_secured() {
                    let message =
                        format!("user \"{}\" is not admitted without encryption", client.user);
                    let state = SqlState::INVALID_AUTHORIZATION_SPECIFICATION;
                    return Err(Error::new(state, message)
                        .with_hint("Connect with sslmode=require or stronger.")
                        .into());
                }
                return Ok(Opening::Session(client));
            }
        }
    }
}

/// Tells a client that there is no session for it. Errors are of no interest: it may have gone.
pub(crate) async fn refuse<S: AsyncWrite + Unpin>(stream: &mut S, error: &Error) {
    let mut outgoing = Outgoing::new(stream);
    if outgoing.put_error(Severity::Fatal, error).is_ok() {
        let _ = outgoing.close().await;
    }
}

/// One packet, its length and code included.
async fn read_packet<S: AsyncRead + Unpin>(
    stream: &mut S,
    buffer: &mut BytesMut,
) -> Result<BytesMut, Rejection> {
    loop {
        if let Some(length) = buffer.first_chunk::<4>() {
            let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
            if !(HEADER_BYTES..=PACKET_BYTES_MAX).contains(&length) {
                return Err(violation("invalid length of startup packet").into());
            }
            if buffer.len() >= length {
                return Ok(buffer.split_to(length));
            }
            buffer.reserve(length - buffer.len());
        }
        if stream.read_buf(buffer).await? == 0 {
            return Err(Rejection::Gone);
        }
    }
}

fn code(packet: &[u8]) -> u32 {
    let code = packet[4..].first_chunk().expect("a packet is at least as long as its header");
    u32::from_be_bytes(*code)
}

async fn answer_encryption<S: AsyncWrite + Unpin>(
    stream: &mut S,
    buffer: &BytesMut,
    answer: &impl Message,
) -> Result<(), Rejection> {
    if !buffer.is_empty() {
        // What was sent before our answer could have been put there by somebody in between.
        return Err(violation("received unencrypted data after an encryption request").into());
    }
    let mut bytes = BytesMut::new();
    answer.encode(&mut bytes).expect("one byte fits");
    stream.write_all(&bytes).await?;
    stream.flush().await?;
    Ok(())
}

fn cancel(packet: &[u8]) -> Result<Opening, Rejection> {
    // A longer secret would be of a later protocol than we speak: nobody has one.
    let Ok(key) = <[u8; 8]>::try_from(&packet[HEADER_BYTES..]) else {
        return Err(Rejection::Gone);
    };
    let number = |bytes: &[u8]| {
        i32::from_be_bytes(bytes.try_into().expect("a half of eight bytes has four"))
    };
    Ok(Opening::Cancel { process: number(&key[..4]), secret: number(&key[4..]) })
}

fn client(version: u32, packet: BytesMut) -> Result<Client, Error> {
    let (major, minor) = (version >> 16, version & 0xffff);
    if major != 3 {
        let message =
            format!("unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.0");
        return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    if packet.last() != Some(&0) || packet.len() == HEADER_BYTES {
        return Err(violation("invalid startup packet layout: expected terminator as last byte"));
    }
    let mut packet = packet;
    let startup = Startup::decode(&mut packet, &DecodeContext::new(ProtocolVersion::PROTOCOL3_0))
        .ok()
        .flatten()
        .ok_or_else(|| violation("invalid startup packet layout"))?;
    let mut parameters = startup.parameters;
    let negotiation = negotiate(minor, &mut parameters);
    let user = parameters.remove("user").filter(|user| !user.is_empty()).ok_or_else(|| {
        Error::new(
            SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
            "no PostgreSQL user name specified in startup packet",
        )
    })?;
    check_database(parameters.remove("database"))?;
    check_replication(parameters.remove("replication"))?;
    let mut settings = parameters.remove("options").map_or(Ok(vec![]), |text| options(&text))?;
    settings.extend(parameters);
    Ok(Client { user, settings, negotiation })
}

/// What a client has asked for that isn't in protocol 3.0: a newer minor version, and options whose
/// names start with `_pq_.`, which are taken out.
fn negotiate(
    minor: u32,
    parameters: &mut BTreeMap<String, String>,
) -> Option<NegotiateProtocolVersion> {
    let unknown: Vec<_> =
        parameters.keys().filter(|name| name.starts_with("_pq_.")).cloned().collect();
    for name in &unknown {
        parameters.remove(name);
    }
    (minor > 0 || !unknown.is_empty())
        .then(|| NegotiateProtocolVersion::new(Startup::PROTOCOL_VERSION_3_0, unknown))
}

fn check_database(name: Option<String>) -> Result<(), Error> {
    match name.as_deref() {
        None | Some("") => Ok(()),
        Some(name) if is_database_name(name) => Ok(()),
        Some(name) => {
            let message = format!("database \"{name}\" does not exist");
            Err(Error::new(SqlState::INVALID_CATALOG_NAME, message)
                .with_hint(format!("The database is called \"{DATABASE_NAME}\".")))
        }
    }
}

fn check_replication(value: Option<String>) -> Result<(), Error> {
    match value.as_deref() {
        None | Some("false" | "off" | "no" | "0") => Ok(()),
        Some(_) => Err(Error::unsupported("replication")),
    }
}

/// The settings of `options`: `-c name=value` or `--name=value`, separated by blanks, where a
/// backslash takes the next character as it is.
fn options(text: &str) -> Result<Vec<(String, String)>, Error> {
    let mut settings = vec![];
    let mut words = words(text).into_iter();
    while let Some(word) = words.next() {
        let assignment = match word.strip_prefix("-c").or_else(|| word.strip_prefix("--")) {
            Some("") => words.next().unwrap_or_default(),
            Some(rest) => rest.to_owned(),
            None => String::new(),
        };
        let Some((name, value)) = assignment.split_once('=') else {
            let message = format!("invalid command-line argument for server process: {word}");
            return Err(Error::new(SqlState::SYNTAX_ERROR, message));
        };
        settings.push((name.trim().replace('-', "_"), value.to_owned()));
    }
    Ok(settings)
}

fn words(text: &str) -> Vec<String> {
    let mut words = vec![];
    let mut word = None::<String>;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            blank if blank.is_ascii_whitespace() => words.extend(word.take()),
            '\\' => word.get_or_insert_default().extend(characters.next()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_as_postgresql_does() {
        let read = options(r"-c statement_timeout=5s --search-path=a\ b -cTimeZone=UTC").unwrap();
        let expected = [("statement_timeout", "5s"), ("search_path", "a b"), ("TimeZone", "UTC")];
        assert_eq!(read, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        for wrong in ["statement_timeout=5s", "-c", "-c x", "-x y=z"] {
            assert_eq!(options(wrong).unwrap_err().state, SqlState::SYNTAX_ERROR, "{wrong}");
        }
    }

    #[test]
    fn one_database_has_two_names() {
        for name in [None, Some("stillframe"), Some("postgres")] {
            check_database(name.map(str::to_owned)).unwrap();
        }
        let error = check_database(Some("other".to_owned())).unwrap_err();
        assert_eq!(error.state, SqlState::INVALID_CATALOG_NAME);
    }
}
