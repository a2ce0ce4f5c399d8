//! What can happen to the machine: the closed set of everything that wakes it.

use std::collections::BTreeSet;
use std::time::Duration;

use stillframe_protocol::{
    Change, Entry, Epoch, FrameId, HostId, LeaseId, Report, Step, TransactionId,
};

/// When an event happened, on two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Since the coordinator's start, on a clock that never goes back: times to live and timeouts.
    pub elapsed: Duration,
    /// Microseconds since 1970-01-01 UTC, on a clock that may jump: what a step is stamped with.
    pub wall_us: i64,
}

/// Names one question to the machine, so that its answer finds whoever asked. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// The coordinator came up. The first event, once.
    Started,
    /// Time has passed. Comes at regular intervals; nothing expires without it.
    Ticked,
    /// A host told its whole status: after its activation, and after each command.
    Reported(Report),
    /// A host said that it can't go on, or did what it must not. A host that says nothing is only
    /// waited for.
    HostFailed {
        /// Which.
        host: HostId,
        /// In its words.
        reason: String,
    },
    /// A client asked something that is owed exactly one answer, now or later.
    Requested {
        /// Names the question.
        ticket: Ticket,
        /// The question.
        request: Request,
    },
    /// Whoever asked doesn't wait for the answer any more. What a commit or change has set going
    /// goes on; everything else is forgotten.
    Cancelled {
        /// Names the question.
        ticket: Ticket,
    },
    /// A client gave a lease back.
    Released {
        /// Which.
        lease: LeaseId,
    },
    /// A client gave a transaction up.
    Aborted {
        /// Which.
        transaction: TransactionId,
    },
}

/// A client's question; see [`stillframe_protocol::Coordinator`] for what each means.
#[derive(Clone, Debug)]
pub enum Request {
    /// A lease on the common step.
    Lease {
        /// Chosen by the client.
        lease: LeaseId,
        /// How long it lives without being renewed.
        time_to_live: Duration,
    },
    /// More time for leases.
    Renew {
        /// Each with the step it was granted on.
        leases: Vec<(LeaseId, Step)>,
    },
    /// Reservations.
    Reserve(Reserve),
    /// A transaction's staged changes shall enter the next step.
    Commit {
        /// Which.
        transaction: TransactionId,
        /// Of which epoch its frames and staged changes are.
        epoch: Epoch,
        /// The hosts that hold staged changes of it. If there are none it has changed nothing, and
        /// no step is made for it.
        staged_on: BTreeSet<HostId>,
    },
    /// The newest accepted catalog.
    CatalogHead,
    /// A change of the catalog.
    Change(Change),
    /// What the cluster does.
    Status,
}

/// Asks for reservations.
#[derive(Clone, Debug)]
pub struct Reserve {
    /// For whom.
    pub transaction: TransactionId,
    /// What the transaction has seen.
    pub frame: Option<FrameId>,
    /// What to reserve.
    pub entries: Vec<Entry>,
    /// How long to wait for others; zero doesn't wait.
    pub timeout: Option<Duration>,
}
