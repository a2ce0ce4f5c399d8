//! Where sequences stand. That is no part of any step: a number that was given is gone, whatever
//! becomes of the transaction that has asked for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use stillframe_protocol::Epoch;

use crate::{Error, Sequence, SqlState};

/// Where all sequences stand, by epoch and OID.
#[derive(Debug, Default)]
pub(crate) struct Sequences(Mutex<HashMap<(Epoch, u32), Standing>>);

/// Where a sequence stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    /// The last number, or the next one if none was given.
    pub(crate) last: i64,
    /// Whether the number was given.
    pub(crate) is_called: bool,
}

impl Sequences {
    /// Gives the next number.
    ///
    /// # Errors
    ///
    /// 2200H at the end of one that doesn't begin again.
    pub(crate) fn next(&self, epoch: Epoch, oid: u32, sequence: &Sequence) -> Result<i64, Error> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let standing = all.entry((epoch, oid)).or_insert(beginning(sequence));
        if standing.is_called {
            let next = standing.last.checked_add(sequence.increment);
            let next = next.filter(|next| (sequence.min..=sequence.max).contains(next));
            standing.last = match next {
                Some(next) => next,
                None => again(sequence)?,
            };
        }
        standing.is_called = true;
        Ok(standing.last)
    }

    /// Lets the next number be another.
    ///
    /// # Errors
    ///
    /// 22003 for one that it never gives.
    pub(crate) fn set(
        &self,
        epoch: Epoch,
        oid: u32,
        sequence: &Sequence,
        to: Standing,
    ) -> Result<(), Error> {
        let (min, max) = (sequence.min, sequence.max);
        if !(min..=max).contains(&to.last) {
            let message = format!(
                "setval: value {} is out of bounds for sequence \"{}\" ({min}..{max})",
                to.last, sequence.name
            );
            return Err(Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert((epoch, oid), to);
        Ok(())
    }

    /// Lets it begin again.
    pub(crate) fn restart(&self, epoch: Epoch, oid: u32) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&(epoch, oid));
    }

    /// Where it stands.
    pub(crate) fn standing(&self, epoch: Epoch, oid: u32, sequence: &Sequence) -> Standing {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&(epoch, oid)).copied().unwrap_or(beginning(sequence))
    }
}

fn beginning(sequence: &Sequence) -> Standing {
    Standing { last: sequence.start, is_called: false }
}

fn again(sequence: &Sequence) -> Result<i64, Error> {
    let (end, bound) = match sequence.increment > 0 {
        true => ("maximum", sequence.max),
        false => ("minimum", sequence.min),
    };
    if sequence.cycle {
        return Ok(if sequence.increment > 0 { sequence.min } else { sequence.max });
    }
    let message =
        format!("nextval: reached {end} value of sequence \"{}\" ({bound})", sequence.name);
    Err(Error::new(SqlState::SEQUENCE_GENERATOR_LIMIT_EXCEEDED, message))
}

/// What a session was given last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given(Arc<Mutex<Numbers>>);

#[derive(Debug, Default)]
struct Numbers {
    by_sequence: HashMap<u32, i64>,
    last: Option<u32>,
}

impl Given {
    /// Remembers a number.
    pub(crate) fn remember(&self, oid: u32, number: i64) {
        let mut numbers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        numbers.by_sequence.insert(oid, number);
        numbers.last = Some(oid);
    }

    /// Forgets all of them.
    pub(crate) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Numbers::default();
    }

    /// The last number of a sequence.
    pub(crate) fn of(&self, oid: u32) -> Option<i64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).by_sequence.get(&oid).copied()
    }

    /// The sequence that has given a number last, and the number.
    pub(crate) fn last(&self) -> Option<(u32, i64)> {
        let numbers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let oid = numbers.last?;
        Some((oid, *numbers.by_sequence.get(&oid)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Type;

    fn sequence(increment: i64, cycle: bool) -> Sequence {
        Sequence {
            schema: "public".to_owned(),
            name: "s".to_owned(),
            kind: Type::BigInt,
            start: if increment > 0 { 1 } else { 3 },
            increment,
            min: 1,
            max: 3,
            cache: 1,
            cycle,
            owner: None,
        }
    }

    fn numbers(sequence: &Sequence, count: usize) -> Vec<Option<i64>> {
        let all = Sequences::default();
        (0..count).map(|_| all.next(Epoch(1), 7, sequence).ok()).collect()
    }

    #[test]
    fn it_counts_to_its_end_and_begins_again_if_it_does() {
        assert_eq!(numbers(&sequence(1, false), 4), [Some(1), Some(2), Some(3), None]);
        assert_eq!(numbers(&sequence(2, true), 4), [Some(1), Some(3), Some(1), Some(3)]);
        assert_eq!(numbers(&sequence(-2, true), 4), [Some(3), Some(1), Some(3), Some(1)]);
        assert_eq!(numbers(&sequence(-1, false), 4), [Some(3), Some(2), Some(1), None]);
    }

    #[test]
    fn epochs_have_nothing_in_common() {
        let (all, sequence) = (Sequences::default(), sequence(1, false));
        assert_eq!(all.next(Epoch(1), 7, &sequence).unwrap(), 1);
        assert_eq!(all.next(Epoch(2), 7, &sequence).unwrap(), 1);
        all.set(Epoch(1), 7, &sequence, Standing { last: 3, is_called: false }).unwrap();
        assert_eq!(all.next(Epoch(1), 7, &sequence).unwrap(), 3);
        assert!(all.set(Epoch(1), 7, &sequence, Standing { last: 4, is_called: true }).is_err());
        all.restart(Epoch(1), 7);
        assert_eq!(all.next(Epoch(1), 7, &sequence).unwrap(), 1);
    }
}
