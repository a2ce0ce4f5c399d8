//! Who holds what, and who waits for it.
//!
//! Every lockable has holders, either one exclusive or any number of shared ones, and a queue. Who
//! comes later queues behind all who wait already, so that nobody is overtaken; only a holder that
//! wants its shared reservation exclusive goes ahead of those who hold nothing yet. A transaction
//! waits in one queue at a time.

use std::collections::BTreeMap;

use stillframe_protocol::{Entry, Lockable, Mode, Step, TransactionId};

use super::super::{Defect, breaks};

/// All reservations.
#[derive(Debug)]
pub(super) struct Locks {
    defect: Defect,
    locks: BTreeMap<Lockable, Lock>,
    held: BTreeMap<TransactionId, BTreeMap<Lockable, Held>>,
    waiting: BTreeMap<TransactionId, (Lockable, Place)>,
    arrivals: u64,
}

/// What is held of one lockable and who waits for it. There is none without holders.
#[derive(Debug, Default)]
struct Lock {
    holders: BTreeMap<TransactionId, Mode>,
    queue: BTreeMap<Place, Waiter>,
}

/// A place in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// Of who holds it shared already.
    Upgrade(u64),
    /// Of who holds nothing of it.
    Newcomer(u64),
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    transaction: TransactionId,
    mode: Mode,
}

/// A reservation that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) mode: Mode,
    /// The step that was common when it was reserved in this mode. What others wrote before is part
    /// of that step.
    pub(super) since: Step,
}

/// What became of the wish for a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acquired {
    /// It is held.
    Held,
    /// It is waited for.
    Queued,
    /// To wait for it would be to wait for oneself; it isn't waited for.
    Deadlock,
}

impl Locks {
    pub(super) fn new(defect: Defect) -> Self {
        Self {
            defect,
            locks: BTreeMap::new(),
            held: BTreeMap::new(),
            waiting: BTreeMap::new(),
            arrivals: 0,
        }
    }

    /// Reserves an entry for a transaction that isn't waiting, or has it queue.
    pub(super) fn acquire(
        &mut self,
        transaction: TransactionId,
        entry: Entry,
        common: Step,
    ) -> Acquired {
        let Entry { lockable, mode } = entry;
        let lock = self.locks.entry(lockable).or_default();
        let held = lock.holders.get(&transaction).copied();
        if held.is_some_and(|held| held >= mode) {
            return Acquired::Held;
        }
        let waiter = Waiter { transaction, mode };
        let in_turn = lock.queue.is_empty() || held.is_some() || breaks!(self.defect, Overtakes);
        if in_turn && self.admits(lockable, waiter) {
            self.hold(lockable, waiter, common);
            return Acquired::Held;
        }
        self.arrivals += 1;
        let place = match held {
            Some(_) => Place::Upgrade(self.arrivals),
            None => Place::Newcomer(self.arrivals),
        };
        self.locks.entry(lockable).or_default().queue.insert(place, waiter);
        self.waiting.insert(transaction, (lockable, place));
        if !breaks!(self.defect, IgnoresDeadlocks) && self.waits_for_itself(transaction) {
            self.leave_queue(transaction);
            return Acquired::Deadlock;
        }
        Acquired::Queued
    }

    /// Takes a transaction out of the queue it waits in; returns who need wait no longer.
    pub(super) fn withdraw(
        &mut self,
        transaction: TransactionId,
        common: Step,
    ) -> Vec<TransactionId> {
        if breaks!(self.defect, KeepsPlace) {
            return vec![];
        }
        let mut admitted = vec![];
        if let Some(lockable) = self.leave_queue(transaction) {
            self.admit(lockable, common, &mut admitted);
        }
        admitted
    }

    /// What a transaction holds.
    pub(super) fn held(&self, transaction: TransactionId) -> impl Iterator<Item = Entry> + '_ {
        self.held
            .get(&transaction)
            .into_iter()
            .flatten()
            .map(|(lockable, held)| Entry { lockable: *lockable, mode: held.mode })
    }

    /// How a transaction holds something.
    pub(super) fn held_on(&self, transaction: TransactionId, lockable: Lockable) -> Option<Held> {
        self.held.get(&transaction)?.get(&lockable).copied()
    }

    /// Frees all that a transaction holds; returns who need wait no longer. It must not be waiting.
    pub(super) fn release(
        &mut self,
        transaction: TransactionId,
        common: Step,
    ) -> Vec<TransactionId> {
        let mut admitted = vec![];
        for lockable in self.held.remove(&transaction).unwrap_or_default().into_keys() {
            if let Some(lock) = self.locks.get_mut(&lockable) {
                lock.holders.remove(&transaction);
            }
            self.admit(lockable, common, &mut admitted);
        }
        admitted
    }

    /// Whether somebody waits for what a transaction holds. If nobody does, then nobody waits for
    /// one that has just begun to wait: it is last in its queue, unless it upgrades what it holds.
    pub(super) fn blocks_somebody(&self, transaction: TransactionId) -> bool {
        let queue = |lockable| self.locks.get(lockable).map(|lock| lock.queue.values());
        let mut held = self.held.get(&transaction).into_iter().flatten();
        held.any(|(lockable, _)| {
            let mut waiters = queue(lockable).into_iter().flatten();
            waiters.any(|waiter| waiter.transaction != transaction)
        })
    }

    /// Whom a waiting transaction waits for. Not all of them: enough to reach the others from.
    pub(super) fn blockers(&self, transaction: TransactionId) -> Vec<TransactionId> {
        let Some((lockable, place)) = self.waiting.get(&transaction) else { return vec![] };
        let lock = &self.locks[lockable];
        let mode = lock.queue[place].mode;
        let mut blockers = vec![];
        for waiter in lock.queue.range(..place).rev().map(|(_, waiter)| waiter) {
            if conflict(mode, waiter.mode) {
                blockers.push(waiter.transaction);
            }
            if waiter.mode == Mode::Exclusive {
                // It waits for everybody further ahead.
                return blockers;
            }
        }
        let conflicting = |(holder, held): (&TransactionId, &Mode)| {
            (*holder != transaction && conflict(mode, *held)).then_some(*holder)
        };
        blockers.extend(lock.holders.iter().filter_map(conflicting));
        blockers
    }

    /// Whether the holders leave room for a waiter.
    fn admits(&self, lockable: Lockable, waiter: Waiter) -> bool {
        let Some(lock) = self.locks.get(&lockable) else { return true };
        if breaks!(self.defect, SharesExclusively) && waiter.mode == Mode::Exclusive {
            return lock.holders.values().all(|held| *held == Mode::Shared);
        }
        match waiter.mode {
            // An exclusive holder is alone, so that the first tells for all.
            Mode::Shared => lock.holders.values().next() != Some(&Mode::Exclusive),
            Mode::Exclusive => lock.holders.keys().all(|holder| *holder == waiter.transaction),
        }
    }

    fn hold(&mut self, lockable: Lockable, waiter: Waiter, since: Step) {
        let Waiter { transaction, mode } = waiter;
        self.locks.entry(lockable).or_default().holders.insert(transaction, mode);
        self.held.entry(transaction).or_default().insert(lockable, Held { mode, since });
    }

    fn leave_queue(&mut self, transaction: TransactionId) -> Option<Lockable> {
        let (lockable, place) = self.waiting.remove(&transaction)?;
        self.locks.get_mut(&lockable)?.queue.remove(&place);
        Some(lockable)
    }

    /// Lets in, from the head of the queue, whoever the holders leave room for.
    fn admit(&mut self, lockable: Lockable, common: Step, admitted: &mut Vec<TransactionId>) {
        while let Some(lock) = self.locks.get(&lockable) {
            let Some((&place, &waiter)) = lock.queue.first_key_value() else {
                if lock.holders.is_empty() {
                    self.locks.remove(&lockable);
                }
                return;
            };
            if !self.admits(lockable, waiter) {
                return;
            }
            if let Some(lock) = self.locks.get_mut(&lockable) {
                lock.queue.remove(&place);
            }
            self.waiting.remove(&waiter.transaction);
            self.hold(lockable, waiter, common);
            admitted.push(waiter.transaction);
        }
    }
}

/// Whether two reservations of one lockable exclude each other.
fn conflict(one: Mode, other: Mode) -> bool {
    one == Mode::Exclusive || other == Mode::Exclusive
}

impl Locks {
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.locks.is_empty() && self.held.is_empty() && self.waiting.is_empty()
    }

    /// An exclusive holder is alone.
    pub(super) fn exclusive_holders_are_alone(&self) -> bool {
        self.locks.values().all(|lock| {
            lock.holders.len() == 1 || lock.holders.values().all(|held| *held == Mode::Shared)
        })
    }

    /// Who could be let in doesn't wait.
    pub(super) fn nobody_waits_for_nothing(&self) -> bool {
        self.locks.iter().all(|(lockable, lock)| {
            lock.queue.values().next().is_none_or(|waiter| !self.admits(*lockable, *waiter))
        })
    }

    /// Nobody waits for himself, over others.
    pub(super) fn nobody_waits_in_a_circle(&self) -> bool {
        self.waiting.keys().all(|transaction| !self.waits_for_itself(*transaction))
    }

    /// The two directions of who holds what agree, and so do those of who waits for what.
    pub(super) fn holders_and_waiters_are_indexed(&self) -> bool {
        let holders: usize = self.locks.values().map(|lock| lock.holders.len()).sum();
        let waiters: usize = self.locks.values().map(|lock| lock.queue.len()).sum();
        let held: usize = self.held.values().map(BTreeMap::len).sum();
        let holds = |transaction: &TransactionId, lockable: &Lockable, mode: Mode| {
            self.locks.get(lockable).and_then(|lock| lock.holders.get(transaction)) == Some(&mode)
        };
        let waits = |transaction: &TransactionId, lockable: &Lockable, place: &Place| {
            let lock = self.locks.get(lockable);
            lock.and_then(|lock| lock.queue.get(place))
                .is_some_and(|waiter| waiter.transaction == *transaction)
        };
        holders == held
            && waiters == self.waiting.len()
            && self.locks.values().all(|lock| !lock.holders.is_empty())
            && self.held.iter().all(|(transaction, held)| {
                held.iter().all(|(lockable, held)| holds(transaction, lockable, held.mode))
            })
            && self
                .waiting
                .iter()
                .all(|(transaction, (lockable, place))| waits(transaction, lockable, place))
    }
}
