//! A process tells the coordinator of itself, again and again, and learns what it is to do.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use stillframe_protocol::{Epoch, Registration, Standing};
use tarpc::client::{Config, RpcError};
use tarpc::context;
use thiserror::Error;
use tokio::time::{sleep, timeout};
use tokio_util::codec::Framed;

use crate::Member;
use crate::codec::Codec;
use crate::message::{Addresses, Register, Registered};
use crate::registrations::RegistrarClient;
use crate::security::Security;

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

/// Registers a process that is reached at these addresses, until it can't go on as it is. The
/// template tells everything but what the member knows better.
pub async fn join(
    coordinator: SocketAddr,
    security: &Security,
    addresses: Addresses,
    template: Registration,
    member: &Member,
) -> End {
    let newest = || template.newest_epoch.max(member.epoch().unwrap_or_default());
    let registers = async {
        let mut client = None;
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
            let register = Register { registration, addresses };
            let asked = ask(coordinator, security, &mut client, register);
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
                    client = None;
                }
                Err(_) => {
                    say(format!("the coordinator at {coordinator} does not answer"));
                    client = None;
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

/// Why the coordinator has no answer.
#[derive(Debug, Error)]
enum AskError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Rpc(#[from] RpcError),
}

async fn ask(
    coordinator: SocketAddr,
    security: &Security,
    client: &mut Option<RegistrarClient>,
    register: Register,
) -> Result<Registered, AskError> {
    let client = match client {
        Some(client) => client,
        None => {
            let socket = security.open(coordinator).await?;
            let requests = Framed::new(socket, Codec::new());
            let connected = RegistrarClient::new(Config::default(), requests);
            tokio::spawn(connected.dispatch);
            client.insert(connected.client)
        }
    };
    Ok(client.register(context::current(), register).await?)
}
