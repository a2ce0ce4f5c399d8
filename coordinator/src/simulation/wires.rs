//! Virtual time, chance, and what is on its way.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use stillframe_protocol::{
    Activation, Command, Epoch, FrameId, HostId, Incarnation, LeaseId, Registration, Report,
    Retention, Standing, TransactionId,
};

use super::bank::{Contents, Write};
use crate::machine::{Event, Ticket};

/// A simulated client's number.
pub(super) type ClientId = usize;

/// Something that will happen.
pub(super) enum Delivery {
    /// Time is looked at.
    Tick,
    /// The coordinator hears of a client.
    ToMachine(Event),
    /// A process hears something.
    ToHost(Incarnation, ToHost),
    /// A process is done with what it executes.
    HostDone(Incarnation),
    /// A process's report arrives at the coordinator.
    Report(Incarnation, Report),
    /// A process's registration arrives at the coordinator.
    Registration(Registration),
    /// A call that may have been lost is made again, if it wasn't answered.
    Retry(Incarnation, ToHost),
    /// A client can go on.
    ToClient(ClientId, Box<dyn FnOnce()>),
    /// A client disappears.
    Crash(ClientId),
    /// A client appears.
    Arrive(ClientId),
    /// The coordinator stands still for so long.
    Pause(Duration),
    /// It is time for a process to register again.
    Registers(Incarnation),
    /// A machine's process is killed.
    Kill(usize),
    /// A machine's process stands still for so long.
    Freeze(usize, Duration),
    /// The engine of a machine's process fails.
    Fail(usize),
    /// A machine starts a process.
    Start(usize),
    /// The coordinator is killed.
    KillCoordinator,
    /// The coordinator starts.
    StartCoordinator,
}

/// No message takes longer.
pub(super) const LATENCY_MAX: Duration = Duration::from_millis(26);

/// What hosts are told.
#[derive(Clone)]
pub(super) enum ToHost {
    Activate(Activation),
    Execute(Arc<Command>),
    Retain(Epoch, Arc<Retention>),
    Unstage(Epoch, TransactionId),
    Retire,
    Stand(Standing),
    Stage(Epoch, TransactionId, Vec<Write>, ClientId, Slot<bool>),
    Scan { lease: LeaseId, frame: FrameId, client: ClientId, slot: Slot<Scanned> },
}

/// What a scan finds: the contents, none if the host doesn't keep the frame, or nobody who could
/// tell.
pub(super) type Scanned = Result<Option<Contents>, NotThere>;

/// The host isn't there, or isn't part of the epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct NotThere;

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
    queue: BTreeMap<(Duration, u64), (u64, Delivery)>,
    /// Who the hosts of each epoch are.
    pub(super) members: BTreeMap<(Epoch, HostId), Incarnation>,
    /// Which life of the coordinator it is.
    pub(super) life: u64,
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
        Self {
            now: Duration::ZERO,
            rng,
            faults,
            queue: BTreeMap::new(),
            members: BTreeMap::new(),
            life: 0,
            counter: 0,
            numbers: 0,
        }
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
        self.queue.insert((self.now + delay, self.counter), (self.life, delivery));
    }

    /// The next thing that happens, and in which life of the coordinator it was set going. Time goes
    /// on to when it does.
    pub(super) fn next(&mut self) -> Option<(u64, Delivery)> {
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
    pub(super) fn send_to_host(&mut self, host: Incarnation, message: ToHost) {
        if !self.goes_wrong(|faults| faults.loss) {
            self.send(Delivery::ToHost(host, message.clone()));
        }
        if self.goes_wrong(|faults| faults.duplication) {
            self.send(Delivery::ToHost(host, message.clone()));
        }
        let again = Duration::from_millis(self.rng.random_range(40..80));
        self.after(again, Delivery::Retry(host, message));
    }

    /// Sends a message that may be lost or come twice, and isn't sent again.
    pub(super) fn try_to_send(&mut self, delivery: impl Fn() -> Delivery) {
        if !self.goes_wrong(|faults| faults.loss) {
            self.send(delivery());
        }
        if self.goes_wrong(|faults| faults.duplication) {
            self.send(delivery());
        }
    }

    /// Sends a host's report.
    pub(super) fn send_report(&mut self, from: Incarnation, report: &Report) {
        self.try_to_send(|| Delivery::Report(from, report.clone()));
    }

    /// Sends a client's message to a host of an epoch; false if nobody is known there.
    pub(super) fn send_to_member(&mut self, epoch: Epoch, host: HostId, message: ToHost) -> bool {
        let member = self.members.get(&(epoch, host)).copied();
        if let Some(member) = member {
            self.send(Delivery::ToHost(member, message));
        }
        member.is_some()
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
