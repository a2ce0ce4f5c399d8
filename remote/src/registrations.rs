//! Takes in what processes of hosts tell of themselves.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use stillframe_protocol::{CoordinatorError, Host, Incarnation, Registration, Standing};
use tarpc::context::Context;
use tarpc::server::{BaseChannel, Channel as _};
use tokio::net::TcpListener;
use tokio_util::codec::Framed;

use crate::accept::accept_all;
use crate::codec::Codec;
use crate::message::{Identity, Register, Registered};
use crate::security::Security;
use crate::{Places, RemoteHost};

/// What a coordinator is told by hosts.
#[tarpc::service]
pub(crate) trait Registrar {
    async fn register(register: Register) -> Registered;
}

/// The way to each process that has registered and may get a place.
type Ways = Arc<Mutex<HashMap<Incarnation, Arc<dyn Host>>>>;

/// Decides on a registration.
type Decide = Arc<
    dyn Fn(Registration, Arc<dyn Host>) -> BoxFuture<'static, Result<Standing, CoordinatorError>>
        + Send
        + Sync,
>;

/// Hands registrations on, each with the way to its process, for as long as this is polled. Front ends
/// have so much patience with a process that gives no sign of life.
pub async fn serve_registrations<R, F>(
    listener: TcpListener,
    security: Security,
    places: Arc<Places>,
    patience: Duration,
    register: R,
) where
    R: Fn(Registration, Arc<dyn Host>) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Standing, CoordinatorError>> + Send + 'static,
{
    let decide: Decide = Arc::new(move |registration, host| Box::pin(register(registration, host)));
    let registrations = Registrations {
        places,
        ways: Ways::default(),
        security: security.clone(),
        patience,
        decide,
    };
    accept_all(listener, security, move |socket| {
        let requests = BaseChannel::with_defaults(Framed::new(socket, Codec::new()));
        let answers = requests.execute(registrations.clone().serve());
        async move {
            answers.for_each(|answer| answer).await;
            Ok(())
        }
    })
    .await;
}

#[derive(Clone)]
struct Registrations {
    places: Arc<Places>,
    ways: Ways,
    security: Security,
    patience: Duration,
    decide: Decide,
}

impl Registrar for Registrations {
    async fn register(self, _: Context, register: Register) -> Registered {
        let Register { registration, addresses } = register;
        let Registration { cluster, build, incarnation, .. } = registration.clone();
        let way = {
            let mut ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
            let identity = Identity { cluster, build, incarnation };
            let remote = || RemoteHost::new(addresses, identity, &self.security, self.patience);
            let way = || self.places.candidate(Arc::new(remote()));
            Arc::clone(ways.entry(incarnation).or_insert_with(way))
        };
        let standing = (self.decide)(registration, way).await;
        if !matches!(standing, Ok(Standing::Waits { .. } | Standing::Member { .. })) {
            self.ways.lock().unwrap_or_else(PoisonError::into_inner).remove(&incarnation);
        }
        standing
    }
}
