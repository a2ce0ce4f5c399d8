//! LIMIT and OFFSET, with the ORDER BY below them.

use std::sync::Arc;

use datafusion::logical_expr::{FetchType, Limit as Node, LogicalPlan, SkipType, Sort};
use stillframe_protocol::{Computation, Limit, Plan};

use super::operand::Columns;
use super::{Compiler, Rows, build, refused};
use crate::Error;
use crate::query::classify;

impl Compiler<'_> {
    /// Compiles a LIMIT.
    pub(super) fn limit(&self, node: &Node) -> Result<Rows, Error> {
        let SkipType::Literal(offset) = node.get_skip_type().map_err(classify)? else {
            return Err(refused("an OFFSET that isn't constant"));
        };
        let FetchType::Literal(count) = node.get_fetch_type().map_err(classify)? else {
            return Err(refused("a LIMIT that isn't constant"));
        };
        let limit = Limit {
            order: vec![],
            offset: offset as u64,
            count: count.map(|count| count as u64),
            with_ties: false,
        };
        self.limited(&node.input, limit)
    }

    /// The first rows of a query. What only computes columns of its rows stays above.
    fn limited(&self, query: &LogicalPlan, limit: Limit) -> Result<Rows, Error> {
        match query {
            LogicalPlan::Projection(projection) if is_sorted(&projection.input) => {
                self.projected(projection, self.limited(&projection.input, limit)?)
            }
            LogicalPlan::SubqueryAlias(alias) => self.limited(&alias.input, limit),
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => self.sorted(sort, limit),
            other => {
                let rows = self.rows(other)?;
                let plan = self.first(&rows, Arc::clone(&rows.plan), limit);
                Ok(Rows { plan, ..rows })
            }
        }
    }

    fn sorted(&self, sort: &Sort, limit: Limit) -> Result<Rows, Error> {
        let rows = self.rows(&sort.input)?;
        let whole = rows.plan.schema().fields().len();
        let mut columns = Columns::all(&rows.plan);
        let order = columns.order(&sort.expr, &self.below(sort.input.schema(), &rows))?;
        let input = columns.over(Arc::clone(&rows.plan));
        let first = self.first(&rows, input, Limit { order, ..limit });
        Ok(Rows { plan: build::pick(first, &(0..whole).collect::<Vec<_>>()), ..rows })
    }

    /// The first rows of a plan that begins with the columns of these rows; of each list of values from
    /// around, where they depend on them.
    fn first(&self, rows: &Rows, input: Arc<Plan>, limit: Limit) -> Arc<Plan> {
        let schema = input.schema();
        let computation = Computation::Limit(limit);
        let values = if rows.depends { self.around.columns.len() } else { 0 };
        let keys = (rows.width..rows.width + values).collect();
        Arc::new(Plan::Partition { input, keys, computation, schema })
    }
}

/// Whether the rows of a query are those of an ORDER BY, in order.
fn is_sorted(query: &LogicalPlan) -> bool {
    match query {
        LogicalPlan::Projection(projection) => is_sorted(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => is_sorted(&alias.input),
        LogicalPlan::Sort(_) => true,
        _ => false,
    }
}
