//! Conditions that are asked of fewer rows.
//!
//! `x IN (SELECT ...)`, where the subquery takes nothing from the rows around it, is asked of the
//! table that has `x`, before that is joined with others: what is joined, and what a view stores for
//! it, are only the rows that were found. Of several conditions with subqueries, those that take
//! nothing go first.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, JoinType, Result};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, Join, LogicalPlan};

use super::rewrite::subquery_of;

/// The plan with searches below joins. Its conditions still have their subqueries.
pub(super) fn early(plan: &LogicalPlan) -> Result<LogicalPlan> {
    let pushed = plan.clone().transform_up(|plan| match plan {
        LogicalPlan::Filter(filter) => Ok(Transformed::yes(filtered(filter)?)),
        other => Ok(Transformed::no(other)),
    });
    Ok(pushed?.data)
}

fn filtered(filter: Filter) -> Result<LogicalPlan> {
    let mut input = Arc::unwrap_or_clone(filter.input);
    let mut conjuncts = vec![];
    for conjunct in split_conjunction_owned(filter.predicate) {
        if is_search(&conjunct) && is_of_one_side(&conjunct, &input) {
            input = below(input, conjunct)?;
        } else {
            conjuncts.push(conjunct);
        }
    }
    conjuncts.sort_by_key(takes_from_around);
    Ok(match conjunction(conjuncts) {
        Some(predicate) => LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(input))?),
        None => input,
    })
}

/// The rows for which a condition is true, asked as far below as there are joins.
fn below(plan: LogicalPlan, conjunct: Expr) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Filter(mut filter) if is_of_one_side(&conjunct, &filter.input) => {
            filter.input = Arc::new(below(Arc::unwrap_or_clone(filter.input), conjunct)?);
            Ok(LogicalPlan::Filter(filter))
        }
        LogicalPlan::Join(mut join) if is_of_joined(&conjunct, &join) => {
            let is_left = reads_only(&conjunct, join.left.schema());
            let side = if is_left { &mut join.left } else { &mut join.right };
            *side = Arc::new(below(Arc::unwrap_or_clone(std::mem::take(side)), conjunct)?);
            Ok(LogicalPlan::Join(join))
        }
        plan => Ok(LogicalPlan::Filter(Filter::try_new(conjunct, Arc::new(plan))?)),
    }
}

/// Whether a condition is that a column is, or isn't, among the rows of a subquery that stands alone.
/// Something computed of it could fail for rows that a join drops.
fn is_search(conjunct: &Expr) -> bool {
    match conjunct {
        Expr::Not(inner) => is_search(inner),
        Expr::InSubquery(search) => {
            !takes_from_around(conjunct) && matches!(*search.expr, Expr::Column(_))
        }
        _ => false,
    }
}

/// Whether a subquery of an expression takes something from the rows around it.
fn takes_from_around(expr: &Expr) -> bool {
    let takes = expr.exists(|expr| {
        Ok(subquery_of(expr).is_some_and(|subquery| !subquery.outer_ref_columns.is_empty()))
    });
    takes.unwrap_or(true)
}

/// Whether a condition is on one side of a join below some others.
fn is_of_one_side(conjunct: &Expr, plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Filter(filter) => is_of_one_side(conjunct, &filter.input),
        LogicalPlan::Join(join) => is_of_joined(conjunct, join),
        _ => false,
    }
}

fn is_of_joined(conjunct: &Expr, join: &Join) -> bool {
    // What stands beside the rows that it refers to is known by where it stands.
    let is_lateral = |plan: &LogicalPlan| Ok(matches!(plan, LogicalPlan::Subquery(_)));
    join.join_type == JoinType::Inner
        && (reads_only(conjunct, join.left.schema())
            || reads_only(conjunct, join.right.schema())
                && !join.right.exists(is_lateral).unwrap_or(true))
}

/// Whether all columns of a condition are of a schema.
fn reads_only(conjunct: &Expr, schema: &DFSchema) -> bool {
    conjunct.column_refs().into_iter().all(|column| schema.has_column(column))
}
