//! The simulated world: a machine, hosts, clients and a judge, on virtual time.

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
use super::host::{Heard, SimulatedHost};
use super::session::{Answers, Session, fill};
use super::wires::{ClientId, Delivery, ToHost, Wires};
use crate::machine::{Defect, Effect, Event, Machine, Now, Request, Settings, Ticket};

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
            Delivery::ToMachine(event) => self.to_machine(event),
            Delivery::Report(report) => {
                let reported = &mut self.reported[report.host.0 as usize];
                *reported = (*reported).max(report.done);
                self.handle(Event::Reported(report));
            }
            Delivery::ToHost(host, message) => self.to_host(host, message),
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

    // The machine.

    fn to_machine(&mut self, event: Event) {
        let mut checker = self.checker.borrow_mut();
        match &event {
            Event::Requested { ticket, request } => {
                let effective = matches!(request, Request::Commit { .. } | Request::Change(_));
                if self.cancelled.contains(ticket) && !effective {
                    return;
                }
                checker.asked(*ticket, request);
            }
            Event::Cancelled { ticket } => {
                self.cancelled.insert(*ticket);
                checker.cancelled(*ticket);
            }
            Event::Released { lease } => checker.released(*lease),
            Event::Aborted { transaction } => checker.aborted(*transaction),
            Event::HostFailed { .. } => checker.failed = true,
            Event::Started | Event::Ticked | Event::Reported(_) => {}
        }
        drop(checker);
        self.handle(event);
    }

    fn handle(&mut self, event: Event) {
        let elapsed = self.now();
        // The wall clock goes wrong now and then.
        let skew = if self.events % 97 == 0 { -5_000_000 } else { 0 };
        let now =
            Now { elapsed, wall_us: 1_700_000_000_000_000 + elapsed.as_micros() as i64 + skew };
        self.machine.handle(now, event, &mut self.effects);
        for effect in std::mem::take(&mut self.effects) {
            self.carry_out(effect);
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        let mut wires = self.wires.borrow_mut();
        let (kind, number) = match effect {
            Effect::Activate { host, activation } => {
                wires.send_to_host(host, ToHost::Activate(activation));
                (1, u64::from(host.0))
            }
            Effect::Execute { host, command } => {
                self.checker.borrow_mut().sent(&command);
                let number = command.number.0;
                wires.send_to_host(host, ToHost::Execute(command));
                (2, number)
            }
            Effect::Retain { host, retention, .. } => {
                let number = retention.sequence;
                wires.send_to_host(host, ToHost::Retain(retention));
                (3, number)
            }
            Effect::Unstage { host, transaction, .. } => {
                wires.send_to_host(host, ToHost::Unstage(transaction));
                (4, transaction.0 as u64)
            }
            Effect::Answer { ticket, answer } => {
                self.checker.borrow_mut().answered(wires.now, ticket, &answer);
                if let Some((client, slot)) = self.answers.borrow_mut().remove(&ticket) {
                    wires.send(Delivery::ToClient(client, fill(&slot, answer)));
                }
                (5, ticket.0)
            }
        };
        let entropy = wires.now.as_nanos() as u64 ^ (number << 8) ^ kind;
        self.trace = self.trace.rotate_left(7).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ entropy;
    }

    // Hosts.

    fn to_host(&mut self, id: HostId, message: ToHost) {
        let host = &mut self.hosts[id.0 as usize];
        let mut wires = self.wires.borrow_mut();
        match message {
            ToHost::Activate(activation) => {
                let report = host.activate(&activation);
                wires.send_report(report);
            }
            ToHost::Execute(command) => match host.execute(&command) {
                Ok(Heard::Begins) => {
                    let mut takes = Duration::from_micros(wires.rng.random_range(100..2_000));
                    if wires.goes_wrong(|faults| faults.slowness) {
                        takes += Duration::from_millis(wires.rng.random_range(5..80));
                    }
                    wires.after(takes, Delivery::HostDone(id));
                }
                Ok(Heard::Executes) => {}
                Ok(Heard::Done(report)) => wires.send_report(report),
                Err(violation) => self.checker.borrow_mut().check(Err(violation)),
            },
            ToHost::Retain(retention) => host.retain(&retention),
            ToHost::Unstage(transaction) => host.unstage(transaction),
            ToHost::Stage(transaction, writes, client, slot) => {
                host.stage(transaction, writes);
                wires.send(Delivery::ToClient(client, fill(&slot, ())));
            }
            ToHost::Scan { lease, step, client, slot } => {
                let contents = host.scan(step).cloned();
                if contents.is_none() {
                    self.checker.borrow_mut().frame_gone(wires.now, lease, step);
                }
                wires.send(Delivery::ToClient(client, fill(&slot, contents)));
            }
        }
        self.checker.borrow_mut().keeps(wires.now, id, &host.frames());
    }

    fn host_done(&mut self, id: HostId) {
        let host = &mut self.hosts[id.0 as usize];
        let mut checker = self.checker.borrow_mut();
        match host.finish() {
            Ok(report) => {
                checker.made(id, host.made());
                self.wires.borrow_mut().send_report(report);
            }
            Err(violation) => checker.check(Err(violation)),
        }
    }

    /// Makes a call again that may have been lost. Commands until they are reported; notices once
    /// more, which may be long after the next one.
    fn retry(&mut self, id: HostId, message: ToHost) {
        let reported = self.reported[id.0 as usize];
        let mut wires = self.wires.borrow_mut();
        match &message {
            ToHost::Execute(command) if reported >= Some(command.number) => {}
            ToHost::Activate(_) if reported.is_some() => {}
            ToHost::Execute(_) | ToHost::Activate(_) => wires.send_to_host(id, message),
            _ => wires.send(Delivery::ToHost(id, message)),
        }
    }

    // Clients.

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
