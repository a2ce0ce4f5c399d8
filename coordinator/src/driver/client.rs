//! The client's side of the driver: every question becomes a call with a ticket.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use stillframe_protocol::{
    CatalogSnapshot, Change, ClusterStatus, Committed, Coordinator, CoordinatorError, Entry, Epoch,
    FrameId, Grant, HostId, LeaseId, Reservation, Step, TransactionId,
};
use tokio::sync::{mpsc, oneshot};

use crate::machine::{Answer, Reply, Request, Reserve, Ticket};

/// What clients tell the driver, in order.
pub(super) enum Call {
    /// A question.
    Ask { ticket: Ticket, request: Request, answer: oneshot::Sender<Answer> },
    /// A lease isn't needed any more.
    Release(LeaseId),
    /// A transaction is given up.
    Abort(TransactionId),
}

/// A question whose answer nobody waits for any more.
pub(super) struct Abandoned {
    pub(super) ticket: Ticket,
    /// The lease that was asked for, and that nobody will release.
    pub(super) lease: Option<LeaseId>,
}

/// Whether a request takes effect even if nobody waits for its answer.
pub(super) fn takes_effect_unheard(request: &Request) -> bool {
    matches!(request, Request::Commit { .. } | Request::Change(_) | Request::Renew { .. })
}

/// A coordinator as its clients see it.
#[derive(Clone, Debug)]
pub(super) struct Client {
    calls: mpsc::Sender<Call>,
    abandoned: mpsc::UnboundedSender<Abandoned>,
    tickets: Arc<AtomicU64>,
}

impl Client {
    pub(super) fn new(
        calls: mpsc::Sender<Call>,
        abandoned: mpsc::UnboundedSender<Abandoned>,
    ) -> Self {
        Self { calls, abandoned, tickets: Arc::default() }
    }

    /// Asks; to drop the future says that nobody waits any more.
    async fn ask(&self, request: Request) -> Answer {
        let ticket = Ticket(self.tickets.fetch_add(1, Ordering::Relaxed));
        let lease = match &request {
            Request::Lease { lease, .. } => Some(*lease),
            _ => None,
        };
        let (answer, answered) = oneshot::channel();
        let mut waiting =
            Waiting { abandoned: Some(Abandoned { ticket, lease }), to: &self.abandoned };
        self.calls
            .send(Call::Ask { ticket, request, answer })
            .await
            .map_err(|_| ended("before it was asked"))?;
        let answer = answered.await.map_err(|_| ended("before it answered"))?;
        waiting.abandoned = None;
        answer
    }

    async fn tell(&self, call: Call) {
        // A coordinator that has ended has no leases and no transactions.
        let _ = self.calls.send(call).await;
    }
}

/// Says so if it is dropped before the answer is there.
struct Waiting<'a> {
    abandoned: Option<Abandoned>,
    to: &'a mpsc::UnboundedSender<Abandoned>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(abandoned) = self.abandoned.take() {
            // A coordinator that has ended waits for nobody.
            let _ = self.to.send(abandoned);
        }
    }
}

fn ended(when: &str) -> CoordinatorError {
    CoordinatorError::Failed(format!("the coordinator ended {when}"))
}

fn mismatch(reply: &Reply) -> CoordinatorError {
    CoordinatorError::Unknown(format!("the coordinator answered another question: {reply:?}"))
}

#[async_trait]
impl Coordinator for Client {
    async fn lease(
        &self,
        lease: LeaseId,
        time_to_live: Duration,
    ) -> Result<Grant, CoordinatorError> {
        match self.ask(Request::Lease { lease, time_to_live }).await? {
            Reply::Granted(grant) => Ok(grant),
            other => Err(mismatch(&other)),
        }
    }

    async fn renew(&self, leases: Vec<(LeaseId, Step)>) -> Result<Vec<LeaseId>, CoordinatorError> {
        match self.ask(Request::Renew { leases }).await? {
            Reply::Renewed(gone) => Ok(gone),
            other => Err(mismatch(&other)),
        }
    }

    async fn release(&self, lease: LeaseId) {
        self.tell(Call::Release(lease)).await;
    }

    async fn reserve(
        &self,
        transaction: TransactionId,
        frame: Option<FrameId>,
        entries: Vec<Entry>,
        timeout: Option<Duration>,
    ) -> Result<Reservation, CoordinatorError> {
        let reserve = Reserve { transaction, frame, entries, timeout };
        match self.ask(Request::Reserve(reserve)).await? {
            Reply::Reserved(reservation) => Ok(reservation),
            other => Err(mismatch(&other)),
        }
    }

    async fn commit(
        &self,
        transaction: TransactionId,
        epoch: Epoch,
        staged_on: BTreeSet<HostId>,
    ) -> Result<Committed, CoordinatorError> {
        match self.ask(Request::Commit { transaction, epoch, staged_on }).await? {
            Reply::Committed(committed) => Ok(committed),
            other => Err(mismatch(&other)),
        }
    }

    async fn abort(&self, transaction: TransactionId) {
        self.tell(Call::Abort(transaction)).await;
    }

    async fn catalog_head(&self) -> Result<CatalogSnapshot, CoordinatorError> {
        match self.ask(Request::CatalogHead).await? {
            Reply::Head(catalog) => Ok(catalog),
            other => Err(mismatch(&other)),
        }
    }

    async fn change(&self, change: Change) -> Result<Committed, CoordinatorError> {
        match self.ask(Request::Change(change)).await? {
            Reply::Committed(committed) => Ok(committed),
            other => Err(mismatch(&other)),
        }
    }

    async fn status(&self) -> Result<ClusterStatus, CoordinatorError> {
        match self.ask(Request::Status).await? {
            Reply::Status(status) => Ok(status),
            other => Err(mismatch(&other)),
        }
    }
}
