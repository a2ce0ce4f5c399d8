//! WITH RECURSIVE.
//!
//! The recursive term is compiled as every other query; where it names the recursive query, it reads
//! the rows of the last iteration. What in it doesn't is cut out and given to the recursion from
//! outside, where it is maintained as if it stood alone.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::logical_expr::{RecursiveQuery, TableScan};
use stillframe_protocol::Plan;

use super::around::Around;
use super::{Compiler, Rows, build, refused};
use crate::Error;

/// A recursive query as its recursive term sees it.
pub(super) struct Iterated {
    name: String,
    /// The columns of an iteration's rows.
    schema: SchemaRef,
}

impl Compiler<'_> {
    pub(super) fn recursive(&self, query: &RecursiveQuery) -> Result<Rows, Error> {
        let RecursiveQuery { name, static_term, recursive_term, is_distinct, schema } = query;
        for term in [static_term, recursive_term] {
            if self.around.is_read_in(term)? {
                return Err(refused("a recursive query that reads the rows around it"));
            }
        }
        let around = Around::nothing();
        let schema = build::logical_schema(schema)?;
        let width = schema.fields().len();
        let columns_like = |rows: Rows| {
            let columns = build::like(&rows.plan, &schema, width);
            build::project(rows.plan, columns)
        };
        let alone = Compiler { context: self.context, around: &around, iterated: None };
        let base = columns_like(alone.rows(static_term)?);
        let iterated = Iterated { name: name.clone(), schema: Arc::clone(&schema) };
        let inside = Compiler { iterated: Some(&iterated), ..alone };
        let term = columns_like(inside.rows(recursive_term)?);
        if *is_distinct {
            build::keys(&base, 0..width, "UNION")?;
        }
        let mut given = Given::default();
        let term = given.taken_from(&term);
        let given = given.plans;
        let distinct = *is_distinct;
        let plan = Arc::new(Plan::Recursion { base, term, given, distinct, schema });
        Ok(Rows { plan, width, depends: false })
    }

    /// The rows of the last iteration of the recursive query of this name.
    pub(super) fn last_iteration(&self, name: &str, scan: &TableScan) -> Result<Rows, Error> {
        let Some(iterated) = self.iterated.filter(|iterated| iterated.name == name) else {
            return Err(refused("a recursive query inside of another that names that one"));
        };
        if !scan.filters.is_empty() || scan.fetch.is_some() {
            return Err(Error::internal("a filter was pushed into a recursive query's rows"));
        }
        let schema = Arc::clone(&iterated.schema);
        let all = 0..schema.fields().len();
        let plan = Arc::new(Plan::Given { place: 0, schema });
        let kept = scan.projection.clone().unwrap_or_else(|| all.collect());
        let width = kept.len();
        let plan = match kept.is_empty() {
            true => build::project(plan, vec![build::Column::nothing()]),
            false => build::pick(plan, &kept),
        };
        Ok(Rows { plan, width, depends: false })
    }
}

/// Cuts out of a recursive term what doesn't read the last iteration.
#[derive(Default)]
struct Given {
    /// What was cut out.
    plans: Vec<Arc<Plan>>,
    /// Whether a node reads the last iteration.
    reads_last: HashMap<*const Plan, bool>,
    /// What nodes have become.
    cut: HashMap<*const Plan, Arc<Plan>>,
}

impl Given {
    /// The term, or a part of it, without.
    fn taken_from(&mut self, plan: &Arc<Plan>) -> Arc<Plan> {
        if let Some(known) = self.cut.get(&Arc::as_ptr(plan)) {
            return Arc::clone(known);
        }
        let cut = if self.reads_last(plan) {
            Arc::new(plan.map_inputs(&mut |input| self.taken_from(input)))
        } else if let Plan::Values { .. } = plan.as_ref() {
            Arc::clone(plan)
        } else {
            let known = self.plans.iter().position(|known| known == plan);
            let place = known.unwrap_or_else(|| {
                self.plans.push(Arc::clone(plan));
                self.plans.len() - 1
            });
            Arc::new(Plan::Given { place: place + 1, schema: plan.schema() })
        };
        // The node lives as long as the term, so that no other one has its address.
        self.cut.insert(Arc::as_ptr(plan), Arc::clone(&cut));
        cut
    }

    fn reads_last(&mut self, plan: &Arc<Plan>) -> bool {
        match plan.as_ref() {
            Plan::Given { place, .. } => return *place == 0,
            // What it reads so is its own.
            Plan::Recursion { .. } => return false,
            _ => {}
        }
        if let Some(known) = self.reads_last.get(&Arc::as_ptr(plan)) {
            return *known;
        }
        let reads_last = plan.inputs().into_iter().any(|input| self.reads_last(input));
        self.reads_last.insert(Arc::as_ptr(plan), reads_last);
        reads_last
    }
}
