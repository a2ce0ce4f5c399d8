//! What a host is asked and what it answers, and what the coordinator promises its clients.
//!
//! Three parties speak through this crate and know each other by nothing else:
//!
//! - a **host** ([`Host`]) runs some of the engine's workers, steps when it is told to, keeps the
//!   frames it is told to keep and answers scans of them;
//! - the **coordinator** ([`Coordinator`]) owns the one sequence of commands, the leases, the
//!   reservations of writers and the catalog's versions;
//! - a **front end** plans statements, takes leases, scans hosts and stages writes.
//!
//! # The life of an epoch
//!
//! ```text
//! coordinator                                host
//!                                      <-      register(incarnation), if it is a process of its own
//!   activate(epoch, host, workers)     ->      takes part in this epoch and in no older one
//!                                      <-      Report: where its next circuit can be reached
//!   execute(#0 Replace, step 0)        ->      builds the circuit, makes step 0
//!                                      <-      Report: done #0, step 0
//!   execute(#1 Advance, step 1, [t])   ->      feeds what t has staged, makes step 1
//!                                      <-      Report: done #1, step 1
//!   retain(common 1, pinned {0})       ->      may drop every frame but 0 and those from 1 on
//!   retire(incarnation)                ->      the epoch has ended: replaces itself
//! ```
//!
//! # Obligations
//!
//! - Every command is a collective: all hosts execute exactly the same commands in the order of
//!   their numbers. A command never changes once it was sent to anyone; sending it again is
//!   harmless.
//! - A host keeps every frame from the last `common` it was told on, and every pinned one. A lease
//!   is granted only on the common step. So a leased frame cannot be gone.
//! - A scan is answered from the step it names or refused, and always ends with an explicit
//!   [`ScanPart::End`] or an error. A stream that just stops is a failure.
//! - Nothing here knows SQL text, the Postgres wire, or dbsp.

mod client;
mod command;
mod expression;
mod host;
mod identifiers;
pub mod numeric;
mod partition;
mod plan;
mod registration;
mod scan;
mod write;

pub use client::{
    CatalogSnapshot, Change, ClusterStatus, Committed, Coordinator, CoordinatorError, Grant,
    HostStatus, JobKind, JobPhase, JobStatus, LeaseStatus, Reservation, StepStatus,
};
pub use command::{Action, Activation, Command, Filling, Report, Retention};
pub use expression::{BinaryOperator, Expression, Literal, UnaryOperator};
pub use host::{Host, HostError, RelationStatistics, RowError, Statistics};
pub use identifiers::{
    CatalogVersion, CommandNumber, Epoch, FrameId, Generation, HostId, Incarnation, LeaseId,
    RelationId, Shard, Step, TransactionId,
};
pub use partition::{
    AggregateCall, Computation, Frame, FrameBound, FrameUnits, Limit, SortKey, WindowCall,
    WindowFunction,
};
pub use plan::{
    Aggregate, AggregateFunction, Fingerprint, Fingerprints, JoinKey, Moment, MomentUnit, Plan,
    Program, Table, View, shared,
};
pub use registration::{Registration, Standing};
pub use scan::{ScanPart, ScanRequest, ScanStream};
pub use write::{Changes, Entry, Lockable, Mode, Staging};
