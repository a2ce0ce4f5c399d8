//! The simulated world: a coordinator, hosts, clients and a judge, on virtual time.

mod coordinator;
mod hosts;
mod processes;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

use rand::Rng;
use stillframe_protocol::{
    CommandNumber, Epoch, FrameId, HostId, Incarnation, Standing, TransactionId,
};

use self::processes::Process;
use super::bank::Contents;
use super::checker::Checker;
use super::clients::{Role, live};
use super::session::{Answers, Session};
use super::wires::{ClientId, Delivery, LATENCY_MAX, Wires};
use crate::cluster::{Cluster, Effect, Hosts, Requirements, Settings};
use crate::machine::{Defect, Event, Online, Ticket};

/// Once nothing goes wrong any more, everything must have come to its end so soon.
const PROGRESS_MAX: Duration = Duration::from_secs(20);
/// When all clients are gone, everything that is left over must be gone so soon.
const SETTLE: Duration = Duration::from_secs(2);

/// Writers are slowed while a host has to catch up with more changes.
pub(super) const BACKLOG_MAX: u64 = 8;

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
    /// None while it is down.
    cluster: Option<Cluster>,
    defect: Defect,
    hosts: u32,
    processes: Vec<Process>,
    /// Whether the hosts are processes of their own, which register.
    registering: bool,
    /// Whether each life of the coordinator makes later epochs than the one before, whatever it is
    /// told. If not, what it said is gone with it.
    epochs_grow: bool,
    online: Option<Online>,
    /// Those that were told to retire.
    retired: BTreeSet<Incarnation>,
    clients: Vec<Client>,
    wires: Rc<RefCell<Wires>>,
    checker: Rc<RefCell<Checker>>,
    answers: Answers,
    accounts: u64,
    /// Questions whose answers nobody waits for, so that they need not be asked.
    cancelled: BTreeSet<Ticket>,
    paused_until: Duration,
    /// The last command that each host's reports have told of.
    reported: BTreeMap<Incarnation, Option<CommandNumber>>,
    /// Whether a host fails for good in this run.
    fails: bool,
    effects: Vec<Effect>,
    /// What the process that has just registered is told.
    standing: Option<Standing>,
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
        let registering = rng.random_bool(0.7);
        let (places_are_set, epochs_grow) = (rng.random_bool(0.5), rng.random_bool(0.5));
        // Now and then there is a process more than there are places.
        let spare = u32::from(registering && !places_are_set && rng.random_bool(0.3));
        let online = Online { slices_per_pump: 3, backlog_max: BACKLOG_MAX };
        let online = rng.random_bool(0.8).then_some(online);
        let checker = Checker::new(hosts, accounts, registering);
        let mut world = Self {
            cluster: None,
            defect,
            hosts,
            processes: (0..hosts + spare)
                .map(|place| Process::new(HostId(place), registering && places_are_set))
                .collect(),
            registering,
            epochs_grow,
            online,
            retired: BTreeSet::new(),
            clients: clients.collect(),
            checker: Rc::new(RefCell::new(checker)),
            wires: Rc::new(RefCell::new(wires)),
            answers: Answers::default(),
            accounts,
            cancelled: BTreeSet::new(),
            paused_until: Duration::ZERO,
            reported: BTreeMap::new(),
            fails: false,
            effects: vec![],
            standing: None,
            events: 0,
            trace: 0,
        };
        world.plan();
        world
    }

    /// A coordinator that starts.
    fn new_cluster(&self) -> Cluster {
        let (hosts, workers) = (self.hosts, 2);
        let life = self.wires.borrow().life;
        let settings = Settings {
            hosts: if self.registering {
                let (cluster, build) = ("main".into(), "1".into());
                let silence_max = Duration::from_millis(500);
                Hosts::Registering(Requirements { cluster, build, hosts, workers, silence_max })
            } else {
                Hosts::Given(vec![workers; hosts as usize])
            },
            epoch: Epoch(if self.epochs_grow { 1 + 1000 * life } else { 1 }),
            time_to_live_min: Duration::from_millis(300),
            time_to_live_max: Duration::from_millis(1000),
            clock_gap_max: Duration::from_millis(100),
            online: self.online,
            patience: if self.registering {
                Duration::from_millis(600)
            } else {
                Duration::from_secs(60)
            },
        };
        Cluster::with_defect(settings, self.defect)
    }

    /// Decides what will go wrong, and when.
    fn plan(&mut self) {
        let mut wires = self.wires.borrow_mut();
        let until = wires.faults.until;
        let moment = |wires: &mut Wires| until.mul_f64(wires.rng.random_range(0.05..1.0));
        wires.after(Duration::ZERO, Delivery::StartCoordinator);
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
        let hosts = self.processes.len();
        for host in 0..hosts {
            let delay = Duration::from_micros(wires.rng.random_range(0..50_000));
            let delay = if self.registering { delay } else { Duration::ZERO };
            wires.after(delay, Delivery::Start(host));
        }
        if self.registering {
            let troubles = wires.rng.random_range(0..5);
            for _ in 0..troubles {
                let (host, at) = (wires.rng.random_range(0..hosts), moment(&mut wires));
                let freeze = Duration::from_millis([20, 200, 2000][wires.rng.random_range(0..3)]);
                let trouble = match wires.rng.random_range(0..8) {
                    0..4 => Delivery::Kill(host),
                    4..6 => Delivery::Freeze(host, freeze),
                    6 => Delivery::Fail(host),
                    _ => Delivery::KillCoordinator,
                };
                wires.after(at, trouble);
            }
            return;
        }
        self.fails = wires.rng.random_bool(0.15);
        if self.fails {
            let host = wires.rng.random_range(0..hosts);
            let at = moment(&mut wires);
            wires.after(at, Delivery::Fail(host));
        }
    }

    /// Runs to the end of the world, or to the first broken promise.
    pub(super) fn run(mut self) -> Result<Summary, String> {
        let deadline = self.wires.borrow().faults.until + PROGRESS_MAX;
        let mut settled_at = None;
        loop {
            let next = self.wires.borrow_mut().next();
            let Some((life, delivery)) = next else { break };
            self.deliver(life, delivery);
            if let Some(violation) = self.checker.borrow_mut().violation.take() {
                return Err(format!("at {:?}: {violation}", self.now()));
            }
            let now = self.now();
            let alone = self.clients.iter().all(|client| client.task.is_none())
                && self.processes.iter().all(|process| process.goes_on(now))
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
        let mut made = None;
        let hosts = self.processes.iter().filter_map(|process| process.host.as_ref());
        for host in hosts.filter(|host| host.epoch.is_some()) {
            let frames = host.frames();
            made = host.made();
            checker.expect(
                self.fails || Some(frames.as_slice()) == made.as_ref().map(std::slice::from_ref),
                || format!("nobody holds a lease, and host keeps steps {frames:?}"),
            );
            let frame = host.epoch.zip(made).map(|(epoch, step)| FrameId { epoch, step });
            if let Some(Ok(Some(part))) = frame.map(|frame| host.scan(frame)) {
                contents.merge(&part);
            }
        }
        let leftovers =
            self.cluster.map_or(vec!["a coordinator that is down"], |cluster| cluster.leftovers());
        checker.expect(self.fails || leftovers.is_empty(), || format!("left over: {leftovers:?}"));
        match checker.violation.take() {
            Some(violation) => Err(format!("in the end: {violation}")),
            None => Ok(Summary {
                events: self.events,
                steps: made.map_or(0, |step| step.0 + 1),
                tally: std::mem::take(&mut checker.tally),
                trace: self.trace,
                contents,
            }),
        }
    }

    fn deliver(&mut self, life: u64, delivery: Delivery) {
        self.events += 1;
        let of_this_life = life == self.wires.borrow().life;
        match delivery {
            Delivery::Tick
            | Delivery::ToMachine(_)
            | Delivery::Report(..)
            | Delivery::Registration(_)
                if self.now() < self.paused_until =>
            {
                let wait = self.paused_until - self.now();
                self.postpone(life, wait, delivery);
            }
            Delivery::Tick => {
                self.happen(Event::Ticked);
                let mut wires = self.wires.borrow_mut();
                let tick = Duration::from_micros(wires.rng.random_range(10_000..20_000));
                wires.after(tick, Delivery::Tick);
            }
            // Calls end with the process that makes them.
            Delivery::ToMachine(_) | Delivery::Report(..) | Delivery::Retry(..)
                if !of_this_life => {}
            Delivery::ToMachine(event) => self.tell_machine(event),
            Delivery::Report(from, report) => self.reported(from, report),
            Delivery::Registration(registration) => self.registered(registration),
            Delivery::Retry(host, message) => self.retry(host, message),
            Delivery::ToHost(..) if !of_this_life && !self.epochs_grow => {}
            Delivery::ToHost(host, message) => self.tell_host(life, host, message),
            Delivery::HostDone(host) => self.host_done(host),
            Delivery::ToClient(client, fill) => {
                fill();
                self.poll(client);
            }
            Delivery::Crash(client) => self.crash(client),
            Delivery::Arrive(client) => self.arrive(client),
            Delivery::Pause(pause) => {
                self.paused_until = self.paused_until.max(self.now() + pause);
            }
            Delivery::Registers(host) => self.register(host),
            Delivery::Kill(host) => self.kill(host),
            Delivery::Freeze(host, freeze) => self.freeze(host, freeze),
            Delivery::Fail(host) => self.fail(host),
            Delivery::Start(host) => self.start(host),
            Delivery::KillCoordinator => self.kill_coordinator(),
            Delivery::StartCoordinator => self.start_coordinator(),
        }
    }

    /// Has something happen later that was set going in some life of the coordinator.
    fn postpone(&mut self, life: u64, wait: Duration, delivery: Delivery) {
        let mut wires = self.wires.borrow_mut();
        let current = std::mem::replace(&mut wires.life, life);
        wires.after(wait, delivery);
        wires.life = current;
    }

    fn arrive(&mut self, id: ClientId) {
        let client = &mut self.clients[id];
        if client.task.is_some() {
            return;
        }
        if self.cluster.is_none() {
            let delay = Duration::from_millis(10);
            self.wires.borrow_mut().after(delay, Delivery::Arrive(id));
            return;
        }
        let session = Session {
            client: id,
            hosts: self.hosts,
            accounts: self.accounts,
            wires: Rc::clone(&self.wires),
            checker: Rc::clone(&self.checker),
            answers: Rc::clone(&self.answers),
            open: Rc::clone(&client.open),
            begins_anew: self.registering,
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
            let aborted = Delivery::ToMachine(Event::Aborted { transaction });
            if self.registering {
                // What the client has sent before may be for the next epoch, which doesn't know of
                // this: it comes last.
                wires.after(LATENCY_MAX, aborted);
            } else {
                wires.send(aborted);
            }
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
