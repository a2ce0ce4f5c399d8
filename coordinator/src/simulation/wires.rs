//! Virtual time, chance, and what is on its way.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use stillframe_protocol::{
    Activation, Command, HostId, LeaseId, Report, Retention, Step, TransactionId,
};

use super::bank::{Contents, Write};
use crate::machine::{Event, Ticket};

/// A simulated client's number.
pub(super) type ClientId = usize;

/// Something that will happen.
pub(super) enum Delivery {
    /// Time is looked at.
    Tick,
    /// The coordinator learns something.
    ToMachine(Event),
    /// A host hears something.
    ToHost(HostId, ToHost),
    /// A host is done with what it executes.
    HostDone(HostId),
    /// A host's report arrives at the coordinator.
    Report(Report),
    /// A call that may have been lost is made again, if it wasn't answered.
    Retry(HostId, ToHost),
    /// A client can go on.
    ToClient(ClientId, Box<dyn FnOnce()>),
    /// A client disappears.
    Crash(ClientId),
    /// A client appears.
    Arrive(ClientId),
    /// The coordinator stands still for so long.
    Pause(Duration),
}

/// What hosts are told.
#[derive(Clone)]
pub(super) enum ToHost {
    Activate(Activation),
    Execute(Arc<Command>),
    Retain(Arc<Retention>),
    Unstage(TransactionId),
    Stage(TransactionId, Vec<Write>, ClientId, Slot<()>),
    Scan { lease: LeaseId, step: Step, client: ClientId, slot: Slot<Option<Contents>> },
}

/// Where a client finds an answer.
pub(super) type Slot<T> = Rc<RefCell<Option<T>>>;

/// How unreliable the simulated world is.
#[derive(Clone, Debug)]
pub(super) struct Faults {
    /// A message between coordinator and host is lost with this probability.
    pub(super) loss: f64,
    /// A message arrives twice with this probability.
    pub(super) duplication: f64,
    /// A message takes long with this probability.
    pub(super) delay: f64,
    /// A command takes long with this probability.
    pub(super) slowness: f64,
    /// Everything goes well from then on.
    pub(super) until: Duration,
}

/// What is on its way.
pub(super) struct Wires {
    pub(super) now: Duration,
    pub(super) rng: StdRng,
    pub(super) faults: Faults,
    queue: BTreeMap<(Duration, u64), Delivery>,
    counter: u64,
    numbers: u64,
}

impl Wires {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let faults = Faults {
            loss: [0.0, 0.01, 0.1][rng.random_range(0..3)],
            duplication: [0.0, 0.02, 0.1][rng.random_range(0..3)],
            delay: [0.0, 0.02, 0.2][rng.random_range(0..3)],
            slowness: [0.0, 0.05, 0.3][rng.random_range(0..3)],
            until: Duration::from_millis(rng.random_range(500..2500)),
        };
        Self { now: Duration::ZERO, rng, faults, queue: BTreeMap::new(), counter: 0, numbers: 0 }
    }

    /// Whether things still go wrong.
    pub(super) fn faulty(&self) -> bool {
        self.now < self.faults.until
    }

    /// Whether something goes wrong that does so with this probability; nothing does in the end.
    pub(super) fn goes_wrong(&mut self, probability: impl Fn(&Faults) -> f64) -> bool {
        self.faulty() && self.rng.random_bool(probability(&self.faults))
    }

    /// Has something happen after some time.
    pub(super) fn after(&mut self, delay: Duration, delivery: Delivery) {
        self.counter += 1;
        self.queue.insert((self.now + delay, self.counter), delivery);
    }

    /// The next thing that happens. Time goes on to when it does.
    pub(super) fn next(&mut self) -> Option<Delivery> {
        let ((at, _), delivery) = self.queue.pop_first()?;
        self.now = at;
        Some(delivery)
    }

    /// How long a message takes.
    pub(super) fn latency(&mut self) -> Duration {
        let usual = Duration::from_micros(self.rng.random_range(20..500));
        let more = if self.goes_wrong(|faults| faults.delay) {
            Duration::from_micros(self.rng.random_range(1_000..25_000))
        } else {
            Duration::ZERO
        };
        usual + more
    }

    /// Sends a message that is never lost.
    pub(super) fn send(&mut self, delivery: Delivery) {
        let latency = self.latency();
        self.after(latency, delivery);
    }

    /// Sends a message to a host that may be lost or come twice. It is sent again later.
    pub(super) fn send_to_host(&mut self, host: HostId, message: ToHost) {
        if !self.goes_wrong(|faults| faults.loss) {
            self.send(Delivery::ToHost(host, message.clone()));
        }
        if self.goes_wrong(|faults| faults.duplication) {
            self.send(Delivery::ToHost(host, message.clone()));
        }
        let again = Duration::from_millis(self.rng.random_range(40..80));
        self.after(again, Delivery::Retry(host, message));
    }

    /// Sends a host's report, which may be lost or come twice.
    pub(super) fn send_report(&mut self, report: Report) {
        if !self.goes_wrong(|faults| faults.loss) {
            self.send(Delivery::Report(report.clone()));
        }
        if self.goes_wrong(|faults| faults.duplication) {
            self.send(Delivery::Report(report));
        }
    }

    /// A number that nobody had.
    pub(super) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// A ticket that nobody had.
    pub(super) fn ticket(&mut self) -> Ticket {
        Ticket(self.number())
    }
}
