//! LIMIT and OFFSET, with the ORDER BY below them.

use std::sync::Arc;

use datafusion::logical_expr::{FetchType, Limit as Node, LogicalPlan, SkipType, Sort};
use stillframe_protocol::{Computation, Limit, Plan};

use super::operand::Columns;
use super::{build, plan, projected, refused};
use crate::Error;
use crate::query::classify;

/// Compiles a LIMIT.
pub(super) fn limit(node: &Node) -> Result<Arc<Plan>, Error> {
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
    limited(&node.input, limit)
}

/// The first rows of a query. What only computes columns of its rows stays above.
fn limited(query: &LogicalPlan, limit: Limit) -> Result<Arc<Plan>, Error> {
    match query {
        LogicalPlan::Projection(projection) if is_sorted(&projection.input) => {
            projected(projection, limited(&projection.input, limit)?)
        }
        LogicalPlan::SubqueryAlias(alias) => limited(&alias.input, limit),
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => sorted(sort, limit),
        other => Ok(first(plan(other)?, limit)),
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

fn sorted(sort: &Sort, limit: Limit) -> Result<Arc<Plan>, Error> {
    let input = plan(&sort.input)?;
    let width = input.schema().fields().len();
    let mut columns = Columns::all(&input);
    let order = columns.order(&sort.expr, sort.input.schema())?;
    let rows = first(columns.over(input), Limit { order, ..limit });
    Ok(build::pick(rows, &(0..width).collect::<Vec<_>>()))
}

fn first(input: Arc<Plan>, limit: Limit) -> Arc<Plan> {
    let schema = input.schema();
    let computation = Computation::Limit(limit);
    Arc::new(Plan::Partition { input, keys: vec![], computation, schema })
}
