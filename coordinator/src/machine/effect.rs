//! What the machine wants done. Whoever runs it owes every effect, once at least and in any order.

use std::sync::Arc;

use stillframe_protocol::{
    Activation, CatalogSnapshot, ClusterStatus, Command, Committed, CoordinatorError, Epoch, Grant,
    HostId, LeaseId, Reservation, Retention, TransactionId,
};

use super::Ticket;

/// Something to be done.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Activate a host until it reports.
    Activate {
        /// Which.
        host: HostId,
        /// How.
        activation: Activation,
    },
    /// Have a host execute a command until it reports it done.
    Execute {
        /// Which.
        host: HostId,
        /// What.
        command: Arc<Command>,
    },
    /// Tell a host what to keep. A newer one makes older ones needless.
    Retain {
        /// Which.
        host: HostId,
        /// Of which epoch.
        epoch: Epoch,
        /// What.
        retention: Arc<Retention>,
    },
    /// Have a host forget what a transaction has staged.
    Unstage {
        /// Which.
        host: HostId,
        /// Of which epoch.
        epoch: Epoch,
        /// Whose.
        transaction: TransactionId,
    },
    /// Answer a question.
    Answer {
        /// Names it.
        ticket: Ticket,
        /// The answer.
        answer: Answer,
    },
}

impl Effect {
    /// The host that is meant; none if it is an answer.
    pub fn host(&self) -> Option<HostId> {
        match self {
            Self::Activate { host, .. }
            | Self::Execute { host, .. }
            | Self::Retain { host, .. }
            | Self::Unstage { host, .. } => Some(*host),
            Self::Answer { .. } => None,
        }
    }
}

/// What a client is answered.
pub type Answer = Result<Reply, CoordinatorError>;

/// The good answers, one per kind of request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// To a request for a lease.
    Granted(Grant),
    /// To a renewal: those that are gone.
    Renewed(Vec<LeaseId>),
    /// To a request for reservations.
    Reserved(Reservation),
    /// To a commit or a change of the catalog.
    Committed(Committed),
    /// To a request for the newest accepted catalog.
    Head(CatalogSnapshot),
    /// To a request for the cluster's status.
    Status(ClusterStatus),
}

/// Collects answers.
pub(super) trait Answers {
    /// Answers a question.
    fn answer(&mut self, ticket: Ticket, answer: Answer);
}

impl Answers for Vec<Effect> {
    fn answer(&mut self, ticket: Ticket, answer: Answer) {
        self.push(Effect::Answer { ticket, answer });
    }
}
