//! Correlated subqueries, in the forms that DataFusion turns into joins.
//!
//! DataFusion wants a scalar subquery to be an aggregate, and columns of the query around in
//! equalities with columns of its own and nowhere else. So
//!
//! - a scalar subquery becomes an aggregate of the first two rows, of which the second is refused;
//! - where a column of the query around stands elsewhere, the subquery reads it from a relation of
//!   its own: the distinct values that it has around, which an equality ties to the row around
//!   (after Neumann and Kemper, "Unnesting Arbitrary Queries", 2015);
//! - EXISTS and IN as values become counts.

mod below;
mod lift;

use std::cell::Cell;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, ExprSchema, Result, ScalarValue, Spans};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::logical_expr::expr::InSubquery;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Subquery, lit, when};
use datafusion::optimizer::AnalyzerRule;

use super::aggregate;
use lift::Lift;

/// The rule's name.
pub(super) const NAME: &str = "correlated_subqueries";

/// The rule.
#[derive(Debug)]
pub(super) struct Correlation;

impl AnalyzerRule for Correlation {
    fn name(&self) -> &str {
        NAME
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
        Expr::InSubquery(search) if !is_filter => match membership(&search, lift.around)? {
            Some(found) => Expr::ScalarSubquery(subquery(found)),
            None => Expr::InSubquery(search),
        },
        other => other,
    };
    Ok(match expr {
        Expr::ScalarSubquery(scalar) if !scalar.outer_ref_columns.is_empty() => {
            let plan = scalar.subquery.as_ref().clone();
            Transformed::yes(if is_single(&plan) {
                Expr::ScalarSubquery(subquery(lift.scalar(plan)?))
            } else {
                let rows = Expr::ScalarSubquery(subquery(lift.scalar(two_rows(plan)?)?));
                aggregate::only_row().call(vec![rows])
            })
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

/// `x IN (SELECT y ...)`: whether some y equals x, and NULL if none does but that isn't certain.
/// `None` for an operand that can't be read from the row around.
fn membership(search: &InSubquery, around: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let plan = search.subquery.subquery.as_ref().clone();
    if search.expr.contains_outer() {
        return Ok(None);
    }
    let operand = search.expr.as_ref().clone().transform_up(|expr| {
        Ok(match expr {
            Expr::Column(column) => {
                let field = Arc::clone(around.schema().field_from_column(&column)?);
                Transformed::yes(Expr::OuterReferenceColumn(field, column))
            }
            other => Transformed::no(other),
        })
    })?;
    let value = Expr::Column(Column::from(plan.schema().qualified_field(0)));
    let is_equal = value.eq(operand.data);
    let count = |expr: Expr| count_udaf().call(vec![expr]);
    let counts = vec![
        count(lit(1i64)).alias("all"),
        count(is_equal.clone()).alias("certain"),
        count(when(is_equal, lit(1i64)).end()?).alias("equal"),
    ];
    let column = |name: &str| Expr::Column(Column::new_unqualified(name));
    let found = when(column("equal").gt(lit(0i64)), lit(!search.negated))
        .when(column("all").gt(column("certain")), lit(ScalarValue::Boolean(None)))
        .otherwise(lit(search.negated))?;
    let plan = LogicalPlanBuilder::from(plan).aggregate(Vec::<Expr>::new(), counts)?;
    plan.project(vec![found.alias("in")])?.build().map(Some)
}

/// Whether there is one row by the form of the query.
pub(crate) fn is_single(mut plan: &LogicalPlan) -> bool {
    loop {
        plan = match plan {
            LogicalPlan::Projection(projection) => &projection.input,
            LogicalPlan::SubqueryAlias(alias) => &alias.input,
            LogicalPlan::Aggregate(aggregate) => return aggregate.group_expr.is_empty(),
            _ => return false,
        };
    }
}

/// The first two rows of a scalar subquery, as an array.
fn two_rows(plan: LogicalPlan) -> Result<LogicalPlan> {
    let (qualifier, field) = plan.schema().qualified_field(0);
    let (column, name) = (Column::from((qualifier, field)), field.name().clone());
    let rows = aggregate::first_two().call(vec![Expr::Column(column)]);
    let plan = LogicalPlanBuilder::from(plan).aggregate(Vec::<Expr>::new(), vec![rows])?.build()?;
    let rows = Expr::Column(Column::from(plan.schema().qualified_field(0)));
    LogicalPlanBuilder::from(plan).project(vec![rows.alias(name)])?.build()
}
