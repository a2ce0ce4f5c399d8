//! The recursive term as a circuit of its own.
//!
//! It has one worker, in a runtime of its own ([`apart`](super::apart)). Its inputs are changes of what is given, its output is how what it makes of that has changed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::mem::take;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::channel;

use dbsp::operator::Generator;
use dbsp::utils::Tup2;
use dbsp::{Circuit, CircuitHandle, OrdZSet, RootCircuit, ZWeight};
use rustc_hash::FxHashMap;
use stillframe_protocol::RowError;

use super::Definition;
use super::apart::run_apart;
use crate::EngineError;
use crate::circuit::builder::Builder;
use crate::circuit::explain::Notes;
use crate::circuit::linear::Changes;
use crate::circuit::relation::Relation;
use crate::circuit::source::{Books, Placement, Source, SourceStream};
use crate::circuit::temporal::Clock;
use crate::row::{Codec, Row};

/// How often rows are there, or how that has changed.
pub(super) type Weights = FxHashMap<Row, ZWeight>;

/// Rows that wait for the next step.
type Inbox = Rc<RefCell<Vec<Tup2<Row, ZWeight>>>>;

/// The circuit.
pub(super) struct Term {
    handle: CircuitHandle,
    inboxes: Vec<Inbox>,
    outbox: Rc<RefCell<Weights>>,
    books: Books,
}

/// Builds the circuit and throws it away; returns what there is to say of it.
pub(super) fn check(definition: &Definition) -> Result<Notes, EngineError> {
    let definition = definition.clone();
    let (outgoing, answer) = channel();
    run_apart(move || {
        // Whoever asks waits for it.
        let _ = outgoing.send(Term::build(&definition).map(|(_, notes)| notes));
    });
    answer.recv().unwrap_or_else(|_| {
        Err(EngineError::InvalidPlan("a recursive term makes the builder panic".to_owned()))
    })
}

impl Term {
    /// Builds the circuit.
    pub(super) fn build(definition: &Definition) -> Result<(Self, Notes), EngineError> {
        let built = RootCircuit::build(|circuit| Ok(Parts::build(circuit, definition)));
        let (handle, parts) = built.map_err(|error| EngineError::InvalidPlan(error.to_string()))?;
        let Parts { inboxes, outbox, books, notes } = parts?;
        Ok((Self { handle, inboxes, outbox, books }, notes))
    }

    /// Adds a change of the rows at a place; it enters with the next step.
    pub(super) fn change(&mut self, place: usize, rows: impl IntoIterator<Item = (Row, ZWeight)>) {
        let rows = rows.into_iter().map(|(row, weight)| Tup2(row, weight));
        self.inboxes[place].borrow_mut().extend(rows);
    }

    /// Lets all changes enter; returns how the rows that come out have changed.
    pub(super) fn step(&mut self) -> Weights {
        self.handle.transaction().expect("a circuit of one worker has nobody to lose");
        let mut changes = take(&mut *self.outbox.borrow_mut());
        changes.retain(|_, weight| *weight != 0);
        changes
    }

    /// The errors of the rows that are there now.
    pub(super) fn errors(&self) -> BTreeMap<RowError, ZWeight> {
        let mut total = BTreeMap::new();
        for counts in self.books.values().filter_map(|book| book.get(0)) {
            for (error, count) in counts.iter() {
                *total.entry(error.clone()).or_default() += count;
            }
        }
        total
    }
}

struct Parts {
    inboxes: Vec<Inbox>,
    outbox: Rc<RefCell<Weights>>,
    books: Books,
    notes: Notes,
}

impl Parts {
    fn build(circuit: &RootCircuit, definition: &Definition) -> Result<Self, EngineError> {
        // What depends on the clock isn't part of a term.
        let clock = Clock::default();
        let mut builder = Builder::new(circuit, &definition.functions, &clock);
        let mut inboxes = vec![];
        for (place, schema) in definition.schemas.iter().enumerate() {
            let plan = stillframe_protocol::Plan::Given { place, schema: Arc::clone(schema) };
            let inbox = Inbox::default();
            let rows = Rc::clone(&inbox);
            let next = move || OrdZSet::from_keys((), take(&mut *rows.borrow_mut()));
            let stream = circuit.add_source(Generator::new(next));
            let source = Source {
                stream: SourceStream::Set(stream),
                codec: Arc::new(Codec::new(Arc::clone(schema))?),
                placement: Placement::One,
                is_spread: false,
                carries_errors: false,
                books: Books::new(),
            };
            let columns = (0..schema.fields().len()).collect();
            builder.given.push(Relation::stored(plan.fingerprint(), source, columns));
            inboxes.push(inbox);
        }
        let relation = builder.relation(&definition.term)?;
        if relation.column_types() != builder.given[0].column_types() {
            let message = "a recursive term has other columns than its base".to_owned();
            return Err(EngineError::InvalidPlan(message));
        }
        let (stream, books) = builder.rows(&relation)?;
        let outbox = Rc::new(RefCell::new(Weights::default()));
        let rows = Rc::clone(&outbox);
        stream.inspect(move |changes: &OrdZSet<Row>| {
            let mut rows = rows.borrow_mut();
            changes.for_each(&mut |row, _, weight| {
                *rows.entry(Row::new(row)).or_default() += weight;
            });
        });
        Ok(Self { inboxes, outbox, books, notes: builder.notes })
    }
}
