//! WITH RECURSIVE.
//!
//! One worker has all rows that a recursion reads, and computes it by itself: an iteration is short,
//! there may be thousands of them in a step, and none of them asks another worker anything. The
//! recursive term is a circuit of its own ([`term`]), built of the same operators as every other
//! plan, so that it can have whatever a view can have. What comes out is spread over all workers
//! again.
//!
//! What a change costs depends on the term ([`Shape`]). Where each row that comes out of it is made
//! of one row of the last iteration, the rows that have gone are followed to what was derived of
//! them, then what is new ([`fixpoint`]): a change costs what depends on it. Anything else is computed
//! from the base again ([`iteration`]), as a query does.
//!
//! A recursion without an end is an error of the view ([`Limits`]), like that of a row: it is gone
//! when a change lets the recursion end.

mod apart;
mod fixpoint;
mod iteration;
mod limits;
mod operator;
mod shape;
mod stored;
mod term;
mod worker;

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use dbsp::Circuit;
use stillframe_protocol::{Fingerprint, Plan};

use super::builder::Builder;
use super::linear::{ErrorBook, KeyedRows};
use super::relation::{Relation, schema_of};
use super::source::{Books, KeyedStream, Placement, Source, SourceStream, placed, sharded};
use crate::row::Codec;
use crate::{EngineError, Functions};

use limits::Limits;
use operator::Recurse;
use shape::Shape;

/// What is computed.
pub(super) struct Recursion<'a> {
    /// Of the whole plan.
    pub(super) fingerprint: Fingerprint,
    /// The base, then what is given to the term.
    pub(super) inputs: Vec<Relation>,
    /// The recursive term.
    pub(super) term: &'a Arc<Plan>,
    /// UNION, not UNION ALL.
    pub(super) distinct: bool,
}

/// All that the computation of a recursion is made of, on whatever thread.
#[derive(Clone)]
struct Definition {
    /// Of the rows of an iteration, and of what is given.
    schemas: Vec<SchemaRef>,
    term: Arc<Plan>,
    distinct: bool,
    shape: Shape,
    functions: Functions,
}

impl Builder<'_> {
    /// Builds a recursion.
    pub(super) fn recursion(&mut self, recursion: &Recursion<'_>) -> Result<Relation, EngineError> {
        let Recursion { fingerprint, inputs, term, distinct } = recursion;
        let types = inputs[0].column_types();
        let schemas = inputs.iter().map(|input| Arc::new(schema_of(&input.column_types())));
        let definition = Definition {
            schemas: schemas.collect(),
            term: Arc::clone(term),
            distinct: *distinct,
            shape: Shape::of(term, *distinct),
            functions: self.functions.clone(),
        };
        self.notes.note("stores all rows that it reads and all that come out on one worker");
        self.notes.note(match definition.shape {
            Shape::RowByRow => "a change costs what is derived of it",
            _ => "a change computes all rows anew",
        });
        self.notes.graft(term::check(&definition)?);

        let mut books = Books::new();
        let mut streams: Vec<KeyedStream> = vec![];
        for input in inputs {
            let (stream, of_input) = self.gathered(input)?;
            streams.push(stream);
            books.extend(of_input);
        }
        let id = self.identity.of(*fingerprint, "recursion")?;
        let (book, published) = ErrorBook::new();
        books.insert(id.clone(), published);
        let operator = Recurse::new(definition, Limits::default(), book);
        let stream =
            self.circuit.add_nary_operator(operator, &streams).set_persistent_id(Some(&id));
        self.notes.note("rows travel to the worker of their hash");
        let stream = placed(&sharded(&stream));
        // Whatever is built later of these rows is filled from here, not by another recursion.
        let _ = stream.accumulate_integrate_trace();
        let columns: Vec<usize> = (0..types.len()).collect();
        let source = Source {
            stream: SourceStream::Set(stream),
            codec: Arc::new(Codec::new(Arc::new(schema_of(&types)))?),
            placement: Placement::By(columns.clone()),
            is_spread: true,
            carries_errors: false,
            books,
        };
        Ok(Relation::stored(*fingerprint, source, columns))
    }

    /// All rows of a relation on one worker, which is the same for all relations.
    fn gathered(&mut self, input: &Relation) -> Result<(KeyedStream, Books), EngineError> {
        self.keyed(input.fingerprint, "gathered", |builder, id| {
            let rows = Box::new(KeyedRows::new(input, &[], &input.columns, &[])?);
            let (stream, books) = builder.linear("Gather", input, rows, id)?;
            Ok((sharded(&stream), books))
        })
    }
}
