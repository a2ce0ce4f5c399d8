//! What was written last at which step: what a writer's frame is checked against.
//!
//! A transaction becomes history when its step is common; until then its reservations keep others
//! from asking. History reaches back to a floor: frames older than that can't be judged, and count
//! as overwritten.

use std::collections::BTreeMap;

use stillframe_protocol::{Entry, Lockable, Mode, RelationId, Step};

use super::super::{Defect, breaks};

/// The last writes above the floor.
#[derive(Debug)]
pub(super) struct History {
    defect: Defect,
    floor: Step,
    /// The last step that each key was exclusively written at.
    keys: BTreeMap<Lockable, Step>,
    relations: BTreeMap<RelationId, Writes>,
    /// What was written at each step, so that it can be forgotten.
    by_step: BTreeMap<Step, Vec<Lockable>>,
}

/// The last writes of a relation.
#[derive(Clone, Copy, Debug, Default)]
struct Writes {
    /// By who held the whole relation exclusively.
    whole: Option<Step>,
    /// By whom it may be, of any part.
    any: Option<Step>,
}

impl History {
    pub(super) fn new(defect: Defect) -> Self {
        Self {
            defect,
            floor: Step(0),
            keys: BTreeMap::new(),
            relations: BTreeMap::new(),
            by_step: BTreeMap::new(),
        }
    }

    /// Learns that a transaction with these reservations entered a step.
    ///
    /// Who held a relation shared may have inserted rows that no key stands for.
    pub(super) fn record(&mut self, step: Step, entries: impl Iterator<Item = Entry>) {
        if breaks!(self.defect, ForgetsHistory) {
            return;
        }
        let written = self.by_step.entry(step).or_default();
        for Entry { lockable, mode } in entries {
            match (lockable, mode) {
                (Lockable::Key { .. }, Mode::Shared) => continue,
                (Lockable::Key { .. }, Mode::Exclusive) => {
                    self.keys.insert(lockable, step);
                    written.push(lockable);
                }
                (Lockable::Relation(_), _) => {}
            }
            let relation = relation_of(lockable);
            let writes = self.relations.entry(relation).or_default();
            if writes.any != Some(step) {
                writes.any = Some(step);
                written.push(Lockable::Relation(relation));
            }
            if lockable == Lockable::Relation(relation) && mode == Mode::Exclusive {
                writes.whole = Some(step);
            }
        }
        if written.is_empty() {
            self.by_step.remove(&step);
        }
    }

    /// The last step at which something was written that an entry protects, if it is after the
    /// frame; the step it can be told for if that isn't known.
    pub(super) fn written_after(&self, frame: Step, entry: Entry) -> Option<Step> {
        let known = match entry.lockable {
            Lockable::Key { .. } => self.keys.get(&entry.lockable).copied(),
            Lockable::Relation(relation) => {
                self.relations.get(&relation).and_then(|writes| match entry.mode {
                    Mode::Shared => writes.whole,
                    Mode::Exclusive if breaks!(self.defect, ForgetsKeys) => writes.whole,
                    Mode::Exclusive => writes.any,
                })
            }
        };
        let unknown = (frame < self.floor).then_some(self.floor);
        known.filter(|step| *step > frame).max(unknown)
    }

    /// Forgets what every frame from this step on shows.
    pub(super) fn trim(&mut self, floor: Step) {
        let floor = floor.max(self.floor);
        if !breaks!(self.defect, TrimsTooMuch) {
            self.floor = floor;
        }
        while let Some(oldest) = self.by_step.first_entry() {
            let step = *oldest.key();
            if step > floor || breaks!(self.defect, NeverForgets) {
                break;
            }
            for lockable in oldest.remove() {
                self.forget(lockable, step);
            }
        }
    }

    fn forget(&mut self, lockable: Lockable, step: Step) {
        match lockable {
            Lockable::Key { .. } => {
                if self.keys.get(&lockable) == Some(&step) {
                    self.keys.remove(&lockable);
                }
            }
            Lockable::Relation(relation) => {
                if self.relations.get(&relation).is_some_and(|writes| writes.any <= Some(step)) {
                    self.relations.remove(&relation);
                }
            }
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.relations.is_empty() && self.by_step.is_empty()
    }

    /// Only what is common is history.
    pub(super) fn history_is_common(&self, common: Option<Step>) -> bool {
        self.by_step.last_key_value().is_none_or(|(step, _)| Some(*step) <= common)
    }

    /// Everything remembered can be forgotten again.
    pub(super) fn history_can_be_trimmed(&self) -> bool {
        let listed = |step: Step, lockable: Lockable| {
            self.by_step.get(&step).is_some_and(|written| written.contains(&lockable))
        };
        self.keys.iter().all(|(lockable, step)| listed(*step, *lockable))
            && self.relations.iter().all(|(relation, writes)| {
                writes.any.is_some_and(|step| listed(step, Lockable::Relation(*relation)))
            })
    }
}

fn relation_of(lockable: Lockable) -> RelationId {
    match lockable {
        Lockable::Relation(relation) | Lockable::Key { relation, .. } => relation,
    }
}
