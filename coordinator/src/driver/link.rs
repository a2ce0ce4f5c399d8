//! What one host is told: commands at once, notices (what to keep, what to forget) one at a time.
//!
//! Calls run in tasks of their own. A host that can't be reached is asked again, less and less
//! often; any other error is the end of the epoch.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use stillframe_protocol::{
    Activation, Command, Epoch, Host, HostError, HostId, Report, Retention, TransactionId,
};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::machine::Event;

/// After the first failure to reach a host it is tried again so soon.
const RETRY_MIN: Duration = Duration::from_millis(10);

/// A call of a host that is over.
pub(super) enum Finished {
    /// An activation or a command.
    Command(Event),
    /// A notice; with an event if the host has failed.
    Notice(HostId, Option<Event>),
}

/// The way to a host.
pub(super) struct Link {
    host: Arc<dyn Host>,
    retry_max: Duration,
    /// What it will be told next, after the notice under way.
    notices: VecDeque<Notice>,
    notifying: bool,
}

#[derive(Clone)]
enum Notice {
    Retain(Epoch, Arc<Retention>),
    Unstage(Epoch, TransactionId),
}

impl Link {
    pub(super) fn new(host: Arc<dyn Host>, retry_max: Duration) -> Self {
        Self { host, retry_max, notices: VecDeque::new(), notifying: false }
    }

    pub(super) fn activate(
        &self,
        id: HostId,
        activation: Activation,
        tasks: &mut JoinSet<Finished>,
    ) {
        let (host, retry_max) = (Arc::clone(&self.host), self.retry_max);
        tasks.spawn(async move {
            let call = || host.activate(activation.clone());
            Finished::Command(reported(id, persist(id, retry_max, call).await))
        });
    }

    pub(super) fn execute(&self, id: HostId, command: Arc<Command>, tasks: &mut JoinSet<Finished>) {
        let (host, retry_max) = (Arc::clone(&self.host), self.retry_max);
        tasks.spawn(async move {
            let call = || host.execute(Arc::clone(&command));
            Finished::Command(reported(id, persist(id, retry_max, call).await))
        });
    }

    pub(super) fn retain(
        &mut self,
        id: HostId,
        epoch: Epoch,
        retention: Arc<Retention>,
        tasks: &mut JoinSet<Finished>,
    ) {
        // A newer retention makes older ones needless.
        self.notices.retain(|notice| !matches!(notice, Notice::Retain(..)));
        self.notices.push_back(Notice::Retain(epoch, retention));
        self.notify(id, tasks);
    }

    pub(super) fn unstage(
        &mut self,
        id: HostId,
        epoch: Epoch,
        transaction: TransactionId,
        tasks: &mut JoinSet<Finished>,
    ) {
        self.notices.push_back(Notice::Unstage(epoch, transaction));
        self.notify(id, tasks);
    }

    /// The notice under way has arrived.
    pub(super) fn finish_notice(&mut self, id: HostId, tasks: &mut JoinSet<Finished>) {
        self.notifying = false;
        self.notify(id, tasks);
    }

    fn notify(&mut self, id: HostId, tasks: &mut JoinSet<Finished>) {
        if self.notifying {
            return;
        }
        let Some(notice) = self.notices.pop_front() else { return };
        self.notifying = true;
        let (host, retry_max) = (Arc::clone(&self.host), self.retry_max);
        tasks.spawn(async move {
            let call = || {
                let (host, notice) = (Arc::clone(&host), notice.clone());
                async move {
                    match notice {
                        Notice::Retain(epoch, retention) => {
                            host.retain(epoch, Retention::clone(&retention)).await
                        }
                        Notice::Unstage(epoch, transaction) => {
                            host.unstage(epoch, transaction).await
                        }
                    }
                }
            };
            let failed = persist(id, retry_max, call).await.err();
            let event = failed.map(|reason| Event::HostFailed { host: id, reason });
            Finished::Notice(id, event)
        });
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("host", &self.host).finish_non_exhaustive()
    }
}

fn reported(host: HostId, result: Result<Report, String>) -> Event {
    match result {
        Ok(report) => Event::Reported(report),
        Err(reason) => Event::HostFailed { host, reason },
    }
}

/// Calls until the host is reached. The error is what it said, or that it panicked.
async fn persist<T, F>(host: HostId, retry_max: Duration, call: impl Fn() -> F) -> Result<T, String>
where
    F: Future<Output = Result<T, HostError>>,
{
    let mut pause = RETRY_MIN;
    loop {
        match AssertUnwindSafe(call()).catch_unwind().await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(HostError::Unreachable(reason))) => {
                tracing::warn!(host = host.0, reason, "host cannot be reached");
                sleep(pause).await;
                pause = (pause * 2).min(retry_max);
            }
            Ok(Err(error)) => return Err(error.to_string()),
            Err(_) => return Err("it panicked".into()),
        }
    }
}
