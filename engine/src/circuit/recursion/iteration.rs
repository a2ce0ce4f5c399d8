//! A recursion that is computed from its base again whenever something has changed, iteration by
//! iteration, as PostgreSQL does it: the term reads the rows of the last iteration and no others.

use std::collections::BTreeMap;
use std::mem::take;

use dbsp::ZWeight;
use stillframe_protocol::RowError;

use super::limits::{Endless, Limits, Used};
use super::stored::Change;
use super::term::{Term, Weights};

/// The state of such a recursion.
#[derive(Debug, Default)]
pub(super) struct Iteration {
    /// The rows that there are, and how often.
    result: Weights,
    base: Weights,
    /// What the term has for the last iteration's rows.
    last: Weights,
    /// What the term makes of them.
    made: Weights,
    /// Of the rows of all iterations.
    errors: BTreeMap<RowError, ZWeight>,
}

impl Iteration {
    pub(super) fn result(&self) -> &Weights {
        &self.result
    }

    pub(super) fn errors(&self) -> &BTreeMap<RowError, ZWeight> {
        &self.errors
    }

    /// Takes up a change of the inputs and computes the result again; adds to `delta` how it has
    /// changed.
    pub(super) fn change(
        &mut self,
        term: &mut Term,
        change: &Change,
        distinct: bool,
        limits: &Limits,
        delta: &mut Weights,
    ) -> Result<(), Endless> {
        let mut change = change.iter();
        for (row, weight) in change.next().into_iter().flatten() {
            add(&mut self.base, row.clone(), *weight);
        }
        for (place, rows) in change.enumerate() {
            term.change(place + 1, rows.iter().cloned());
        }
        for (row, weight) in take(&mut self.result) {
            add(delta, row, -weight);
        }
        self.errors.clear();
        let mut used = Used::default();
        let mut next = self.base.clone();
        loop {
            if distinct {
                next.retain(|row, _| !self.result.contains_key(row));
                next.values_mut().for_each(|weight| *weight = 1);
            }
            if next.is_empty() {
                return Ok(());
            }
            for (row, weight) in &next {
                used.rows += weight;
                if !self.result.contains_key(row) {
                    used.bytes += row.len();
                }
                add(&mut self.result, row.clone(), *weight);
                add(delta, row.clone(), *weight);
            }
            used.iterations += 1;
            used.check(limits)?;
            let last = std::mem::replace(&mut self.last, next.clone());
            for (row, weight) in last {
                add(&mut next, row, -weight);
            }
            term.change(0, next);
            for (row, weight) in term.step() {
                add(&mut self.made, row, weight);
            }
            for (error, count) in term.errors() {
                *self.errors.entry(error).or_default() += count;
            }
            next = self.made.clone();
        }
    }
}

fn add(rows: &mut Weights, row: crate::row::Row, weight: ZWeight) {
    use std::collections::hash_map::Entry;
    match rows.entry(row) {
        Entry::Vacant(entry) => {
            entry.insert(weight);
        }
        Entry::Occupied(mut entry) => {
            *entry.get_mut() += weight;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }
}
