//! Runs a cluster: one task that owns it, feeds it with what happens and carries out what it wants.
//! Decides nothing.
//!
//! ```text
//!   Client ---calls (bounded)----> driver --spawned calls--> Host
//!     ^------ one answer each -------' |^---- their results ---'
//!   Registrar --registrations ---------'
//! ```
//!
//! A host that can't be reached is asked again for as long as it takes, or until it has retired.
//! When the last client is dropped the driver ends, and with it every call that is under way.

mod client;
mod link;
mod options;
mod registrar;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use stillframe_protocol::{Coordinator, Host, Incarnation, Standing};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

pub use self::options::Options;
pub use self::registrar::Registrar;

use self::client::{Abandoned, Call, Client};
use self::link::{Finished, Link};
use self::registrar::Registering;
use crate::cluster::{Cluster, Effect, Event, Hosts, Requirements};
use crate::machine::{self, Answer, Now, Ticket};

/// So many calls of clients wait for the driver before clients have to.
const CALLS_WAITING_MAX: usize = 1024;
/// So many registrations wait for the driver before hosts have to.
const REGISTRATIONS_WAITING_MAX: usize = 64;

/// Starts a coordinator over hosts of this process, by place. It ends when what this returns is
/// dropped; the loss of a host is final.
///
/// Must be called inside a Tokio runtime.
pub fn start(options: Options, hosts: Vec<Arc<dyn Host>>) -> Arc<dyn Coordinator> {
    let given = Hosts::Given(vec![options.workers; hosts.len()]);
    let links = (0..).map(Incarnation).zip(hosts);
    let links = links.map(|(id, host)| (id, Link::new(id, host, options.retry_max))).collect();
    let (_, registrations) = mpsc::channel(REGISTRATIONS_WAITING_MAX);
    run(options, given, links, registrations)
}

/// Starts a coordinator over processes that register. It ends when the last copy of the coordinator
/// is dropped. How many workers hosts run is said by what is required of them, not by the options.
///
/// Must be called inside a Tokio runtime.
pub fn serve(options: Options, requirements: Requirements) -> (Arc<dyn Coordinator>, Registrar) {
    let (sender, registrations) = mpsc::channel(REGISTRATIONS_WAITING_MAX);
    let hosts = Hosts::Registering(requirements);
    (run(options, hosts, HashMap::new(), registrations), Registrar::new(sender))
}

fn run(
    options: Options,
    hosts: Hosts,
    links: HashMap<Incarnation, Link>,
    registrations: mpsc::Receiver<Registering>,
) -> Arc<dyn Coordinator> {
    let (call_sender, calls) = mpsc::channel(CALLS_WAITING_MAX);
    // Bounded by the calls under way: each is abandoned once at most.
    let (abandoned_sender, abandoned) = mpsc::unbounded_channel();
    let driver = Driver {
        cluster: Cluster::new(options.settings(hosts)),
        started_at: Instant::now(),
        waiting: HashMap::new(),
        links,
        retry_max: options.retry_max,
        tasks: JoinSet::new(),
        effects: vec![],
    };
    tokio::spawn(driver.run(options.tick, calls, abandoned, registrations));
    Arc::new(Client::new(call_sender, abandoned_sender))
}

struct Driver {
    cluster: Cluster,
    started_at: Instant,
    waiting: HashMap<Ticket, oneshot::Sender<Answer>>,
    links: HashMap<Incarnation, Link>,
    retry_max: Duration,
    tasks: JoinSet<Finished>,
    effects: Vec<Effect>,
}

impl Driver {
    async fn run(
        mut self,
        tick: Duration,
        mut calls: mpsc::Receiver<Call>,
        mut abandoned: mpsc::UnboundedReceiver<Abandoned>,
        mut registrations: mpsc::Receiver<Registering>,
    ) {
        let mut ticks = interval(tick);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.handle(Event::Started);
        loop {
            tokio::select! {
                _ = ticks.tick() => self.happen(machine::Event::Ticked),
                Some(finished) = self.tasks.join_next() => self.finish(finished),
                Some(abandoned) = abandoned.recv() => self.abandon(abandoned),
                Some(registering) = registrations.recv() => self.register(registering),
                call = calls.recv() => match call {
                    Some(call) => self.call(call),
                    None => return,
                },
            }
        }
    }

    fn call(&mut self, call: Call) {
        match call {
            Call::Ask { ticket, request, answer } => {
                // Who is gone already can't have it forgotten any more. But a commit is a commit.
                let commits = client::takes_effect_unheard(&request);
                if answer.is_closed() && !commits {
                    return;
                }
                self.waiting.insert(ticket, answer);
                self.happen(machine::Event::Requested { ticket, request });
            }
            Call::Release(lease) => self.happen(machine::Event::Released { lease }),
            Call::Abort(transaction) => self.happen(machine::Event::Aborted { transaction }),
        }
    }

    fn abandon(&mut self, abandoned: Abandoned) {
        let Abandoned { ticket, lease } = abandoned;
        self.waiting.remove(&ticket);
        self.happen(machine::Event::Cancelled { ticket });
        if let Some(lease) = lease {
            self.happen(machine::Event::Released { lease });
        }
    }

    /// A process registers. Its link is kept for as long as it has a place.
    fn register(&mut self, registering: Registering) {
        let Registering { registration, host, ticket, answer } = registering;
        let (id, retry_max) = (registration.incarnation, self.retry_max);
        match self.links.entry(id) {
            Entry::Occupied(link) => link.get().reach(host),
            Entry::Vacant(place) => {
                place.insert(Link::new(id, host, retry_max));
            }
        }
        let now = self.now();
        self.cluster.handle(now, Event::Registered { ticket, registration }, &mut self.effects);
        let mut answer = Some(answer);
        for effect in std::mem::take(&mut self.effects) {
            let Effect::Stand { standing, .. } = effect else {
                self.carry_out(effect);
                continue;
            };
            let has_place = matches!(
                standing,
                Standing::Waits { place: Some(_), .. } | Standing::Member { .. }
            );
            if !has_place {
                // One that waits says so again and again.
                if matches!(standing, Standing::Waits { .. }) {
                    tracing::debug!(host = %id, ?standing, "process has no place");
                } else {
                    tracing::info!(host = %id, ?standing, "process has no place");
                }
                self.links.remove(&id);
            }
            if let Some(answer) = answer.take() {
                // Who is gone registers again, or doesn't live any more.
                let _ = answer.send(standing);
            }
        }
    }

    fn finish(&mut self, finished: Result<Finished, tokio::task::JoinError>) {
        let Finished { incarnation, notice, event } = match finished {
            Ok(finished) => finished,
            Err(error) if error.is_cancelled() => return,
            Err(error) => {
                tracing::error!(%error, "call of a host was lost");
                return;
            }
        };
        if notice && let Some(link) = self.links.get_mut(&incarnation) {
            link.finish_notice(&mut self.tasks);
        }
        if let Some(event) = event {
            if let machine::Event::HostFailed { host, reason } = &event {
                tracing::error!(host = host.0, reason, "host failed");
            }
            self.handle(Event::Heard { incarnation, event });
        }
    }

    fn happen(&mut self, event: machine::Event) {
        self.handle(Event::Happened(event));
    }

    fn handle(&mut self, event: Event) {
        let now = self.now();
        self.cluster.handle(now, event, &mut self.effects);
        for effect in std::mem::take(&mut self.effects) {
            self.carry_out(effect);
        }
    }

    fn now(&self) -> Now {
        Now { elapsed: self.started_at.elapsed(), wall_us: wall_us() }
    }

    fn carry_out(&mut self, effect: Effect) {
        let Self { links, tasks, waiting, .. } = self;
        match effect {
            Effect::Tell { incarnation, effect } => {
                if let Some(link) = links.get_mut(&incarnation) {
                    link.tell(effect, tasks);
                }
            }
            Effect::Retire { incarnation, reason } => {
                tracing::warn!(host = %incarnation, reason, "host retires");
                if let Some(link) = links.remove(&incarnation) {
                    link.retire(reason, tasks);
                }
            }
            Effect::Answer(machine::Effect::Answer { ticket, answer }) => {
                if let Some(waiting) = waiting.remove(&ticket) {
                    // Who has gone meanwhile says so by itself.
                    let _ = waiting.send(answer);
                }
            }
            // Registrations are answered where they are taken in, and what isn't an answer is
            // addressed to a host.
            Effect::Stand { .. } | Effect::Answer(_) => {}
        }
    }
}

/// Microseconds since 1970-01-01 UTC.
fn wall_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
