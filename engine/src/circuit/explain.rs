//! What a plan becomes, in words.
//!
//! The builder takes notes while it builds, so that what is said is what is done.

use std::collections::BTreeSet;

use dbsp::circuit::CircuitConfig;
use dbsp::{RootCircuit, Runtime};
use stillframe_protocol::{Computation, Plan, Program, RelationId};

use super::builder::Builder;
use super::temporal::Clock;
use crate::{EngineError, Functions};

/// Tells how a view is maintained: per node of its plan, from the top, what operators it becomes,
/// what they store and what a change costs. Two spaces of indentation lead to a node's inputs.
///
/// `program` has the tables and views that the plan reads. Nothing is run, but a circuit is built
/// and thrown away, which takes some milliseconds.
///
/// # Errors
///
/// As [`construct`](super::construct): what can't be built can't be explained.
pub fn explain(
    plan: &Plan,
    program: &Program,
    functions: &Functions,
) -> Result<Vec<String>, EngineError> {
    let (plan, program, functions) = (plan.clone(), program.clone(), functions.clone());
    // On a thread of its own, because a circuit can't be dropped where futures run.
    let thread = std::thread::spawn(move || {
        let build =
            move |circuit: &mut RootCircuit| Ok(explain_in(circuit, &plan, &program, &functions));
        let built = Runtime::init_circuit(CircuitConfig::with_workers(1), build);
        let (handle, explained) =
            built.map_err(|error| EngineError::InvalidPlan(error.to_string()))?;
        // Its only worker has nothing to finish.
        drop(handle.kill());
        explained
    });
    thread.join().unwrap_or_else(|_| {
        Err(EngineError::InvalidPlan("the plan makes the builder panic".to_owned()))
    })
}

fn explain_in(
    circuit: &RootCircuit,
    plan: &Plan,
    program: &Program,
    functions: &Functions,
) -> Result<Vec<String>, EngineError> {
    let clock = Clock::default();
    let mut builder = Builder::new(circuit, functions, &clock);
    for table in &program.tables {
        builder.table(table)?;
    }
    // Only the views that it reads: it may be one of the others itself.
    let mut read: BTreeSet<RelationId> = plan.relations().into_iter().collect();
    for view in program.views.iter().rev() {
        if read.contains(&view.id) {
            read.extend(view.plan.relations());
        }
    }
    for view in program.views.iter().filter(|view| read.contains(&view.id)) {
        builder.view(view)?;
    }
    builder.notes = Notes::default();
    builder.kept(RelationId(0), plan)?;
    Ok(builder.notes.lines())
}

/// What the builder does, as a tree of the plan's nodes.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// The nodes that are being built, the innermost last.
    open: Vec<Note>,
    done: Vec<Note>,
}

#[derive(Debug)]
struct Note {
    title: &'static str,
    details: Vec<String>,
    inputs: Vec<Note>,
}

impl Notes {
    /// Starts a node; what is noted until [`Self::close`] belongs to it.
    pub(super) fn open(&mut self, plan: &Plan) {
        let title = match plan {
            Plan::Reference(_) => "Reference",
            Plan::Relation { .. } => "Relation",
            Plan::Values { .. } => "Values",
            Plan::Filter { .. } => "Filter",
            Plan::Project { .. } => "Project",
            Plan::Join { .. } => "Join",
            Plan::Semijoin { negated: false, .. } => "Semijoin",
            Plan::Semijoin { negated: true, .. } => "Antijoin",
            Plan::Unnest { .. } => "Unnest",
            Plan::Aggregate { .. } => "Aggregate",
            Plan::Partition { computation, .. } => match computation {
                Computation::Aggregates(_) => "Aggregate",
                Computation::Windows(_) => "Window",
                Computation::Limit(_) => "Limit",
            },
            Plan::Distinct { .. } => "Distinct",
            Plan::UnionAll { .. } => "Union",
            Plan::Temporal { .. } => "Temporal filter",
            Plan::Recursion { .. } => "Recursion",
            Plan::Given { .. } => "Given",
        };
        self.open.push(Note { title, details: vec![], inputs: vec![] });
    }

    /// Ends the innermost node.
    pub(super) fn close(&mut self) {
        let Some(note) = self.open.pop() else { return };
        match self.open.last_mut() {
            Some(parent) => parent.inputs.push(note),
            None => self.done.push(note),
        }
    }

    /// Takes the notes of a circuit inside a node, which read as one of its inputs.
    pub(super) fn graft(&mut self, notes: Self) {
        if let Some(note) = self.open.last_mut() {
            note.inputs.extend(notes.done);
        }
    }

    /// Notes something about the innermost node, or about the view as a whole.
    pub(super) fn note(&mut self, detail: impl Into<String>) {
        match self.open.last_mut() {
            Some(note) => note.details.push(detail.into()),
            None => {
                let details = vec![detail.into()];
                self.done.push(Note { title: "View", details, inputs: vec![] });
            }
        }
    }

    /// The text, the view first.
    fn lines(&self) -> Vec<String> {
        let mut lines = vec![];
        for (depth, note) in self.done.iter().rev().enumerate() {
            note.lines(depth, &mut lines);
        }
        lines
    }
}

impl Note {
    fn lines(&self, depth: usize, lines: &mut Vec<String>) {
        let indent = "  ".repeat(depth);
        lines.push(format!("{indent}{}: {}", self.title, self.details.join("; ")));
        for input in &self.inputs {
            input.lines(depth + 1, lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::DataType;
    use datafusion::prelude::SessionContext;
    use stillframe_protocol::{Aggregate, AggregateFunction, Expression, Table};

    use super::*;
    use crate::circuit::relation::schema_of;

    #[test]
    fn a_view_is_explained_from_the_top() {
        let schema = std::sync::Arc::new(schema_of(&[DataType::Int64, DataType::Int32]));
        let table = Table { id: RelationId(7), schema: schema.clone(), key_columns: 1 };
        let program = Program { tables: vec![table], views: vec![] };
        let relation = std::sync::Arc::new(Plan::Relation { id: RelationId(7), schema });
        let aggregate = Plan::Aggregate {
            input: relation,
            groups: vec![1],
            aggregates: vec![
                Aggregate { function: AggregateFunction::Count, argument: None },
                Aggregate { function: AggregateFunction::Max, argument: Some(0) },
            ],
            schema: std::sync::Arc::new(schema_of(&[
                DataType::Int32,
                DataType::Int64,
                DataType::Int64,
            ])),
        };
        let plan = Plan::Project {
            input: std::sync::Arc::new(aggregate),
            expressions: vec![Expression::Column(2)],
            schema: std::sync::Arc::new(schema_of(&[DataType::Int64])),
        };
        let functions = Functions::new(std::sync::Arc::new(SessionContext::new().state()));
        let lines = explain(&plan, &program, &functions).unwrap();
        let expected = "\
View: stores its rows, a change costs a row
  Project: evaluated by what reads it, stores nothing
    Aggregate: stores one weight of 1 numbers per group, moved to its worker, a change costs a \
seek per group; stores the values of column 0 by group, a change costs a seek per group; joins \
the groups' results
      Relation: 7, whose rows are stored already";
        assert_eq!(lines.join("\n"), expected);
        let unknown = Plan::Relation { id: RelationId(8), schema: plan.schema() };
        assert!(explain(&unknown, &program, &functions).is_err());
    }
}
