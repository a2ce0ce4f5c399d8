//! What transactions have staged on this host, until they enter a step.
//!
//! Changes arrive encoded and checked, so that a step can't fail for them. A transaction's stagings
//! are counted by its front end: one that comes again is passed over, however late.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use dbsp::ZWeight;
use stillframe_protocol::{RelationId, TransactionId};
use thiserror::Error;

use crate::row::Row;

/// How many transactions that are over are remembered, for stagings that come late.
const REMEMBERED: usize = 10_000;

/// Encoded changes of one table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EncodedChanges {
    pub(crate) relation: RelationId,
    pub(crate) rows: Vec<(Row, ZWeight)>,
}

/// Holds staged changes.
#[derive(Debug, Default)]
pub(crate) struct StagingArea {
    transactions: HashMap<TransactionId, Transaction>,
    /// Those that are over, the oldest first.
    over: VecDeque<TransactionId>,
}

#[derive(Debug, Default)]
struct Transaction {
    /// By sequence number, so that the order of arrival doesn't matter.
    staged: BTreeMap<u64, Vec<EncodedChanges>>,
    seen: BTreeSet<u64>,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Open,
    /// Its changes are thrown away. It may begin again with later numbers.
    Unstaged,
    /// Its changes are part of a step.
    Entered,
}

/// A staging that came after its transaction had entered a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("transaction {0} has entered a step and can stage nothing more")]
pub(crate) struct TooLate(pub(crate) TransactionId);

impl StagingArea {
    /// Whether a staging is new; false if it has been seen.
    pub(crate) fn is_new(
        &self,
        transaction: TransactionId,
        sequence: u64,
    ) -> Result<bool, TooLate> {
        match self.transactions.get(&transaction) {
            Some(known) if known.seen.contains(&sequence) => Ok(false),
            Some(known) if known.phase == Phase::Entered => Err(TooLate(transaction)),
            _ => Ok(true),
        }
    }

    /// Holds a staging, unless it has been seen.
    pub(crate) fn stage(
        &mut self,
        transaction: TransactionId,
        sequence: u64,
        changes: Vec<EncodedChanges>,
    ) -> Result<(), TooLate> {
        if self.is_new(transaction, sequence)? {
            let known = self.transactions.entry(transaction).or_default();
            known.seen.insert(sequence);
            known.staged.insert(sequence, changes);
            known.phase = Phase::Open;
        }
        Ok(())
    }

    /// Forgets what a transaction has staged.
    pub(crate) fn unstage(&mut self, transaction: TransactionId) {
        if self.transactions.get(&transaction).is_some_and(|known| known.phase == Phase::Open) {
            self.end(transaction, Phase::Unstaged);
        }
    }

    /// Takes what transactions have staged, in their order; nothing for one that has staged
    /// nothing here.
    pub(crate) fn take(&mut self, transactions: &[TransactionId]) -> Vec<Vec<EncodedChanges>> {
        transactions.iter().map(|transaction| self.end(*transaction, Phase::Entered)).collect()
    }

    fn end(&mut self, transaction: TransactionId, phase: Phase) -> Vec<EncodedChanges> {
        let known = self.transactions.entry(transaction).or_default();
        if known.phase == Phase::Open {
            self.over.push_back(transaction);
        }
        known.phase = phase;
        let staged = std::mem::take(&mut known.staged);
        while self.over.len() > REMEMBERED {
            self.forget_oldest();
        }
        staged.into_values().flatten().collect()
    }

    fn forget_oldest(&mut self) {
        let Some(oldest) = self.over.pop_front() else { return };
        // One that has begun again is still needed, and will be over again.
        if self.transactions.get(&oldest).is_some_and(|known| known.phase != Phase::Open) {
            self.transactions.remove(&oldest);
        }
    }
}

/// Why staged changes can't enter a step: a bug of whoever wrote them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum Conflict {
    #[error("two transactions of one step write the same key of table {0}")]
    KeyWrittenTwice(RelationId),
    #[error("a key of table {0} would have several rows, or less than none")]
    KeyNotUnique(RelationId),
}

/// The changes of one table in one step: each row once, with the sum of its weights, which isn't 0.
#[derive(Debug, PartialEq)]
pub(crate) struct TableChanges {
    pub(crate) relation: RelationId,
    pub(crate) rows: Vec<(Row, ZWeight)>,
}

/// Adds up the changes of all transactions of a step, by table in the order of their numbers.
///
/// `key_len` gives the number of leading bytes of a row that are its primary key, if its table has
/// one.
///
/// # Errors
///
/// [`Conflict`] names the invariant that the changes break.
pub(crate) fn consolidate(
    transactions: Vec<Vec<EncodedChanges>>,
    key_len: impl Fn(RelationId, &Row) -> Option<usize>,
) -> Result<Vec<TableChanges>, Conflict> {
    let mut by_table: BTreeMap<RelationId, Vec<Write>> = BTreeMap::new();
    for (transaction, changes) in transactions.into_iter().enumerate() {
        for EncodedChanges { relation, rows } in changes {
            let write = |(row, weight)| Write { row, weight, transaction };
            by_table.entry(relation).or_default().extend(rows.into_iter().map(write));
        }
    }
    by_table
        .into_iter()
        .map(|(relation, mut writes)| {
            writes.sort_unstable_by(|left, right| left.row.cmp(&right.row));
            check_keys(relation, &writes, |row| key_len(relation, row))?;
            Ok(TableChanges { relation, rows: sum(writes) })
        })
        .collect()
}

struct Write {
    row: Row,
    weight: ZWeight,
    transaction: usize,
}

/// Of each key of a keyed table at most one row is taken away and one is added, by one transaction.
fn check_keys(
    relation: RelationId,
    sorted: &[Write],
    key_len: impl Fn(&Row) -> Option<usize>,
) -> Result<(), Conflict> {
    let Some(first) = sorted.first() else { return Ok(()) };
    if key_len(&first.row).is_none() {
        return Ok(());
    }
    let same_key =
        |left: &Write, right: &Write| key(&left.row, &key_len) == key(&right.row, &key_len);
    for of_key in sorted.chunk_by(same_key) {
        if of_key.iter().any(|write| write.transaction != of_key[0].transaction) {
            return Err(Conflict::KeyWrittenTwice(relation));
        }
        let mut removed = 0;
        let mut added = 0;
        for of_row in of_key.chunk_by(|left, right| left.row == right.row) {
            match of_row.iter().map(|write| write.weight).sum::<ZWeight>() {
                0 => {}
                1 => added += 1,
                -1 => removed += 1,
                _ => return Err(Conflict::KeyNotUnique(relation)),
            }
        }
        if removed > 1 || added > 1 {
            return Err(Conflict::KeyNotUnique(relation));
        }
    }
    Ok(())
}

fn key<'a>(row: &'a Row, key_len: &impl Fn(&Row) -> Option<usize>) -> &'a [u8] {
    &row.as_bytes()[..key_len(row).unwrap_or_default()]
}

fn sum(sorted: Vec<Write>) -> Vec<(Row, ZWeight)> {
    let mut summed: Vec<(Row, ZWeight)> = Vec::with_capacity(sorted.len());
    for Write { row, weight, .. } in sorted {
        match summed.last_mut() {
            Some((last, total)) if *last == row => *total += weight,
            _ => summed.push((row, weight)),
        }
    }
    summed.retain(|(_, weight)| *weight != 0);
    summed
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYED: RelationId = RelationId(1);
    const BAG: RelationId = RelationId(2);

    /// Rows of the keyed table begin with a key of one byte.
    fn key_len(relation: RelationId, _: &Row) -> Option<usize> {
        (relation == KEYED).then_some(1)
    }

    fn rows(rows: &[(&str, ZWeight)]) -> Vec<(Row, ZWeight)> {
        rows.iter().map(|(row, weight)| (Row::new(row.as_bytes()), *weight)).collect()
    }

    fn changes(relation: RelationId, changes: &[(&str, ZWeight)]) -> Vec<EncodedChanges> {
        vec![EncodedChanges { relation, rows: rows(changes) }]
    }

    fn transaction(number: u128) -> TransactionId {
        TransactionId(number)
    }

    #[test]
    fn a_staging_counts_once() {
        let mut area = StagingArea::default();
        for _ in 0..2 {
            area.stage(transaction(1), 0, changes(BAG, &[("a", 1)])).unwrap();
        }
        area.stage(transaction(1), 1, changes(BAG, &[("b", 1)])).unwrap();
        let taken = area.take(&[transaction(1), transaction(2)]);
        let both = [changes(BAG, &[("a", 1)]), changes(BAG, &[("b", 1)])].concat();
        assert_eq!(taken, [both, vec![]]);
    }

    #[test]
    fn late_duplicates_are_passed_over_and_late_news_refused() {
        let mut area = StagingArea::default();
        area.stage(transaction(1), 0, changes(BAG, &[("a", 1)])).unwrap();
        area.take(&[transaction(1)]);
        area.stage(transaction(1), 0, changes(BAG, &[("a", 1)])).unwrap();
        assert_eq!(
            area.stage(transaction(1), 1, changes(BAG, &[("b", 1)])),
            Err(TooLate(transaction(1)))
        );
        area.unstage(transaction(1));
        assert_eq!(area.take(&[transaction(1)]), [vec![]]);
    }

    #[test]
    fn what_was_unstaged_does_not_come_back() {
        let mut area = StagingArea::default();
        area.stage(transaction(1), 0, changes(BAG, &[("a", 1)])).unwrap();
        area.unstage(transaction(1));
        area.stage(transaction(1), 0, changes(BAG, &[("a", 1)])).unwrap();
        area.stage(transaction(1), 1, changes(BAG, &[("b", 1)])).unwrap();
        assert_eq!(area.take(&[transaction(1)]), [changes(BAG, &[("b", 1)])]);
    }

    #[test]
    fn the_memory_of_ended_transactions_is_bounded() {
        let mut area = StagingArea::default();
        for number in 0..2 * REMEMBERED as u128 {
            area.stage(transaction(number), 0, vec![]).unwrap();
            area.take(&[transaction(number)]);
        }
        assert_eq!(area.transactions.len(), REMEMBERED);
        assert_eq!(area.over.len(), REMEMBERED);
    }

    #[test]
    fn weights_are_added_up_across_transactions() {
        let first = [changes(BAG, &[("b", 2), ("a", 1)]), changes(KEYED, &[("kx", 1)])].concat();
        let second = changes(BAG, &[("a", -1), ("b", 1)]);
        let consolidated = consolidate(vec![first, second], key_len).unwrap();
        assert_eq!(
            consolidated,
            [
                TableChanges { relation: KEYED, rows: rows(&[("kx", 1)]) },
                TableChanges { relation: BAG, rows: rows(&[("b", 3)]) },
            ]
        );
    }

    #[test]
    fn a_key_may_change_several_times_within_a_transaction() {
        let changes = changes(KEYED, &[("ka", -1), ("kb", 1), ("kb", -1), ("kc", 1)]);
        let consolidated = consolidate(vec![changes], key_len).unwrap();
        assert_eq!(consolidated[0].rows, rows(&[("ka", -1), ("kc", 1)]));
    }

    #[test]
    fn two_transactions_may_not_write_a_key() {
        let conflict = consolidate(
            vec![changes(KEYED, &[("ka", -1), ("kb", 1)]), changes(KEYED, &[("kb", -1)])],
            key_len,
        );
        assert_eq!(conflict, Err(Conflict::KeyWrittenTwice(KEYED)));
    }

    #[test]
    fn a_key_has_one_row() {
        for wrong in [&[("ka", 1), ("kb", 1)][..], &[("ka", -1), ("kb", -1)], &[("ka", 2)]] {
            let conflict = consolidate(vec![changes(KEYED, wrong)], key_len);
            assert_eq!(conflict, Err(Conflict::KeyNotUnique(KEYED)));
        }
    }
}
