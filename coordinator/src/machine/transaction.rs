//! Transactions that write: their reservations, and how they end.
//!
//! ```text
//!            reserve                  commit              common
//!  (unknown) -------> Open <-> Reserving ---> Committed ---------> outcome, history
//!                       '-- abort --> outcome
//! ```
//!
//! A transaction holds what it has reserved until the step that it enters is common, or until it is
//! aborted. Then what it wrote becomes history, and only then somebody else may hold it: so whoever
//! holds something sees in the history all that was written to it.

mod deadlock;
mod history;
mod locks;
mod outcomes;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use stillframe_protocol::{
    Committed, CoordinatorError, Entry, Lockable, Mode, Reservation, Step, TransactionId,
};

use self::history::History;
use self::locks::{Acquired, Locks};
use self::outcomes::{Outcome, Outcomes};
use super::effect::Answers;
use super::multiset::Multiset;
use super::{Defect, Effect, Reply, Reserve, Ticket};

/// The open transactions, and what is remembered of those that ended.
#[derive(Debug)]
pub(super) struct Transactions {
    defect: Defect,
    open: BTreeMap<TransactionId, Transaction>,
    locks: Locks,
    history: History,
    outcomes: Outcomes,
    frames: Multiset<Step>,
    deadlines: BTreeSet<(Duration, TransactionId)>,
    tickets: BTreeMap<Ticket, TransactionId>,
}

/// A transaction that hasn't ended.
#[derive(Debug, Default)]
struct Transaction {
    phase: Phase,
    /// What it has seen, as it said last.
    frame: Option<Step>,
}

#[derive(Debug, Default)]
enum Phase {
    /// It thinks.
    #[default]
    Open,
    /// It waits for others.
    Reserving(Reserving),
    /// Its step is under way, or comes next; these wait for that.
    Committed(Vec<Ticket>),
}

/// A request for reservations under way.
#[derive(Debug)]
struct Reserving {
    ticket: Ticket,
    frame: Option<Step>,
    /// Ascending: two requests that want the same never wait for each other.
    entries: Vec<Entry>,
    /// Those before are held.
    next: usize,
    deadline: Option<Duration>,
}

/// When something happens, for reservations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) now: Duration,
    pub(super) common: Step,
}

impl Transactions {
    pub(super) fn new(defect: Defect) -> Self {
        Self {
            defect,
            open: BTreeMap::new(),
            locks: Locks::new(defect),
            history: History::new(defect),
            outcomes: Outcomes::default(),
            frames: Multiset::default(),
            deadlines: BTreeSet::new(),
            tickets: BTreeMap::new(),
        }
    }

    /// Begins to reserve; answered at once or when others make room.
    pub(super) fn reserve(
        &mut self,
        moment: Moment,
        ticket: Ticket,
        request: Reserve,
        effects: &mut Vec<Effect>,
    ) {
        let Reserve { transaction, frame, entries, timeout } = request;
        if self.has_ended(transaction) {
            effects.answer(ticket, Err(CoordinatorError::UnknownTransaction));
            return;
        }
        let superseded = CoordinatorError::Unknown("a newer request took its place".into());
        let mut runnable = self.stop_reserving(moment, transaction, Some(superseded), effects);
        if frame.is_some() {
            self.set_frame(transaction, frame);
        }
        let deadline = timeout.map(|timeout| moment.now.saturating_add(timeout));
        self.deadlines.extend(deadline.map(|deadline| (deadline, transaction)));
        self.tickets.insert(ticket, transaction);
        let entries = strongest(entries);
        self.open.entry(transaction).or_default().phase =
            Phase::Reserving(Reserving { ticket, frame, entries, next: 0, deadline });
        runnable.push_back(transaction);
        self.run(moment, runnable, effects);
    }

    /// Whether a transaction can't be written to any more: it has ended or is about to.
    fn has_ended(&self, transaction: TransactionId) -> bool {
        self.outcomes.get(transaction).is_some()
            || self
                .open
                .get(&transaction)
                .is_some_and(|open| matches!(open.phase, Phase::Committed(_)))
    }

    /// Answers a commit, or a change of the catalog, if it was asked for before; false if not.
    pub(super) fn repeats(
        &mut self,
        transaction: TransactionId,
        ticket: Ticket,
        effects: &mut Vec<Effect>,
    ) -> bool {
        if let Some(Transaction { phase: Phase::Committed(tickets), .. }) =
            self.open.get_mut(&transaction)
        {
            if self.defect.is(Defect::CommitsTwice) {
                return false;
            }
            tickets.push(ticket);
            return true;
        }
        match self.outcomes.get(transaction) {
            Some(Outcome::Committed(step)) => {
                effects.answer(ticket, Ok(Reply::Committed(Committed { step })));
            }
            Some(Outcome::Aborted) => {
                effects.answer(ticket, Err(CoordinatorError::UnknownTransaction));
            }
            None => return false,
        }
        true
    }

    /// Closes a transaction that will enter a step.
    pub(super) fn close(
        &mut self,
        moment: Moment,
        transaction: TransactionId,
        ticket: Ticket,
        effects: &mut Vec<Effect>,
    ) {
        let closed = CoordinatorError::UnknownTransaction;
        let runnable = self.stop_reserving(moment, transaction, Some(closed), effects);
        self.open.entry(transaction).or_default().phase = Phase::Committed(vec![ticket]);
        self.run(moment, runnable, effects);
    }

    /// Ends a transaction that commits and has changed nothing.
    pub(super) fn end_unchanged(
        &mut self,
        moment: Moment,
        transaction: TransactionId,
        ticket: Ticket,
        effects: &mut Vec<Effect>,
    ) {
        self.close(moment, transaction, ticket, effects);
        let runnable = self.end(moment, transaction, Outcome::Committed(moment.common), effects);
        self.run(moment, runnable.into(), effects);
    }

    /// Ends transactions whose step is common: what they wrote is history, what they held is free,
    /// who waits for them is answered.
    pub(super) fn entered(
        &mut self,
        moment: Moment,
        transactions: &[TransactionId],
        effects: &mut Vec<Effect>,
    ) {
        for transaction in transactions {
            self.history.record(moment.common, self.locks.held(*transaction));
        }
        let mut runnable = VecDeque::new();
        for transaction in transactions {
            let outcome = Outcome::Committed(moment.common);
            runnable.extend(self.end(moment, *transaction, outcome, effects));
        }
        self.run(moment, runnable, effects);
    }

    /// Ends a transaction without effect; false if it has ended, or will enter a step.
    pub(super) fn abort(
        &mut self,
        moment: Moment,
        transaction: TransactionId,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let undoes =
            self.defect.is(Defect::AbortsCommitted) && self.outcomes.get(transaction).is_none();
        if self.has_ended(transaction) && !undoes {
            return false;
        }
        let aborted = CoordinatorError::UnknownTransaction;
        let mut runnable = self.stop_reserving(moment, transaction, Some(aborted), effects);
        runnable.extend(self.end(moment, transaction, Outcome::Aborted, effects));
        self.run(moment, runnable, effects);
        true
    }

    /// Forgets a request for reservations that nobody waits for any more. What it got stays held.
    pub(super) fn cancel(&mut self, moment: Moment, ticket: Ticket, effects: &mut Vec<Effect>) {
        if let Some(transaction) = self.tickets.get(&ticket).copied() {
            let runnable = self.stop_reserving(moment, transaction, None, effects);
            self.run(moment, runnable, effects);
        }
    }

    /// Answers those who have waited for others too long.
    pub(super) fn expire(&mut self, moment: Moment, effects: &mut Vec<Effect>) {
        while let Some(&(deadline, transaction)) = self.deadlines.first()
            && deadline <= moment.now
        {
            let late = CoordinatorError::LockTimeout;
            let runnable = self.stop_reserving(moment, transaction, Some(late), effects);
            self.run(moment, runnable, effects);
        }
    }

    /// Answers everybody with the same error, and forgets everything.
    pub(super) fn refuse_all(&mut self, error: &CoordinatorError, effects: &mut Vec<Effect>) {
        for transaction in std::mem::replace(self, Self::new(self.defect)).open.into_values() {
            let tickets = match transaction.phase {
                Phase::Open => vec![],
                Phase::Reserving(reserving) => vec![reserving.ticket],
                Phase::Committed(tickets) => tickets,
            };
            for ticket in tickets {
                effects.answer(ticket, Err(error.clone()));
            }
        }
    }

    /// The oldest frame that an open transaction has named.
    pub(super) fn oldest_frame(&self) -> Option<Step> {
        self.frames.first()
    }

    /// Forgets the history that no frame from this step on needs.
    pub(super) fn trim_history(&mut self, oldest_frame: Step) {
        self.history.trim(oldest_frame);
    }

    /// Goes on with those that need wait no longer, and with those whom they make room for.
    fn run(
        &mut self,
        moment: Moment,
        mut runnable: VecDeque<TransactionId>,
        effects: &mut Vec<Effect>,
    ) {
        while let Some(transaction) = runnable.pop_front() {
            if let Some(answer) = self.acquire(moment, transaction) {
                let error = match answer {
                    Ok(reservation) => {
                        self.reserved(transaction, reservation, effects);
                        continue;
                    }
                    Err(error) => error,
                };
                runnable.extend(self.stop_reserving(moment, transaction, Some(error), effects));
            }
        }
    }

    /// Reserves what is left; none if that has to be waited for.
    fn acquire(
        &mut self,
        moment: Moment,
        transaction: TransactionId,
    ) -> Option<Result<Reservation, CoordinatorError>> {
        let Some(Transaction { phase: Phase::Reserving(reserving), .. }) =
            self.open.get_mut(&transaction)
        else {
            return None;
        };
        while let Some(entry) = reserving.entries.get(reserving.next) {
            match self.locks.acquire(transaction, *entry, moment.common) {
                Acquired::Held => reserving.next += 1,
                Acquired::Deadlock => return Some(Err(CoordinatorError::Deadlock)),
                Acquired::Queued if reserving.deadline.is_some_and(|at| at <= moment.now) => {
                    return Some(Err(CoordinatorError::LockTimeout));
                }
                Acquired::Queued => return None,
            }
        }
        let Reserving { frame, entries, .. } = &*reserving;
        Some(Ok(judge(&self.locks, &self.history, transaction, *frame, entries)))
    }

    /// Answers a request for reservations whose entries are all held.
    fn reserved(
        &mut self,
        transaction: TransactionId,
        reservation: Reservation,
        effects: &mut Vec<Effect>,
    ) {
        if let Some(reserving) = self.take_reserving(transaction) {
            effects.answer(reserving.ticket, Ok(Reply::Reserved(reservation)));
        }
    }

    /// Gives a request for reservations up, if there is one; returns who need wait no longer.
    fn stop_reserving(
        &mut self,
        moment: Moment,
        transaction: TransactionId,
        error: Option<CoordinatorError>,
        effects: &mut Vec<Effect>,
    ) -> VecDeque<TransactionId> {
        let Some(reserving) = self.take_reserving(transaction) else { return VecDeque::new() };
        if let Some(error) = error {
            effects.answer(reserving.ticket, Err(error));
        }
        self.locks.withdraw(transaction, moment.common).into()
    }

    fn take_reserving(&mut self, transaction: TransactionId) -> Option<Reserving> {
        let open = self.open.get_mut(&transaction)?;
        match std::mem::take(&mut open.phase) {
            Phase::Reserving(reserving) => {
                self.tickets.remove(&reserving.ticket);
                if let Some(deadline) = reserving.deadline {
                    self.deadlines.remove(&(deadline, transaction));
                }
                Some(reserving)
            }
            other => {
                open.phase = other;
                None
            }
        }
    }

    /// Ends a transaction that isn't reserving; returns who need wait no longer.
    fn end(
        &mut self,
        moment: Moment,
        transaction: TransactionId,
        outcome: Outcome,
        effects: &mut Vec<Effect>,
    ) -> Vec<TransactionId> {
        self.set_frame(transaction, None);
        self.outcomes.insert(transaction, outcome);
        if let Some(Transaction { phase: Phase::Committed(tickets), .. }) =
            self.open.remove(&transaction)
            && let Outcome::Committed(step) = outcome
        {
            for ticket in tickets {
                effects.answer(ticket, Ok(Reply::Committed(Committed { step })));
            }
        }
        self.locks.release(transaction, moment.common)
    }

    fn set_frame(&mut self, transaction: TransactionId, frame: Option<Step>) {
        let open = self.open.entry(transaction).or_default();
        if let Some(old) = std::mem::replace(&mut open.frame, frame) {
            self.frames.remove(old);
        }
        if let Some(frame) = frame {
            self.frames.insert(frame);
        }
    }
}

/// Each lockable once, in its strongest mode, ascending.
fn strongest(entries: Vec<Entry>) -> Vec<Entry> {
    let mut modes = BTreeMap::<Lockable, Mode>::new();
    for Entry { lockable, mode } in entries {
        let strongest = modes.entry(lockable).or_insert(mode);
        *strongest = mode.max(*strongest);
    }
    modes.into_iter().map(|(lockable, mode)| Entry { lockable, mode }).collect()
}

/// Whether what is reserved is still as the frame shows it.
fn judge(
    locks: &Locks,
    history: &History,
    transaction: TransactionId,
    frame: Option<Step>,
    entries: &[Entry],
) -> Reservation {
    let Some(frame) = frame else { return Reservation::Granted };
    // What has been held since the frame or longer, nobody else has written since.
    let was_held = |entry: &Entry| {
        locks
            .held_on(transaction, entry.lockable)
            .is_some_and(|held| held.mode >= entry.mode && held.since <= frame)
    };
    let written = |entry: Entry| {
        if was_held(&entry) { None } else { history.written_after(frame, entry) }
    };
    let newest = entries.iter().filter_map(|entry| {
        let whole = match entry.lockable {
            Lockable::Relation(_) => None,
            Lockable::Key { relation, .. } => {
                written(Entry { lockable: Lockable::Relation(relation), mode: Mode::Shared })
            }
        };
        written(*entry).max(whole)
    });
    newest.max().map_or(Reservation::Granted, Reservation::Changed)
}

impl Transactions {
    /// For a canary: who waits for a step that was just sent is answered.
    pub(super) fn answer_early(
        &mut self,
        step: Step,
        transactions: &[TransactionId],
        effects: &mut Vec<Effect>,
    ) {
        for transaction in transactions {
            if let Some(Transaction { phase: Phase::Committed(tickets), .. }) =
                self.open.get_mut(transaction)
            {
                for ticket in tickets.drain(..) {
                    effects.answer(ticket, Ok(Reply::Committed(Committed { step })));
                }
            }
        }
    }

    /// For a canary: what transactions hold becomes free when their step is sent.
    pub(super) fn release_early(
        &mut self,
        moment: Moment,
        step: Step,
        transactions: &[TransactionId],
        effects: &mut Vec<Effect>,
    ) {
        let mut runnable = VecDeque::new();
        for transaction in transactions {
            self.history.record(step, self.locks.held(*transaction));
            runnable.extend(self.locks.release(*transaction, moment.common));
        }
        self.run(moment, runnable, effects);
    }

    /// The invariants of this part that don't hold, by name.
    pub(super) fn violated(&self, common: Option<Step>) -> Vec<&'static str> {
        let invariants = [
            ("exclusive holders are alone", self.locks.exclusive_holders_are_alone()),
            ("nobody waits for nothing", self.locks.nobody_waits_for_nothing()),
            ("nobody waits in a circle", self.locks.nobody_waits_in_a_circle()),
            ("holders and waiters are indexed", self.locks.holders_and_waiters_are_indexed()),
            ("history is common", self.history.history_is_common(common)),
            ("history can be trimmed", self.history.history_can_be_trimmed()),
            ("what waits can be found", self.what_waits_can_be_found()),
            ("frames are those of open transactions", self.frames_are_of_the_open()),
        ];
        invariants.into_iter().filter(|(_, holds)| !holds).map(|(name, _)| name).collect()
    }

    /// Every request under way is found by its ticket and by its deadline, and nothing else is.
    fn what_waits_can_be_found(&self) -> bool {
        let reserving = self.open.iter().filter_map(|(id, open)| match &open.phase {
            Phase::Reserving(reserving) => Some((*id, reserving)),
            _ => None,
        });
        let (mut tickets, mut deadlines) = (BTreeMap::new(), BTreeSet::new());
        for (transaction, reserving) in reserving {
            tickets.insert(reserving.ticket, transaction);
            deadlines.extend(reserving.deadline.map(|deadline| (deadline, transaction)));
        }
        tickets == self.tickets && deadlines == self.deadlines
    }

    fn frames_are_of_the_open(&self) -> bool {
        let mut frames = Multiset::default();
        self.open.values().filter_map(|open| open.frame).for_each(|frame| frames.insert(frame));
        frames.counts().eq(self.frames.counts())
    }
}
