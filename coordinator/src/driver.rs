//! Runs a machine over a set of hosts: one task that owns it, feeds it with what happens and
//! carries out what it wants. Decides nothing.
//!
//! ```text
//!   Client --calls (bounded)--> driver --spawned calls--> Host
//!     ^---- one answer each ------'  ^---- their results ---'
//! ```
//!
//! A host that can't be reached is asked again for as long as it takes. When the last client is
//! dropped the driver ends, and with it every call that is under way.

mod client;
mod link;
mod options;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use stillframe_protocol::{Coordinator, Host, HostId};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

pub use self::options::Options;

use self::client::{Abandoned, Call, Client};
use self::link::{Finished, Link};
use crate::machine::{Answer, Effect, Event, Machine, Now, Ticket};

/// So many calls of clients wait for the driver before clients have to.
const CALLS_WAITING_MAX: usize = 1024;

/// Starts a coordinator over hosts, by place. It ends when what this returns is dropped.
///
/// Must be called inside a Tokio runtime.
pub fn start(options: Options, hosts: Vec<Arc<dyn Host>>) -> Arc<dyn Coordinator> {
    let (call_sender, calls) = mpsc::channel(CALLS_WAITING_MAX);
    // Bounded by the calls under way: each is abandoned once at most.
    let (abandoned_sender, abandoned) = mpsc::unbounded_channel();
    let driver = Driver {
        machine: Machine::new(options.settings(hosts.len())),
        started_at: Instant::now(),
        waiting: HashMap::new(),
        links: hosts.into_iter().map(|host| Link::new(host, options.retry_max)).collect(),
        tasks: JoinSet::new(),
        effects: vec![],
    };
    tokio::spawn(driver.run(options, calls, abandoned));
    Arc::new(Client::new(call_sender, abandoned_sender))
}

struct Driver {
    machine: Machine,
    started_at: Instant,
    waiting: HashMap<Ticket, oneshot::Sender<Answer>>,
    links: Vec<Link>,
    tasks: JoinSet<Finished>,
    effects: Vec<Effect>,
}

impl Driver {
    async fn run(
        mut self,
        options: Options,
        mut calls: mpsc::Receiver<Call>,
        mut abandoned: mpsc::UnboundedReceiver<Abandoned>,
    ) {
        let mut ticks = interval(options.tick);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.handle(Event::Started);
        loop {
            tokio::select! {
                _ = ticks.tick() => self.handle(Event::Ticked),
                Some(finished) = self.tasks.join_next() => self.finish(finished),
                Some(abandoned) = abandoned.recv() => self.abandon(abandoned),
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
                self.handle(Event::Requested { ticket, request });
            }
            Call::Release(lease) => self.handle(Event::Released { lease }),
            Call::Abort(transaction) => self.handle(Event::Aborted { transaction }),
        }
    }

    fn abandon(&mut self, abandoned: Abandoned) {
        let Abandoned { ticket, lease } = abandoned;
        self.waiting.remove(&ticket);
        self.handle(Event::Cancelled { ticket });
        if let Some(lease) = lease {
            self.handle(Event::Released { lease });
        }
    }

    fn finish(&mut self, finished: Result<Finished, tokio::task::JoinError>) {
        match finished {
            Ok(Finished::Command(event)) => self.handle(event),
            Ok(Finished::Notice(host, event)) => {
                self.links[host.0 as usize].finish_notice(host, &mut self.tasks);
                if let Some(event) = event {
                    self.handle(event);
                }
            }
            Err(error) => tracing::error!(%error, "call of a host was lost"),
        }
    }

    fn handle(&mut self, event: Event) {
        if let Event::HostFailed { host, reason } = &event {
            tracing::error!(host = host.0, reason, "host failed");
        }
        let now = Now { elapsed: self.started_at.elapsed(), wall_us: wall_us() };
        self.machine.handle(now, event, &mut self.effects);
        for effect in std::mem::take(&mut self.effects) {
            self.carry_out(effect);
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        let Self { links, tasks, waiting, .. } = self;
        let place = |host: HostId| host.0 as usize;
        match effect {
            Effect::Activate { host, activation } => {
                links[place(host)].activate(host, activation, tasks);
            }
            Effect::Execute { host, command } => {
                links[place(host)].execute(host, command, tasks);
            }
            Effect::Retain { host, epoch, retention } => {
                links[place(host)].retain(host, epoch, retention, tasks);
            }
            Effect::Unstage { host, epoch, transaction } => {
                links[place(host)].unstage(host, epoch, transaction, tasks);
            }
            Effect::Answer { ticket, answer } => {
                if let Some(waiting) = waiting.remove(&ticket) {
                    // Who has gone meanwhile says so by itself.
                    let _ = waiting.send(answer);
                }
            }
        }
    }
}

/// Microseconds since 1970-01-01 UTC.
fn wall_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
