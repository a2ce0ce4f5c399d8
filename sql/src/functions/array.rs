//! Arrays: constructors, elements, and what is asked of them. They have one dimension here and begin
//! at 1. Functions of their lengths are in `list`.

mod access;
mod build;
mod ordered;
mod quantified;
mod search;
mod text;

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, new_empty_array};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::interleave;
use arrow::datatypes::{DataType, Field};
use datafusion::common::Result;

use crate::functions::resolve::Purpose;
use crate::functions::typed::{Settled, Typed, common_kind};
use crate::{Error, Type};

pub(super) use access::{SUBSCRIPT, VECTOR_SUBSCRIPT};
pub(super) use build::{ARRAY, CONCATENATED};
pub(super) use search::{CONTAINED, CONTAINS, ORDERED, OVERLAPS};

/// All of them.
pub(super) fn definitions() -> impl Iterator<Item = &'static Typed> {
    [&SUBSCRIPT, &VECTOR_SUBSCRIPT, &ARRAY, &CONCATENATED, &CONTAINED, &CONTAINS, &OVERLAPS]
        .into_iter()
        .chain(&ORDERED)
        .chain(access::DEFINITIONS)
        .chain(build::DEFINITIONS)
        .chain(ordered::DEFINITIONS)
        .chain(search::DEFINITIONS)
        .chain(text::DEFINITIONS)
        .chain(quantified::DEFINITIONS)
}

fn array_of(element: Type) -> Type {
    Type::Array(Box::new(element))
}

/// The element of an array's type and that of something else, brought together; with the array first.
fn with_element(array: &Type, other: &Type) -> Option<Type> {
    match array {
        Type::Array(element) => common_kind([element.as_ref(), other], Purpose::Column),
        Type::Unknown => common_kind([other], Purpose::Column),
        _ => None,
    }
}

/// An array and an element, which comes out as `returns` says.
fn array_and_element(kinds: &[Type], returns: impl Fn(&Type) -> Type) -> Option<Settled> {
    let [array, element] = kinds else { return None };
    let element = with_element(array, element)?;
    let returns = returns(&element);
    Some(Settled::new([array_of(element.clone()), element], returns))
}

/// The lists of an array.
fn lists(array: &ArrayRef) -> Result<&ListArray> {
    array.as_list_opt::<i32>().ok_or_else(|| Error::internal("an array that is none").into())
}

/// The places of a list's elements among the values.
fn places(lists: &ListArray, row: usize) -> Range<usize> {
    let offsets = lists.value_offsets();
    if lists.is_null(row) { 0..0 } else { offsets[row] as usize..offsets[row + 1] as usize }
}

/// Makes lists of values that lie elsewhere.
struct Gatherer<'a> {
    sources: Vec<&'a dyn Array>,
    element: DataType,
    picks: Vec<(usize, usize)>,
    lengths: Vec<usize>,
    valid: Vec<bool>,
    started: usize,
}

impl<'a> Gatherer<'a> {
    fn new(element: &DataType, sources: Vec<&'a dyn Array>) -> Self {
        Self {
            sources,
            element: element.clone(),
            picks: vec![],
            lengths: vec![],
            valid: vec![],
            started: 0,
        }
    }

    /// Adds an element to the list that is being made.
    fn pick(&mut self, source: usize, place: usize) {
        self.picks.push((source, place));
    }

    /// The list is complete.
    fn end(&mut self) {
        self.lengths.push(self.picks.len() - self.started);
        self.valid.push(true);
        self.started = self.picks.len();
    }

    /// There is no list in this row.
    fn end_null(&mut self) {
        self.picks.truncate(self.started);
        self.lengths.push(0);
        self.valid.push(false);
    }

    fn finish(self) -> Result<ArrayRef> {
        let values = if self.picks.is_empty() {
            new_empty_array(&self.element)
        } else {
            interleave(&self.sources, &self.picks)?
        };
        let field = Arc::new(Field::new_list_field(self.element, true));
        let offsets = OffsetBuffer::from_lengths(self.lengths);
        let nulls = NullBuffer::from(self.valid);
        Ok(Arc::new(ListArray::try_new(field, offsets, values, Some(nulls))?))
    }
}
