//! What becomes of the rows that a linear operator has evaluated.

use std::mem::take;

use dbsp::utils::Tup2;
use dbsp::{OrdIndexedZSet, OrdZSet, ZWeight};

use super::{Chunk, Cutter};
use crate::EngineError;
use crate::circuit::relation::Relation;
use crate::row::{Row, is_null};

/// Collects a step's rows and makes a batch of them.
pub(crate) trait Emission<O> {
    /// Takes the rows of a chunk.
    fn push(&mut self, chunk: &Chunk<'_>);

    /// The batch of all rows since the last.
    fn finish(&mut self) -> O;
}

/// Whole rows.
pub(crate) struct Rows {
    cutter: Cutter,
    rows: Vec<Tup2<Row, ZWeight>>,
}

impl Rows {
    /// Rows of these registers.
    pub(crate) fn new(relation: &Relation, registers: &[usize]) -> Result<Self, EngineError> {
        let cutter = Cutter::new(&relation.source.codec, &relation.types, &[registers])?;
        Ok(Self { cutter, rows: vec![] })
    }
}

impl Emission<OrdZSet<Row>> for Rows {
    fn push(&mut self, chunk: &Chunk<'_>) {
        let weights = chunk.weights();
        let rows = &mut self.rows;
        rows.reserve(weights.len());
        self.cutter.for_each(chunk, |number, fields| {
            rows.push(Tup2(fields.row(0), weights[number]));
        });
    }

    fn finish(&mut self) -> OrdZSet<Row> {
        OrdZSet::from_keys((), take(&mut self.rows))
    }
}

/// Rows in two parts.
pub(crate) struct KeyedRows {
    cutter: Cutter,
    /// How many parts of the key are never NULL.
    not_null: usize,
    rows: Vec<Tup2<Tup2<Row, Row>, ZWeight>>,
}

impl KeyedRows {
    /// Rows with a key of some registers and a rest of others. Rows with a NULL in one of the
    /// registers `not_null` are left out.
    pub(crate) fn new(
        relation: &Relation,
        key: &[usize],
        rest: &[usize],
        not_null: &[usize],
    ) -> Result<Self, EngineError> {
        let fields: Vec<[usize; 1]> = not_null.iter().map(|register| [*register]).collect();
        let mut lists = vec![key, rest];
        lists.extend(fields.iter().map(|field| &field[..]));
        let cutter = Cutter::new(&relation.source.codec, &relation.types, &lists)?;
        Ok(Self { cutter, not_null: not_null.len(), rows: vec![] })
    }
}

impl Emission<OrdIndexedZSet<Row, Row>> for KeyedRows {
    fn push(&mut self, chunk: &Chunk<'_>) {
        let weights = chunk.weights();
        let rows = &mut self.rows;
        rows.reserve(weights.len());
        self.cutter.for_each(chunk, |number, fields| {
            if (2..2 + self.not_null).any(|field| is_null(fields.field(field))) {
                return;
            }
            rows.push(Tup2(Tup2(fields.row(0), fields.row(1)), weights[number]));
        });
    }

    fn finish(&mut self) -> OrdIndexedZSet<Row, Row> {
        OrdIndexedZSet::from_tuples((), take(&mut self.rows))
    }
}
