//! Advisory locks: numbers that mean what clients agree on. The server only says who has them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// What is locked: one number, or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Key {
    One(i64),
    Two(i32, i32),
}

/// Whether others may have the same lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Mode {
    Exclusive,
    Shared,
}

/// How long a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Span {
    /// Until it is given back as often as it was taken.
    Session,
    /// Until the transaction ends.
    Transaction,
}

/// A session: any number that no other has while it lives.
pub(crate) type Holder = usize;

/// All advisory locks.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    held: Mutex<Held>,
    freed: Notify,
}

/// How often each is held, by whom and how.
type Held = HashMap<Key, HashMap<(Holder, Mode, Span), u64>>;

/// What a session held at a time, to go back to.
#[derive(Debug)]
pub(crate) struct Mark(Vec<(Key, Mode, Span, u64)>);

impl Locks {
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a lock, if nobody else is in the way.
    pub(crate) fn try_take(&self, holder: Holder, key: Key, mode: Mode, span: Span) -> bool {
        let mut held = self.lock();
        let holders = held.entry(key).or_default();
        let is_in_the_way = |(other, theirs, _): &(Holder, Mode, Span)| {
            *other != holder && (mode == Mode::Exclusive || *theirs == Mode::Exclusive)
        };
        let is_free = !holders.keys().any(is_in_the_way);
        if is_free {
            *holders.entry((holder, mode, span)).or_default() += 1;
        }
        is_free
    }

    /// Gives a lock back once that was taken for the session; false if it wasn't.
    pub(crate) fn give_back(&self, holder: Holder, key: Key, mode: Mode) -> bool {
        let mut held = self.lock();
        let Some(holders) = held.get_mut(&key) else { return false };
        let Some(count) = holders.get_mut(&(holder, mode, Span::Session)) else { return false };
        *count -= 1;
        if *count == 0 {
            holders.remove(&(holder, mode, Span::Session));
            if holders.is_empty() {
                held.remove(&key);
            }
            self.freed.notify_waiters();
        }
        true
    }

    /// Gives all of a session's locks back that are held so long; all of them without a span.
    pub(crate) fn give_all_back(&self, holder: Holder, span: Option<Span>) {
        self.retain(|(other, _, held)| *other != holder || span.is_some_and(|span| *held != span));
    }

    fn retain(&self, keep: impl Fn(&(Holder, Mode, Span)) -> bool) {
        let mut held = self.lock();
        held.retain(|_, holders| {
            holders.retain(|holding, _| keep(holding));
            !holders.is_empty()
        });
        self.freed.notify_waiters();
    }

    /// What a session holds.
    pub(crate) fn mark(&self, holder: Holder) -> Mark {
        let held = self.lock();
        let all = held.iter().flat_map(|(key, holders)| {
            let own = holders.iter().filter(|((other, ..), _)| *other == holder);
            own.map(|((_, mode, span), count)| (*key, *mode, *span, *count))
        });
        Mark(all.collect())
    }

    /// Lets a session hold what it held, and nothing that it has taken since.
    pub(crate) fn restore(&self, holder: Holder, mark: Mark) {
        self.retain(|(other, ..)| *other != holder);
        let mut held = self.lock();
        for (key, mode, span, count) in mark.0 {
            held.entry(key).or_default().insert((holder, mode, span), count);
        }
    }

    /// Ends when somebody has given something back. To be made before it is tried to take a lock.
    pub(crate) async fn freed(&self) {
        self.freed.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_in_the_way() {
        let locks = Locks::default();
        let take = |holder, mode| locks.try_take(holder, Key::One(7), mode, Span::Session);
        assert!(take(1, Mode::Shared) && take(2, Mode::Shared));
        assert!(!take(1, Mode::Exclusive), "the other has it, too");
        assert!(locks.give_back(2, Key::One(7), Mode::Shared));
        assert!(!locks.give_back(2, Key::One(7), Mode::Shared));
        assert!(take(1, Mode::Exclusive) && take(1, Mode::Exclusive));
        assert!(!take(2, Mode::Shared));
        assert!(locks.try_take(2, Key::Two(0, 7), Mode::Exclusive, Span::Session), "another lock");
        for _ in 0..2 {
            assert!(locks.give_back(1, Key::One(7), Mode::Exclusive));
        }
        assert!(!take(2, Mode::Exclusive), "it is still shared");
        locks.give_all_back(1, None);
        assert!(take(2, Mode::Exclusive));
        locks.give_all_back(2, Some(Span::Transaction));
        assert!(!take(1, Mode::Shared));
        locks.give_all_back(2, Some(Span::Session));
        assert!(locks.lock().is_empty());
    }

    #[test]
    fn an_attempt_leaves_nothing() {
        let locks = Locks::default();
        locks.try_take(1, Key::One(1), Mode::Exclusive, Span::Session);
        let mark = locks.mark(1);
        locks.try_take(1, Key::One(1), Mode::Exclusive, Span::Session);
        locks.try_take(1, Key::One(2), Mode::Exclusive, Span::Transaction);
        locks.restore(1, mark);
        assert!(locks.try_take(2, Key::One(2), Mode::Exclusive, Span::Session));
        assert!(locks.give_back(1, Key::One(1), Mode::Exclusive));
        assert!(!locks.give_back(1, Key::One(1), Mode::Exclusive));
    }
}
