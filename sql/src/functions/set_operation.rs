//! INTERSECT ALL and EXCEPT ALL, which DataFusion plans as semijoins, in terms of what it computes
//! rightly: equal rows of a side are numbered, which makes all rows distinct.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, NullEquality, Result};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{
    Distinct, Expr, ExprFunctionExt, Join, JoinType, LogicalPlan, LogicalPlanBuilder,
};

use crate::functions::numeric::{is_carried, key_of};

/// The name of the column with the numbers.
const NUMBER: &str = "stillframe number";

/// Whether a join is INTERSECT or EXCEPT.
pub(crate) fn is_set_operation(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
}

/// Whether a join is INTERSECT ALL or EXCEPT ALL. Without ALL the left side is distinct.
pub(crate) fn is_of_all_rows(join: &Join) -> bool {
    is_set_operation(join) && !matches!(join.left.as_ref(), LogicalPlan::Distinct(Distinct::All(_)))
}

/// Whether its rows are numbered already, as those of a view that is a part of the plan.
fn is_numbered(join: &Join) -> bool {
    join.on.iter().any(|(left, _)| matches!(left, Expr::Column(column) if column.name == NUMBER))
}

/// The plan with numbered rows where numbers make it right.
pub(super) fn numbered(plan: LogicalPlan) -> Result<LogicalPlan> {
    let numbered = plan.transform_up_with_subqueries(|plan| match plan {
        LogicalPlan::Join(join) if is_of_all_rows(&join) && !is_numbered(&join) => {
            let columns: Vec<_> = join.schema.columns().into_iter().map(Expr::Column).collect();
            let left = with_numbers(Arc::unwrap_or_clone(join.left))?;
            let right = with_numbers(Arc::unwrap_or_clone(join.right))?;
            let number = || Expr::Column(Column::new_unqualified(NUMBER));
            let on = join.on.into_iter().chain([(number(), number())]).collect();
            let plan = Join::try_new(
                Arc::new(left),
                Arc::new(right),
                on,
                join.filter,
                join.join_type,
                join.join_constraint,
                join.null_equality,
                join.null_aware,
            )?;
            let plan = LogicalPlanBuilder::from(LogicalPlan::Join(plan)).project(columns)?;
            Ok(Transformed::yes(plan.build()?))
        }
        other => Ok(Transformed::no(other)),
    });
    Ok(numbered?.data)
}

fn with_numbers(side: LogicalPlan) -> Result<LogicalPlan> {
    let columns = side.schema().iter().map(|(relation, field)| {
        let column = Expr::Column((relation, field.as_ref()).into());
        if is_carried(field.data_type()) { key_of(column) } else { column }
    });
    let number = row_number().partition_by(columns.collect()).build()?.alias(NUMBER);
    LogicalPlanBuilder::from(side).window(vec![number])?.build()
}
