//! A process tells the coordinator of itself, again and again, and learns what it is to do.

use std::net::SocketAddr;
use std::time::Duration;

use stillframe_protocol::{Epoch, Registration, Standing};
use tokio::time::{sleep, timeout};

use crate::Member;
use crate::message::{Register, Registered};
use crate::wire::{Connection, WireError};

/// How often a process registers.
const INTERVAL: Duration = Duration::from_secs(1);
/// Who waits for a place may get one at any time, and others wait for it.
const INTERVAL_WAITING: Duration = Duration::from_millis(200);
/// How long the coordinator may take to answer before it is asked again.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);

/// Why a process doesn't go on as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It owes to replace itself, and to register fresh.
    Retires {
        /// Why.
        reason: String,
        /// The newest epoch that it knows of, which the next process tells.
        newest_epoch: Epoch,
    },
    /// It can't be part of this cluster as it is.
    Refused {
        /// Why, and what to do.
        reason: String,
    },
}

/// Registers a process that is reached at an address, until it can't go on as it is. The template
/// tells everything but what the member knows better.
pub async fn join(
    coordinator: SocketAddr,
    address: SocketAddr,
    template: Registration,
    member: &Member,
) -> End {
    let newest = || template.newest_epoch.max(member.epoch().unwrap_or_default());
    let registers = async {
        let mut connection = None;
        let mut said = String::new();
        let mut say = |what: String| {
            if what != said {
                tracing::info!("{what}");
                said = what;
            }
        };
        loop {
            let registration = Registration {
                incarnation: member.incarnation(),
                fresh: member.epoch().is_none(),
                newest_epoch: newest(),
                ..template.clone()
            };
            let register = Register { registration, address };
            let asked = ask(coordinator, &mut connection, &register);
            let mut pause = INTERVAL;
            match timeout(ANSWER_TIME_MAX, asked).await {
                Ok(Ok(Ok(Standing::Member { epoch, place }))) => {
                    say(format!("host {place} of epoch {epoch}"));
                }
                Ok(Ok(Ok(Standing::Waits { reason, .. }))) => {
                    say(format!("waits: {reason}"));
                    pause = INTERVAL_WAITING;
                }
                Ok(Ok(Ok(Standing::Retires { reason }))) => {
                    return End::Retires { reason, newest_epoch: newest() };
                }
                Ok(Ok(Ok(Standing::Refused { reason }))) => return End::Refused { reason },
                Ok(Ok(Err(error))) => say(format!("the coordinator at {coordinator}: {error}")),
                Ok(Err(error)) => {
                    say(format!("the coordinator at {coordinator} cannot be reached: {error}"));
                    connection = None;
                }
                Err(_) => {
                    say(format!("the coordinator at {coordinator} does not answer"));
                    connection = None;
                }
            }
            sleep(pause).await;
        }
    };
    tokio::select! {
        end = registers => end,
        reason = member.retired() => End::Retires { reason, newest_epoch: newest() },
    }
}

async fn ask(
    coordinator: SocketAddr,
    connection: &mut Option<Connection>,
    register: &Register,
) -> Result<Registered, WireError> {
    let connection = match connection {
        Some(connection) => connection,
        None => connection.insert(Connection::open(coordinator).await?),
    };
    connection.send(register, vec![]).await?;
    Ok(connection.receive().await?.0)
}
