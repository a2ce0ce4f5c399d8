//! Which rows a LIMIT takes of those that are equal in its order, and DISTINCT ON of those that are
//! equal in its own: PostgreSQL leaves it open. Here whatever else comes out decides, so that rows
//! that could be taken for one another are equal, and a query answers as a view with the same text.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DataFusionError, Result, ScalarValue};
use datafusion::functions_window::rank::rank_udwf;
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::{Sort as Order, WindowFunction};
use datafusion::logical_expr::{
    Distinct, DistinctOn, Expr, ExprFunctionExt, ExprSchemable, Limit, LogicalPlan,
    LogicalPlanBuilder, SkipType, Sort, WindowFrame, lit,
};
use datafusion::optimizer::AnalyzerRule;

use super::marker::WITH_TIES;
use crate::expression::is_storable;
use crate::{Error, SqlState};

/// Extends the ORDER BY of a LIMIT, and makes windows of DISTINCT ON and WITH TIES.
#[derive(Debug)]
pub(super) struct Ties;

impl AnalyzerRule for Ties {
    fn name(&self) -> &str {
        "ties"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(plan.transform_up_with_subqueries(decide)?.data)
    }
}

fn decide(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Limit(limit) => match with_ties(&limit).cloned() {
            Some(count) => with_equals(limit, count),
            None => LogicalPlan::Limit(limit).map_children(ordered),
        },
        LogicalPlan::Distinct(Distinct::On(distinct)) => first_of_each(distinct),
        plan => Ok(Transformed::no(plan)),
    }
}

/// The rows that a LIMIT takes in order, with an order that leaves nothing open.
fn ordered(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => plan.map_children(ordered),
        LogicalPlan::Sort(mut sort) => {
            let columns = sort.input.schema().columns().into_iter().map(Expr::Column);
            extend(&mut sort.expr, columns, &sort.input)?;
            Ok(Transformed::yes(LogicalPlan::Sort(sort)))
        }
        plan => Ok(Transformed::no(plan)),
    }
}

/// Adds expressions over a plan to an order that aren't in it yet.
fn extend(
    order: &mut Vec<Order>,
    expressions: impl Iterator<Item = Expr>,
    input: &LogicalPlan,
) -> Result<()> {
    for expr in expressions {
        let expr = expr.unalias();
        let decides = is_storable(&expr.get_type(input.schema())?)
            && order.iter().all(|known| known.expr != expr);
        if decides {
            order.push(expr.sort(true, false));
        }
    }
    Ok(())
}

/// The number of rows of FETCH FIRST ... WITH TIES.
fn with_ties(limit: &Limit) -> Option<&Expr> {
    match limit.fetch.as_deref()? {
        Expr::ScalarFunction(function) if function.name() == WITH_TIES => function.args.first(),
        _ => None,
    }
}

/// The first rows in an order, and those that equal the last of them in it: those of which less than
/// so many are before all equals. An OFFSET passes over rows one by one.
fn with_equals(limit: Limit, count: Expr) -> Result<Transformed<LogicalPlan>> {
    let refused = || Error::unsupported("FETCH FIRST ... WITH TIES of a count that isn't constant");
    let (Expr::Literal(ScalarValue::Int64(Some(count)), _), SkipType::Literal(offset)) =
        (count, limit.get_skip_type()?)
    else {
        return Err(refused().into());
    };
    if count < 0 {
        let message = "LIMIT must not be negative";
        return Err(Error::new(SqlState::INVALID_ROW_COUNT_IN_LIMIT, message).into());
    }
    let (count, offset) = (count as u64, offset as u64);
    let input = Arc::unwrap_or_clone(limit.input);
    let rows = over_sort(input, &|sort| first_with_equals(sort, count, offset))?;
    Ok(Transformed::yes(rows.data))
}

/// Replaces the ORDER BY that gives a query its order.
fn over_sort(
    plan: LogicalPlan,
    by: &dyn Fn(Sort) -> Result<LogicalPlan>,
) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => {
            plan.map_children(|plan| over_sort(plan, by))
        }
        LogicalPlan::Sort(sort) => Ok(Transformed::yes(by(sort)?)),
        _ => Err(Error::unsupported("FETCH FIRST ... WITH TIES after this ORDER BY").into()),
    }
}

fn first_with_equals(sort: Sort, count: u64, offset: u64) -> Result<LogicalPlan> {
    const RANK: &str = "rank in order";
    const NUMBER: &str = "row in order";
    let Sort { expr: order, input, .. } = sort;
    let columns = input.schema().columns();
    let mut total = order.clone();
    extend(&mut total, columns.iter().cloned().map(Expr::Column), &input)?;
    let window = |function, order, name| {
        let call = Expr::from(WindowFunction::new(function, vec![])).order_by(order);
        let call = call.window_frame(WindowFrame::new(Some(false))).build()?;
        Ok::<_, DataFusionError>(vec![call.alias(name)])
    };
    let name = |name| Expr::Column(Column::new_unqualified(name));
    let last = if count == 0 { 0 } else { offset.saturating_add(count) };
    let mut plan = LogicalPlanBuilder::from(Arc::unwrap_or_clone(input))
        .window(window(rank_udwf(), order.clone(), RANK)?)?
        .filter(name(RANK).lt_eq(lit(last)))?;
    if offset > 0 {
        plan = plan
            .window(window(row_number_udwf(), total, NUMBER)?)?
            .filter(name(NUMBER).gt(lit(offset)))?;
    }
    let plan = plan.build()?;
    let plan = LogicalPlan::Sort(Sort { expr: order, input: Arc::new(plan), fetch: None });
    LogicalPlanBuilder::from(plan).project(columns.into_iter().map(Expr::Column))?.build()
}

/// The first row for each value of DISTINCT ON.
fn first_of_each(distinct: DistinctOn) -> Result<Transformed<LogicalPlan>> {
    const NUMBER: &str = "row of its group";
    let DistinctOn { on_expr, select_expr, sort_expr, input, schema } = distinct;
    let mut order = sort_expr.unwrap_or_default();
    let mut shown = order.clone();
    shown.truncate(on_expr.len());
    extend(&mut order, select_expr.iter().cloned(), &input)?;
    let mut number =
        Expr::from(WindowFunction::new(row_number_udwf(), vec![])).partition_by(on_expr);
    if !order.is_empty() {
        number = number.order_by(order).window_frame(WindowFrame::new(Some(false)));
    }
    let columns = select_expr.into_iter().zip(schema.iter()).map(|(expr, (relation, field))| {
        expr.unalias().alias_qualified(relation.cloned(), field.name())
    });
    let mut plan = LogicalPlanBuilder::from(Arc::unwrap_or_clone(input))
        .window(vec![number.build()?.alias(NUMBER)])?
        .filter(Expr::Column(Column::new_unqualified(NUMBER)).eq(lit(1u64)))?
        .build()?;
    if !shown.is_empty() {
        plan = LogicalPlan::Sort(Sort { expr: shown, input: Arc::new(plan), fetch: None });
    }
    let plan = LogicalPlanBuilder::from(plan).project(columns.collect::<Vec<_>>())?.build()?;
    Ok(Transformed::yes(plan))
}
