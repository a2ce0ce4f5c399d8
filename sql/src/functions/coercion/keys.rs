//! Makes plans group, sort and join `numeric`s by what equal ones share.
//!
//! A `numeric` with a scale of its own has other bytes than its equals with other scales. So whatever
//! tells rows apart by their values does so by keys; what is shown of a group is the value with the
//! least scale, which depends on no order of rows.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunction, GroupingSet, Sort, WindowFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{
    Aggregate, Case, Distinct, Expr, ExprSchemable, LogicalPlan, Projection,
};

use crate::Error;
use crate::functions::aggregate;
use crate::functions::numeric::{is_carried, key_of};

/// The name of a column that shows a group's value.
const SHOWN: &str = "stillframe shown";

/// One node, whose inputs are done.
pub(super) fn plan(plan: LogicalPlan, schema: &DFSchema) -> Result<Transformed<LogicalPlan>> {
    let names = NamePreserver::new(&plan);
    let plan = plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let keyed = expr.transform_up(|expr| Ok(Transformed::yes(within(expr, schema)?)))?;
        Ok(keyed.update_data(|expr| name.restore(expr)))
    })?;
    Ok(match plan.data {
        LogicalPlan::Sort(mut sort) => {
            sort.expr = sorts(sort.expr, schema)?;
            Transformed::yes(LogicalPlan::Sort(sort))
        }
        LogicalPlan::Distinct(Distinct::All(input)) if has_numerics(input.schema()) => {
            let columns = input.schema().iter().map(|column| Expr::Column(column.into()));
            let grouping = Aggregate::try_new(Arc::clone(&input), columns.collect(), vec![])?;
            Transformed::yes(grouped(grouping)?)
        }
        LogicalPlan::Distinct(Distinct::On(mut on)) => {
            on.on_expr = keys(on.on_expr, schema)?;
            on.sort_expr = on.sort_expr.map(|order| sorts(order, schema)).transpose()?;
            Transformed::yes(LogicalPlan::Distinct(Distinct::On(on)))
        }
        LogicalPlan::Aggregate(grouping) => Transformed::yes(grouped(grouping)?),
        other => Transformed::new(other, plan.transformed, plan.tnr),
    })
}

/// What an expression itself orders or tells apart.
fn within(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    Ok(match expr {
        Expr::WindowFunction(window) => {
            let mut window: WindowFunction = *window;
            window.params.partition_by = keys(window.params.partition_by, schema)?;
            Expr::WindowFunction(Box::new(window))
        }
        Expr::AggregateFunction(mut call) => {
            call.params.order_by = sorts(call.params.order_by, schema)?;
            if call.params.distinct {
                if matches!(call.func.name(), "array_agg" | "string_agg")
                    && call.params.order_by.is_empty()
                {
                    // PostgreSQL sorts them to find those that are distinct.
                    let values = call.params.args.iter().take(1);
                    call.params.order_by =
                        values.map(|value| value.clone().sort(true, false)).collect();
                }
                match call.func.name() {
                    "count" => call.params.args = keys(call.params.args, schema)?,
                    "min" | "max" | "sum" | "avg" => {}
                    name => refuse_distinct(name, &call.params.args, schema)?,
                }
            }
            Expr::AggregateFunction(call)
        }
        other => other,
    })
}

/// Equal numbers of other scales would be counted apart.
fn refuse_distinct(name: &str, args: &[Expr], schema: &DFSchema) -> Result<()> {
    for arg in args {
        if is_carried(&arg.get_type(schema)?) {
            let what = format!("{name}(DISTINCT) of a numeric without precision and scale");
            let hint = "Cast it to numeric(p, s).";
            return Err(Error::unsupported(what).with_hint(hint).into());
        }
    }
    Ok(())
}

fn has_numerics(schema: &DFSchema) -> bool {
    schema.fields().iter().any(|field| is_carried(field.data_type()))
}

fn key(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    Ok(if is_carried(&expr.get_type(schema)?) { key_of(expr) } else { expr })
}

fn keys(exprs: Vec<Expr>, schema: &DFSchema) -> Result<Vec<Expr>> {
    exprs.into_iter().map(|expr| key(expr, schema)).collect()
}

fn sorts(orders: Vec<Sort>, schema: &DFSchema) -> Result<Vec<Sort>> {
    let sort = |order: Sort| Ok(Sort { expr: key(order.expr, schema)?, ..order });
    orders.into_iter().map(sort).collect()
}

/// GROUP BY keys, with the groups' values behind it.
fn grouped(grouping: Aggregate) -> Result<LogicalPlan> {
    let schema = grouping.input.schema();
    let mut shown = vec![];
    for expr in grouping_set_to_exprlist(&grouping.group_expr)? {
        if is_carried(&expr.get_type(schema)?) {
            shown.push(expr.clone());
        }
    }
    if shown.is_empty() {
        return Ok(LogicalPlan::Aggregate(grouping));
    }
    let group_expr = grouping.group_expr.into_iter().map(|group| match group {
        Expr::GroupingSet(set) => Ok(Expr::GroupingSet(match set {
            GroupingSet::Rollup(exprs) => GroupingSet::Rollup(keys(exprs, schema)?),
            GroupingSet::Cube(exprs) => GroupingSet::Cube(keys(exprs, schema)?),
            GroupingSet::GroupingSets(sets) => {
                let sets = sets.into_iter().map(|exprs| keys(exprs, schema));
                GroupingSet::GroupingSets(sets.collect::<Result<_>>()?)
            }
        })),
        other => key(other, schema),
    });
    let group_expr = group_expr.collect::<Result<Vec<_>>>()?;
    let minimum = aggregate::minimum();
    let mut aggr_expr = grouping.aggr_expr;
    let own = aggr_expr.len();
    for (number, expr) in shown.into_iter().enumerate() {
        let call =
            AggregateFunction::new_udf(Arc::clone(&minimum), vec![expr], false, None, vec![], None);
        aggr_expr.push(Expr::AggregateFunction(call).alias(format!("{SHOWN} {number}")));
    }
    let keyed = Aggregate::try_new(grouping.input, group_expr, aggr_expr)?;
    let wanted = grouping.schema;
    let groups = wanted.fields().len() - own;
    let column = |place: usize| {
        let column = keyed.schema.qualified_field(place);
        Expr::Column(Column::from(column))
    };
    // The values stand behind the columns that are wanted.
    let mut value = wanted.fields().len();
    let columns = wanted.iter().enumerate().map(|(place, (relation, field))| {
        let mut expr = column(place);
        if place < groups && is_carried(field.data_type()) {
            // A grouping set that leaves the column out has no key, and shows nothing.
            let absent = Expr::IsNull(Box::new(expr));
            let nothing = Expr::Literal(ScalarValue::LargeBinary(None), None);
            expr = Expr::Case(Case {
                expr: None,
                when_then_expr: vec![(Box::new(absent), Box::new(nothing))],
                else_expr: Some(Box::new(column(value))),
            });
            value += 1;
        }
        expr.alias_qualified(relation.cloned(), field.name())
    });
    let columns = columns.collect::<Vec<_>>();
    let projection = Projection::try_new(columns, Arc::new(LogicalPlan::Aggregate(keyed)))?;
    Ok(LogicalPlan::Projection(projection))
}
