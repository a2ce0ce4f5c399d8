//! The coordinator's decisions: a pure state machine.
//!
//! [`Machine::handle`] takes what happened and says what is to be done. It has no clock, does no
//! I/O, rolls no dice and logs nothing: the same events make the same effects, so that a simulator
//! can run a thousand clusters in a second and a golden script can read as a trace.
//!
//! # The life of an epoch
//!
//! ```text
//!   Forming --- all hosts have joined, and made step 0 of an empty program ---> Live
//!      '------------------------- a host has failed ---------------------------> Failed <-'
//! ```
//!
//! While it forms, requests wait for some time (then: not ready). Alive, everything a client wants
//! is one of three things:
//!
//! - a **read**: a lease on the common step, answered at once. The hosts were last told to keep
//!   everything from that step on or an older one, and every later telling names it as pinned: so
//!   a leased frame can't be gone;
//! - a **write**: reservations (which may wait for others), then a commit, which waits for a step
//!   of its own or with others;
//! - a **change of the catalog**: accepted if it was made from the newest version, then a step.
//!
//! One command is under way at a time. When all hosts have reported it, its step is *common*:
//! what entered becomes history, its reservations are free, the catalog that came with it is what
//! leases show, and those who waited are answered. Then whatever has come meanwhile goes into the
//! next command. When a host fails nothing can go on, and everybody is told.
//!
//! # Parts
//!
//! Each part owns its state and names its invariants; the machine lets them work together.
//! [`Machine::violated`] says which don't hold; all are asserted after every event in tests, and
//! those that cost little in every debug build.

mod catalog;
mod defect;
mod effect;
mod event;
mod lease;
mod membership;
mod multiset;
mod requests;
mod retention;
mod sequence;
mod status;
mod transaction;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use stillframe_protocol::{
    CoordinatorError, Epoch, HostId, Report, Step, StepStatus, TransactionId,
};

pub(crate) use self::defect::Defect;
pub use self::effect::{Answer, Effect, Reply};
pub use self::event::{Event, Now, Request, Reserve, Ticket};

use self::catalog::Catalog;
use self::effect::Answers;
use self::lease::Leases;
use self::membership::Membership;
use self::retention::Retainer;
use self::sequence::{Cargo, InFlight, Progress, Sequence, Waiting, Work};
use self::status::Steps;
use self::transaction::{Moment, Transactions};

/// What a machine is made for.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The epoch it makes.
    pub epoch: Epoch,
    /// How many workers each host runs, by place.
    pub workers: Vec<u32>,
    /// A lease's time to live is at least this.
    pub time_to_live_min: Duration,
    /// A lease's time to live is at most this.
    pub time_to_live_max: Duration,
    /// Ticks further apart than this mean that the coordinator stood still: nobody's lease expires
    /// for it.
    pub clock_gap_max: Duration,
    /// Requests wait so long for the cluster to be ready.
    pub patience: Duration,
}

/// The coordinator's state.
#[derive(Debug)]
pub struct Machine {
    settings: Settings,
    defect: Defect,
    phase: Phase,
    last_tick: Duration,
    membership: Membership,
    sequence: Sequence,
    retainer: Retainer,
    leases: Leases,
    transactions: Transactions,
    catalog: Catalog,
    steps: Steps,
}

#[derive(Debug)]
enum Phase {
    /// Not all hosts have made the first step; these requests wait for that.
    Forming(VecDeque<Parked>),
    /// There is a common step.
    Live,
    /// A host has failed.
    Failed(String),
}

/// A request that came too early.
#[derive(Debug)]
struct Parked {
    deadline: Duration,
    ticket: Ticket,
    request: Request,
}

impl Machine {
    /// A machine to which nothing has happened.
    pub fn new(settings: Settings) -> Self {
        Self::with_defect(settings, Defect::None)
    }

    pub(crate) fn with_defect(settings: Settings, defect: Defect) -> Self {
        Self {
            defect,
            phase: Phase::Forming(VecDeque::new()),
            last_tick: Duration::ZERO,
            membership: Membership::new(settings.epoch, settings.workers.clone()),
            sequence: Sequence::new(settings.epoch, defect),
            retainer: Retainer::new(defect),
            leases: Leases::new(defect),
            transactions: Transactions::new(defect),
            catalog: Catalog::new(defect),
            steps: Steps::default(),
            settings,
        }
    }

    /// Takes in what has happened; what is to be done is added to `effects`.
    pub fn handle(&mut self, now: Now, event: Event, effects: &mut Vec<Effect>) {
        match event {
            Event::Started => self.membership.activate(effects),
            Event::Ticked => self.tick(now, effects),
            Event::Reported(report) => self.report(now, &report, effects),
            Event::HostFailed { host, reason } => self.fail(host, &reason, effects),
            Event::Requested { ticket, request } => self.request(now, ticket, request, effects),
            Event::Cancelled { ticket } => self.cancel(now, ticket, effects),
            Event::Released { lease } => self.release(lease),
            Event::Aborted { transaction } => self.abort(now, transaction, effects),
        }
        self.proceed(now, effects);
        if cfg!(debug_assertions) && self.defect == Defect::None {
            // In tests all of them; elsewhere those that cost little.
            let violated = if cfg!(test) { self.violated() } else { self.violated_between_parts() };
            assert!(violated.is_empty(), "invariants that don't hold: {violated:?}");
        }
    }

    /// The invariants that don't hold, by name.
    pub fn violated(&self) -> Vec<&'static str> {
        if matches!(self.phase, Phase::Failed(_)) {
            return vec![];
        }
        let mut violated = self.violated_between_parts();
        violated.extend(self.leases.violated());
        violated.extend(self.transactions.violated(self.sequence.common()));
        violated
    }

    /// The invariants that parts keep together and that don't hold.
    fn violated_between_parts(&self) -> Vec<&'static str> {
        if matches!(self.phase, Phase::Failed(_)) {
            return vec![];
        }
        let common = self.sequence.common();
        let sent = self.sequence.newest().is_some();
        let (retainer, leases) = (&self.retainer, &self.leases);
        violated([
            ("commands need all hosts", self.membership.commands_need_all_hosts(sent)),
            ("steps have no gaps", self.sequence.steps_have_no_gaps()),
            ("every command makes a step", self.sequence.every_command_makes_a_step()),
            ("no step is empty", self.sequence.no_step_is_empty()),
            ("leased steps are kept", retainer.leased_steps_are_kept(leases.pinned())),
            ("nothing common is promised", retainer.nothing_common_is_promised(common)),
            ("leases are on common steps", leases.leases_are_on_common_steps(common)),
            ("current is not ahead of head", self.catalog.current_is_not_ahead_of_head()),
        ])
    }

    /// What is left over of clients that are gone, by name.
    #[cfg(test)]
    pub(crate) fn leftovers(&self) -> Vec<&'static str> {
        let mut leftovers = self.transactions.leftovers();
        leftovers.extend(violated([("leases", self.leases.oldest().is_none())]));
        leftovers
    }

    fn tick(&mut self, now: Now, effects: &mut Vec<Effect>) {
        let gap = now.elapsed.saturating_sub(self.last_tick);
        self.last_tick = now.elapsed;
        if gap > self.settings.clock_gap_max && !self.defect.is(Defect::TrustsClock) {
            self.leases.prolong_all(now.elapsed);
        }
        match &mut self.phase {
            Phase::Failed(_) => {}
            Phase::Forming(parked) => {
                while let Some(Parked { ticket, .. }) =
                    parked.pop_front_if(|parked| parked.deadline <= now.elapsed)
                {
                    let why = "not all hosts have joined".into();
                    effects.answer(ticket, Err(CoordinatorError::NotReady(why)));
                }
            }
            Phase::Live => {
                if self.leases.expire(now.elapsed) {
                    self.retainer.pin_ended();
                }
                self.transactions.expire(self.moment(now), effects);
                self.trim_history();
                self.tell_retention(effects);
            }
        }
    }

    fn report(&mut self, now: Now, report: &Report, effects: &mut Vec<Effect>) {
        if matches!(self.phase, Phase::Failed(_)) || !self.membership.record(report) {
            return;
        }
        match self.sequence.reported(report) {
            Progress::None => {}
            Progress::Violation(violation) => self.fail(report.host, &violation, effects),
            Progress::Common(flight) => self.complete(now, flight, effects),
        }
    }

    /// A step is common: those it was made for are answered, and the next may come.
    fn complete(&mut self, now: Now, flight: InFlight, effects: &mut Vec<Effect>) {
        let InFlight { command, cargo, clock_us, sent_at, .. } = flight;
        let step = command.action.step();
        let transactions = cargo.transactions().to_vec();
        if let Cargo::Changes { catalog, program, .. } = cargo {
            self.catalog.took_effect(catalog, program);
        }
        let took = now.elapsed.saturating_sub(sent_at);
        self.steps.push(StepStatus {
            step,
            clock_us,
            transactions: transactions.len() as u32,
            took_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            catalog: self.catalog.current().version,
        });
        self.transactions.entered(self.moment(now), &transactions, effects);
        self.trim_history();
        if let Phase::Forming(parked) = &mut self.phase {
            let parked = std::mem::take(parked);
            self.phase = Phase::Live;
            for Parked { ticket, request, .. } in parked {
                self.serve(now, ticket, request, effects);
            }
        }
    }

    /// Sends the next command if none is under way and there is something to do.
    fn proceed(&mut self, now: Now, effects: &mut Vec<Effect>) {
        if self.sequence.busy() {
            return;
        }
        match self.phase {
            Phase::Failed(_) => {}
            Phase::Forming(_) => {
                if self.membership.complete() {
                    self.send_changes(now, vec![], effects);
                }
            }
            Phase::Live => match self.sequence.take_waiting() {
                None => {}
                Some(Waiting::Transactions(transactions)) => {
                    self.send(now, Work::Advance, Cargo::Transactions(transactions), effects);
                }
                Some(Waiting::Changes(transactions)) => {
                    self.send_changes(now, transactions, effects);
                }
            },
        }
    }

    /// Has the head of the catalog take effect: with a new circuit if it needs another, or the
    /// first.
    fn send_changes(
        &mut self,
        now: Now,
        transactions: Vec<TransactionId>,
        effects: &mut Vec<Effect>,
    ) {
        let program = Arc::clone(self.catalog.program());
        let first = self.sequence.common().is_none();
        let work = if first || self.catalog.needs_replacement() {
            match self.membership.exchange(self.sequence.next_generation()) {
                Ok(exchange) => Work::Replace { program: Arc::clone(&program), exchange },
                Err(host) => {
                    self.fail(host, "it doesn't offer the circuit that is next", effects);
                    return;
                }
            }
        } else {
            Work::Advance
        };
        let catalog = self.catalog.head().clone();
        self.send(now, work, Cargo::Changes { transactions, catalog, program }, effects);
    }

    fn send(&mut self, now: Now, work: Work, cargo: Cargo, effects: &mut Vec<Effect>) {
        let retention = self.retainer.tell(self.sequence.common(), self.leases.pinned());
        let hosts = self.membership.hosts().collect();
        let transactions = cargo.transactions().to_vec();
        let command = self.sequence.send(now, hosts, retention, work, cargo);
        effects.extend(
            self.membership
                .hosts()
                .map(|host| Effect::Execute { host, command: Arc::clone(&command) }),
        );
        let (moment, step) = (self.moment(now), command.action.step());
        if self.defect.is(Defect::ReleasesEarly) {
            self.transactions.release_early(moment, step, &transactions, effects);
        }
        if self.defect.is(Defect::AnswersEarly) {
            self.transactions.answer_early(step, &transactions, effects);
        }
    }

    /// Tells the hosts what to keep, if they keep what nobody needs and no command will say so.
    fn tell_retention(&mut self, effects: &mut Vec<Effect>) {
        let common = self.sequence.common();
        if self.sequence.busy() || !self.retainer.is_outdated(common) {
            return;
        }
        let retention = Arc::new(self.retainer.tell(common, self.leases.pinned()));
        effects.extend(self.membership.hosts().map(|host| Effect::Retain {
            host,
            epoch: self.settings.epoch,
            retention: Arc::clone(&retention),
        }));
    }

    fn fail(&mut self, host: HostId, reason: &str, effects: &mut Vec<Effect>) {
        let reason = format!("host {host}: {reason}");
        let error = CoordinatorError::Failed(reason.clone());
        match std::mem::replace(&mut self.phase, Phase::Failed(reason)) {
            // The first reason is the cause.
            failed @ Phase::Failed(_) => self.phase = failed,
            Phase::Live => self.transactions.refuse_all(&error, effects),
            Phase::Forming(parked) => {
                for Parked { ticket, .. } in parked {
                    effects.answer(ticket, Err(error.clone()));
                }
            }
        }
    }

    /// Forgets the history that nobody can ask for: whoever writes has seen the common step, a
    /// leased one, or one that he has named.
    fn trim_history(&mut self) {
        let Some(common) = self.sequence.common() else { return };
        let leased = self.leases.oldest().unwrap_or(common);
        let named = self.transactions.oldest_frame().unwrap_or(common);
        let oldest = if self.defect.is(Defect::TrimsTooMuch) {
            common
        } else {
            common.min(leased).min(named)
        };
        self.transactions.trim_history(oldest);
    }

    /// Now, for reservations. While the cluster forms there is none, and so none to be told of.
    fn moment(&self, now: Now) -> Moment {
        Moment { now: now.elapsed, common: self.sequence.common().unwrap_or(Step(0)) }
    }
}

/// The names of those invariants that don't hold.
fn violated<const N: usize>(invariants: [(&'static str, bool); N]) -> Vec<&'static str> {
    invariants.into_iter().filter(|(_, holds)| !holds).map(|(name, _)| name).collect()
}
