//! Many integers, most of them zero.

use dbsp::NumEntries;
use dbsp::algebra::{AddAssignByRef, AddByRef, HasZero};
use dbsp::utils::{IsNone, SupportsRoaring};
use rkyv::ser::Serializer;
use rkyv::vec::{ArchivedVec, VecResolver};
use rkyv::{Archive, Deserialize, Fallible, Serialize};
use size_of::{Context, SizeOf};

use super::{Accumulator, Wide};

/// The positions that aren't zero, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Sparse(Vec<Entry>);

/// Its own archived form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(C)]
pub(crate) struct Entry {
    position: u64,
    value: Wide,
}

impl Accumulator for Sparse {
    fn add(&mut self, position: usize, value: i128) {
        if value == 0 {
            return;
        }
        let position = position as u64;
        match self.0.binary_search_by_key(&position, |entry| entry.position) {
            Ok(place) => {
                self.0[place].value.add(value);
                if self.0[place].value == Wide::default() {
                    self.0.remove(place);
                }
            }
            Err(place) => self.0.insert(place, Entry { position, value: Wide::new(value) }),
        }
    }

    fn get(&self, position: usize) -> i128 {
        let found = self.0.binary_search_by_key(&(position as u64), |entry| entry.position);
        found.map_or(0, |place| self.0[place].value.get())
    }

    fn for_each(&self, start: usize, end: usize, mut visit: impl FnMut(usize, i128)) {
        let first = self.0.partition_point(|entry| entry.position < start as u64);
        for entry in &self.0[first..] {
            if entry.position >= end as u64 {
                break;
            }
            visit(entry.position as usize, entry.value.get());
        }
    }
}

impl HasZero for Sparse {
    #[inline]
    fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    fn zero() -> Self {
        Self::default()
    }
}

impl AddAssignByRef for Sparse {
    fn add_assign_by_ref(&mut self, other: &Self) {
        if self.0.is_empty() {
            self.0.clone_from(&other.0);
            return;
        }
        let same_positions = self.0.len() == other.0.len()
            && self.0.iter().zip(&other.0).all(|(a, b)| a.position == b.position);
        if same_positions {
            for (entry, other) in self.0.iter_mut().zip(&other.0) {
                entry.value.add(other.value.get());
            }
            self.0.retain(|entry| entry.value != Wide::default());
        } else {
            for entry in &other.0 {
                self.add(entry.position as usize, entry.value.get());
            }
        }
    }
}

impl AddByRef for Sparse {
    fn add_by_ref(&self, other: &Self) -> Self {
        let mut sum = self.clone();
        sum.add_assign_by_ref(other);
        sum
    }
}

impl SizeOf for Sparse {
    fn size_of_children(&self, context: &mut Context) {
        context.add_vectorlike(self.0.len(), self.0.capacity(), size_of::<Entry>());
    }
}

impl IsNone for Sparse {
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

impl SupportsRoaring for Sparse {}

impl NumEntries for Sparse {
    const CONST_NUM_ENTRIES: Option<usize> = Some(1);

    fn num_entries_shallow(&self) -> usize {
        1
    }

    fn num_entries_deep(&self) -> usize {
        1
    }
}

impl Archive for Entry {
    type Archived = Self;
    type Resolver = ();

    #[inline]
    unsafe fn resolve(&self, _: usize, (): (), out: *mut Self) {
        // SAFETY: the caller gives a place for the archived form, which is the value itself.
        unsafe { out.write(*self) };
    }
}

impl<S: Fallible + ?Sized> Serialize<S> for Entry {
    #[inline]
    fn serialize(&self, _: &mut S) -> Result<(), S::Error> {
        Ok(())
    }
}

impl Archive for Sparse {
    type Archived = ArchivedSparse;
    type Resolver = VecResolver;

    unsafe fn resolve(&self, position: usize, resolver: VecResolver, out: *mut Self::Archived) {
        // SAFETY: the archived form is transparent over that of the vector, and the caller's
        // promises are those that this function asks for.
        unsafe { ArchivedVec::resolve_from_slice(&self.0, position, resolver, out.cast()) };
    }
}

/// The archived form of [`Sparse`].
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub(crate) struct ArchivedSparse(ArchivedVec<Entry>);

impl<S: Serializer + ?Sized> Serialize<S> for Sparse {
    fn serialize(&self, serializer: &mut S) -> Result<VecResolver, S::Error> {
        // SAFETY: an entry is its own archived form.
        unsafe { ArchivedVec::<Entry>::serialize_copy_from_slice(&self.0, serializer) }
    }
}

impl<D: Fallible + ?Sized> Deserialize<Sparse, D> for ArchivedSparse {
    fn deserialize(&self, _: &mut D) -> Result<Sparse, D::Error> {
        Ok(Sparse(self.0.as_slice().to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use dbsp::DBWeight;
    use dbsp::storage::file::to_bytes;
    use dbsp::trace::unaligned_deserialize;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn is_weight<T: DBWeight>() {}

    #[test]
    fn it_is_a_weight() {
        is_weight::<Sparse>();
    }

    proptest! {
        #[test]
        fn it_behaves_as_a_vector(
            left in vec((0usize..6, -3i128..4), 0..8), right in vec((0usize..6, -3i128..4), 0..8),
        ) {
            let build = |values: &[(usize, i128)]| {
                let mut sparse = Sparse::zero();
                values.iter().for_each(|(position, value)| sparse.add(*position, *value));
                sparse
            };
            let (a, b) = (build(&left), build(&right));
            let sum = a.add_by_ref(&b);
            let mut model = [0i128; 6];
            for (position, value) in left.iter().chain(&right) {
                model[*position] += value;
            }
            for (position, value) in model.iter().enumerate() {
                prop_assert_eq!(sum.get(position), *value);
            }
            prop_assert_eq!(sum.is_zero(), model == [0; 6]);
            let mut seen = vec![];
            sum.for_each(2, 5, |position, value| seen.push((position, value)));
            let expected: Vec<_> =
                (2..5).map(|at| (at, model[at])).filter(|(_, value)| *value != 0).collect();
            prop_assert_eq!(seen, expected);
            prop_assert_eq!(unaligned_deserialize::<Sparse>(&to_bytes(&sum).unwrap()[..]), sum);
        }
    }
}
