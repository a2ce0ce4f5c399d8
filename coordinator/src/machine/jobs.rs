//! Changes of the catalog on their way from being accepted to taking effect.
//!
//! ```text
//!            begin                                         conclude
//!   waiting -------> Whole: Advance, or Replace ------------------------------> effective
//!       |             ^  '-----> (hidden) Entering: Advance ------------------^
//!       |             '-----------------------. (refused)                     ^
//!       '----------> Replacing: ReplaceOnline-'-> Filling: Pump.. -> Cutover -'
//! ```
//!
//! What a transaction has staged beside its change enters in a step of its own, behind a circuit that
//! nobody sees before: hosts must all have built that before any of them can be fed.
//!
//! One job at a time. Changes that wait share one: all of them, if circuits are replaced at once;
//! else those that only add, or those that add nothing, so that whatever is shown while something
//! is being filled goes on being computed. Nobody sees a change before the command in which it takes
//! effect is done; what becomes of whoever has asked for it doesn't matter to it: it is finished all
//! the same, never half.

mod difference;

use std::collections::VecDeque;
use std::sync::Arc;

use stillframe_protocol::{
    CatalogSnapshot, Filling, HostId, JobPhase, JobStatus, Program, TransactionId,
};

use self::difference::Difference;
use super::schedule::Need;
use super::{Defect, Online, breaks};

/// What waits, and the job under way.
#[derive(Debug)]
pub(super) struct Jobs {
    defect: Defect,
    /// None if circuits are replaced at once.
    online: Option<Online>,
    /// What the circuit computes, of what can be seen.
    running: Arc<Program>,
    waiting: VecDeque<Change>,
    job: Option<Job>,
}

/// An accepted change.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) transaction: TransactionId,
    pub(super) catalog: CatalogSnapshot,
    pub(super) program: Arc<Program>,
    /// Whether the transaction has staged changes, which enter when this takes effect.
    enters: bool,
    difference: Difference,
}

/// Changes that take effect together.
#[derive(Debug)]
struct Job {
    /// In their order, one at least.
    changes: Vec<Change>,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    /// It takes effect with one command, which is next or under way.
    Whole,
    /// The circuit is there, and hidden; it takes effect with what its transactions have staged, in
    /// the step that is next or under way.
    Entering,
    /// The command that begins to fill what is new is next or under way.
    Replacing,
    /// What is new is being filled.
    Filling {
        pumps: u64,
        /// By place.
        hosts: Vec<Filling>,
    },
    /// The cutover is under way.
    CuttingOver,
}

/// What is to be done next for the job.
#[derive(Debug)]
pub(super) enum Task {
    /// An empty step, in which only the catalog changes.
    Describe,
    /// A new circuit, at once.
    Replace { program: Arc<Program>, is_hidden: bool },
    /// A step of what the transactions have staged that have made the changes.
    Enter,
    /// A new circuit that fills what is new.
    ReplaceOnline(Arc<Program>),
    /// A pump.
    Pump { number: u64, slices: u32 },
    /// The cutover.
    Cutover,
}

impl Task {
    /// A new circuit, and nothing else.
    pub(super) fn replace(program: Arc<Program>) -> Self {
        Self::Replace { program, is_hidden: false }
    }
}

impl Jobs {
    pub(super) fn new(online: Option<Online>, defect: Defect) -> Self {
        let running = Arc::new(Program::default());
        Self { defect, online, running, waiting: VecDeque::new(), job: None }
    }

    /// Whether changes wait for a job of theirs to begin.
    pub(super) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Has an accepted change wait. `before` is the program of the version it was made from.
    pub(super) fn push(
        &mut self,
        (transaction, enters): (TransactionId, bool),
        before: &Program,
        catalog: CatalogSnapshot,
        program: Arc<Program>,
    ) {
        let difference = Difference::new(before, &program);
        self.waiting.push_back(Change { transaction, catalog, program, enters, difference });
    }

    /// What is needed next, if no command is under way.
    pub(super) fn need(&self) -> Need {
        let Some(job) = &self.job else {
            return if self.waiting.is_empty() { Need::Nothing } else { Need::Begin };
        };
        match &job.phase {
            Phase::Filling { hosts, .. } => {
                let done = if breaks!(self.defect, CutsOverEarly) {
                    hosts.iter().any(is_done)
                } else {
                    hosts.iter().all(is_done) && !breaks!(self.defect, FillsForever)
                };
                let backlog_max = self.online.map_or(0, |online| online.backlog_max);
                if breaks!(self.defect, FillsTwice) && !self.waiting.is_empty() {
                    return Need::Conclude;
                }
                match done {
                    true => Need::Conclude,
                    false => Need::Pump { slow: recorded(hosts) > backlog_max },
                }
            }
            Phase::Whole | Phase::Entering | Phase::Replacing | Phase::CuttingOver => {
                Need::Conclude
            }
        }
    }

    /// What is to be done next, which from now on is under way.
    pub(super) fn take(&mut self) -> Option<Task> {
        if breaks!(self.defect, FillsTwice) && !self.waiting.is_empty() {
            self.job = None;
        }
        if self.job.is_none() {
            self.begin();
        }
        let online = self.online.unwrap_or_default();
        let conclude = matches!(self.need(), Need::Conclude);
        let job = self.job.as_mut()?;
        let program = Arc::clone(&job.last().program);
        match &mut job.phase {
            Phase::Whole if program == self.running => Some(Task::Describe),
            Phase::Whole => {
                let is_hidden = job.changes.iter().any(|change| change.enters);
                Some(Task::Replace { program, is_hidden })
            }
            Phase::Entering => Some(Task::Enter),
            Phase::Replacing => Some(Task::ReplaceOnline(program)),
            Phase::Filling { .. } if conclude => {
                job.phase = Phase::CuttingOver;
                Some(Task::Cutover)
            }
            Phase::Filling { pumps, .. } => {
                let number = *pumps;
                *pumps += 1;
                Some(Task::Pump { number, slices: online.slices_per_pump })
            }
            Phase::CuttingOver => Some(Task::Cutover),
        }
    }

    /// Begins with the changes that can share a job with the first.
    fn begin(&mut self) {
        // What enters a circuit that is filled beside its steps would be missing in what is new.
        let enters = self.waiting.iter().position(|change| change.enters);
        let mut shared = enters.map_or(self.waiting.len(), |place| place.max(1));
        if self.online.is_some() {
            let differences = || self.waiting.iter().map(|change| &change.difference);
            let grow = differences().take_while(|difference| difference.keeps_all()).count();
            let shrink = differences().take_while(|difference| difference.adds_nothing()).count();
            // What does both has a job of its own.
            shared = grow.max(shrink).max(1).min(shared);
        }
        let changes: Vec<Change> = self.waiting.drain(..shared).collect();
        let Some(last) = changes.last() else { return };
        let difference = Difference::new(&self.running, &last.program);
        let fills = difference.only_fills() || breaks!(self.defect, DropsOnline);
        let phase = match self.online.is_some() && fills {
            _ if last.enters && last.program == self.running => Phase::Entering,
            true if !last.enters => Phase::Replacing,
            _ => Phase::Whole,
        };
        self.job = Some(Job { changes, phase });
    }

    /// The transactions whose changes take effect with a task.
    pub(super) fn concerned(&self, task: &Task) -> Vec<TransactionId> {
        let takes_effect = match task {
            Task::Replace { is_hidden, .. } => !is_hidden,
            Task::Describe | Task::Enter | Task::Cutover => true,
            Task::ReplaceOnline(_) => breaks!(self.defect, ShowsUnfilled),
            Task::Pump { .. } => false,
        };
        let changes = self.job.iter().flat_map(|job| &job.changes).filter(|_| takes_effect);
        changes.map(|change| change.transaction).collect()
    }

    /// The circuit is replaced, and hidden.
    pub(super) fn replaced(&mut self) {
        if let Some(job) = &mut self.job {
            job.phase = Phase::Entering;
        }
    }

    /// Whether the next step, or the one under way, is that of a job whose circuit is there.
    pub(super) fn enters(&self) -> bool {
        self.job.as_ref().is_some_and(|job| matches!(job.phase, Phase::Entering))
    }

    /// The job has taken effect: the catalog that it leads to.
    pub(super) fn conclude(&mut self) -> Option<CatalogSnapshot> {
        let last = self.job.take()?.changes.pop()?;
        self.running = last.program;
        Some(last.catalog)
    }

    /// A command is done with which the job hasn't taken effect; this is what hosts say of how far
    /// they are, by place. An error says how they broke the protocol.
    pub(super) fn progress(
        &mut self,
        reported: &[Option<Filling>],
    ) -> Result<(), (HostId, String)> {
        let Some(job) = &mut self.job else { return Ok(()) };
        let begins = matches!(job.phase, Phase::Replacing);
        if !begins && !matches!(job.phase, Phase::Filling { .. }) {
            return Ok(());
        }
        let mut hosts = vec![];
        for (host, filling) in (0..).map(HostId).zip(reported) {
            match filling {
                Some(Filling::Refused) if !begins => {
                    return Err((host, "it stops to fill what is new".into()));
                }
                Some(filling) => hosts.push(*filling),
                None => return Err((host, "it doesn't say how far it has filled".into())),
            }
        }
        let refuses = |filling: &&Filling| matches!(filling, Filling::Refused);
        let refusals = hosts.iter().filter(refuses).count();
        if refusals > 0 && refusals < hosts.len() {
            let first = hosts.iter().position(|filling| refuses(&filling)).unwrap_or_default();
            return Err((HostId(first as u32), "it can't fill what others can".into()));
        }
        match &mut job.phase {
            Phase::Filling { hosts: known, .. } => *known = hosts,
            phase if refusals > 0 && !breaks!(self.defect, LosesRefusal) => *phase = Phase::Whole,
            phase => *phase = Phase::Filling { pumps: 0, hosts },
        }
        Ok(())
    }

    pub(super) fn status(&self) -> Vec<JobStatus> {
        let phase = self.job.as_ref().map(|job| match &job.phase {
            Phase::Whole | Phase::Entering | Phase::Replacing => JobPhase::Replaces,
            Phase::Filling { pumps, hosts } => JobPhase::Fills {
                pumps: *pumps,
                hosts_done: hosts.iter().filter(|filling| is_done(filling)).count() as u32,
                recorded: recorded(hosts),
            },
            Phase::CuttingOver => JobPhase::CutsOver,
        });
        let under_way = self.job.iter().flat_map(|job| &job.changes).zip(phase.into_iter().cycle());
        let waiting = self.waiting.iter().map(|change| (change, JobPhase::Waits));
        let status = |(change, phase): (&Change, JobPhase)| JobStatus {
            id: change.catalog.version,
            kind: change.difference.kind(),
            relations: change.difference.relations(),
            phase,
        };
        under_way.chain(waiting).map(status).collect()
    }

    /// What is shown goes on being computed while something is being filled.
    pub(super) fn jobs_that_fill_take_nothing_away(&self) -> bool {
        self.job.as_ref().is_none_or(|job| {
            matches!(job.phase, Phase::Whole | Phase::Entering)
                || Difference::new(&self.running, &job.last().program).keeps_all()
        })
    }

    /// Changes take effect in the order in which they were accepted.
    pub(super) fn changes_are_in_order(&self) -> bool {
        let under_way = self.job.iter().flat_map(|job| &job.changes);
        let versions = under_way.chain(&self.waiting).map(|change| change.catalog.version);
        versions.is_sorted_by(|one, next| one < next)
    }

    /// Whether something is being filled.
    pub(super) fn fills(&self) -> bool {
        self.job.as_ref().is_some_and(|job| matches!(job.phase, Phase::Filling { .. }))
    }

    /// Whether the cutover is under way.
    pub(super) fn cuts_over(&self) -> bool {
        self.job.as_ref().is_some_and(|job| matches!(job.phase, Phase::CuttingOver))
    }
}

impl Job {
    fn last(&self) -> &Change {
        self.changes.last().expect("a job begins with one change at least")
    }
}

fn is_done(filling: &Filling) -> bool {
    matches!(filling, Filling::Done { .. })
}

/// The most changes that a host has to catch up with.
fn recorded(hosts: &[Filling]) -> u64 {
    let recorded = |filling: &Filling| match filling {
        Filling::Refused => 0,
        Filling::Goes { recorded } | Filling::Done { recorded } => *recorded,
    };
    hosts.iter().map(recorded).max().unwrap_or_default()
}
