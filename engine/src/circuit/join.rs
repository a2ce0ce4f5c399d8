//! Inner joins.
//!
//! Both sides are indexed by the join's key. A table whose primary key is the join's key is its own
//! index, and so is an aggregate that is joined on its groups: their integrals exist. Whatever else
//! is indexed has the key once, not in the rest again, and so has the join's output:
//! key, rest of the left, rest of the right.

use std::sync::Arc;

use stillframe_protocol::Fingerprint;

use super::builder::Builder;
use super::relation::{Relation, schema_of};
use super::source::{Books, KeyedStream, Placement, Source, SourceStream};
use crate::EngineError;
use crate::row::{Codec, Row};

/// One side of a join, by the join's key.
struct Side {
    stream: KeyedStream,
    books: Books,
    /// The registers that are the rest, in order.
    rest: Vec<usize>,
    /// Whether rows with a NULL in their key are left out.
    key_not_null: bool,
}

impl Builder<'_> {
    /// Joins two relations on pairs of columns. The residual isn't applied yet.
    pub(super) fn join(
        &mut self,
        fingerprint: Fingerprint,
        left: &Relation,
        right: &Relation,
        on: &[(usize, usize)],
    ) -> Result<Relation, EngineError> {
        for (a, b) in on {
            let (a, b) = (left.column_type(*a)?, right.column_type(*b)?);
            if a != b {
                return Err(EngineError::InvalidPlan(format!("a join compares {a} with {b}")));
            }
        }
        let on = key_order(left, right, on)?;
        let left_key: Vec<usize> = on.iter().map(|pair| pair.0).collect();
        let right_key: Vec<usize> = on.iter().map(|pair| pair.1).collect();
        let left_side = self.side("left", left, &left_key, false)?;
        // NULL meets nothing as soon as one side has none.
        let right_side = self.side("right", right, &right_key, !left_side.key_not_null)?;
        self.notes.note("a change costs a seek in the other side and a row per match");

        let id = self.identity.of(fingerprint, "join")?;
        let stream = left_side.stream.join(&right_side.stream, |key, left, right| {
            Row::concatenate([key.as_bytes(), left.as_bytes(), right.as_bytes()])
        });
        let stream = stream.set_persistent_id(Some(&id));

        let types = |relation: &Relation, registers: &[usize]| -> Vec<_> {
            registers.iter().map(|register| relation.types[*register].clone()).collect()
        };
        let left_registers = registers(left, &left_key)?;
        let right_registers = registers(right, &right_key)?;
        let key_len = on.len();
        let mut fields = types(left, &left_registers);
        fields.extend(types(left, &left_side.rest));
        fields.extend(types(right, &right_side.rest));
        let field_of = |register: usize, key: &[usize], rest: &[usize], first: usize| {
            key.iter().position(|other| *other == register).unwrap_or_else(|| {
                let place = rest.iter().position(|other| *other == register);
                first + place.expect("every column is in the key or in the rest")
            })
        };
        let left_fields = left
            .columns
            .iter()
            .map(|register| field_of(*register, &left_registers, &left_side.rest, key_len));
        let right_first = key_len + left_side.rest.len();
        let right_fields = right
            .columns
            .iter()
            .map(|register| field_of(*register, &right_registers, &right_side.rest, right_first));
        let columns = left_fields.chain(right_fields).collect();
        let mut books = left_side.books.clone();
        books.extend(right_side.books.clone());
        let source = Source {
            stream: SourceStream::Set(stream),
            codec: Arc::new(Codec::new(Arc::new(schema_of(&fields)))?),
            placement: Placement::By((0..key_len).collect()),
            carries_errors: false,
            is_spread: false,
            books,
        };
        Ok(Relation::stored(fingerprint, source, columns))
    }

    /// A side by its key. If `without_nulls`, rows with a NULL in their key are left out.
    fn side(
        &mut self,
        name: &str,
        relation: &Relation,
        key: &[usize],
        without_nulls: bool,
    ) -> Result<Side, EngineError> {
        let key_registers = registers(relation, key)?;
        if let SourceStream::Keyed { stream, key_columns, key_not_null } = &relation.source.stream
            && is_own_index(relation, &key_registers)
            && (*key_not_null || !without_nulls)
        {
            self.notes.note(format!("the {name} side is its own index"));
            return Ok(Side {
                stream: stream.clone(),
                books: relation.source.books.clone(),
                rest: (*key_columns..relation.types.len()).collect(),
                key_not_null: *key_not_null,
            });
        }
        let mut rest: Vec<usize> = vec![];
        for register in &relation.columns {
            if !key_registers.contains(register) && !rest.contains(register) {
                rest.push(*register);
            }
        }
        let travel =
            if relation.is_placed_by(&key_registers) { "" } else { ", moved to its worker" };
        let columns = key.len();
        self.notes.note(format!("stores the {name} side by {columns} columns{travel}"));
        let (stream, books) = self.index(relation, &key_registers, &rest, key)?;
        Ok(Side { stream, books, rest, key_not_null: true })
    }
}

/// Whether a relation's stream is indexed by these registers as it is.
fn is_own_index(relation: &Relation, key: &[usize]) -> bool {
    let SourceStream::Keyed { key_columns, .. } = &relation.source.stream else { return false };
    relation.steps.is_empty()
        && !relation.source.carries_errors
        && key.iter().copied().eq(0..*key_columns)
}

fn registers(relation: &Relation, columns: &[usize]) -> Result<Vec<usize>, EngineError> {
    columns.iter().map(|column| relation.column(*column)).collect()
}

/// The pairs of a join's key in the order that saves most: that of a side's own index, else that
/// by which a side's rows are placed, else that of the left columns, so that joins on the same
/// columns share their indexes.
fn key_order(
    left: &Relation,
    right: &Relation,
    on: &[(usize, usize)],
) -> Result<Vec<(usize, usize)>, EngineError> {
    let mut sorted = on.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let keyed = |relation: &Relation| match &relation.source.stream {
        SourceStream::Keyed { key_columns, .. } if relation.steps.is_empty() => {
            Some((0..*key_columns).collect())
        }
        _ => None,
    };
    let placed = |relation: &Relation| match &relation.source.placement {
        Placement::By(fields) => Some(fields.clone()),
        Placement::One | Placement::Derived => None,
    };
    let left_of = |pair: &(usize, usize)| left.columns[pair.0];
    let right_of = |pair: &(usize, usize)| right.columns[pair.1];
    let candidates: [(Option<Vec<usize>>, &dyn Fn(&(usize, usize)) -> usize); 4] = [
        (keyed(left), &left_of),
        (keyed(right), &right_of),
        (placed(left), &left_of),
        (placed(right), &right_of),
    ];
    for (wanted, register) in candidates {
        let Some(wanted) = wanted else { continue };
        if wanted.len() != sorted.len() {
            continue;
        }
        let pair = |wanted: &usize| sorted.iter().find(|pair| register(pair) == *wanted).copied();
        if let Some(ordered) = wanted.iter().map(pair).collect::<Option<Vec<_>>>()
            && !ordered.is_empty()
        {
            return Ok(ordered);
        }
    }
    Ok(sorted)
}
