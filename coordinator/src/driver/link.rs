//! What one host is told: commands at once, notices (what to keep, what to forget) one at a time.
//!
//! Calls run in tasks of their own, which end with the link. A host that can't be reached is asked
//! again, less and less often; any other error is the end of the epoch.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use stillframe_protocol::{
    Epoch, Host, HostError, HostId, Incarnation, Report, Retention, TransactionId,
};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

use crate::machine::{Effect, Event};

/// After the first failure to reach a host it is tried again so soon.
const RETRY_MIN: Duration = Duration::from_millis(10);
/// Somebody who doesn't hear that he retires hears so when he registers again.
const RETIRE_FOR: Duration = Duration::from_secs(3);

/// A call of a host that is over.
pub(super) struct Finished {
    pub(super) incarnation: Incarnation,
    /// Whether it was a notice.
    pub(super) notice: bool,
    /// What the cluster is to know of it.
    pub(super) event: Option<Event>,
}

/// The way to a host.
pub(super) struct Link {
    incarnation: Incarnation,
    /// The newest way there; who has lost the old one asks again this way.
    host: watch::Sender<Arc<dyn Host>>,
    retry_max: Duration,
    /// What it will be told next, after the notice under way.
    notices: VecDeque<(HostId, Notice)>,
    notifying: bool,
    calls: Vec<AbortHandle>,
}

#[derive(Clone)]
enum Notice {
    Retain(Epoch, Arc<Retention>),
    Unstage(Epoch, TransactionId),
}

impl Link {
    pub(super) fn new(incarnation: Incarnation, host: Arc<dyn Host>, retry_max: Duration) -> Self {
        let (host, notices) = (watch::Sender::new(host), VecDeque::new());
        Self { incarnation, host, retry_max, notices, notifying: false, calls: vec![] }
    }

    /// The host is reached in another way from now on.
    pub(super) fn reach(&self, host: Arc<dyn Host>) {
        self.host.send_replace(host);
    }

    /// Tells the host what the machine wants of it.
    pub(super) fn tell(&mut self, effect: Effect, tasks: &mut JoinSet<Finished>) {
        let (host, retry_max) = (self.host.subscribe(), self.retry_max);
        match effect {
            Effect::Activate { host: id, activation } => self.spawn(tasks, false, async move {
                let call = || {
                    let (host, activation) = (newest(&host), activation.clone());
                    async move { host.activate(activation).await }
                };
                Some(reported(id, persist(id, retry_max, call).await))
            }),
            Effect::Execute { host: id, command } => self.spawn(tasks, false, async move {
                let call = || {
                    let (host, command) = (newest(&host), Arc::clone(&command));
                    async move { host.execute(command).await }
                };
                Some(reported(id, persist(id, retry_max, call).await))
            }),
            Effect::Retain { host: id, epoch, retention } => {
                // A newer retention makes older ones needless.
                self.notices.retain(|(_, notice)| !matches!(notice, Notice::Retain(..)));
                self.notices.push_back((id, Notice::Retain(epoch, retention)));
                self.notify(tasks);
            }
            Effect::Unstage { host: id, epoch, transaction } => {
                self.notices.push_back((id, Notice::Unstage(epoch, transaction)));
                self.notify(tasks);
            }
            Effect::Answer { .. } => {}
        }
    }

    /// Tells the host that its epoch has ended. Nothing else is told any more.
    pub(super) fn retire(self, reason: String, tasks: &mut JoinSet<Finished>) {
        let (host, incarnation) = (newest(&self.host.subscribe()), self.incarnation);
        tasks.spawn(async move {
            let told = timeout(RETIRE_FOR, async {
                while let Err(HostError::Unreachable(_)) =
                    host.retire(incarnation, reason.clone()).await
                {
                    sleep(RETRY_MIN * 10).await;
                }
            });
            if told.await.is_err() {
                tracing::warn!(host = %incarnation, "host wasn't told to retire");
            }
            Finished { incarnation, notice: false, event: None }
        });
    }

    /// The notice under way has arrived.
    pub(super) fn finish_notice(&mut self, tasks: &mut JoinSet<Finished>) {
        self.notifying = false;
        self.notify(tasks);
    }

    fn notify(&mut self, tasks: &mut JoinSet<Finished>) {
        if self.notifying {
            return;
        }
        let Some((id, notice)) = self.notices.pop_front() else { return };
        self.notifying = true;
        let (host, retry_max) = (self.host.subscribe(), self.retry_max);
        self.spawn(tasks, true, async move {
            let call = || {
                let (host, notice) = (newest(&host), notice.clone());
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
            failed.map(|reason| Event::HostFailed { host: id, reason })
        });
    }

    fn spawn(
        &mut self,
        tasks: &mut JoinSet<Finished>,
        notice: bool,
        call: impl Future<Output = Option<Event>> + Send + 'static,
    ) {
        let incarnation = self.incarnation;
        self.calls.retain(|call| !call.is_finished());
        self.calls
            .push(tasks.spawn(async move { Finished { incarnation, notice, event: call.await } }));
    }
}

fn newest(host: &watch::Receiver<Arc<dyn Host>>) -> Arc<dyn Host> {
    Arc::clone(&host.borrow())
}

impl Drop for Link {
    fn drop(&mut self) {
        self.calls.iter().for_each(AbortHandle::abort);
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
