//! A recursion whose term makes each row of one row, kept up to date by what has changed.
//!
//! First what is taken away, then what is added: a row that loses one derivation and gains another
//! in the same change must be looked at, as the new one may come from the row itself.
//!
//! With UNION a row is there once, however often it is derived; each has the number of its
//! derivations from rows that are there. A row that loses one is taken out, and so is what was
//! derived of it, as its other derivations may all lead round a cycle. Then the rows that still have
//! one come back, which is now from what has stayed, and with them what is derived of them (DRed:
//! Gupta, Mumick and Subrahmanian, "Maintaining Views Incrementally", 1993).
//!
//! With UNION ALL a row is there as often as it is derived. Taking rows away ends by itself: nothing
//! is ever derived of itself, or the recursion wouldn't have ended before.

use dbsp::ZWeight;

use super::limits::{Endless, Limits, Used};
use super::stored::Change;
use super::term::{Term, Weights};
use crate::row::Row;

/// The state of such a recursion.
#[derive(Debug, Default)]
pub(super) struct Fixpoint {
    /// The rows that there are, and how often.
    result: Weights,
    /// With UNION, how often each row is derived.
    derivations: Weights,
    used: Used,
}

/// Whether rows are taken away or added.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Less,
    More,
}

impl Part {
    fn has(self, weight: ZWeight) -> bool {
        (weight < 0) == (self == Self::Less)
    }
}

impl Fixpoint {
    pub(super) fn result(&self) -> &Weights {
        &self.result
    }

    /// Follows a change of the inputs; adds to `delta` how the result has changed.
    pub(super) fn change(
        &mut self,
        term: &mut Term,
        change: &Change,
        distinct: bool,
        limits: &Limits,
        delta: &mut Weights,
    ) -> Result<(), Endless> {
        self.used.iterations = 0;
        if distinct {
            let candidates = self.take_out(term, change, delta);
            self.put_in(term, change, candidates, limits, delta)
        } else {
            self.follow(term, change, Part::Less, limits, delta)?;
            self.follow(term, change, Part::More, limits, delta)
        }
    }

    /// UNION ALL: what comes of a part of a change.
    fn follow(
        &mut self,
        term: &mut Term,
        change: &Change,
        part: Part,
        limits: &Limits,
        delta: &mut Weights,
    ) -> Result<(), Endless> {
        let mut changes = first(term, change, part);
        while !changes.is_empty() {
            self.used.iterations += 1;
            for (row, weight) in &changes {
                self.add(row, *weight, delta);
            }
            self.used.check(limits)?;
            term.change(0, changes);
            changes = term.step();
        }
        Ok(())
    }

    /// UNION: takes out all rows that lose a derivation. Returns them.
    fn take_out(&mut self, term: &mut Term, change: &Change, delta: &mut Weights) -> Vec<Row> {
        let mut changes = first(term, change, Part::Less);
        let mut out = vec![];
        loop {
            let mut gone = vec![];
            for (row, weight) in changes {
                self.derive(&row, weight);
                if self.result.contains_key(&row) {
                    self.add(&row, -1, delta);
                    gone.push(row);
                }
            }
            if gone.is_empty() {
                return out;
            }
            term.change(0, gone.iter().map(|row| (row.clone(), -1)));
            out.extend(gone);
            changes = term.step();
        }
    }

    /// UNION: puts in the candidates that are derived, and what is new.
    fn put_in(
        &mut self,
        term: &mut Term,
        change: &Change,
        mut candidates: Vec<Row>,
        limits: &Limits,
        delta: &mut Weights,
    ) -> Result<(), Endless> {
        let mut changes = first(term, change, Part::More);
        loop {
            for (row, weight) in changes {
                self.derive(&row, weight);
                candidates.push(row);
            }
            let mut new = vec![];
            for row in candidates.drain(..) {
                if self.derivations.contains_key(&row) && !self.result.contains_key(&row) {
                    self.add(&row, 1, delta);
                    new.push((row, 1));
                }
            }
            if new.is_empty() {
                return Ok(());
            }
            self.used.iterations += 1;
            self.used.check(limits)?;
            term.change(0, new);
            changes = term.step();
        }
    }

    fn derive(&mut self, row: &Row, weight: ZWeight) {
        let derivations = self.derivations.entry(row.clone()).or_default();
        *derivations += weight;
        if *derivations == 0 {
            self.derivations.remove(row);
        }
    }

    fn add(&mut self, row: &Row, weight: ZWeight, delta: &mut Weights) {
        *delta.entry(row.clone()).or_default() += weight;
        self.used.rows += weight;
        let count = self.result.entry(row.clone()).or_default();
        if *count == 0 {
            self.used.bytes += row.len();
        }
        *count += weight;
        if *count == 0 {
            self.used.bytes -= row.len();
            self.result.remove(row);
        }
    }
}

/// Lets a part of a change of the inputs enter; returns how the first iteration's rows, and what the
/// term makes of those that there are, have changed.
fn first(term: &mut Term, change: &Change, part: Part) -> Weights {
    let of_part = |rows: &[(Row, ZWeight)]| -> Vec<(Row, ZWeight)> {
        rows.iter().filter(|(_, weight)| part.has(*weight)).cloned().collect()
    };
    let mut entered = false;
    for (place, rows) in change.iter().enumerate().skip(1) {
        let rows = of_part(rows);
        entered |= !rows.is_empty();
        term.change(place, rows);
    }
    let mut changes = if entered { term.step() } else { Weights::default() };
    for (row, weight) in change.first().map(|rows| of_part(rows)).unwrap_or_default() {
        *changes.entry(row).or_default() += weight;
    }
    changes
}
