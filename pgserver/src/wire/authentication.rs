//! Who a client is: it shows by SCRAM-SHA-256 that it knows the password of its role.
//!
//! Nothing that it is told differs between a role that isn't there, one without a password and a wrong
//! password.

use bytes::{Buf, BufMut, BytesMut};
use stillframe_sql::scram::{Exchange, MECHANISM, Verifier};
use stillframe_sql::{Error, OWNER, Role, SqlState};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::frontend::violation;
use super::startup::Rejection;
use crate::access::Authentication;

/// How long a message about a password may be.
const MESSAGE_BYTES_MAX: usize = 10_000;

/// The codes of the messages that ask for more.
const SASL: u32 = 10;
const SASL_CONTINUE: u32 = 11;
const SASL_FINAL: u32 = 12;

/// Lets a client show who it is; returns whether it is a superuser. `find` looks its role up.
pub(super) async fn authenticate<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    buffer: &mut BytesMut,
    authentication: &Authentication,
    user: &str,
    find: impl Future<Output = Result<Option<Role>, Error>>,
) -> Result<bool, Rejection> {
    let Authentication::Scram { owner, secret } = authentication else { return Ok(true) };
    let role = find.await?;
    let known = match &role {
        Some(role) => role.verifier.as_deref().and_then(Verifier::parse),
        None => None,
    };
    let known = known.or_else(|| owner.clone().filter(|_| user == OWNER));
    let is_known = known.is_some();
    let verifier = known.unwrap_or_else(|| Verifier::of_nobody(user, secret));

    let offered = [MECHANISM.as_bytes(), b"\0\0"].concat();
    ask(stream, SASL, &offered).await?;
    let mut first = answer(stream, buffer).await?;
    let end = first.iter().position(|byte| *byte == 0).ok_or_else(malformed)?;
    let mechanism = first.split_to(end);
    first.advance(1);
    if mechanism != MECHANISM.as_bytes() {
        return Err(violation("client selected an invalid SASL authentication mechanism").into());
    }
    // The message's length, which the rest of the frame tells as well.
    if first.len() < 4 || usize::try_from(first.get_u32()).ok() != Some(first.len()) {
        return Err(malformed().into());
    }
    let (exchange, challenge) = Exchange::begin(&first, verifier)?;
    ask(stream, SASL_CONTINUE, challenge.as_bytes()).await?;
    let last = answer(stream, buffer).await?;
    let Some(proof) = exchange.end(&last)?.filter(|_| is_known) else {
        let message = format!("password authentication failed for user \"{user}\"");
        return Err(Error::new(SqlState::INVALID_PASSWORD, message).into());
    };
    // It knows the password: it may be told the rest.
    if role.as_ref().is_some_and(|role| !role.login) {
        let message = format!("role \"{user}\" is not permitted to log in");
        return Err(Error::new(SqlState::INVALID_AUTHORIZATION_SPECIFICATION, message).into());
    }
    ask(stream, SASL_FINAL, proof.as_bytes()).await?;
    Ok(role.is_none_or(|role| role.superuser))
}

/// Sends one of the messages about authentication.
async fn ask<S: AsyncWrite + Unpin>(
    stream: &mut S,
    code: u32,
    data: &[u8],
) -> Result<(), Rejection> {
    let mut message = BytesMut::with_capacity(9 + data.len());
    message.put_u8(b'R');
    message.put_u32(u32::try_from(8 + data.len()).map_err(|_| malformed())?);
    message.put_u32(code);
    message.put_slice(data);
    stream.write_all(&message).await?;
    stream.flush().await?;
    Ok(())
}

/// The body of the client's answer.
async fn answer<S: AsyncRead + Unpin>(
    stream: &mut S,
    buffer: &mut BytesMut,
) -> Result<BytesMut, Rejection> {
    loop {
        if let Some(kind) = buffer.first() {
            if *kind != b'p' {
                return Err(
                    violation(format!("expected SASL response, got message type {kind}")).into()
                );
            }
            if let Some(length) = buffer[1..].first_chunk::<4>() {
                let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
                if !(4..=MESSAGE_BYTES_MAX).contains(&length) {
                    return Err(violation("invalid message length").into());
                }
                if buffer.len() > length {
                    let mut message = buffer.split_to(1 + length);
                    message.advance(5);
                    return Ok(message);
                }
            }
        }
        if stream.read_buf(buffer).await? == 0 {
            return Err(Rejection::Gone);
        }
    }
}

fn malformed() -> Error {
    violation("malformed SASL message")
}
