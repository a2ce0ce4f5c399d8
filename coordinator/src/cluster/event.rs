//! What can happen to the cluster, and what it wants done.

use stillframe_protocol::{Incarnation, Registration, Standing};

use crate::machine::{self, Ticket};

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// The coordinator came up. The first event, once.
    Started,
    /// A process told that it is there. Owed one answer, at once.
    Registered {
        /// Names the question.
        ticket: Ticket,
        /// What it told.
        registration: Registration,
    },
    /// A process answered what it was told, or failed.
    Heard {
        /// Which.
        incarnation: Incarnation,
        /// [`Reported`](machine::Event::Reported) or [`HostFailed`](machine::Event::HostFailed).
        event: machine::Event,
    },
    /// Time passed, or a client wants something.
    Happened(machine::Event),
}

/// Something to be done.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Answer a registration.
    Stand {
        /// Names the question.
        ticket: Ticket,
        /// The answer.
        standing: Standing,
    },
    /// Do what the machine of the epoch wants of a host, which is this process.
    Tell {
        /// Which process.
        incarnation: Incarnation,
        /// What is wanted.
        effect: machine::Effect,
    },
    /// Tell a process that its epoch has ended, once; if that is lost, it hears so when it registers
    /// again. Nothing else that it was to be told need be told any more.
    Retire {
        /// Which.
        incarnation: Incarnation,
        /// Why.
        reason: String,
    },
    /// [Answer](machine::Effect::Answer) a client.
    Answer(machine::Effect),
}
