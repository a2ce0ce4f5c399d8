//! Streams of a relation's rows in the forms that operators read.

use std::sync::Arc;

use dbsp::circuit::operator_traits::Data;
use dbsp::{Circuit, OrdIndexedZSet, OrdZSet, RootCircuit, Stream};
use stillframe_protocol::Fingerprint;

use super::builder::Builder;
use super::linear::{Changes, Emission, ErrorBook, Evaluation, KeyedRows, Linear, Rows};
use super::relation::{Relation, schema_of};
use super::source::{Books, KeyedStream, RowStream, SourceStream, placed, sharded};
use crate::EngineError;
use crate::row::{Codec, Row};

impl Builder<'_> {
    /// Adds a linear operator that evaluates a relation's steps. Returns its stream, with `id` as
    /// its persistent id, and the books of all operators up to it.
    pub(super) fn linear<O: Data>(
        &mut self,
        name: &'static str,
        relation: &Relation,
        emission: Box<dyn Emission<O>>,
        id: &str,
    ) -> Result<(Stream<RootCircuit, O>, Books), EngineError> {
        let evaluation = Arc::new(Evaluation::compile(relation, self.functions)?);
        let mut books = relation.source.books.clone();
        let carries_errors = relation.source.carries_errors;
        let book = (evaluation.can_fail() || carries_errors).then(|| {
            let (book, published) = ErrorBook::new();
            books.insert(id.to_owned(), published);
            book
        });
        let stream = match &relation.source.stream {
            SourceStream::Set(stream) => {
                let operator = Linear::<OrdZSet<Row>, O>::new(
                    name,
                    evaluation,
                    emission,
                    carries_errors,
                    book,
                );
                add(self.circuit, operator, stream)
            }
            SourceStream::Keyed { stream, .. } => {
                let operator = Linear::<OrdIndexedZSet<Row, Row>, O>::new(
                    name,
                    evaluation,
                    emission,
                    carries_errors,
                    book,
                );
                add(self.circuit, operator, stream)
            }
        };
        Ok((stream.set_persistent_id(Some(id)), books))
    }

    /// The stream of a role, built by the first who asks.
    pub(super) fn keyed(
        &mut self,
        of: Fingerprint,
        role: &str,
        build: impl FnOnce(&mut Self, &str) -> Result<(KeyedStream, Books), EngineError>,
    ) -> Result<(KeyedStream, Books), EngineError> {
        let key = format!("{of}-{role}");
        if let Some(known) = self.keyed.get(&key) {
            return Ok(known.clone());
        }
        let id = self.identity.of(of, role)?;
        let built = build(self, &id)?;
        self.keyed.insert(key, built.clone());
        Ok(built)
    }

    /// A relation's rows as a stream of their own, or the very stream that has them.
    pub(super) fn rows(&mut self, relation: &Relation) -> Result<(RowStream, Books), EngineError> {
        match &relation.source.stream {
            SourceStream::Set(stream) if relation.is_stored() => {
                Ok((stream.clone(), relation.source.books.clone()))
            }
            _ => {
                let key = relation.fingerprint.to_string();
                if let Some(known) = self.rows.get(&key) {
                    return Ok(known.clone());
                }
                let id = self.identity.of(relation.fingerprint, "rows")?;
                let emission = Box::new(Rows::new(relation, &relation.columns)?);
                let built = self.linear("Rows", relation, emission, &id)?;
                self.rows.insert(key, built.clone());
                Ok(built)
            }
        }
    }

    /// A relation's rows as the fields of a stream that nobody else reads.
    pub(super) fn private_rows(
        &mut self,
        relation: &Relation,
        role: &str,
    ) -> Result<(RowStream, Books), EngineError> {
        let id = self.identity.of(relation.fingerprint, role)?;
        match &relation.source.stream {
            SourceStream::Set(stream) if relation.is_stored() => {
                let copy = stream.apply_named("Copy", OrdZSet::clone);
                Ok((copy.set_persistent_id(Some(&id)), relation.source.books.clone()))
            }
            _ => {
                let emission = Box::new(Rows::new(relation, &relation.columns)?);
                self.linear("Rows", relation, emission, &id)
            }
        }
    }

    /// A relation's rows by a key, without those that have a NULL in it. `key` and `rest` are
    /// registers; `columns` are the key's columns, which name the stream.
    pub(super) fn index(
        &mut self,
        relation: &Relation,
        key: &[usize],
        rest: &[usize],
        columns: &[usize],
    ) -> Result<(KeyedStream, Books), EngineError> {
        self.keyed(relation.fingerprint, &format!("index{}", role_of(columns)), |builder, id| {
            let emission = Box::new(KeyedRows::new(relation, key, rest, true)?);
            let (stream, books) = builder.linear("Index", relation, emission, id)?;
            let is_placed = relation.is_placed_by(key);
            Ok((if is_placed { placed(&stream) } else { sharded(&stream) }, books))
        })
    }
}

fn add<I: Changes, O: Data>(
    circuit: &RootCircuit,
    operator: Linear<I, O>,
    stream: &Stream<RootCircuit, I>,
) -> Stream<RootCircuit, O> {
    circuit.add_unary_operator(operator, stream)
}

/// A codec for the columns of a relation.
pub(super) fn codec_of(relation: &Relation) -> Result<Codec, EngineError> {
    Codec::new(Arc::new(schema_of(&relation.column_types())))
}

/// Some columns as a part of a persistent id.
pub(super) fn role_of(columns: &[usize]) -> String {
    columns.iter().map(|column| format!("-{column}")).collect()
}
