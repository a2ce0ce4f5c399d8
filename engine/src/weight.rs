//! Accumulators of linear aggregates, as weights.
//!
//! dbsp's linear aggregation gives each group a weight and adds up the weights of a group's rows. A
//! weight here is a vector of exact integers; positions of the vector are what an aggregate makes
//! them to be (counts, sums, parts of a float's sum). Since all are exact, what a row adds its
//! deletion takes away, in any order: an empty group always weighs nothing.
//!
//! [`Cells`] have a fixed number of positions and no heap. [`Sparse`] has any number of which few
//! are used at a time.

mod cells;
mod float;
mod sparse;

use dbsp::DBWeight;

pub(crate) use cells::Cells;
pub(crate) use float::{FLOAT_POSITIONS, FloatSum, add_float};
pub(crate) use sparse::Sparse;

/// A vector of integers.
pub(crate) trait Accumulator: DBWeight {
    /// Adds to a position.
    fn add(&mut self, position: usize, value: i128);

    /// The value at a position.
    fn get(&self, position: usize) -> i128;

    /// Calls `visit` with the positions from `start` on that are less than `end` and not zero.
    fn for_each(&self, start: usize, end: usize, visit: impl FnMut(usize, i128));
}

/// An integer of 128 bits that is aligned as one of 64, and is its own archived form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(C)]
pub(crate) struct Wide {
    high: i64,
    low: u64,
}

impl Wide {
    #[inline]
    pub(crate) fn new(value: i128) -> Self {
        Self { high: (value >> 64) as i64, low: value as u64 }
    }

    #[inline]
    pub(crate) fn get(self) -> i128 {
        i128::from(self.high) << 64 | i128::from(self.low)
    }

    /// Sums of more than 2^127 don't fit; the layout of an aggregate sees to it that none come up.
    #[inline]
    pub(crate) fn add(&mut self, value: i128) {
        *self = Self::new(self.get().wrapping_add(value));
    }
}
