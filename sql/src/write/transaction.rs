//! A transaction that writes: its number, what it has reserved and staged, and how it ends.
//!
//! ```text
//! Open -- reserve, stage --> Open -- commit is sent --> Sent: committed, or nobody knows
//!                             '----- drop ------------> aborted and unstaged
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::{join, try_join_all};
use stillframe_protocol::{
    CoordinatorError, Entry, Epoch, FrameId, HostError, HostId, Reservation, Staging, Step,
    TransactionId,
};
use uuid::Uuid;

use super::Write;
use super::staging::{ExactChanges, Turn};
use crate::{Database, Error, Frame, Progress, SqlState};

/// How long to wait before asking again for a step that isn't common yet.
const COMMON_STEP_POLL: Duration = Duration::from_millis(1);

/// A transaction that writes. What it reserves and stages it owns: to drop it before its commit
/// gives all of it back.
#[derive(Debug)]
pub(crate) struct Transaction {
    database: Arc<Database>,
    id: TransactionId,
    lock_timeout: Option<Duration>,
    /// The one in which it has begun: it can't outlive it.
    epoch: Option<Epoch>,
    /// Whether the coordinator may know of it.
    has_reserved: bool,
    /// By host, the number that the next staging has.
    staged: BTreeMap<HostId, u64>,
    turn: Turn,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// The commit was sent; what becomes of it is out of our hands.
    Sent,
}

impl Transaction {
    /// A new transaction. Nobody knows of it before it reserves or stages something.
    pub(crate) fn new(database: &Arc<Database>, lock_timeout: Option<Duration>) -> Self {
        let id = Uuid::new_v4().as_u128();
        Self {
            database: Arc::clone(database),
            id: TransactionId(id),
            lock_timeout,
            epoch: None,
            has_reserved: false,
            staged: BTreeMap::new(),
            turn: Turn::new(id, database.hosts.len()),
            phase: Phase::Open,
        }
    }

    /// Runs a statement in it; returns how many rows it was about.
    ///
    /// As in READ COMMITTED, what was written after the statement's frame lets it look again under
    /// a newer one. What it has reserved it keeps, so that this comes to an end.
    pub(crate) async fn run(&mut self, statement: &impl Write) -> Result<u64, Error> {
        let mut at_least = Step(0);
        loop {
            let frame = self.frame(at_least).await?;
            let mut proposal = statement.propose(&frame).await?;
            let entries = std::mem::take(&mut proposal.entries);
            if entries.is_empty() {
                return Ok(proposal.rows);
            }
            // What the frame shows counts only if nothing was written since, but it can be looked
            // up meanwhile.
            let (reservation, verdict) =
                join(self.reserve(&frame, entries), proposal.check(&frame)).await;
            match reservation? {
                Reservation::Granted => {
                    verdict?;
                    if let Some(changes) = &proposal.changes {
                        self.stage(changes).await?;
                    }
                    return Ok(proposal.rows);
                }
                Reservation::Changed(step) => at_least = step,
            }
        }
    }

    /// Takes a frame of this step or a later one.
    pub(crate) async fn frame(&mut self, at_least: Step) -> Result<Arc<Frame>, Error> {
        loop {
            let frame = Frame::take(&self.database).await?;
            if *self.epoch.get_or_insert(frame.epoch()) != frame.epoch() {
                let message = "the cluster has started again while the transaction was open";
                return Err(Error::new(SqlState::SERIALIZATION_FAILURE, message)
                    .with_hint("Run the statement again."));
            }
            if frame.step() >= at_least {
                return Ok(frame);
            }
            tokio::time::sleep(COMMON_STEP_POLL).await;
        }
    }

    /// Reserves entries, and tells whether they are as the frame shows them.
    pub(crate) async fn reserve(
        &mut self,
        frame: &Frame,
        entries: Vec<Entry>,
    ) -> Result<Reservation, Error> {
        self.has_reserved = true;
        let coordinator = &self.database.coordinator;
        let frame = Some(FrameId { epoch: frame.epoch(), step: frame.step() });
        Ok(coordinator.reserve(self.id, frame, entries, self.lock_timeout).await?)
    }

    /// Has hosts hold changes until the commit. All changes of one key come in one call.
    pub(crate) async fn stage(&mut self, changes: &ExactChanges) -> Result<(), Error> {
        let Some(epoch) = self.epoch else {
            return Err(Error::internal("a transaction writes that has seen no frame"));
        };
        let mut shares: BTreeMap<HostId, Vec<Staging>> = BTreeMap::new();
        for slice in changes.slices() {
            let host = self.turn.take();
            // Counted before it is sent: who doesn't learn its fate unstages it too.
            let next = self.staged.entry(host).or_default();
            let staging =
                Staging { epoch, transaction: self.id, sequence: *next, changes: vec![slice] };
            *next += 1;
            shares.entry(host).or_default().push(staging);
        }
        let database = &self.database;
        let sent = shares.into_iter().map(|(host, share)| async move {
            for staging in share {
                database.host(host).stage(staging).await?;
            }
            Ok::<_, HostError>(())
        });
        try_join_all(sent).await?;
        Ok(())
    }

    /// Makes what is staged part of the next step; returns that step once it is common, and none
    /// if there is nothing to change.
    pub(crate) async fn commit(mut self, progress: &Progress) -> Result<Option<Step>, Error> {
        if self.staged.is_empty() {
            return Ok(None);
        }
        let Some(epoch) = self.epoch else {
            return Err(Error::internal("a transaction commits that has seen no frame"));
        };
        self.phase = Phase::Sent;
        let _committing = progress.commit();
        let coordinator = Arc::clone(&self.database.coordinator);
        let (id, hosts) = (self.id, self.staged.keys().copied().collect::<BTreeSet<_>>());
        // In a task of its own: who stops waiting doesn't stop it halfway.
        let commit = tokio::spawn(async move { coordinator.commit(id, epoch, hosts).await });
        match commit.await {
            Ok(Ok(committed)) => Ok(Some(committed.step)),
            Ok(Err(error)) => {
                // Only this says that it has no effect and never will.
                if error == CoordinatorError::UnknownTransaction {
                    self.phase = Phase::Open;
                }
                Err(error.into())
            }
            Err(error) => {
                let message = format!("the outcome of the commit is unknown: {error}");
                Err(Error::new(SqlState::TRANSACTION_RESOLUTION_UNKNOWN, message))
            }
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let is_known = self.has_reserved || !self.staged.is_empty();
        if self.phase == Phase::Sent || !is_known {
            return;
        }
        let (database, id, epoch) = (Arc::clone(&self.database), self.id, self.epoch);
        let staged = std::mem::take(&mut self.staged);
        self.database.runtime().spawn(async move {
            // When it can't enter a step any more, what it has staged can go.
            database.coordinator.abort(id).await;
            let Some(epoch) = epoch else { return };
            for host in staged.into_keys() {
                if let Err(error) = database.host(host).unstage(epoch, id).await {
                    tracing::warn!(%host, txn = %id, %error, "staged changes were not taken back");
                }
            }
        });
    }
}
