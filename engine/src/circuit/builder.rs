//! Plans into operators.

use std::collections::HashMap;
use std::sync::Arc;

use dbsp::RootCircuit;
use stillframe_protocol::{Fingerprint, Fingerprints, Plan, RelationId, Table, View};

use super::aggregate::Grouping;
use super::explain::Notes;
use super::identity::Identity;
use super::output::RelationOutput;
use super::partition::Partitioning;
use super::publish::Published;
use super::recursion::Recursion;
use super::relation::Relation;
use super::semijoin::Semijoin;
use super::source::{Books, KeyedStream, RowStream};
use super::table::{self, TableInput};
use super::temporal::{Clock, Temporal};
use crate::row::Codec;
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
    fingerprints: Fingerprints,
    pub(super) functions: &'a Functions,
    /// Of the steps.
    pub(super) clock: &'a Clock,
    /// Where operators tell when the clock alone changes something.
    pub(super) dues: Vec<Published<Option<i64>>>,
    /// Tables and views.
    relations: HashMap<RelationId, Relation>,
    /// What [`Plan::Given`] stands for, in the circuit of a recursion's term.
    pub(super) given: Vec<Relation>,
    /// What plans come to.
    built: HashMap<Fingerprint, Relation>,
    /// Streams that several readers may share, by persistent id.
    pub(super) rows: HashMap<String, (RowStream, Books)>,
    pub(super) keyed: HashMap<String, (KeyedStream, Books)>,
    /// What is kept of views, by plan.
    views: HashMap<Fingerprint, Relation>,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(
        circuit: &'a RootCircuit,
        functions: &'a Functions,
        clock: &'a Clock,
    ) -> Self {
        Self {
            circuit,
            identity: Identity::default(),
            notes: Notes::default(),
            fingerprints: Fingerprints::default(),
            functions,
            clock,
            dues: vec![],
            relations: HashMap::new(),
            given: vec![],
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
        let fingerprint = self.fingerprints.of(plan);
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
        let fingerprint = self.fingerprints.of(plan);
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
            Plan::Reference(_) => {
                Err(EngineError::InvalidPlan("a part of a plan is missing".to_owned()))
            }
            Plan::Relation { id, .. } => match self.relations.get(id) {
                Some(relation) => {
                    self.notes.note(format!("{id}, whose rows are stored already"));
                    Ok(relation.clone())
                }
                None => Err(EngineError::InvalidPlan(format!("relation {id} is not there"))),
            },
            Plan::Given { place, .. } => match self.given.get(*place) {
                Some(relation) => {
                    self.notes.note(match place {
                        0 => "the rows of the last iteration".to_owned(),
                        place => format!("what is given at {place}"),
                    });
                    Ok(relation.clone())
                }
                None => Err(EngineError::InvalidPlan(format!("nothing is given at {place}"))),
            },
            Plan::Recursion { base, term, given, distinct, .. } => {
                let inputs = std::iter::once(base).chain(given);
                let inputs = inputs.map(|input| self.relation(input)).collect::<Result<_, _>>()?;
                self.recursion(&Recursion { fingerprint, inputs, term, distinct: *distinct })
            }
            Plan::Values { schema, rows } => {
                let codec = Arc::new(Codec::new(Arc::clone(schema))?);
                self.values(fingerprint, codec, rows)
            }
            Plan::Filter { input, predicate } => {
                self.notes.note(STATELESS);
                self.relation(input)?.filter(predicate)
            }
            Plan::Temporal { input, from, until } => {
                let input = self.relation(input)?;
                self.temporal(Temporal { fingerprint, input, from, until })
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
            Plan::Semijoin { left, right, on, negated } => {
                let (left, right) = (&self.relation(left)?, &self.relation(right)?);
                self.semijoin(&Semijoin { fingerprint, left, right, on, negated: *negated })
            }
            Plan::Unnest { input, lists, schema } => {
                let input = self.relation(input)?;
                self.unnest(fingerprint, input, lists, schema)
            }
            Plan::Aggregate { input, groups, aggregates, schema } => {
                let input = &self.relation(input)?;
                self.aggregate(&Grouping { fingerprint, input, groups, aggregates, schema })
            }
            Plan::Partition { input, keys, computation, schema } => {
                let input = &self.relation(input)?;
                self.partition(&Partitioning { fingerprint, input, keys, computation, schema })
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
}
