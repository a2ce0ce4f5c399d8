//! The rows that a recursion reads, as they are kept and written into checkpoints.

use std::collections::BTreeMap;

use dbsp::ZWeight;
use dbsp::storage::buffer_cache::FBuf;

use crate::row::Row;

/// A change of the rows of each input: the base's, then those of what is given.
pub(super) type Change = Vec<Vec<(Row, ZWeight)>>;

/// The rows of each input, with how often each is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Contents {
    inputs: Vec<BTreeMap<Row, ZWeight>>,
}

impl Contents {
    /// Takes up a change.
    pub(super) fn change(&mut self, change: &Change) {
        self.inputs.resize_with(change.len().max(self.inputs.len()), BTreeMap::new);
        for (rows, change) in self.inputs.iter_mut().zip(change) {
            for (row, weight) in change {
                let count = rows.entry(row.clone()).or_default();
                *count += weight;
                if *count == 0 {
                    rows.remove(row);
                }
            }
        }
    }

    /// All of them as a change of nothing.
    pub(super) fn whole(&self) -> Change {
        let all = |rows: &BTreeMap<Row, ZWeight>| {
            rows.iter().map(|(row, weight)| (row.clone(), *weight)).collect()
        };
        self.inputs.iter().map(all).collect()
    }

    /// How many inputs there are, then of each how many rows, and of each row how often it is there,
    /// its length and its bytes; numbers of eight bytes.
    pub(super) fn write(&self, to: &mut FBuf) {
        let number = |to: &mut FBuf, number: i64| to.extend_from_slice(&number.to_be_bytes());
        number(to, self.inputs.len() as i64);
        for rows in &self.inputs {
            number(to, rows.len() as i64);
            for (row, weight) in rows {
                number(to, *weight);
                number(to, row.len() as i64);
                to.extend_from_slice(row.as_bytes());
            }
        }
    }

    /// What [`Self::write`] has written; none of anything else.
    pub(super) fn read(mut from: &[u8]) -> Option<Self> {
        fn number(from: &mut &[u8]) -> Option<i64> {
            let (number, rest) = from.split_first_chunk()?;
            *from = rest;
            Some(i64::from_be_bytes(*number))
        }
        let mut inputs = vec![];
        for _ in 0..number(&mut from)? {
            let mut rows = BTreeMap::new();
            for _ in 0..number(&mut from)? {
                let weight = number(&mut from)?;
                let length = usize::try_from(number(&mut from)?).ok()?;
                let (row, rest) = from.split_at_checked(length)?;
                rows.insert(Row::new(row), weight);
                from = rest;
            }
            inputs.push(rows);
        }
        Some(Self { inputs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let row = |text: &str| Row::new(text.as_bytes());
        let mut contents = Contents::default();
        let long = "a row that is longer than what a row has room for in itself";
        contents.change(&vec![vec![(row("a"), 1), (row(long), 3)], vec![], vec![(row(""), -1)]]);
        contents.change(&vec![vec![(row("a"), 1), (row(long), -3)], vec![(row("b"), 1)], vec![]]);
        let mut bytes = FBuf::new();
        contents.write(&mut bytes);
        assert_eq!(Contents::read(&bytes), Some(contents.clone()));
        assert_eq!(Contents::read(&bytes[..bytes.len() - 1]), None);
        let whole = vec![vec![(row("a"), 2)], vec![(row("b"), 1)], vec![(row(""), -1)]];
        assert_eq!(contents.whole(), whole);
    }
}
