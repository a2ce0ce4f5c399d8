//! Where host processes register.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stillframe_protocol::{CoordinatorError, Host, Registration, Standing};
use tokio::sync::{mpsc, oneshot};

use crate::machine::Ticket;

/// A process that registers.
pub(super) struct Registering {
    pub(super) registration: Registration,
    pub(super) host: Arc<dyn Host>,
    pub(super) ticket: Ticket,
    pub(super) answer: oneshot::Sender<Standing>,
}

/// Takes registrations in, for as long as the coordinator lives.
#[derive(Clone)]
pub struct Registrar {
    registrations: mpsc::Sender<Registering>,
    tickets: Arc<AtomicU64>,
}

impl Registrar {
    pub(super) fn new(registrations: mpsc::Sender<Registering>) -> Self {
        Self { registrations, tickets: Arc::default() }
    }

    /// Registers a process, which is reached as `host` from now on, instead of as it was before. The
    /// process is to register again and again: that tells that it lives, and tells it what has
    /// become of its epoch.
    ///
    /// # Errors
    ///
    /// [`CoordinatorError::Failed`] if the coordinator has ended.
    pub async fn register(
        &self,
        registration: Registration,
        host: Arc<dyn Host>,
    ) -> Result<Standing, CoordinatorError> {
        let ticket = Ticket(self.tickets.fetch_add(1, Ordering::Relaxed));
        let (answer, answered) = oneshot::channel();
        let registering = Registering { registration, host, ticket, answer };
        let ended = || CoordinatorError::Failed("the coordinator has ended".into());
        self.registrations.send(registering).await.map_err(|_| ended())?;
        answered.await.map_err(|_| ended())
    }
}

impl fmt::Debug for Registrar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registrar").finish_non_exhaustive()
    }
}
