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
//!      '-------------- a host has failed, or another has its place ------------> Over <-'
//! ```
//!
//! A machine lives for one epoch. Who its hosts are, and what comes after it, it doesn't know: that
//! is the [cluster](crate::cluster)'s.
//!
//! While it forms, requests wait for some time (then: not ready). Alive, everything a client wants
//! is one of three things:
//!
//! - a **read**: a lease on the common step, answered at once. The hosts were last told to keep
//!   everything from that step on or an older one, and every later telling names it as pinned: so
//!   a leased frame can't be gone;
//! - a **write**: reservations (which may wait for others), then a commit, which waits for a step
//!   of its own or with others;
//! - a **change of the catalog**: accepted if it was made from the newest version, then a step;
//!   or, if there is something to fill, a step with a new circuit, pumps between other steps, and
//!   the cutover, which is the step that shows it.
//!
//! One command is under way at a time. When all hosts have reported it, its step is *common*:
//! what entered becomes history, its reservations are free, the catalog that came with it is what
//! leases show, and those who waited are answered. Then whatever has come meanwhile goes into the
//! next command. When a host fails nothing can go on, and everybody is told. A silent host is waited
//! for; who waits too long is told so, and the epoch goes on.
//!
//! # Parts
//!
//! Each part owns its state and names its invariants; the machine lets them work together.
//! [`Machine::violated`] says which don't hold; all are asserted after every event in tests, and
//! those that cost little in every debug build.

mod catalog;
mod defect;
mod effect;
mod ending;
mod event;
mod jobs;
mod lease;
mod membership;
mod multiset;
mod proceeding;
mod requests;
mod retention;
mod schedule;
mod sequence;
mod status;
mod transaction;

use std::collections::VecDeque;
use std::time::Duration;

use stillframe_protocol::{
    Action, CoordinatorError, Epoch, Filling, HostId, Incarnation, Report, Step,
};

pub(crate) use self::defect::{Defect, breaks};
pub use self::effect::{Answer, Effect, Reply};
pub(crate) use self::ending::stale;
pub use self::event::{Event, Now, Request, Reserve, Ticket};

use self::catalog::Catalog;
use self::effect::Answers;
use self::jobs::Jobs;
use self::lease::Leases;
use self::membership::Membership;
use self::retention::Retainer;
use self::schedule::Schedule;
use self::sequence::{Progress, Sequence};
use self::status::Steps;
use self::transaction::{Moment, Transactions};

/// What a machine is made for.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The epoch it makes.
    pub epoch: Epoch,
    /// Its hosts, by place.
    pub members: Vec<Member>,
    /// What comes after a host is lost.
    pub loss: Loss,
    /// A lease's time to live is at least this.
    pub time_to_live_min: Duration,
    /// A lease's time to live is at most this.
    pub time_to_live_max: Duration,
    /// Ticks further apart than this mean that the coordinator stood still: nobody's lease expires
    /// for it.
    pub clock_gap_max: Duration,
    /// Requests wait so long for the cluster to be ready, and for hosts that are silent.
    pub patience: Duration,
    /// How circuits are replaced while steps go on; none if that is done at once.
    pub online: Option<Online>,
}

/// How a circuit is replaced while steps go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Online {
    /// How many slices of filling one pump is.
    pub slices_per_pump: u32,
    /// If a host has to catch up with more changes than this, writers are slowed.
    pub backlog_max: u64,
}

impl Default for Online {
    fn default() -> Self {
        Self { slices_per_pump: 1, backlog_max: 20_000 }
    }
}

/// A host of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Which life of its process.
    pub incarnation: Incarnation,
    /// How many workers it runs.
    pub workers: u32,
}

/// What comes after the loss of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Nothing: the hosts are parts of this process. They are never silent either.
    IsFinal,
    /// Another epoch: the hosts are processes, and a lost one is replaced by another.
    EndsEpoch,
}

/// The coordinator's state.
#[derive(Debug)]
pub struct Machine {
    settings: Settings,
    defect: Defect,
    phase: Phase,
    last_tick: Duration,
    /// Rows come or go by the clock: a step is owed. Looked at with every tick, so that one step
    /// serves all rows of a tick.
    is_due: bool,
    membership: Membership,
    schedule: Schedule,
    sequence: Sequence,
    retainer: Retainer,
    leases: Leases,
    transactions: Transactions,
    catalog: Catalog,
    jobs: Jobs,
    steps: Steps,
}

#[derive(Debug)]
enum Phase {
    /// Not all hosts have made the first step; these requests wait for that.
    Forming(VecDeque<Parked>),
    /// There is a common step.
    Live,
    /// A host has failed.
    Over(Over),
}

/// The end of an epoch.
#[derive(Debug)]
struct Over {
    reason: String,
    /// Requests that no epoch has served.
    parked: VecDeque<Parked>,
}

/// A request that came too early.
#[derive(Debug)]
pub(crate) struct Parked {
    pub(crate) deadline: Duration,
    pub(crate) ticket: Ticket,
    pub(crate) request: Request,
}

impl Machine {
    /// A machine to which nothing has happened.
    pub fn new(settings: Settings) -> Self {
        Self::with_defect(settings, Defect::NONE)
    }

    pub(crate) fn with_defect(settings: Settings, defect: Defect) -> Self {
        Self {
            defect,
            phase: Phase::Forming(VecDeque::new()),
            last_tick: Duration::ZERO,
            is_due: false,
            membership: Membership::new(settings.epoch, settings.members.clone()),
            schedule: Schedule::new(defect),
            sequence: Sequence::new(settings.epoch, defect),
            retainer: Retainer::new(defect),
            leases: Leases::new(defect),
            transactions: Transactions::new(defect),
            catalog: Catalog::new(settings.epoch, defect),
            jobs: Jobs::new(settings.online, defect),
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
        if cfg!(debug_assertions) && self.defect == Defect::NONE {
            // In tests all of them; elsewhere those that cost little.
            let violated = if cfg!(test) { self.violated() } else { self.violated_between_parts() };
            assert!(violated.is_empty(), "invariants that don't hold: {violated:?}");
        }
    }

    /// The invariants that don't hold, by name.
    pub fn violated(&self) -> Vec<&'static str> {
        if matches!(self.phase, Phase::Over(_)) {
            return vec![];
        }
        let mut violated = self.violated_between_parts();
        violated.extend(self.leases.violated());
        violated.extend(self.transactions.violated(self.sequence.common()));
        violated
    }

    /// The invariants that parts keep together and that don't hold.
    fn violated_between_parts(&self) -> Vec<&'static str> {
        if matches!(self.phase, Phase::Over(_)) {
            return vec![];
        }
        let common = self.sequence.common();
        let sent = self.sequence.newest().is_some();
        let (retainer, leases) = (&self.retainer, &self.leases);
        violated([
            ("commands need all hosts", self.membership.commands_need_all_hosts(sent)),
            ("steps have no gaps", self.sequence.steps_have_no_gaps()),
            ("steps are those of commands", self.sequence.steps_are_those_of_commands()),
            ("no step is empty", self.sequence.no_step_is_empty()),
            ("leased steps are kept", retainer.leased_steps_are_kept(leases.pinned())),
            ("nothing common is promised", retainer.nothing_common_is_promised(common)),
            ("leases are on common steps", leases.leases_are_on_common_steps(common)),
            ("current is not ahead of head", self.catalog.current_is_not_ahead_of_head()),
            ("changes are in order", self.jobs.changes_are_in_order()),
            ("jobs that fill take nothing away", self.jobs.jobs_that_fill_take_nothing_away()),
            ("pumps fill", self.pumps_fill()),
            ("a cutover shows what is filled", self.a_cutover_shows_what_is_filled()),
        ])
    }

    /// A pump is under way only while something is being filled.
    fn pumps_fill(&self) -> bool {
        let pumps = matches!(self.sequence.action(), Some(Action::Pump { .. }));
        !pumps || self.jobs.fills()
    }

    /// The cutover is under way only if every host has filled all; those that have made it fill
    /// nothing any more.
    fn a_cutover_shows_what_is_filled(&self) -> bool {
        let cuts_over = matches!(self.sequence.action(), Some(Action::Cutover { .. }));
        let filled =
            |filling: &Option<Filling>| matches!(filling, Some(Filling::Done { .. }) | None);
        let all_filled = || self.membership.fillings().iter().all(filled);
        cuts_over == self.jobs.cuts_over() && (!cuts_over || all_filled())
    }

    /// What is left over of clients that are gone, by name.
    #[cfg(test)]
    pub(crate) fn leftovers(&self) -> Vec<&'static str> {
        let mut leftovers = self.transactions.leftovers();
        leftovers.extend(violated([("leases", self.leases.oldest().is_none())]));
        leftovers
    }

    /// Learns that a host lives, whatever it does.
    pub fn hear(&mut self, now: Now, host: HostId) {
        self.membership.hear(now.elapsed, host);
    }

    fn tick(&mut self, now: Now, effects: &mut Vec<Effect>) {
        let gap = now.elapsed.saturating_sub(self.last_tick);
        self.last_tick = now.elapsed;
        if gap > self.settings.clock_gap_max && !breaks!(self.defect, TrustsClock) {
            self.leases.prolong_all(now.elapsed);
        }
        match &mut self.phase {
            Phase::Over(_) => {}
            Phase::Forming(parked) => {
                let why = "not all hosts have joined";
                answer_late(parked, now.elapsed, why, effects);
            }
            Phase::Live => {
                if self.leases.expire(now.elapsed) {
                    self.retainer.pin_ended();
                }
                self.transactions.expire(self.moment(now), effects);
                self.give_up_waiting(now, effects);
                self.trim_history();
                self.tell_retention(effects);
                self.is_due = self.membership.due_us().is_some_and(|due| due <= now.wall_us);
            }
        }
    }

    fn report(&mut self, now: Now, report: &Report, effects: &mut Vec<Effect>) {
        if matches!(self.phase, Phase::Over(_)) || !self.membership.record(now.elapsed, report) {
            return;
        }
        match self.sequence.reported(report) {
            Progress::None => {}
            Progress::Violation(violation) => self.fail(report.host, &violation, effects),
            Progress::Done(flight) => self.complete(now, flight, effects),
        }
    }

    /// Forgets the history that nobody can ask for: whoever writes has seen the common step, a
    /// leased one, or one that he has named.
    fn trim_history(&mut self) {
        let Some(common) = self.sequence.common() else { return };
        let leased = self.leases.oldest().unwrap_or(common);
        let named = self.transactions.oldest_frame().unwrap_or(common);
        let oldest =
            if breaks!(self.defect, TrimsTooMuch) { common } else { common.min(leased).min(named) };
        self.transactions.trim_history(oldest);
    }

    /// Now, for reservations. While the cluster forms there is none, and so none to be told of.
    fn moment(&self, now: Now) -> Moment {
        Moment { now: now.elapsed, common: self.sequence.common().unwrap_or(Step(0)) }
    }
}

/// Tells those who have waited too long that the cluster isn't ready.
pub(crate) fn answer_late(
    parked: &mut VecDeque<Parked>,
    now: Duration,
    why: &str,
    effects: &mut Vec<Effect>,
) {
    while let Some(Parked { ticket, .. }) = parked.pop_front_if(|parked| parked.deadline <= now) {
        effects.answer(ticket, Err(CoordinatorError::NotReady(why.to_owned())));
    }
}

/// The names of those invariants that don't hold.
pub(crate) fn violated<const N: usize>(invariants: [(&'static str, bool); N]) -> Vec<&'static str> {
    invariants.into_iter().filter(|(_, holds)| !holds).map(|(name, _)| name).collect()
}
