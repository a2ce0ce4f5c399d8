//! The simulated world: a machine, hosts, clients and a judge, on virtual time.

mod coordinator;
mod hosts;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

use rand::Rng;
use stillframe_protocol::{CommandNumber, Epoch, HostId, TransactionId};

use super::bank::Contents;
use super::checker::Checker;
use super::clients::{Role, live};
use super::host::SimulatedHost;
use super::session::{Answers, Session};
use super::wires::{ClientId, Delivery, Wires};
use crate::machine::{Defect, Effect, Event, Machine, Settings, Ticket};

/// Once nothing goes wrong any more, everything must have come to its end so soon.
const PROGRESS_MAX: Duration = Duration::from_secs(20);
/// When all clients are gone, everything that is left over must be gone so soon.
const SETTLE: Duration = Duration::from_secs(2);

/// What a run amounted to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) events: u64,
    pub(super) steps: u64,
    pub(super) tally: BTreeMap<&'static str, u64>,
    pub(super) trace: u64,
    pub(super) contents: Contents,
}

/// Everything there is.
pub(super) struct World {
    machine: Machine,
    hosts: Vec<SimulatedHost>,
    clients: Vec<Client>,
    wires: Rc<RefCell<Wires>>,
    checker: Rc<RefCell<Checker>>,
    answers: Answers,
    accounts: u64,
    /// Questions whose answers nobody waits for, so that they need not be asked.
    cancelled: BTreeSet<Ticket>,
    paused_until: Duration,
    /// The last command that each host's reports have told of.
    reported: Vec<Option<CommandNumber>>,
    /// Whether a host fails in this run.
    fails: bool,
    effects: Vec<Effect>,
    events: u64,
    trace: u64,
}

struct Client {
    role: Role,
    open: Rc<RefCell<Option<TransactionId>>>,
    task: Option<Pin<Box<dyn Future<Output = ()>>>>,
}

impl World {
    pub(super) fn new(seed: u64, defect: Defect) -> Self {
        let mut wires = Wires::new(seed);
        let rng = &mut wires.rng;
        let hosts = rng.random_range(1..=4u32);
        let accounts = rng.random_range(3..=8u64);
        let counts = [
            (Role::Reader, rng.random_range(1..=3)),
            (Role::Writer, rng.random_range(2..=5)),
            (Role::Sweeper, rng.random_range(0..=1)),
            (Role::Rotator, rng.random_range(0..=1)),
            (Role::Definer, rng.random_range(0..=2)),
        ];
        let roles = counts.into_iter().flat_map(|(role, count)| vec![role; count]);
        let clients = roles.map(|role| Client { role, open: Rc::default(), task: None });
        let settings = Settings {
            epoch: Epoch(1),
            workers: vec![2; hosts as usize],
            time_to_live_min: Duration::from_millis(300),
            time_to_live_max: Duration::from_millis(1000),
            clock_gap_max: Duration::from_millis(100),
            patience: Duration::from_secs(60),
        };
        let mut world = Self {
            machine: Machine::with_defect(settings, defect),
            hosts: (0..hosts).map(|id| SimulatedHost::new(HostId(id), hosts, accounts)).collect(),
            clients: clients.collect(),
            checker: Rc::new(RefCell::new(Checker::new(hosts, accounts))),
            wires: Rc::new(RefCell::new(wires)),
            answers: Answers::default(),
            accounts,
            cancelled: BTreeSet::new(),
            paused_until: Duration::ZERO,
            reported: vec![None; hosts as usize],
            fails: false,
            effects: vec![],
            events: 0,
            trace: 0,
        };
        world.plan();
        world
    }

    /// Decides what will go wrong, and when.
    fn plan(&mut self) {
        let mut wires = self.wires.borrow_mut();
        let until = wires.faults.until;
        let moment = |wires: &mut Wires| until.mul_f64(wires.rng.random_range(0.05..1.0));
        wires.after(Duration::ZERO, Delivery::ToMachine(Event::Started));
        wires.after(Duration::ZERO, Delivery::Tick);
        for client in 0..self.clients.len() {
            let delay = Duration::from_micros(wires.rng.random_range(0..20_000));
            wires.after(delay, Delivery::Arrive(client));
        }
        for _ in 0..wires.rng.random_range(0..6) {
            let client = wires.rng.random_range(0..self.clients.len());
            let at = moment(&mut wires);
            wires.after(at, Delivery::Crash(client));
        }
        for _ in 0..wires.rng.random_range(0..3) {
            let pause = [50, 150, 1500][wires.rng.random_range(0..3)];
            let at = moment(&mut wires);
            wires.after(at, Delivery::Pause(Duration::from_millis(pause)));
        }
        self.fails = wires.rng.random_bool(0.05);
        if self.fails {
            let host = HostId(wires.rng.random_range(0..self.hosts.len() as u32));
            let at = moment(&mut wires);
            let event = Event::HostFailed { host, reason: "it was to fail".into() };
            wires.after(at, Delivery::ToMachine(event));
        }
    }

    /// Runs to the end of the world, or to the first broken promise.
    pub(super) fn run(mut self) -> Result<Summary, String> {
        let deadline = self.wires.borrow().faults.until + PROGRESS_MAX;
        let mut settled_at = None;
        loop {
            let next = self.wires.borrow_mut().next();
            let Some(delivery) = next else { break };
            self.deliver(delivery);
            if let Some(violation) = self.checker.borrow_mut().violation.take() {
                return Err(format!("at {:?}: {violation}", self.now()));
            }
            let now = self.now();
            let alone = self.clients.iter().all(|client| client.task.is_none())
                && !self.wires.borrow().faulty();
            match settled_at {
                None if alone => settled_at = Some(now + SETTLE),
                Some(at) if now >= at => break,
                None if now >= deadline => return Err(self.stuck()),
                None | Some(_) => {}
            }
        }
        self.finish()
    }

    fn now(&self) -> Duration {
        self.wires.borrow().now
    }

    fn stuck(&self) -> String {
        let alive = self.clients.iter().filter(|client| client.task.is_some());
        let roles: Vec<Role> = alive.map(|client| client.role).collect();
        format!("no progress: {roles:?} wait for ever")
    }

    /// Checks what is left over.
    fn finish(self) -> Result<Summary, String> {
        let mut checker = self.checker.borrow_mut();
        checker.finish();
        let mut contents = Contents::default();
        for host in &self.hosts {
            let (frames, made) = (host.frames(), host.made());
            checker.expect(
                self.fails || Some(frames.as_slice()) == made.as_ref().map(std::slice::from_ref),
                || format!("nobody holds a lease, and host keeps steps {frames:?}"),
            );
            if let Some(part) = made.and_then(|step| host.scan(step)) {
                contents.merge(part);
            }
        }
        let leftovers = self.machine.leftovers();
        checker.expect(self.fails || leftovers.is_empty(), || format!("left over: {leftovers:?}"));
        match checker.violation.take() {
            Some(violation) => Err(format!("in the end: {violation}")),
            None => Ok(Summary {
                events: self.events,
                steps: self.hosts[0].made().map_or(0, |step| step.0 + 1),
                tally: std::mem::take(&mut checker.tally),
                trace: self.trace,
                contents,
            }),
        }
    }

    fn deliver(&mut self, delivery: Delivery) {
        self.events += 1;
        match delivery {
            Delivery::Tick | Delivery::ToMachine(_) | Delivery::Report(_)
                if self.now() < self.paused_until =>
            {
                let wait = self.paused_until - self.now();
                self.wires.borrow_mut().after(wait, delivery);
            }
            Delivery::Tick => {
                self.handle(Event::Ticked);
                let mut wires = self.wires.borrow_mut();
                let tick = Duration::from_micros(wires.rng.random_range(10_000..20_000));
                wires.after(tick, Delivery::Tick);
            }
            Delivery::ToMachine(event) => self.tell_machine(event),
            Delivery::Report(report) => {
                let reported = &mut self.reported[report.host.0 as usize];
                *reported = (*reported).max(report.done);
                self.handle(Event::Reported(report));
            }
            Delivery::ToHost(host, message) => self.tell_host(host, message),
            Delivery::HostDone(host) => self.host_done(host),
            Delivery::Retry(host, message) => self.retry(host, message),
            Delivery::ToClient(client, fill) => {
                fill();
                self.poll(client);
            }
            Delivery::Crash(client) => self.crash(client),
            Delivery::Arrive(client) => self.arrive(client),
            Delivery::Pause(pause) => self.paused_until = self.now() + pause,
        }
    }

    fn arrive(&mut self, id: ClientId) {
        let client = &mut self.clients[id];
        if client.task.is_some() {
            return;
        }
        let session = Session {
            client: id,
            hosts: self.hosts.len() as u32,
            accounts: self.accounts,
            wires: Rc::clone(&self.wires),
            checker: Rc::clone(&self.checker),
            answers: Rc::clone(&self.answers),
            open: Rc::clone(&client.open),
        };
        client.task = Some(live(client.role, session));
        self.poll(id);
    }

    /// A client is gone: its connection gives up what it was at. A new one takes its place.
    fn crash(&mut self, id: ClientId) {
        let client = &mut self.clients[id];
        client.task = None;
        let mut wires = self.wires.borrow_mut();
        if let Some(transaction) = client.open.borrow_mut().take() {
            wires.send(Delivery::ToMachine(Event::Aborted { transaction }));
        }
        if wires.faulty() {
            let delay = Duration::from_micros(wires.rng.random_range(0..100_000));
            wires.after(delay, Delivery::Arrive(id));
        }
    }

    fn poll(&mut self, id: ClientId) {
        if let Some(task) = &mut self.clients[id].task
            && task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
        {
            self.clients[id].task = None;
        }
    }
}
