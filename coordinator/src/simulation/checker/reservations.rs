//! Who may hold what, and who must not be overtaken.

use std::collections::{BTreeMap, BTreeSet};

use stillframe_protocol::{Entry, Lockable, Mode, TransactionId};

use crate::machine::{Reserve, Ticket};

/// What transactions hold, as far as they were told, and who waits.
#[derive(Default)]
pub(super) struct Reservations {
    held: BTreeMap<TransactionId, BTreeMap<Lockable, Mode>>,
    /// Those that may hold more than they were told.
    unsure: BTreeSet<TransactionId>,
    /// In the order in which they asked.
    waiting: BTreeMap<u64, (Ticket, Reserve)>,
    asked: u64,
}

impl Reservations {
    pub(super) fn asked(&mut self, ticket: Ticket, reserve: &Reserve) {
        self.asked += 1;
        self.waiting.insert(self.asked, (ticket, reserve.clone()));
    }

    /// A request is refused or forgotten: parts of it may be held.
    pub(super) fn gave_up(&mut self, ticket: Ticket) {
        if let Some((_, reserve)) = self.take(ticket) {
            self.unsure.insert(reserve.transaction);
        }
    }

    /// A request is granted.
    pub(super) fn granted(&mut self, ticket: Ticket) -> Result<(), String> {
        let Some((order, reserve)) = self.take(ticket) else { return Ok(()) };
        let transaction = reserve.transaction;
        for (other, held) in &self.held {
            if *other == transaction {
                continue;
            }
            if let Some(entry) = reserve.entries.iter().find(|entry| {
                held.get(&entry.lockable).is_some_and(|mode| excludes(*mode, entry.mode))
            }) {
                return Err(format!("{transaction} gets {entry:?}, which {other} holds"));
            }
        }
        self.is_in_turn(order, &reserve)?;
        let held = self.held.entry(transaction).or_default();
        for Entry { lockable, mode } in reserve.entries {
            let strongest = held.entry(lockable).or_insert(mode);
            *strongest = mode.max(*strongest);
        }
        Ok(())
    }

    /// Nobody holds anything any more; who still waits wants it of the next epoch.
    pub(super) fn epoch_ended(&mut self) {
        self.held.clear();
        self.unsure.clear();
    }

    /// A transaction holds nothing any more.
    pub(super) fn ended(&mut self, transaction: TransactionId) {
        self.held.remove(&transaction);
        self.unsure.remove(&transaction);
    }

    /// Nobody who asked before, and waits for the same thing first, is overtaken. Whoever holds it
    /// already may go ahead.
    fn is_in_turn(&self, order: u64, reserve: &Reserve) -> Result<(), String> {
        let Some(first) = first_entry(reserve) else { return Ok(()) };
        let holds = self
            .held
            .get(&reserve.transaction)
            .is_some_and(|held| held.contains_key(&first.lockable));
        if holds || self.unsure.contains(&reserve.transaction) {
            return Ok(());
        }
        let overtaken =
            self.waiting.range(..order).map(|(_, (_, earlier))| earlier).find(|earlier| {
                earlier.transaction != reserve.transaction
                    && first_entry(earlier).is_some_and(|entry| {
                        entry.lockable == first.lockable && excludes(entry.mode, first.mode)
                    })
            });
        match overtaken {
            None => Ok(()),
            Some(earlier) => Err(format!(
                "{} overtakes {} at {:?}",
                reserve.transaction, earlier.transaction, first.lockable
            )),
        }
    }

    fn take(&mut self, ticket: Ticket) -> Option<(u64, Reserve)> {
        let order = *self.waiting.iter().find(|(_, (waiting, _))| *waiting == ticket)?.0;
        self.waiting.remove(&order).map(|(_, reserve)| (order, reserve))
    }
}

/// The least of what is asked for: it is waited for before anything else.
fn first_entry(reserve: &Reserve) -> Option<Entry> {
    reserve
        .entries
        .iter()
        .copied()
        .min_by_key(|entry| (entry.lockable, std::cmp::Reverse(entry.mode)))
}

fn excludes(one: Mode, other: Mode) -> bool {
    one == Mode::Exclusive || other == Mode::Exclusive
}
