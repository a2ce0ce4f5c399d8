//! The one type of data in every circuit: a row as a byte string in arrow-row format.
//!
//! Two rows compare as their bytes do, and equal bytes are equal values in SQL. A row of up to
//! [`Row::INLINE`] bytes lives inside its 32 bytes; a longer one is on the heap and keeps its first
//! 20 bytes inline, so that comparisons hardly ever follow the pointer. (The layout is known as a
//! "German string", after Umbra's: Neumann and Freitag, CIDR 2020.)
//!
//! What the bytes mean is the business of [`Codec`] alone.

mod codec;
mod decode;
mod encode;
mod traits;

pub use codec::{Codec, FieldOffsets, RowBuffer};
pub(crate) use decode::{bytes, float32, float64, int16, int32, int64, int128, is_null, value};
pub(crate) use encode::{put_bytes, put_float32, put_float64, put_int64, put_int128, put_null};

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cmp::Ordering;
use std::fmt;
use std::ptr;

/// Where the pointer of a long row lies within [`Row::bytes`]: at a multiple of 8 in the struct.
const POINTER_OFFSET: usize = 20;

/// A row in arrow-row format, or a part of one.
///
/// Unused inline bytes are always zero, which equality and order rely on.
#[repr(C, align(8))]
pub struct Row {
    length: u32,
    bytes: [std::mem::MaybeUninit<u8>; Row::INLINE],
}

// SAFETY: a row owns its heap bytes exclusively and never changes them after it is built.
unsafe impl Send for Row {}
// SAFETY: as above; shared access only reads.
unsafe impl Sync for Row {}

impl Row {
    /// Rows of at most so many bytes need no heap.
    pub const INLINE: usize = 28;

    /// Copies a row from its bytes.
    #[inline]
    pub fn new(bytes: &[u8]) -> Self {
        Self::concatenate([bytes])
    }

    /// Makes one row of several parts.
    ///
    /// # Panics
    ///
    /// If the parts have 4 GiB or more together; [`Codec::encode`] refuses such rows.
    #[inline]
    pub fn concatenate<'a>(parts: impl IntoIterator<Item = &'a [u8], IntoIter: Clone>) -> Self {
        let parts = parts.into_iter();
        let length: usize = parts.clone().map(<[u8]>::len).sum();
        let mut row = Self::default();
        let heap = if length <= Self::INLINE {
            None
        } else {
            let layout = heap_layout(length);
            // SAFETY: the layout isn't empty.
            let heap = unsafe { alloc(layout) };
            if heap.is_null() {
                handle_alloc_error(layout);
            }
            Some(heap)
        };
        let target = heap.unwrap_or_else(|| row.bytes.as_mut_ptr().cast());
        let mut filled = 0;
        for part in parts {
            assert!(part.len() <= length - filled, "an iterator yields the same parts twice");
            // SAFETY: `target` has `length` bytes and no part reaches beyond them; what was just
            // allocated, or the row's own array, overlaps with no borrowed part.
            unsafe { ptr::copy_nonoverlapping(part.as_ptr(), target.add(filled), part.len()) };
            filled += part.len();
        }
        assert_eq!(filled, length, "an iterator yields the same parts twice");
        if let Some(heap) = heap {
            // SAFETY: `heap` has more than INLINE bytes, all written above; the pointer's place
            // lies within `bytes`.
            unsafe {
                let inline: *mut u8 = row.bytes.as_mut_ptr().cast();
                ptr::copy_nonoverlapping(heap, inline, POINTER_OFFSET);
                inline.add(POINTER_OFFSET).cast::<*mut u8>().write_unaligned(heap);
            }
        }
        // Last, so that a panic above drops a row without heap.
        row.length = u32::try_from(length).expect("a row is shorter than 4 GiB");
        row
    }

    /// The row's bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        let length = self.length as usize;
        let start: *const u8 = if length <= Self::INLINE { self.inline() } else { self.heap() };
        // SAFETY: inline bytes are always initialised; a longer row has `length` of them on the
        // heap, as long as `self` lives.
        unsafe { std::slice::from_raw_parts(start, length) }
    }

    /// How many bytes the row has.
    #[inline]
    pub fn len(&self) -> usize {
        self.length as usize
    }

    /// Whether the row has no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// How many bytes the row has outside of itself.
    fn heap_len(&self) -> usize {
        if self.len() <= Self::INLINE { 0 } else { self.len() }
    }

    #[inline]
    fn inline(&self) -> *const u8 {
        self.bytes.as_ptr().cast()
    }

    /// The heap bytes of a row that is too long to be inline.
    #[inline]
    fn heap(&self) -> *mut u8 {
        debug_assert!(self.len() > Self::INLINE);
        // SAFETY: `concatenate` has put the pointer of a long row there.
        unsafe { self.inline().add(POINTER_OFFSET).cast::<*mut u8>().read_unaligned() }
    }

    /// Eight inline bytes as a number that compares as they do.
    #[inline]
    fn word(&self, offset: usize) -> u64 {
        debug_assert!(offset + 8 <= Self::INLINE);
        // SAFETY: within `bytes`, which are initialised.
        u64::from_be(unsafe { self.inline().add(offset).cast::<u64>().read_unaligned() })
    }

    /// Four inline bytes as a number that compares as they do.
    #[inline]
    fn half_word(&self, offset: usize) -> u32 {
        debug_assert!(offset + 4 <= Self::INLINE);
        // SAFETY: within `bytes`, which are initialised.
        u32::from_be(unsafe { self.inline().add(offset).cast::<u32>().read_unaligned() })
    }
}

fn heap_layout(length: usize) -> Layout {
    Layout::array::<u8>(length).expect("a row is shorter than 4 GiB")
}

impl Default for Row {
    /// The row without bytes.
    #[inline]
    fn default() -> Self {
        Self { length: 0, bytes: [std::mem::MaybeUninit::new(0); Self::INLINE] }
    }
}

impl Clone for Row {
    #[inline]
    fn clone(&self) -> Self {
        if self.len() <= Self::INLINE {
            Self { length: self.length, bytes: self.bytes }
        } else {
            Self::new(self.as_bytes())
        }
    }
}

impl Drop for Row {
    #[inline]
    fn drop(&mut self) {
        if self.len() > Self::INLINE {
            // SAFETY: allocated by `concatenate` with this layout, and owned by this row alone.
            unsafe { dealloc(self.heap(), heap_layout(self.len())) }
        }
    }
}

impl PartialEq for Row {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        if self.length != other.length {
            return false;
        }
        if self.len() <= Self::INLINE {
            let difference = (self.word(0) ^ other.word(0))
                | (self.word(8) ^ other.word(8))
                | (self.word(16) ^ other.word(16))
                | u64::from(self.half_word(24) ^ other.half_word(24));
            return difference == 0;
        }
        self.word(0) == other.word(0) && self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Row {}

impl PartialOrd for Row {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Row {
    /// As the bytes compare. The first 20 bytes are always inline and padded with zeros, the
    /// smallest byte, so that a difference there decides.
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        let prefix = self
            .word(0)
            .cmp(&other.word(0))
            .then_with(|| self.word(8).cmp(&other.word(8)))
            .then_with(|| self.half_word(16).cmp(&other.half_word(16)));
        if prefix != Ordering::Equal {
            return prefix;
        }
        if self.len() <= POINTER_OFFSET && other.len() <= POINTER_OFFSET {
            return self.length.cmp(&other.length);
        }
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Few different bytes and lengths around the limits, so that rows share prefixes.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            proptest::collection::vec(0u8..3, 0..70),
            proptest::collection::vec(Just(0u8), 18..32),
            proptest::collection::vec(any::<u8>(), 0..100),
        ]
    }

    proptest! {
        #[test]
        fn a_row_behaves_as_its_bytes(left in bytes(), right in bytes()) {
            let (a, b) = (Row::new(&left), Row::new(&right));
            prop_assert_eq!(a.as_bytes(), &left[..]);
            prop_assert_eq!(a.cmp(&b), left.cmp(&right));
            prop_assert_eq!(a == b, left == right);
            prop_assert_eq!(a.clone(), Row::new(&left));
            let both = Row::concatenate([&left[..], &right[..]]);
            prop_assert_eq!(both.as_bytes(), &[&left[..], &right[..]].concat()[..]);
        }

        #[test]
        fn a_prefix_sorts_first(long in bytes(), cut in 0usize..70) {
            let cut = cut.min(long.len());
            prop_assert_eq!(Row::new(&long[..cut]).cmp(&Row::new(&long)), cut.cmp(&long.len()));
        }
    }

    #[test]
    fn a_row_is_32_bytes() {
        assert_eq!(size_of::<Row>(), 32);
        assert_eq!(align_of::<Row>(), 8);
    }
}
