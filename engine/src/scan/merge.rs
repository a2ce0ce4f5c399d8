//! Goes through the batches of a snapshot as if they were one.
//!
//! A snapshot is a handful of immutable sorted batches; the weights of a row are added up over all
//! of them. dbsp's own cursor over several batches compares through a vtable at every step; this
//! merge compares rows directly, and runs ahead within one batch as long as no other batch has a
//! smaller key, which is nearly always.

use std::ops::ControlFlow;

use dbsp::dynamic::{DataTrait, DowncastTrait, DynData, DynUnit, Erase};
use dbsp::trace::{BatchReader as _, Cursor};
use dbsp::typed_batch::{BatchReader as _, SpineSnapshot};
use dbsp::{DynZWeight, OrdIndexedZSet, OrdZSet, ZWeight};
use thiserror::Error;

use crate::row::Row;

/// An entry: key, rest of the row, and how often the row is there.
pub(super) type Visit<'a> = dyn FnMut(&Row, &[u8], ZWeight) -> ControlFlow<()> + 'a;

/// Stored rows that can't be: our bug, or a table that was fed what it should not have been.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum BadWeight {
    #[error("a row is there {0} times")]
    Negative(ZWeight),
    #[error("a primary key has more or less than one row")]
    NotUnique,
}

/// All batches of a snapshot.
pub(super) struct Merge<'a, V: DataTrait + ?Sized> {
    sources: Vec<Source<'a, V>>,
    /// The values of the key at hand, if several batches have it.
    values: Vec<(Row, ZWeight)>,
}

type BatchCursor<'a, V> = Box<dyn Cursor<DynData, V, (), DynZWeight> + 'a>;

/// One batch, at one of its keys.
struct Source<'a, V: DataTrait + ?Sized> {
    cursor: BatchCursor<'a, V>,
    /// What the cursor points at; right until the cursor moves.
    key: *const Row,
}

impl<V: DataTrait + ?Sized> Source<'_, V> {
    /// Looks at the key that the cursor has come to; false at the end of the batch.
    #[inline]
    fn look(&mut self) -> bool {
        let valid = self.cursor.key_valid();
        if valid {
            self.key = self.cursor.key().downcast_checked::<Row>();
        }
        valid
    }

    #[inline]
    fn step(&mut self) -> bool {
        self.cursor.step_key();
        self.look()
    }

    #[inline]
    fn key(&self) -> &Row {
        // SAFETY: `look` has set it after the cursor moved last, and sources at their end are
        // dropped. A batch in memory is borrowed for longer than this lives; the cursor of a
        // file has the key in a box of its own.
        unsafe { &*self.key }
    }
}

/// What one key amounts to, in batches of one kind.
pub(super) trait Entries: DataTrait {
    /// Passes on the entry of a key that only one batch has.
    fn single(
        cursor: &mut dyn Cursor<DynData, Self, (), DynZWeight>,
        key: &Row,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, BadWeight>;

    /// Adds the values of a key to those that other batches have for it.
    fn collect(
        cursor: &mut dyn Cursor<DynData, Self, (), DynZWeight>,
        values: &mut Vec<(Row, ZWeight)>,
    );

    /// Passes on the entry of a key with these values.
    fn total(
        key: &Row,
        values: &[(Row, ZWeight)],
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, BadWeight>;
}

/// Whole rows; each may be there several times.
impl Entries for DynUnit {
    #[inline]
    fn single(
        cursor: &mut dyn Cursor<DynData, Self, (), DynZWeight>,
        key: &Row,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, BadWeight> {
        match **cursor.weight() {
            weight if weight > 0 => Ok(visit(key, &[], weight)),
            weight => Err(BadWeight::Negative(weight)),
        }
    }

    fn collect(
        cursor: &mut dyn Cursor<DynData, Self, (), DynZWeight>,
        values: &mut Vec<(Row, ZWeight)>,
    ) {
        let weight = **cursor.weight();
        match values.first_mut() {
            Some((_, total)) => *total += weight,
            None => values.push((Row::default(), weight)),
        }
    }

    fn total(
        key: &Row,
        values: &[(Row, ZWeight)],
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, BadWeight> {
        match values.iter().map(|(_, weight)| weight).sum() {
            0 => Ok(ControlFlow::Continue(())),
            weight if weight > 0 => Ok(visit(key, &[], weight)),
            weight => Err(BadWeight::Negative(weight)),
        }
    }
}

/// Rows with a primary key; each key has one row, once.
impl Entries for DynData {
    #[inline]
    fn single(
        cursor: &mut dyn Cursor<DynData, Self, (), DynZWeight>,
        key: &Row,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, BadWeight> {
        if !cursor.val_valid() || **cursor.weight() != 1 {
            return Err(BadWeight::NotUnique);
        }
        let flow = visit(key, cursor.val().downcast_checked::<Row>().as_bytes(), 1);
        cursor.step_val();
        if cursor.val_valid() { Err(BadWeight::NotUnique) } else { Ok(flow) }
    }

    fn collect(
        cursor: &mut dyn Cursor<DynData, Self, (), DynZWeight>,
        values: &mut Vec<(Row, ZWeight)>,
    ) {
        while cursor.val_valid() {
            let weight = **cursor.weight();
            let value = cursor.val().downcast_checked::<Row>();
            match values.iter_mut().find(|(known, _)| known == value) {
                Some((_, total)) => *total += weight,
                None => values.push((value.clone(), weight)),
            }
            cursor.step_val();
        }
    }

    fn total(
        key: &Row,
        values: &[(Row, ZWeight)],
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, BadWeight> {
        let mut there = values.iter().filter(|(_, weight)| *weight != 0);
        match (there.next(), there.next()) {
            (None, _) => Ok(ControlFlow::Continue(())),
            (Some((value, 1)), None) => Ok(visit(key, value.as_bytes(), 1)),
            _ => Err(BadWeight::NotUnique),
        }
    }
}

impl<'a> Merge<'a, DynUnit> {
    /// Goes through whole rows.
    pub(super) fn of_set(rows: &'a SpineSnapshot<OrdZSet<Row>>) -> Self {
        Self::new(
            rows.inner()
                .batches()
                .iter()
                .map(|batch| -> BatchCursor<'a, _> { Box::new(batch.cursor()) }),
        )
    }
}

impl<'a> Merge<'a, DynData> {
    /// Goes through rows by key.
    pub(super) fn of_keyed(rows: &'a SpineSnapshot<OrdIndexedZSet<Row, Row>>) -> Self {
        Self::new(
            rows.inner()
                .batches()
                .iter()
                .map(|batch| -> BatchCursor<'a, _> { Box::new(batch.cursor()) }),
        )
    }
}

impl<'a, V: Entries + ?Sized> Merge<'a, V> {
    fn new(cursors: impl Iterator<Item = BatchCursor<'a, V>>) -> Self {
        let mut sources: Vec<_> =
            cursors.map(|cursor| Source { cursor, key: std::ptr::null() }).collect();
        sources.retain_mut(Source::look);
        Self { sources, values: Vec::new() }
    }

    /// Goes on at the first key that isn't smaller than this one. Never goes back.
    pub(super) fn seek(&mut self, key: &Row) {
        self.sources.retain_mut(|source| {
            if source.key() >= key {
                return true;
            }
            source.cursor.seek_key(key.erase());
            source.look()
        });
    }

    /// Visits entries in the order of their keys, as long as the keys are wanted and until told to
    /// stop; false if told so.
    ///
    /// The entry at which it is told to stop is done with; a key that isn't wanted is next.
    pub(super) fn run(
        &mut self,
        wanted: impl Fn(&Row) -> bool,
        visit: &mut Visit<'_>,
    ) -> Result<bool, BadWeight> {
        while !self.sources.is_empty() {
            let (first, second) = self.smallest_two();
            if !wanted(self.sources[first].key()) {
                return Ok(true);
            }
            let flow = match second {
                Some((_, true)) => self.shared_key(first, visit)?,
                second => {
                    let other = second.map(|(other, _)| other);
                    self.run_ahead(first, other, &wanted, visit)?
                }
            };
            if flow.is_break() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The source with the smallest key, and the one with the next key and whether it is the same.
    #[inline]
    fn smallest_two(&self) -> (usize, Option<(usize, bool)>) {
        let mut first = 0;
        let mut second: Option<usize> = None;
        for (place, source) in self.sources.iter().enumerate().skip(1) {
            if source.key() < self.sources[first].key() {
                second = Some(first);
                first = place;
            } else if second.is_none_or(|second| source.key() < self.sources[second].key()) {
                second = Some(place);
            }
        }
        let same = |second: usize| self.sources[second].key() == self.sources[first].key();
        (first, second.map(|second| (second, same(second))))
    }

    /// Visits keys that only one source has, up to the next key of the others or one that isn't
    /// wanted. The first is.
    fn run_ahead(
        &mut self,
        first: usize,
        other: Option<usize>,
        wanted: &impl Fn(&Row) -> bool,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, BadWeight> {
        let bound: Option<*const Row> = other.map(|other| self.sources[other].key);
        let source = &mut self.sources[first];
        loop {
            // SAFETY: the key is what the cursor points at; to read weights and values doesn't
            // move it away from the key.
            let key = unsafe { &*source.key };
            let flow = V::single(&mut *source.cursor, key, visit)?;
            if !source.step() {
                self.sources.swap_remove(first);
                return Ok(flow);
            }
            // SAFETY: the other source, and so its key, stays where it is.
            let reached = bound.is_some_and(|bound| source.key() >= unsafe { &*bound });
            if flow.is_break() || reached || !wanted(source.key()) {
                return Ok(flow);
            }
        }
    }

    /// Visits a key that several sources have.
    fn shared_key(
        &mut self,
        first: usize,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, BadWeight> {
        let key = self.sources[first].key().clone();
        self.values.clear();
        let values = &mut self.values;
        self.sources.retain_mut(|source| {
            if *source.key() != key {
                return true;
            }
            V::collect(&mut *source.cursor, values);
            source.step()
        });
        V::total(&key, &self.values, visit)
    }
}
