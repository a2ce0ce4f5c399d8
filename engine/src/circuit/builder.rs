//! Plans into operators.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, new_empty_array};
use datafusion::common::ScalarValue;
use dbsp::circuit::operator_traits::Data;
use dbsp::operator::Sum;
use dbsp::utils::Tup2;
use dbsp::{Circuit, OrdIndexedZSet, OrdZSet, RootCircuit, Stream};
use stillframe_protocol::{Fingerprint, Literal, Plan, RelationId, Table, View};

use super::aggregate::Grouping;
use super::constant::constant;
use super::explain::Notes;
use super::identity::Identity;
use super::linear::{Changes, Emission, ErrorBook, Evaluation, KeyedRows, Linear, Rows};
use super::output::{RelationOutput, Snapshot};
use super::publish::publish;
use super::relation::{Relation, schema_of};
use super::source::{
    Books, KeyedStream, Placement, RowStream, Source, SourceStream, placed, sharded,
};
use super::table::{self, TableInput};
use crate::expression::scalar;
use crate::row::{Codec, Row};
use crate::{EngineError, Functions};

/// What is to be said of filters and projections.
const STATELESS: &str = "evaluated by what reads it, stores nothing";

/// Builds a circuit, sharing what several plans compute alike.
///
/// Maps are only ever looked up, never walked: workers must build in the same order.
pub(crate) struct Builder<'a> {
    pub(super) circuit: &'a RootCircuit,
    pub(super) identity: Identity,
    pub(super) notes: Notes,
    functions: &'a Functions,
    /// Tables and views.
    relations: HashMap<RelationId, Relation>,
    /// What plans come to.
    built: HashMap<Fingerprint, Relation>,
    /// Streams that several readers may share, by persistent id.
    rows: HashMap<String, (RowStream, Books)>,
    keyed: HashMap<String, (KeyedStream, Books)>,
    /// What is kept of views, by plan.
    views: HashMap<Fingerprint, Relation>,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(circuit: &'a RootCircuit, functions: &'a Functions) -> Self {
        Self {
            circuit,
            identity: Identity::default(),
            notes: Notes::default(),
            functions,
            relations: HashMap::new(),
            built: HashMap::new(),
            rows: HashMap::new(),
            keyed: HashMap::new(),
            views: HashMap::new(),
        }
    }

    /// Adds a base table.
    pub(crate) fn table(
        &mut self,
        table: &Table,
    ) -> Result<(TableInput, RelationOutput), EngineError> {
        let built = table::build(self.circuit, table, &mut self.identity)?;
        let plan = Plan::Relation { id: table.id, schema: Arc::clone(&table.schema) };
        let columns = (0..table.schema.fields().len()).collect();
        let relation = Relation::stored(plan.fingerprint(), built.source, columns);
        self.add(table.id, relation)?;
        Ok((built.input, built.output))
    }

    /// Adds a view: computes its plan, keeps its rows, and lets later views read it.
    pub(crate) fn view(&mut self, view: &View) -> Result<RelationOutput, EngineError> {
        let (relation, output) = self.kept(view.id, &view.plan)?;
        self.add(view.id, relation)?;
        Ok(output)
    }

    /// A plan whose rows are kept for a view. Views with the same plan are kept once.
    pub(super) fn kept(
        &mut self,
        view: RelationId,
        plan: &Plan,
    ) -> Result<(Relation, RelationOutput), EngineError> {
        let fingerprint = plan.fingerprint();
        let relation = match self.views.get(&fingerprint) {
            Some(same) => same.clone(),
            None => self.relation(plan)?,
        };
        let (relation, output) = self.keep(view, relation)?;
        self.views.insert(fingerprint, relation.clone());
        Ok((relation, output))
    }

    fn add(&mut self, id: RelationId, relation: Relation) -> Result<(), EngineError> {
        match self.relations.insert(id, relation) {
            None => Ok(()),
            Some(_) => Err(EngineError::InvalidPlan(format!("relation {id} is there twice"))),
        }
    }

    /// What a plan comes to. Equal plans are built once.
    pub(super) fn relation(&mut self, plan: &Plan) -> Result<Relation, EngineError> {
        self.notes.open(plan);
        let relation = self.built_once(plan);
        self.notes.close();
        relation
    }

    fn built_once(&mut self, plan: &Plan) -> Result<Relation, EngineError> {
        let fingerprint = plan.fingerprint();
        if let Some(relation) = self.built.get(&fingerprint) {
            self.notes.note("the same as elsewhere, computed once");
            return Ok(relation.clone());
        }
        let mut relation = self.build(plan, fingerprint)?;
        relation.fingerprint = fingerprint;
        relation.check_schema(plan)?;
        self.built.insert(fingerprint, relation.clone());
        Ok(relation)
    }

    fn build(&mut self, plan: &Plan, fingerprint: Fingerprint) -> Result<Relation, EngineError> {
        match plan {
            Plan::Relation { id, .. } => match self.relations.get(id) {
                Some(relation) => {
                    self.notes.note(format!("{id}, whose rows are stored already"));
                    Ok(relation.clone())
                }
                None => Err(EngineError::InvalidPlan(format!("relation {id} is not there"))),
            },
            Plan::Values { schema, rows } => {
                let codec = Arc::new(Codec::new(Arc::clone(schema))?);
                self.values(fingerprint, codec, rows)
            }
            Plan::Filter { input, predicate } => {
                self.notes.note(STATELESS);
                self.relation(input)?.filter(predicate)
            }
            Plan::Project { input, expressions, schema } => {
                self.notes.note(STATELESS);
                self.relation(input)?.project(expressions, schema)
            }
            Plan::Join { left, right, on, residual, .. } => {
                let (left, right) = (self.relation(left)?, self.relation(right)?);
                let joined = self.join(fingerprint, &left, &right, on)?;
                residual.iter().try_fold(joined, |joined, residual| joined.filter(residual))
            }
            Plan::Aggregate { input, groups, aggregates, schema } => {
                let input = &self.relation(input)?;
                self.aggregate(&Grouping { fingerprint, input, groups, aggregates, schema })
            }
            Plan::Distinct { input } => {
                let input = self.relation(input)?;
                self.distinct(fingerprint, &input)
            }
            Plan::UnionAll { inputs, schema } => {
                let inputs = inputs
                    .iter()
                    .map(|input| self.relation(input))
                    .collect::<Result<Vec<_>, _>>()?;
                let codec = Arc::new(Codec::new(Arc::clone(schema))?);
                self.union(fingerprint, codec, &inputs)
            }
        }
    }

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
    fn rows(&mut self, relation: &Relation) -> Result<(RowStream, Books), EngineError> {
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
    fn private_rows(
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

    fn values(
        &mut self,
        fingerprint: Fingerprint,
        codec: Arc<Codec>,
        rows: &[Vec<Literal>],
    ) -> Result<Relation, EngineError> {
        let fields = codec.schema().fields();
        if rows.iter().any(|row| row.len() != fields.len()) {
            let message = "a constant row has a literal per column".to_owned();
            return Err(EngineError::InvalidPlan(message));
        }
        let column = |(place, field): (usize, &Arc<arrow::datatypes::Field>)| {
            if rows.is_empty() {
                return Ok(new_empty_array(field.data_type()));
            }
            let values = rows.iter().map(|row| scalar(&row[place]));
            Ok(ScalarValue::iter_to_array(values)?)
        };
        let columns: Vec<ArrayRef> =
            fields.iter().enumerate().map(column).collect::<Result<_, EngineError>>()?;
        let rows = codec.encode(&columns, rows.len())?;
        let batch = OrdZSet::from_keys((), rows.into_iter().map(|row| Tup2(row, 1)).collect());
        let id = self.identity.of(fingerprint, "values")?;
        let stream = constant(self.circuit, &id, batch);
        self.notes.note("constant rows, which enter once");
        let columns = (0..fields.len()).collect();
        let source = Source {
            stream: SourceStream::Set(stream),
            codec,
            placement: Placement::One,
            is_spread: false,
            carries_errors: false,
            books: Books::new(),
        };
        Ok(Relation::stored(fingerprint, source, columns))
    }

    fn distinct(
        &mut self,
        fingerprint: Fingerprint,
        input: &Relation,
    ) -> Result<Relation, EngineError> {
        let (rows, books) = self.private_rows(input, "distinct-input")?;
        let columns: Vec<usize> = (0..input.columns.len()).collect();
        self.notes
            .note("stores each distinct row and how often it is there, a change costs a seek");
        let (rows, placement, is_spread) = match input.placement_of(&input.columns) {
            Placement::Derived => {
                self.notes.note("rows travel to the worker of their hash");
                (sharded(&rows), Placement::By(columns.clone()), true)
            }
            // Equal rows have equal fields, so they are on one worker already.
            placement => (placed(&rows), placement, input.source.is_spread),
        };
        let id = self.identity.of(fingerprint, "distinct")?;
        let stream = rows.distinct().set_persistent_id(Some(&id));
        let source = Source {
            stream: SourceStream::Set(stream),
            codec: Arc::new(codec_of(input)?),
            placement,
            is_spread,
            carries_errors: false,
            books,
        };
        Ok(Relation::stored(fingerprint, source, columns))
    }

    fn union(
        &mut self,
        fingerprint: Fingerprint,
        codec: Arc<Codec>,
        inputs: &[Relation],
    ) -> Result<Relation, EngineError> {
        let columns: Vec<usize> = (0..codec.schema().fields().len()).collect();
        let mut streams = vec![];
        let mut books = Books::new();
        let mut placement = None;
        for input in inputs {
            let types = input.column_types();
            let wanted = codec.schema().fields().iter().map(|field| field.data_type());
            if wanted.ne(types.iter()) {
                let message = format!("a union's input has columns of {types:?}");
                return Err(EngineError::InvalidPlan(message));
            }
            let (stream, of_input) = self.rows(input)?;
            streams.push(stream);
            books.extend(of_input);
            let of_input = input.placement_of(&input.columns);
            placement = match placement {
                None => Some(of_input),
                Some(placement) if placement == of_input => Some(placement),
                Some(_) => Some(Placement::Derived),
            };
        }
        let Some(placement) = placement else {
            return self.values(fingerprint, codec, &[]);
        };
        self.notes.note("stores nothing");
        let is_spread = inputs.iter().all(|input| input.source.is_spread);
        let id = self.identity.of(fingerprint, "union")?;
        // Not dbsp's `sum`, which takes sharded streams where there are any.
        let stream =
            self.circuit.add_nary_operator(Sum::new(), &streams).set_persistent_id(Some(&id));
        let source = Source {
            stream: SourceStream::Set(stream),
            codec,
            placement,
            is_spread,
            carries_errors: false,
            books,
        };
        Ok(Relation::stored(fingerprint, source, columns))
    }

    /// Keeps a view's rows, so that frames and later views can read them.
    fn keep(
        &mut self,
        view: RelationId,
        relation: Relation,
    ) -> Result<(Relation, RelationOutput), EngineError> {
        let frame_id = self.identity.of(relation.fingerprint, &format!("frame{view}"))?;
        let columns: Vec<usize> = (0..relation.columns.len()).collect();
        if relation.is_stored() && relation.source.is_spread {
            // The stream is the view. Often its integral exists.
            self.notes.note("its rows are those of its topmost operator, stored there");
            let source = &relation.source;
            let (rows, key_columns) = match &source.stream {
                SourceStream::Set(stream) => {
                    let trace = stream.accumulate_integrate_trace();
                    (publish(&trace, &frame_id, |trace| Snapshot::Set(trace.ro_snapshot())), 0)
                }
                SourceStream::Keyed { stream, key_columns, .. } => {
                    let trace = stream.accumulate_integrate_trace();
                    let publish =
                        publish(&trace, &frame_id, |trace| Snapshot::Keyed(trace.ro_snapshot()));
                    (publish, *key_columns)
                }
            };
            let books = source.books.values().cloned().collect();
            let output = RelationOutput::new(Arc::clone(&source.codec), key_columns, rows, books);
            return Ok((relation, output));
        }
        self.notes.note("stores its rows, a change costs a row");
        let (mut stream, books) = self.private_rows(&relation, "view")?;
        let placement = if relation.source.is_spread {
            relation.placement_of(&relation.columns)
        } else {
            self.notes.note("rows travel to the worker of their hash");
            stream = sharded(&stream);
            Placement::By(columns.clone())
        };
        let rows = publish(&stream.accumulate_integrate_trace(), &frame_id, |trace| {
            Snapshot::Set(trace.ro_snapshot())
        });
        let codec = Arc::new(codec_of(&relation)?);
        let published = books.values().cloned().collect();
        let output = RelationOutput::new(Arc::clone(&codec), 0, rows, published);
        let source = Source {
            stream: SourceStream::Set(stream),
            codec,
            placement,
            is_spread: true,
            carries_errors: false,
            books,
        };
        Ok((Relation::stored(relation.fingerprint, source, columns), output))
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
