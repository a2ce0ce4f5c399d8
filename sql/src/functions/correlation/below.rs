//! Scalar subqueries where DataFusion doesn't take them: their values are computed below.

use std::cell::Cell;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Aggregate, Expr, Join, LogicalPlan, LogicalPlanBuilder, Projection,
};

use super::node;

/// The node over inputs that compute the correlated subqueries of an aggregate or a join.
pub(super) fn computed(plan: LogicalPlan, next: &Cell<usize>) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Aggregate(aggregate) => {
            let names = NamePreserver::new_for_projection();
            let mut below = Below { next, input: &aggregate.input, values: vec![] };
            let grouped = aggregate.group_expr.len();
            let exprs = [aggregate.group_expr.clone(), aggregate.aggr_expr.clone()].concat();
            let exprs = exprs.into_iter().map(|expr| {
                let name = names.save(&expr);
                Ok(name.restore(below.taken(expr)?))
            });
            let mut group = exprs.collect::<Result<Vec<_>>>()?;
            let Some(input) = below.projection()? else {
                return Ok(LogicalPlan::Aggregate(aggregate));
            };
            let aggregates = group.split_off(grouped);
            let plan = Aggregate::try_new(Arc::new(input), group, aggregates)?;
            Ok(LogicalPlan::Aggregate(plan))
        }
        LogicalPlan::Join(join) if join.filter.is_some() => of_join(join, next),
        other => Ok(other),
    }
}

fn of_join(mut join: Join, next: &Cell<usize>) -> Result<LogicalPlan> {
    let Some(filter) = join.filter.clone() else { return Ok(LogicalPlan::Join(join)) };
    let columns: Vec<_> = join.schema.columns().into_iter().map(Expr::Column).collect();
    let mut left = Below { next, input: &join.left, values: vec![] };
    let filter = left.taken(filter)?;
    let left = left.projection()?;
    let mut right = Below { next, input: &join.right, values: vec![] };
    let filter = right.taken(filter)?;
    let right = right.projection()?;
    if left.is_none() && right.is_none() {
        return Ok(LogicalPlan::Join(join));
    }
    if let Some(left) = left {
        join.left = Arc::new(left);
    }
    if let Some(right) = right {
        join.right = Arc::new(right);
    }
    let plan = Join::try_new(
        join.left,
        join.right,
        join.on,
        Some(filter),
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )?;
    LogicalPlanBuilder::from(LogicalPlan::Join(plan)).project(columns)?.build()
}

struct Below<'a> {
    next: &'a Cell<usize>,
    input: &'a Arc<LogicalPlan>,
    values: Vec<Expr>,
}

impl Below<'_> {
    /// The expression with columns in place of the subqueries that only need this input.
    fn taken(&mut self, expr: Expr) -> Result<Expr> {
        let taken = expr.transform_down(|expr| {
            let Expr::ScalarSubquery(subquery) = &expr else { return Ok(Transformed::no(expr)) };
            let outer = &subquery.outer_ref_columns;
            let is_of_input = |outer: &Expr| match outer {
                Expr::OuterReferenceColumn(_, column) => self.input.schema().has_column(column),
                _ => false,
            };
            if outer.is_empty() || !outer.iter().all(is_of_input) {
                return Ok(Transformed::no(expr));
            }
            let number = self.next.replace(self.next.get() + 1);
            let name = format!("subquery {number}");
            self.values.push(expr.alias(name.clone()));
            Ok(Transformed::yes(Expr::Column(Column::new_unqualified(name))))
        })?;
        Ok(taken.data)
    }

    /// The input with the values; none without any.
    fn projection(self) -> Result<Option<LogicalPlan>> {
        if self.values.is_empty() {
            return Ok(None);
        }
        let columns = self.input.schema().columns().into_iter().map(Expr::Column);
        let exprs = columns.chain(self.values).collect();
        let plan = Projection::try_new(exprs, Arc::clone(self.input))?;
        Ok(Some(node(LogicalPlan::Projection(plan), self.next)?.data))
    }
}
