//! A few integers side by side.

use dbsp::NumEntries;
use dbsp::algebra::{AddAssignByRef, AddByRef, HasZero};
use dbsp::utils::{IsNone, SupportsRoaring};
use rkyv::{Archive, Deserialize, Fallible, Serialize};
use size_of::{Context, SizeOf};

use super::{Accumulator, Wide};

/// `N` positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub(crate) struct Cells<const N: usize>([Wide; N]);

impl<const N: usize> Accumulator for Cells<N> {
    #[inline]
    fn add(&mut self, position: usize, value: i128) {
        self.0[position].add(value);
    }

    #[inline]
    fn get(&self, position: usize) -> i128 {
        self.0[position].get()
    }

    fn for_each(&self, start: usize, end: usize, mut visit: impl FnMut(usize, i128)) {
        for (position, value) in self.0.iter().enumerate().take(end).skip(start) {
            if *value != Wide::default() {
                visit(position, value.get());
            }
        }
    }
}

impl<const N: usize> Default for Cells<N> {
    fn default() -> Self {
        Self([Wide::default(); N])
    }
}

impl<const N: usize> HasZero for Cells<N> {
    #[inline]
    fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    #[inline]
    fn zero() -> Self {
        Self::default()
    }
}

impl<const N: usize> AddAssignByRef for Cells<N> {
    #[inline]
    fn add_assign_by_ref(&mut self, other: &Self) {
        for (value, other) in self.0.iter_mut().zip(&other.0) {
            value.add(other.get());
        }
    }
}

impl<const N: usize> AddByRef for Cells<N> {
    #[inline]
    fn add_by_ref(&self, other: &Self) -> Self {
        let mut sum = *self;
        sum.add_assign_by_ref(other);
        sum
    }
}

impl<const N: usize> SizeOf for Cells<N> {
    fn size_of_children(&self, _: &mut Context) {}
}

impl<const N: usize> IsNone for Cells<N> {
    type Inner = Self;

    fn is_none(&self) -> bool {
        false
    }

    fn unwrap_or_self(&self) -> &Self {
        self
    }

    fn from_inner(inner: Self) -> Self {
        inner
    }
}

impl<const N: usize> SupportsRoaring for Cells<N> {}

impl<const N: usize> NumEntries for Cells<N> {
    const CONST_NUM_ENTRIES: Option<usize> = Some(1);

    fn num_entries_shallow(&self) -> usize {
        1
    }

    fn num_entries_deep(&self) -> usize {
        1
    }
}

impl<const N: usize> Archive for Cells<N> {
    type Archived = Self;
    type Resolver = ();

    #[inline]
    unsafe fn resolve(&self, _: usize, (): (), out: *mut Self) {
        // SAFETY: the caller gives a place for the archived form, which is the value itself.
        unsafe { out.write(*self) };
    }
}

impl<S: Fallible + ?Sized, const N: usize> Serialize<S> for Cells<N> {
    #[inline]
    fn serialize(&self, _: &mut S) -> Result<(), S::Error> {
        Ok(())
    }
}

impl<D: Fallible + ?Sized, const N: usize> Deserialize<Self, D> for Cells<N> {
    #[inline]
    fn deserialize(&self, _: &mut D) -> Result<Self, D::Error> {
        Ok(*self)
    }
}

#[cfg(test)]
mod tests {
    use dbsp::storage::file::to_bytes;
    use dbsp::trace::unaligned_deserialize;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn cells_are_integers(
            left in any::<[i64; 2]>(), right in any::<[i64; 2]>(), huge in any::<i128>(),
        ) {
            let cells = |values: [i128; 2]| {
                let mut cells = Cells::<2>::zero();
                cells.add(0, values[0]);
                cells.add(1, values[1]);
                cells
            };
            let (a, b) = (cells(left.map(i128::from)), cells(right.map(i128::from)));
            let sum = a.add_by_ref(&b);
            for position in 0..2 {
                let expected = i128::from(left[position]) + i128::from(right[position]);
                prop_assert_eq!(sum.get(position), expected);
            }
            prop_assert!(sum.add_by_ref(&cells(left.map(|value| -i128::from(value))))
                .add_by_ref(&cells(right.map(|value| -i128::from(value))))
                .is_zero());
            let one = cells([huge, 1]);
            prop_assert_eq!(one.get(0), huge);
            prop_assert_eq!(unaligned_deserialize::<Cells<2>>(&to_bytes(&one).unwrap()[..]), one);
        }
    }
}
