//! Inner joins.
//!
//! Both sides are indexed by the join's key. A table whose primary key is the join's key is its own
//! index, and so is an aggregate that is joined on its groups: their integrals exist. Whatever else
//! is indexed has the key once, not in the rest again, and so has the join's output:
//! key, rest of the left, rest of the right.

use std::sync::Arc;

use arrow::datatypes::DataType;
use stillframe_protocol::{Fingerprint, JoinKey};

use super::builder::Builder;
use super::relation::{Relation, schema_of};
use super::source::{Books, KeyedStream, Placement, Source, SourceStream};
use super::streams::{KeyColumn, role_of_key};
use crate::EngineError;
use crate::row::{Codec, Row};

/// One side of a join, by the join's key.
pub(super) struct Side {
    pub(super) stream: KeyedStream,
    pub(super) books: Books,
    /// The registers that are the key.
    pub(super) key: Vec<usize>,
    /// The registers that are the rest, in order.
    pub(super) rest: Vec<usize>,
    /// Whether rows with a NULL in a strict part of their key are left out.
    pub(super) key_not_null: bool,
    /// Whether the stream is the relation's own, and has a key at most once.
    pub(super) is_unique: bool,
    /// The key as a part of a persistent id.
    pub(super) role: String,
}

impl Side {
    /// The types of the key and the rest.
    pub(super) fn types(&self, relation: &Relation) -> Vec<DataType> {
        let registers = self.key.iter().chain(&self.rest);
        registers.map(|register| relation.types[*register].clone()).collect()
    }

    /// By column of the relation, its place in the key or, from `first` on, in the rest.
    pub(super) fn fields<'a>(
        &'a self,
        relation: &'a Relation,
        first: usize,
    ) -> impl Iterator<Item = usize> + 'a {
        relation.columns.iter().map(move |register| {
            self.key.iter().position(|other| other == register).unwrap_or_else(|| {
                let place = self.rest.iter().position(|other| other == register);
                first + place.expect("every column is in the key or in the rest")
            })
        })
    }
}

impl Builder<'_> {
    /// Joins two relations. The residual isn't applied yet.
    pub(super) fn join(
        &mut self,
        fingerprint: Fingerprint,
        left: &Relation,
        right: &Relation,
        on: &[JoinKey],
    ) -> Result<Relation, EngineError> {
        let (left_side, right_side) = self.sides(left, right, on)?;
        self.notes.note("a change costs a seek in the other side and a row per match");

        let id = self.identity.of(fingerprint, "join")?;
        let stream = left_side.stream.join(&right_side.stream, |key, left, right| {
            Row::concatenate([key.as_bytes(), left.as_bytes(), right.as_bytes()])
        });
        let stream = stream.set_persistent_id(Some(&id));

        let key_len = left_side.key.len();
        let right_first = key_len + left_side.rest.len();
        let mut fields = left_side.types(left);
        fields.extend(right_side.types(right).into_iter().skip(key_len));
        let columns =
            left_side.fields(left, key_len).chain(right_side.fields(right, right_first)).collect();
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

    /// Both sides of a join by its key. A NULL in a strict part of it is on one side at most.
    pub(super) fn sides(
        &mut self,
        left: &Relation,
        right: &Relation,
        on: &[JoinKey],
    ) -> Result<(Side, Side), EngineError> {
        for key in on {
            let (a, b) = (left.column_type(key.left)?, right.column_type(key.right)?);
            if a != b {
                return Err(EngineError::InvalidPlan(format!("a join compares {a} with {b}")));
            }
        }
        let on = key_order(left, right, on)?;
        let key = |column: fn(&JoinKey) -> usize| -> Vec<KeyColumn> {
            let part = |key| KeyColumn { column: column(key), is_strict: !key.null_equal };
            on.iter().map(part).collect()
        };
        let left_side = self.side("left", left, &key(|key| key.left), false)?;
        // NULL meets nothing as soon as one side has none.
        let right_side =
            self.side("right", right, &key(|key| key.right), !left_side.key_not_null)?;
        Ok((left_side, right_side))
    }

    /// A side by its key. If `without_nulls`, rows with a NULL in a strict part are left out.
    fn side(
        &mut self,
        name: &str,
        relation: &Relation,
        key: &[KeyColumn],
        without_nulls: bool,
    ) -> Result<Side, EngineError> {
        let registers = key.iter().map(|part| relation.column(part.column));
        let registers = registers.collect::<Result<Vec<_>, _>>()?;
        let is_strict = key.iter().any(|part| part.is_strict);
        if let SourceStream::Keyed { stream, key_columns, key_not_null } = &relation.source.stream
            && is_own_index(relation, &registers)
            && (*key_not_null || !without_nulls || !is_strict)
        {
            self.notes.note(format!("the {name} side is its own index"));
            return Ok(Side {
                stream: stream.clone(),
                books: relation.source.books.clone(),
                key: registers,
                rest: (*key_columns..relation.types.len()).collect(),
                key_not_null: *key_not_null || !is_strict,
                is_unique: true,
                role: role_of_key(key),
            });
        }
        let mut rest: Vec<usize> = vec![];
        for register in &relation.columns {
            if !registers.contains(register) && !rest.contains(register) {
                rest.push(*register);
            }
        }
        let travel = if relation.is_placed_by(&registers) { "" } else { ", moved to its worker" };
        let columns = key.len();
        self.notes.note(format!("stores the {name} side by {columns} columns{travel}"));
        let (stream, books) = self.index(relation, key, &rest)?;
        Ok(Side {
            stream,
            books,
            key: registers,
            rest,
            key_not_null: true,
            is_unique: false,
            role: role_of_key(key),
        })
    }
}

/// Whether a relation's stream is indexed by these registers as it is.
fn is_own_index(relation: &Relation, key: &[usize]) -> bool {
    let SourceStream::Keyed { key_columns, .. } = &relation.source.stream else { return false };
    relation.steps.is_empty()
        && !relation.source.carries_errors
        && key.iter().copied().eq(0..*key_columns)
}

/// The pairs of a join's key in the order that saves most: that of a side's own index, else that
/// by which a side's rows are placed, else that of the left columns, so that joins on the same
/// columns share their indexes.
fn key_order(
    left: &Relation,
    right: &Relation,
    on: &[JoinKey],
) -> Result<Vec<JoinKey>, EngineError> {
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
    let left_of = |pair: &JoinKey| left.columns[pair.left];
    let right_of = |pair: &JoinKey| right.columns[pair.right];
    let candidates: [(Option<Vec<usize>>, &dyn Fn(&JoinKey) -> usize); 4] = [
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
