//! `pg_sequence`, `pg_sequences`, and the rows of `pg_class` and `pg_depend` that sequences have.

use crate::query::QueryContext;
use crate::system::OWNER;
use crate::system::table::Cell;
use crate::{Catalog, Sequence};

/// `pg_sequence`.
pub(super) fn rows(catalog: &Catalog) -> Vec<Vec<Cell>> {
    let row = |(oid, sequence): (&u32, &Sequence)| {
        vec![
            (*oid).into(),
            sequence.kind.oid().into(),
            sequence.start.into(),
            sequence.increment.into(),
            sequence.max.into(),
            sequence.min.into(),
            sequence.cache.into(),
            sequence.cycle.into(),
        ]
    };
    catalog.sequences.iter().map(row).collect()
}

/// `pg_sequences`.
pub(super) fn shown(context: &QueryContext) -> Vec<Vec<Cell>> {
    let (frame, database) = (&context.frame, context.frame.database());
    let row = |(oid, sequence): (&u32, &Sequence)| {
        let standing = database.sequences.standing(frame.epoch(), *oid, sequence);
        vec![
            sequence.schema.as_str().into(),
            sequence.name.as_str().into(),
            OWNER.into(),
            sequence.kind.oid().into(),
            sequence.start.into(),
            sequence.min.into(),
            sequence.max.into(),
            sequence.increment.into(),
            sequence.cycle.into(),
            sequence.cache.into(),
            standing.is_called.then_some(standing.last).into(),
        ]
    };
    context.catalog.sequences.iter().map(row).collect()
}
