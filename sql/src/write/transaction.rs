//! A transaction that writes: its number, what it has reserved and staged, and how it ends.
//!
//! ```text
//! Open -- reserve, change --> Open -- commit is sent --> Sent: committed, or nobody knows
//!                              '----- drop ------------> aborted and unstaged
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::{join, try_join_all};
use stillframe_protocol::{
    Change, CoordinatorError, Entry, Epoch, FrameId, HostError, HostId, Reservation, Staging, Step,
    TransactionId,
};
use uuid::Uuid;

use super::deferred::Modes;
use super::references::{self, Checks, Enforced};
use super::staging::{ExactChanges, Turn};
use super::{Draft, Overlay, Returned, Target, Write};
use crate::{Database, Error, Frame, Progress, SqlState};

/// How long to wait before asking again for a step that isn't common yet.
const COMMON_STEP_POLL: Duration = Duration::from_millis(1);

/// A transaction that may write. What it reserves and stages it owns: to drop it before its commit
/// gives all of it back.
#[derive(Debug)]
pub(crate) struct Transaction {
    database: Arc<Database>,
    id: TransactionId,
    lock_timeout: Option<Duration>,
    /// Whether all its statements see one step, and which one that is.
    is_repeatable: bool,
    snapshot: Option<Arc<Frame>>,
    /// What its statements have changed.
    overlay: Overlay,
    /// The one in which it has begun: it can't outlive it.
    epoch: Option<Epoch>,
    /// Whether the coordinator may know of it.
    has_reserved: bool,
    /// By host, the number that the next staging has.
    staged: BTreeMap<HostId, u64>,
    turn: Turn,
    /// Foreign keys that are looked at when it commits.
    pub(super) deferred: Checks,
    pub(super) modes: Modes,
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
            is_repeatable: false,
            snapshot: None,
            overlay: Overlay::default(),
            epoch: None,
            has_reserved: false,
            staged: BTreeMap::new(),
            turn: Turn::new(id, database.hosts.len()),
            deferred: Checks::default(),
            modes: Modes::default(),
            phase: Phase::Open,
        }
    }

    /// How long its next statements wait for others.
    pub(crate) fn wait_at_most(&mut self, lock_timeout: Option<Duration>) {
        self.lock_timeout = lock_timeout;
    }

    /// Whether all statements see what the first one has seen.
    pub(crate) fn be_repeatable(&mut self, is_repeatable: bool) {
        self.is_repeatable = is_repeatable;
    }

    /// What it has changed.
    pub(crate) fn overlay(&self) -> &Overlay {
        &self.overlay
    }

    /// Forgets what was changed after a savepoint. What was reserved stays so.
    pub(crate) fn restore(&mut self, overlay: Overlay) {
        self.overlay = overlay;
    }

    /// The cluster that it is part of.
    pub(super) fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// Whether anybody else may know of it.
    fn is_known(&self) -> bool {
        self.has_reserved || !self.staged.is_empty()
    }

    /// Runs a statement in it.
    ///
    /// In READ COMMITTED what was written after the statement's frame lets it look again under a
    /// newer one. What it has reserved it keeps, so that this comes to an end.
    pub(crate) async fn run(&mut self, statement: &impl Write) -> Result<Outcome, Error> {
        let mut at_least = Step(0);
        loop {
            let frame = self.frame(at_least).await?;
            let mut proposal = statement.propose(&frame).await?;
            let entries = std::mem::take(&mut proposal.entries);
            let given = std::mem::take(&mut proposal.given);
            let rows = proposal.rows;
            if entries.is_empty() {
                let returned = statement.answer(&frame, given).await?;
                return Ok(Outcome { rows, returned });
            }
            // What the frame shows counts only if nothing was written since, but it can be looked
            // up meanwhile.
            let (reservation, verdict) =
                join(self.reserve(&frame, entries), proposal.check(&frame)).await;
            match reservation? {
                Reservation::Granted => {
                    verdict?;
                    let writes = proposal.writes;
                    if !references::concerns(&writes) {
                        let returned = statement.answer(&frame, given).await?;
                        // Its changes would be copied if it were still there.
                        drop(frame);
                        for write in writes {
                            self.keep(&write.target, write.changes.into_iter().collect())?;
                        }
                        return Ok(Outcome { rows, returned });
                    }
                    match self.enforce(&frame, statement.settings(), writes).await? {
                        Enforced::Changed(step) => at_least = step,
                        Enforced::Kept(overlay) => {
                            let returned = statement.answer(&frame, given).await?;
                            self.overlay = overlay;
                            return Ok(Outcome { rows, returned });
                        }
                    }
                }
                Reservation::Changed(step) if self.is_repeatable => {
                    // As in PostgreSQL, a key that somebody else has added since is a duplicate.
                    let newer = self.newer_frame(step).await?;
                    proposal.check(&newer).await?;
                    return Err(changed_meanwhile());
                }
                Reservation::Changed(step) => at_least = step,
            }
        }
    }

    /// The frame that a statement sees, of this step or a later one where each sees another.
    pub(crate) async fn frame(&mut self, at_least: Step) -> Result<Arc<Frame>, Error> {
        if let Some(snapshot) = &self.snapshot {
            return Ok(snapshot.under(&self.overlay));
        }
        let frame = self.newer_frame(at_least).await?;
        if self.is_repeatable {
            self.snapshot = Some(frame.under(&Overlay::default()));
        }
        Ok(frame)
    }

    /// Takes a frame of this step or a later one.
    pub(crate) async fn newer_frame(&mut self, at_least: Step) -> Result<Arc<Frame>, Error> {
        loop {
            let frame = Frame::take(&self.database).await?;
            if !self.is_known() {
                self.epoch = Some(frame.epoch());
            }
            if *self.epoch.get_or_insert(frame.epoch()) != frame.epoch() {
                let message = "the cluster has started again while the transaction was open";
                return Err(Error::new(SqlState::SERIALIZATION_FAILURE, message)
                    .with_hint("Run the statement again."));
            }
            if frame.step() >= at_least {
                return Ok(frame.under(&self.overlay));
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

    /// Reserves entries if nobody else has them; none if somebody has.
    pub(crate) async fn try_reserve(
        &mut self,
        frame: &Frame,
        entries: Vec<Entry>,
    ) -> Result<Option<Reservation>, Error> {
        self.has_reserved = true;
        let coordinator = &self.database.coordinator;
        let frame = Some(FrameId { epoch: frame.epoch(), step: frame.step() });
        match coordinator.reserve(self.id, frame, entries, Some(Duration::ZERO)).await {
            Ok(reservation) => Ok(Some(reservation)),
            Err(CoordinatorError::LockTimeout) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Keeps rows that a statement adds until the commit, once it has reserved them.
    pub(crate) fn keep(
        &mut self,
        target: &Target,
        changes: Vec<ExactChanges>,
    ) -> Result<(), Error> {
        if changes.is_empty() { Ok(()) } else { self.overlay.add(target, changes) }
    }

    /// Whether all its statements see one step.
    pub(crate) fn is_repeatable(&self) -> bool {
        self.is_repeatable
    }

    /// Has hosts hold changes until the commit. All changes of one key come in one call.
    pub(crate) async fn stage(&mut self, changes: &[ExactChanges]) -> Result<(), Error> {
        let Some(epoch) = self.epoch else {
            return Err(Error::internal("a transaction writes that has seen no frame"));
        };
        let mut shares: BTreeMap<HostId, Vec<Staging>> = BTreeMap::new();
        let draft = self.overlay.draft().map(|draft| draft.catalog.program().tables);
        for slice in changes.iter().flat_map(ExactChanges::slices) {
            let tables = draft.iter().flatten().filter(|table| table.id == slice.relation);
            let tables = tables.cloned().collect();
            let host = self.turn.take();
            // Counted before it is sent: who doesn't learn its fate unstages it too.
            let next = self.staged.entry(host).or_default();
            let staging = Staging {
                epoch,
                transaction: self.id,
                sequence: *next,
                changes: vec![slice],
                tables,
            };
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

    /// Makes what was changed part of the next step; returns that step once it is common, and none
    /// if there is nothing to change.
    pub(crate) async fn commit(self, progress: &Progress) -> Result<Option<Step>, Error> {
        match self.commit_if_newest(progress).await? {
            Ended::Committed(step) => Ok(step),
            Ended::Outdated => Err(changed_meanwhile()),
        }
    }

    /// The same for one that begins again if somebody else has changed the catalog first.
    pub(crate) async fn commit_if_newest(mut self, progress: &Progress) -> Result<Ended, Error> {
        self.check_deferred().await?;
        let changes = self.overlay.exact()?;
        if !changes.is_empty() {
            self.stage(&changes).await?;
        }
        let draft = self.overlay.draft().filter(|draft| draft.is_changed).cloned();
        if self.staged.is_empty() && draft.is_none() {
            return Ok(Ended::Committed(None));
        }
        let Some(epoch) = self.epoch else {
            return Err(Error::internal("a transaction commits that has seen no frame"));
        };
        self.phase = Phase::Sent;
        let _committing = progress.commit();
        let coordinator = Arc::clone(&self.database.coordinator);
        let (id, hosts) = (self.id, self.staged.keys().copied().collect::<BTreeSet<_>>());
        // In a task of its own: who stops waiting doesn't stop it halfway.
        let commit = tokio::spawn(async move {
            let Some(Draft { base, catalog, .. }) = draft else {
                return coordinator.commit(id, epoch, hosts).await;
            };
            let (bytes, program) = (catalog.encode(), catalog.program());
            let change = Change { transaction: id, base, bytes, program, staged_on: hosts };
            coordinator.change(change).await
        });
        match commit.await {
            Ok(Ok(committed)) => Ok(Ended::Committed(Some(committed.step))),
            Ok(Err(CoordinatorError::CatalogChanged)) => {
                self.phase = Phase::Open;
                Ok(Ended::Outdated)
            }
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

/// How a commit has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It is part of a step, or of none if it has changed nothing.
    Committed(Option<Step>),
    /// It has no effect: somebody else has changed the catalog that it was made from.
    Outdated,
}

/// What a statement has come to.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// How many rows it was about.
    pub(crate) rows: u64,
    /// What it answers of them.
    pub(crate) returned: Option<Returned>,
}

/// What a REPEATABLE READ transaction is told about what others have changed.
pub(crate) fn changed_meanwhile() -> Error {
    let message = "could not serialize access due to concurrent update";
    Error::new(SqlState::SERIALIZATION_FAILURE, message)
}

/// A place where a transaction is left by who has used it for a while: a COPY, between its pieces.
#[derive(Clone, Debug, Default)]
pub(crate) struct Loan(Arc<Mutex<Option<Transaction>>>);

impl Loan {
    /// Gives the transaction back.
    pub(crate) fn put(&self, transaction: Transaction) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(transaction);
    }

    /// Takes it again, if it is here.
    pub(crate) fn take(&self) -> Option<Transaction> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.phase == Phase::Sent || !self.is_known() {
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
