//! Correlated subqueries, in the forms that DataFusion turns into joins.
//!
//! DataFusion wants a scalar subquery to be an aggregate, and columns of the query around in
//! equalities with columns of its own and nowhere else. So
//!
//! - a scalar subquery becomes the aggregate that refuses a second row;
//! - where a column of the query around stands elsewhere, the subquery reads it from a relation of
//!   its own: the distinct values that it has around, which an equality ties to the row around
//!   (after Neumann and Kemper, "Unnesting Arbitrary Queries", 2015);
//! - EXISTS as a value becomes a count.

mod below;
mod lift;

use std::cell::Cell;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result, Spans};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Subquery, lit};
use datafusion::optimizer::AnalyzerRule;

use super::aggregate;
use lift::Lift;

/// The rule.
#[derive(Debug)]
pub(super) struct Correlation;

impl AnalyzerRule for Correlation {
    fn name(&self) -> &str {
        "correlated_subqueries"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let next = Cell::new(0);
        Ok(plan.transform_up_with_subqueries(|plan| node(plan, &next))?.data)
    }
}

fn node(plan: LogicalPlan, next: &Cell<usize>) -> Result<Transformed<LogicalPlan>> {
    let plan = below::computed(plan, next)?;
    let around = match plan.inputs().as_slice() {
        [input] => match lift::around(input)? {
            Some(around) => around,
            None => return Ok(Transformed::no(plan)),
        },
        // A join's conditions can't have them, and leaves have no rows around.
        _ => return Ok(Transformed::no(plan)),
    };
    let is_filter = matches!(plan, LogicalPlan::Filter(_));
    let lift = Lift { around: &around, next };
    let names = NamePreserver::new(&plan);
    plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let rewritten = expr.transform_up(|expr| expression(expr, &lift, is_filter))?;
        Ok(rewritten.update_data(|expr| name.restore(expr)))
    })?
    .map_data(|plan| plan.recompute_schema())
}

fn expression(expr: Expr, lift: &Lift<'_>, is_filter: bool) -> Result<Transformed<Expr>> {
    let expr = match expr {
        Expr::Exists(exists) if !is_filter => {
            let found = counted(exists.subquery.subquery.as_ref().clone(), exists.negated)?;
            Expr::ScalarSubquery(subquery(found))
        }
        other => other,
    };
    Ok(match expr {
        Expr::ScalarSubquery(scalar) if !scalar.outer_ref_columns.is_empty() => {
            let plan = single(scalar.subquery.as_ref().clone())?;
            Transformed::yes(Expr::ScalarSubquery(subquery(lift.scalar(plan)?)))
        }
        Expr::Exists(mut exists) if !exists.subquery.outer_ref_columns.is_empty() => {
            let plan = exists.subquery.subquery.as_ref().clone();
            exists.subquery = subquery(lift.predicate(plan)?);
            Transformed::yes(Expr::Exists(exists))
        }
        Expr::InSubquery(mut search) if !search.subquery.outer_ref_columns.is_empty() => {
            let plan = search.subquery.subquery.as_ref().clone();
            search.subquery = subquery(lift.predicate(plan)?);
            Transformed::yes(Expr::InSubquery(search))
        }
        other => Transformed::yes(other),
    })
}

fn subquery(plan: LogicalPlan) -> Subquery {
    let outer_ref_columns = plan.all_out_ref_exprs();
    Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: Spans::new() }
}

/// Whether there are rows, or that there are none.
fn counted(plan: LogicalPlan, negated: bool) -> Result<LogicalPlan> {
    let plan = LogicalPlanBuilder::from(plan)
        .aggregate(Vec::<Expr>::new(), vec![count_udaf().call(vec![lit(1i64)])])?
        .build()?;
    let count = Expr::Column(Column::from(plan.schema().qualified_field(0)));
    let found = if negated { count.eq(lit(0i64)) } else { count.gt(lit(0i64)) };
    LogicalPlanBuilder::from(plan).project(vec![found.alias("exists")])?.build()
}

/// The only row of a scalar subquery.
fn single(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut root = &plan;
    loop {
        root = match root {
            LogicalPlan::Projection(projection) => &projection.input,
            LogicalPlan::SubqueryAlias(alias) => &alias.input,
            LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() => {
                return Ok(plan);
            }
            _ => break,
        };
    }
    let (qualifier, field) = plan.schema().qualified_field(0);
    let (column, name) = (Column::from((qualifier, field)), field.name().clone());
    let only = aggregate::only_row().call(vec![Expr::Column(column)]);
    let plan = LogicalPlanBuilder::from(plan).aggregate(Vec::<Expr>::new(), vec![only])?.build()?;
    let only = Expr::Column(Column::from(plan.schema().qualified_field(0)));
    LogicalPlanBuilder::from(plan).project(vec![only.alias(name)])?.build()
}
