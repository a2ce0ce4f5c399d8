//! Scalar subqueries that find no row are NULL.
//!
//! DataFusion takes the nullability of such a subquery from the column inside it, so that it
//! concludes that IS NULL is false, and COALESCE its first argument.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};

use super::identity;
use crate::Type;

/// The plan with scalar subqueries that may be NULL.
pub(super) fn with_nullable_subqueries(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut is_changed = false;
    let changed = plan.transform_up_with_subqueries(|plan| {
        let changed = plan.map_expressions(|expr| expr.transform_down(nullable))?;
        is_changed |= changed.transformed;
        // What is above has the columns of what is below.
        if is_changed { changed.map_data(LogicalPlan::recompute_schema) } else { Ok(changed) }
    });
    Ok(changed?.data)
}

fn nullable(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::ScalarSubquery(subquery) = &expr else {
        let is_settled = matches!(identity::operand(&expr), Some(Expr::ScalarSubquery(_)));
        let next = match is_settled {
            true => TreeNodeRecursion::Jump,
            false => TreeNodeRecursion::Continue,
        };
        return Ok(Transformed::new(expr, false, next));
    };
    // One that depends on the rows around becomes an outer join. Whether the column may be NULL isn't
    // asked: the optimizer may still find that it can't.
    let kind = Type::of(subquery.subquery.schema().field(0));
    let Some(kind) = kind.filter(|_| subquery.outer_ref_columns.is_empty()) else {
        return Ok(Transformed::no(expr));
    };
    Ok(Transformed::new(identity::of(expr, &kind), true, TreeNodeRecursion::Jump))
}
