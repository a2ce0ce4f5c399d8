//! What transactions of the cluster in memory have reserved, and what was written when.

use std::collections::BTreeMap;

use stillframe_protocol::{Entry, Lockable, Mode, RelationId, Reservation, Step, TransactionId};

#[derive(Debug, Default)]
pub(super) struct Reservations {
    held: BTreeMap<TransactionId, BTreeMap<Lockable, Mode>>,
    /// When each key was written last.
    keys: BTreeMap<Lockable, Step>,
    /// When each relation was written last: by who had it alone, and by anybody.
    relations: BTreeMap<RelationId, (Step, Step)>,
}

impl Reservations {
    /// Reserves everything; none if somebody else is in the way.
    pub(super) fn reserve(
        &mut self,
        transaction: TransactionId,
        frame: Option<Step>,
        entries: &[Entry],
    ) -> Option<Reservation> {
        let is_free = entries.iter().all(|entry| {
            self.held.iter().filter(|(other, _)| **other != transaction).all(|(_, held)| {
                held.get(&entry.lockable)
                    .is_none_or(|mode| *mode == Mode::Shared && entry.mode == Mode::Shared)
            })
        });
        if !is_free {
            return None;
        }
        let held = self.held.entry(transaction).or_default();
        for entry in entries {
            let mode = held.entry(entry.lockable).or_insert(entry.mode);
            *mode = entry.mode.max(*mode);
        }
        let frame = frame.unwrap_or(Step(u64::MAX));
        let newest = entries.iter().filter_map(|entry| self.written(*entry)).max();
        Some(match newest {
            Some(step) if step > frame => Reservation::Changed(step),
            _ => Reservation::Granted,
        })
    }

    fn written(&self, entry: Entry) -> Option<Step> {
        match (entry.lockable, entry.mode) {
            (Lockable::Relation(relation), Mode::Shared) => {
                self.relations.get(&relation).map(|(alone, _)| *alone)
            }
            (Lockable::Relation(relation), Mode::Exclusive) => {
                self.relations.get(&relation).map(|(_, any)| *any)
            }
            (key, _) => self.keys.get(&key).copied(),
        }
    }

    /// Whether a transaction may write a relation.
    pub(super) fn may_write(&self, transaction: TransactionId, relation: RelationId) -> bool {
        let held = self.held.get(&transaction);
        held.is_some_and(|held| held.contains_key(&Lockable::Relation(relation)))
    }

    /// Ends a transaction; what it held was written at a step if it has committed.
    pub(super) fn end(&mut self, transaction: TransactionId, committed: Option<Step>) {
        let held = self.held.remove(&transaction).unwrap_or_default();
        let Some(step) = committed else { return };
        for (lockable, mode) in held {
            match lockable {
                Lockable::Key { .. } if mode == Mode::Exclusive => {
                    self.keys.insert(lockable, step);
                }
                Lockable::Key { .. } => {}
                Lockable::Relation(relation) => {
                    let written = self.relations.entry(relation).or_default();
                    written.1 = step;
                    if mode == Mode::Exclusive {
                        written.0 = step;
                    }
                }
            }
        }
    }

    /// How many transactions hold something.
    pub(super) fn holders(&self) -> usize {
        self.held.len()
    }
}
