//! The contract of the coordinator with front ends.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    CatalogVersion, Entry, Epoch, FrameId, HostId, LeaseId, Program, RelationId, Step,
    TransactionId,
};

/// Owns the sequence of commands, the leases, the reservations and the catalog's versions.
///
/// # The life of a read
///
/// `lease` -> scan every shard at the granted step -> `release`. Whoever holds a lease for long
/// renews it well before its time to live is over.
///
/// # The life of a write
///
/// ```text
/// loop {
///     lease                    the frame that the statement sees
///     evaluate, find the keys
///     reserve(keys, step)      waits for whoever holds one of them
///       Granted                -> stage at hosts, commit, answered when the step is common
///       Changed                -> one of them was written after the frame: take a newer frame
/// }                               and evaluate again; what was reserved stays reserved
/// ```
#[async_trait]
pub trait Coordinator: Send + Sync + fmt::Debug {
    /// Grants a lease on the common step. The same id again returns the same grant.
    async fn lease(
        &self,
        lease: LeaseId,
        time_to_live: Duration,
    ) -> Result<Grant, CoordinatorError>;

    /// Prolongs leases from now by their time to live; returns those that are gone.
    async fn renew(&self, leases: Vec<(LeaseId, Step)>) -> Result<Vec<LeaseId>, CoordinatorError>;

    /// Ends a lease; harmless if it has ended.
    async fn release(&self, lease: LeaseId);

    /// Reserves all entries for a transaction, waiting in order for whoever holds one of them. What
    /// it holds already it keeps; shared becomes exclusive where asked.
    ///
    /// With a frame, answers [`Reservation::Changed`] if an entry, or an exclusively written
    /// relation it belongs to, was written after that step; all entries are reserved even so.
    ///
    /// A whole relation counts as written by everybody who held any of it, even shared: so whoever
    /// inserts rows that no key stands for reserves the relation shared. Keep the frame's lease
    /// until the answer: what was written is remembered back to the oldest leased step, and an
    /// older frame is answered [`Reservation::Changed`].
    ///
    /// The frame's epoch is that of all that the transaction has reserved and staged; if it isn't
    /// the epoch that lives, the transaction is lost: [`CoordinatorError::NotReady`], as is
    /// whoever waits when its epoch ends.
    ///
    /// Without a frame the reservations are of whatever epoch lives. A transaction's requests and its
    /// end must reach the coordinator in the order in which they were made: one that comes after the
    /// end, in a later epoch, would reserve for ever.
    ///
    /// One request at a time: another one of the same transaction takes the place of one that
    /// waits. To drop the future gives up waiting; what was got is kept.
    async fn reserve(
        &self,
        transaction: TransactionId,
        frame: Option<FrameId>,
        entries: Vec<Entry>,
        timeout: Option<Duration>,
    ) -> Result<Reservation, CoordinatorError>;

    /// Makes a transaction's staged changes part of the next step; answers when that step is
    /// common: durable as far as the engine is, and seen by every later lease. To drop the future
    /// doesn't undo the commit.
    ///
    /// With nothing staged anywhere it has changed nothing, and ends at once without a step. To ask
    /// again is answered the same.
    ///
    /// The epoch is that of the transaction's frames and of its staged changes. If it ends before
    /// the changes are part of a step, the answer is [`CoordinatorError::NotReady`]: they have no
    /// effect. Once they are part of a step that isn't common, and whenever a commit is asked for
    /// in an epoch that has ended, it is [`CoordinatorError::Unknown`].
    async fn commit(
        &self,
        transaction: TransactionId,
        epoch: Epoch,
        staged_on: BTreeSet<HostId>,
    ) -> Result<Committed, CoordinatorError>;

    /// Ends a transaction without effect: its reservations are free.
    async fn abort(&self, transaction: TransactionId);

    /// The newest accepted catalog, whose step may still be under way: what a change starts from.
    async fn catalog_head(&self) -> Result<CatalogSnapshot, CoordinatorError>;

    /// Changes the catalog; answers when the change's step is common. Changes that wait together
    /// share one step. The transaction's exclusive reservations keep writers out and end with it.
    /// What the transaction has staged enters in the same step.
    async fn change(&self, change: Change) -> Result<Committed, CoordinatorError>;

    /// What the cluster does, for the system tables.
    async fn status(&self) -> Result<ClusterStatus, CoordinatorError>;
}

/// A lease on one step.
#[derive(Clone, Debug)]
pub struct Grant {
    /// The lease.
    pub lease: LeaseId,
    /// The epoch.
    pub epoch: Epoch,
    /// The step.
    pub step: Step,
    /// The catalog of that step.
    pub catalog: CatalogSnapshot,
}

/// A version of the catalog, in a form only front ends read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CatalogSnapshot {
    /// The version; no two catalogs have the same, in no two epochs.
    pub version: CatalogVersion,
    /// The front ends' own serialised catalog; empty in an epoch's first version.
    pub bytes: Arc<[u8]>,
}

/// A change of the catalog.
#[derive(Clone, Debug)]
pub struct Change {
    /// The transaction that makes it, and whose reservations end with it.
    pub transaction: TransactionId,
    /// The version it was made from; refused with [`CoordinatorError::CatalogChanged`] if that
    /// isn't the newest any more.
    pub base: CatalogVersion,
    /// The catalog after it.
    pub bytes: Arc<[u8]>,
    /// What the circuit computes after it.
    pub program: Program,
    /// The hosts that hold changes of the transaction: those enter in the very step in which the
    /// change of the catalog takes effect.
    pub staged_on: BTreeSet<HostId>,
}

/// The answer to [`Coordinator::reserve`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reservation {
    /// Everything is reserved, and as the frame shows it.
    Granted,
    /// Everything is reserved, but something was written after the frame, at this step at the
    /// latest: look again under a lease of this step or a later one.
    Changed(Step),
}

/// The answer to [`Coordinator::commit`] and [`Coordinator::change`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Committed {
    /// The step that shows it first.
    pub step: Step,
}

/// Why the coordinator didn't do what it was asked. Sorted by what the caller can do.
#[derive(Clone, Debug, Error, PartialEq, Eq, Serialize, Deserialize)]
pub enum CoordinatorError {
    /// Not all hosts are there yet, or one is silent: try again later (57P03).
    #[error("the cluster is not ready: {0}")]
    NotReady(String),
    /// Waiting for each other (40P01): the transaction is aborted, run it again.
    #[error("deadlock detected")]
    Deadlock,
    /// The timeout is over (55P03): the transaction keeps what it had.
    #[error("canceling statement due to lock timeout")]
    LockTimeout,
    /// Somebody else changed the catalog first: plan the change again.
    #[error("the catalog has changed")]
    CatalogChanged,
    /// The transaction is unknown, or was ended already.
    #[error("transaction is not open")]
    UnknownTransaction,
    /// The engine has failed: nothing can go on in this epoch (57P02).
    #[error("the engine has failed: {0}")]
    Failed(String),
    /// Whether it took effect is unknown (08007).
    #[error("the outcome is unknown: {0}")]
    Unknown(String),
}

/// What the cluster does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterStatus {
    /// The epoch.
    pub epoch: Epoch,
    /// The common step.
    pub common: Option<Step>,
    /// By place.
    pub hosts: Vec<HostStatus>,
    /// Those that live.
    pub leases: Vec<LeaseStatus>,
    /// The newest steps, ascending.
    pub steps: Vec<StepStatus>,
    /// The changes of the catalog that were accepted and haven't taken effect, in their order.
    pub jobs: Vec<JobStatus>,
}

/// A host as the coordinator sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostStatus {
    /// Which.
    pub host: HostId,
    /// How many workers it runs.
    pub workers: u32,
    /// Whether it is part of the epoch.
    pub active: bool,
    /// The newest step it has reported.
    pub step: Option<Step>,
}

/// A lease as the coordinator sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseStatus {
    /// Which.
    pub lease: LeaseId,
    /// The step it holds.
    pub step: Step,
    /// How long it has lived, in milliseconds.
    pub age_ms: u64,
    /// How long it will live without being renewed, in milliseconds.
    pub expires_in_ms: u64,
}

/// A step as the coordinator sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepStatus {
    /// Which.
    pub step: Step,
    /// Its clock: microseconds since 1970-01-01 UTC.
    pub clock_us: i64,
    /// How many transactions entered.
    pub transactions: u32,
    /// From the command to the last host's report, in microseconds.
    pub took_us: u64,
    /// The catalog's version from this step on.
    pub catalog: CatalogVersion,
}

/// A change of the catalog that hasn't taken effect, as the coordinator sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobStatus {
    /// The version that it makes, which no other change does.
    pub id: CatalogVersion,
    /// What it does to the circuit.
    pub kind: JobKind,
    /// The relations that it adds and takes away.
    pub relations: Vec<RelationId>,
    /// How far it is.
    pub phase: JobPhase,
}

/// What a change of the catalog does to the circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobKind {
    /// Nothing.
    Describe,
    /// It adds relations.
    Create,
    /// It takes relations away.
    Drop,
    /// It does both.
    Exchange,
}

/// How far a change of the catalog is. Changes that share a replacement are equally far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobPhase {
    /// It waits for others.
    Waits,
    /// Its command is under way, in which it takes effect, or the one that begins to fill what is
    /// new.
    Replaces,
    /// What is new is being filled.
    Fills {
        /// How many pumps were made.
        pumps: u64,
        /// How many hosts have filled everything.
        hosts_done: u32,
        /// The most changes that a host has to catch up with.
        recorded: u64,
    },
    /// The step that shows what is new is being made.
    CutsOver,
}
