//! A sorted set that counts.

use std::collections::BTreeMap;

/// How often each value is in it.
#[derive(Clone, Debug)]
pub(super) struct Multiset<T> {
    counts: BTreeMap<T, usize>,
}

impl<T> Default for Multiset<T> {
    fn default() -> Self {
        Self { counts: BTreeMap::new() }
    }
}

impl<T: Ord + Copy> Multiset<T> {
    /// Puts one in.
    pub(super) fn insert(&mut self, value: T) {
        *self.counts.entry(value).or_default() += 1;
    }

    /// Takes one out. Returns whether it was the last of its kind.
    pub(super) fn remove(&mut self, value: T) -> bool {
        let Some(count) = self.counts.get_mut(&value) else { return false };
        *count -= 1;
        let last = *count == 0;
        if last {
            self.counts.remove(&value);
        }
        last
    }

    /// The least value.
    pub(super) fn first(&self) -> Option<T> {
        self.counts.first_key_value().map(|(value, _)| *value)
    }

    /// The distinct values, ascending.
    pub(super) fn distinct(&self) -> impl Iterator<Item = T> + '_ {
        self.counts.keys().copied()
    }

    /// Each value with how often it is in.
    pub(super) fn counts(&self) -> impl Iterator<Item = (T, usize)> + '_ {
        self.counts.iter().map(|(value, count)| (*value, *count))
    }
}
