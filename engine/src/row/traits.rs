//! What dbsp asks of data: a stable hash, its size, and an archived form.

use std::hash::{Hash, Hasher};

use dbsp::NumEntries;
use dbsp::utils::{IsNone, SupportsRoaring};
use rkyv::ser::Serializer;
use rkyv::vec::{ArchivedVec, VecResolver};
use rkyv::{Archive, Deserialize, Fallible, Serialize};
use size_of::{Context, SizeOf};

use super::Row;

impl Hash for Row {
    /// Of the bytes alone: a row's worker and its checkpoints depend on it.
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.as_bytes());
    }
}

impl SizeOf for Row {
    fn size_of_children(&self, context: &mut Context) {
        if self.heap_len() > 0 {
            context.add(self.heap_len()).add_distinct_allocation();
        }
    }
}

impl IsNone for Row {
    type Inner = Self;

    #[inline]
    fn is_none(&self) -> bool {
        false
    }

    #[inline]
    fn unwrap_or_self(&self) -> &Self {
        self
    }

    #[inline]
    fn from_inner(inner: Self) -> Self {
        inner
    }
}

impl SupportsRoaring for Row {}

impl NumEntries for Row {
    const CONST_NUM_ENTRIES: Option<usize> = Some(1);

    #[inline]
    fn num_entries_shallow(&self) -> usize {
        1
    }

    #[inline]
    fn num_entries_deep(&self) -> usize {
        1
    }
}

// Archived as a vector of bytes that is copied in bulk; rkyv's own implementation for vectors would
// write byte by byte.

impl Archive for Row {
    type Archived = ArchivedVec<u8>;
    type Resolver = VecResolver;

    #[inline]
    unsafe fn resolve(&self, position: usize, resolver: VecResolver, out: *mut Self::Archived) {
        // SAFETY: the caller's promises are those that this function asks for.
        unsafe { ArchivedVec::resolve_from_slice(self.as_bytes(), position, resolver, out) };
    }
}

impl<S: Serializer + ?Sized> Serialize<S> for Row {
    #[inline]
    fn serialize(&self, serializer: &mut S) -> Result<VecResolver, S::Error> {
        // SAFETY: a byte is its own archived form.
        unsafe { ArchivedVec::<u8>::serialize_copy_from_slice(self.as_bytes(), serializer) }
    }
}

impl<D: Fallible + ?Sized> Deserialize<Row, D> for ArchivedVec<u8> {
    #[inline]
    fn deserialize(&self, _: &mut D) -> Result<Row, D::Error> {
        Ok(Row::new(self.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use dbsp::DBData;
    use dbsp::dynamic::{DynData, Erase};
    use dbsp::storage::file::to_bytes;
    use dbsp::trace::unaligned_deserialize;
    use proptest::prelude::*;

    use super::*;

    fn is_data<T: DBData>() {}

    #[test]
    fn a_row_is_data() {
        is_data::<Row>();
    }

    proptest! {
        #[test]
        fn a_row_survives_its_archive(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let row = Row::new(&bytes);
            let archived = to_bytes(&row).unwrap();
            prop_assert_eq!(unaligned_deserialize::<Row>(&archived[..]), row);
        }
    }

    /// The hash decides which worker owns a row: it must never change.
    #[test]
    fn the_hash_is_stable() {
        let hash = |bytes: &[u8]| Erase::<DynData>::erase(&Row::new(bytes)).default_hash();
        assert_eq!(hash(b""), 0x2d06_8005_38d3_94c2);
        assert_eq!(hash(b"stillframe"), 10_270_043_733_178_058_584);
    }
}
