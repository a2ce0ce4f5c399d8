//! The columns that a subquery takes from outside.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Exists, FieldMetadata, InSubquery, SetComparison};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, Subquery};

use super::rewrite;

/// The columns of a schema that a subquery takes, at whatever depth.
pub(super) fn columns(subquery: &LogicalPlan, schema: &DFSchema) -> Result<Vec<Column>> {
    let mut columns = vec![];
    subquery.apply_with_subqueries(|plan| {
        plan.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::OuterReferenceColumn(_, column) = expr
                    && schema.has_column(column)
                    && !columns.contains(column)
                {
                    columns.push(column.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(columns)
}

/// Whether a subquery has another inside that takes columns from further outside than the first.
pub(super) fn skips_level(subquery: &LogicalPlan) -> Result<bool> {
    subquery.exists(|node| {
        let mut skips = false;
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Some(inside) = rewrite::subquery_of(expr) {
                    let inputs = node.inputs();
                    let is_here =
                        |column: &Column| inputs.iter().any(|i| i.schema().has_column(column));
                    skips |= !all(&inside.subquery)?.iter().all(is_here);
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        Ok(skips)
    })
}

/// The columns that a subquery takes from wherever, but for those of queries inside it.
fn all(subquery: &LogicalPlan) -> Result<Vec<Column>> {
    let mut columns = vec![];
    let mut own = vec![];
    subquery.apply_with_subqueries(|plan| {
        own.extend(plan.inputs().iter().flat_map(|input| input.schema().columns()));
        plan.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::OuterReferenceColumn(_, column) = expr {
                    columns.push(column.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    columns.retain(|column| !own.contains(column));
    Ok(columns)
}

/// The subquery with values in place of columns.
pub(super) fn replace(
    plan: LogicalPlan,
    values: &HashMap<Column, ScalarValue>,
) -> Result<LogicalPlan> {
    let replaced = plan.transform_up(|plan| {
        let plan = match plan {
            // Its plan is an input, and done.
            LogicalPlan::Subquery(subquery) => LogicalPlan::Subquery(Subquery {
                outer_ref_columns: remaining(subquery.outer_ref_columns, values),
                ..subquery
            }),
            other => other,
        };
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let replaced = expr.transform_up(|expr| expression(expr, values))?;
            Ok(replaced.update_data(|expr| name.restore(expr)))
        })?
        .map_data(|plan| plan.recompute_schema())
    });
    Ok(replaced?.data)
}

fn expression(expr: Expr, values: &HashMap<Column, ScalarValue>) -> Result<Transformed<Expr>> {
    let inside = |subquery: Subquery| -> Result<Subquery> {
        Ok(Subquery {
            subquery: Arc::new(replace(Arc::unwrap_or_clone(subquery.subquery), values)?),
            outer_ref_columns: remaining(subquery.outer_ref_columns, values),
            spans: subquery.spans,
        })
    };
    Ok(Transformed::yes(match expr {
        Expr::OuterReferenceColumn(field, column) => match values.get(&column) {
            Some(value) => {
                let metadata = (!field.metadata().is_empty())
                    .then(|| FieldMetadata::new(field.metadata().clone().into_iter().collect()));
                Expr::Literal(value.clone(), metadata)
            }
            None => Expr::OuterReferenceColumn(field, column),
        },
        Expr::ScalarSubquery(subquery) => Expr::ScalarSubquery(inside(subquery)?),
        Expr::Exists(Exists { subquery, negated }) => {
            Expr::Exists(Exists { subquery: inside(subquery)?, negated })
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            Expr::InSubquery(InSubquery { expr, subquery: inside(subquery)?, negated })
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
            let subquery = inside(subquery)?;
            Expr::SetComparison(SetComparison { expr, subquery, op, quantifier })
        }
        other => return Ok(Transformed::no(other)),
    }))
}

fn remaining(columns: Vec<Expr>, values: &HashMap<Column, ScalarValue>) -> Vec<Expr> {
    let is_open = |expr: &Expr| match expr {
        Expr::OuterReferenceColumn(_, column) => !values.contains_key(column),
        _ => true,
    };
    columns.into_iter().filter(is_open).collect()
}
