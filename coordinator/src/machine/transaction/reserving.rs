//! Requests for reservations: from the first entry to the verdict.

use std::collections::{BTreeMap, VecDeque};

use stillframe_protocol::{
    CoordinatorError, Entry, Lockable, Mode, Reservation, Step, TransactionId,
};

use super::super::effect::Answers;
use super::super::{Effect, Reply, Reserve, Ticket};
use super::history::History;
use super::locks::{Acquired, Locks};
use super::{Moment, Phase, Reserving, Transaction, Transactions};

impl Transactions {
    /// Begins to reserve; answered at once or when others make room.
    pub(in super::super) fn reserve(
        &mut self,
        moment: Moment,
        ticket: Ticket,
        request: Reserve,
        effects: &mut Vec<Effect>,
    ) {
        let Reserve { transaction, frame, entries, timeout } = request;
        let (since, frame) = (moment.now, frame.map(|frame| frame.step));
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
            Phase::Reserving(Reserving { ticket, since, frame, entries, next: 0, deadline });
        runnable.push_back(transaction);
        self.run(moment, runnable, effects);
    }

    /// Forgets a request for reservations that nobody waits for any more. What it got stays held.
    pub(in super::super) fn cancel(
        &mut self,
        moment: Moment,
        ticket: Ticket,
        effects: &mut Vec<Effect>,
    ) {
        if let Some(transaction) = self.tickets.get(&ticket).copied() {
            let runnable = self.stop_reserving(moment, transaction, None, effects);
            self.run(moment, runnable, effects);
        }
    }

    /// Answers those who have waited for others too long.
    pub(in super::super) fn expire(&mut self, moment: Moment, effects: &mut Vec<Effect>) {
        while let Some(&(deadline, transaction)) = self.deadlines.first()
            && deadline <= moment.now
        {
            let late = CoordinatorError::LockTimeout;
            let runnable = self.stop_reserving(moment, transaction, Some(late), effects);
            self.run(moment, runnable, effects);
        }
    }

    /// Goes on with those that need wait no longer, and with those whom they make room for.
    pub(super) fn run(
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
    pub(super) fn acquire(
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
    pub(super) fn reserved(
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
    pub(super) fn stop_reserving(
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

    pub(super) fn take_reserving(&mut self, transaction: TransactionId) -> Option<Reserving> {
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
