//! Values of one type that are equal and yet differ: intervals of one length, `jsonb`s whose numbers
//! have other digits. What is compared, grouped or ordered by them is their keys; a group shows the
//! least of its values, by their keys and then by what they are.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, Result};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::min_max::min_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, ScalarFunction, Sort};
use datafusion::logical_expr::{
    Aggregate, Distinct, DistinctOn, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder,
};

use crate::functions::aggregate::sum;
use crate::functions::typed::{Typed, TypedFunction, kind_of};
use crate::functions::{interval, json};
use crate::{Error, SqlState, Type};

/// How values of a type are compared.
struct Keyed {
    /// The value's key.
    key: &'static Typed,
    /// Bytes that are ordered by the key and then by the value.
    sorted: &'static Typed,
    /// The value of such bytes.
    of_sorted: &'static Typed,
}

/// The functions of a type whose equal values can differ.
fn keyed(kind: &Type) -> Result<Option<Keyed>, Error> {
    match kind {
        Type::Interval => Ok(Some(Keyed {
            key: &interval::KEY,
            sorted: &interval::SORTED,
            of_sorted: &interval::OF_SORTED,
        })),
        Type::Jsonb => {
            Ok(Some(Keyed { key: &json::KEY, sorted: &json::SORTED, of_sorted: &json::OF_SORTED }))
        }
        Type::Json => Err(Error::new(
            SqlState::UNDEFINED_FUNCTION,
            "could not identify an equality operator for type json",
        )),
        _ => Ok(None),
    }
}

fn call(function: &'static Typed, argument: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(function.udf(), vec![argument]))
}

/// The key of an expression, or itself.
pub(super) fn key(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let Some(keyed) = keyed(&kind_of(&expr.to_field(schema)?.1))? else { return Ok(expr) };
    let is_key = matches!(&expr, Expr::ScalarFunction(call)
        if call.func.inner().downcast_ref::<TypedFunction>().is_some_and(|f| f.name() == keyed.key.name));
    Ok(if is_key { expr } else { call(keyed.key, expr) })
}

/// Whether values of the type are compared by keys.
pub(super) fn has_key(kind: &Type) -> bool {
    matches!(kind, Type::Interval | Type::Jsonb | Type::Json)
}

fn sort_keys(sorts: Vec<Sort>, schema: &DFSchema) -> Result<Vec<Sort>> {
    sorts.into_iter().map(|sort| Ok(Sort { expr: key(sort.expr, schema)?, ..sort })).collect()
}

/// One node of a plan whose types are settled.
pub(super) fn rewrite(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let has_keys = |schema: &DFSchema| schema.fields().iter().any(|field| has_key(&kind_of(field)));
    match plan {
        LogicalPlan::Sort(mut sort) => {
            let schema = Arc::clone(sort.input.schema());
            sort.expr = sort_keys(sort.expr, &schema)?;
            Ok(Transformed::yes(LogicalPlan::Sort(sort)))
        }
        LogicalPlan::Distinct(Distinct::All(input)) if has_keys(input.schema()) => {
            let columns: Vec<_> = input.schema().columns().into_iter().map(Expr::Column).collect();
            let grouped = Aggregate::try_new(input, columns, vec![])?;
            aggregate(grouped).map(Transformed::yes)
        }
        LogicalPlan::Distinct(Distinct::On(on)) => {
            let schema = Arc::clone(on.input.schema());
            let on_expr = on.on_expr.into_iter().map(|expr| key(expr, &schema));
            let on_expr = on_expr.collect::<Result<_>>()?;
            let sort_expr = on.sort_expr.map(|sorts| sort_keys(sorts, &schema)).transpose()?;
            let on = DistinctOn { on_expr, sort_expr, ..on };
            Ok(Transformed::yes(LogicalPlan::Distinct(Distinct::On(on))))
        }
        LogicalPlan::Aggregate(grouping) if concerns(&grouping)? => {
            aggregate(grouping).map(Transformed::yes)
        }
        other => Ok(Transformed::no(other)),
    }
}

fn unaliased(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => unaliased(&alias.expr),
        other => other,
    }
}

/// Whether an aggregation groups by keys or aggregates what has them.
fn concerns(grouping: &Aggregate) -> Result<bool> {
    let schema = grouping.input.schema();
    for group in &grouping.group_expr {
        let parts = match group {
            Expr::GroupingSet(sets) => sets.distinct_expr().into_iter().cloned().collect(),
            group => vec![group.clone()],
        };
        for part in parts {
            if has_key(&kind_of(&part.to_field(schema)?.1)) {
                return Ok(true);
            }
        }
    }
    for call in &grouping.aggr_expr {
        if let Expr::AggregateFunction(call) = unaliased(call) {
            let orders = call.params.order_by.iter().map(|sort| &sort.expr);
            for operand in call.params.args.iter().chain(orders) {
                if has_key(&kind_of(&operand.to_field(schema)?.1)) {
                    return Ok(true);
                }
            }
        }
    }
    Ok(false)
}

/// Groups by keys, and shows values.
fn aggregate(grouping: Aggregate) -> Result<LogicalPlan> {
    let Aggregate { input, group_expr, aggr_expr, schema, .. } = grouping;
    let below = Arc::clone(input.schema());
    let (mut groups, mut calls, mut shown) = (vec![], vec![], vec![]);
    for group in group_expr {
        if matches!(group, Expr::GroupingSet(_)) {
            let what = "GROUPING SETS, CUBE or ROLLUP over values of type interval or jsonb";
            return Err(Error::unsupported(what).into());
        }
        let (relation, name) = group.qualified_name();
        match keyed(&kind_of(&group.to_field(&below)?.1))? {
            None => {
                groups.push(group);
                shown.push(Expr::Column(Column::new(relation, name)));
            }
            Some(keyed) => {
                let least = format!("least {}", groups.len());
                let value = unaliased(&group).clone();
                groups.push(call(keyed.key, value.clone()).alias(format!("key {}", groups.len())));
                let sorted = call(keyed.sorted, value);
                calls.push(aggregated(min_udaf(), vec![sorted]).alias(&least));
                let least = Expr::Column(Column::new_unqualified(least));
                shown.push(call(keyed.of_sorted, least));
            }
        }
    }
    for found in aggr_expr {
        let name = found.qualified_name().1;
        let column = |name: String| Expr::Column(Column::new_unqualified(name));
        let Expr::AggregateFunction(mut function) = unaliased(&found).clone() else {
            shown.push(column(name));
            calls.push(found);
            continue;
        };
        function.params.order_by = sort_keys(function.params.order_by, &below)?;
        let kind = match function.params.args.first() {
            Some(argument) => kind_of(&argument.to_field(&below)?.1),
            None => Type::Unknown,
        };
        match (function.func.name(), has_key(&kind)) {
            ("min" | "max", true) => {
                let Some(keyed) = keyed(&kind)? else { return Err(no_extreme(&kind).into()) };
                if kind == Type::Jsonb {
                    return Err(no_extreme(&kind).into());
                }
                let place = format!("sorted {}", calls.len());
                let args = std::mem::take(&mut function.params.args);
                function.params.args =
                    args.into_iter().map(|argument| call(keyed.sorted, argument)).collect();
                calls.push(Expr::AggregateFunction(function).alias(&place));
                shown.push(call(keyed.of_sorted, column(place)));
            }
            ("count", true) if function.params.distinct => {
                let args = std::mem::take(&mut function.params.args);
                let args = args.into_iter().map(|argument| key(argument, &below));
                function.params.args = args.collect::<Result<_>>()?;
                calls.push(Expr::AggregateFunction(function).alias(&name));
                shown.push(column(name));
            }
            ("sum" | "avg", true) if kind == Type::Interval && !function.params.distinct => {
                let is_average = function.func.name() == "avg";
                let mut sums = vec![];
                for part in &interval::PARTS {
                    sums.push(column(format!("part {}", calls.len())));
                    let mut summed = function.clone();
                    summed.func = sum();
                    let args = summed.params.args.into_iter().map(|value| call(part, value));
                    summed.params.args = args.collect();
                    let place = format!("part {}", calls.len());
                    calls.push(Expr::AggregateFunction(summed).alias(place));
                }
                if is_average {
                    let place = format!("part {}", calls.len());
                    function.func = count_udaf();
                    calls.push(Expr::AggregateFunction(function).alias(&place));
                    sums.push(column(place));
                }
                let of_sums = interval::OF_SUMS.udf();
                shown.push(Expr::ScalarFunction(ScalarFunction::new_udf(of_sums, sums)));
            }
            (aggregate, true) if function.params.distinct => {
                let what = format!("{aggregate} of distinct values of type {kind}");
                return Err(Error::unsupported(what).into());
            }
            _ => {
                calls.push(Expr::AggregateFunction(function).alias(&name));
                shown.push(column(name));
            }
        }
    }
    let grouped = LogicalPlan::Aggregate(Aggregate::try_new(input, groups, calls)?);
    let columns = shown
        .into_iter()
        .zip(schema.iter())
        .map(|(shown, (relation, field))| shown.alias_qualified(relation.cloned(), field.name()));
    LogicalPlanBuilder::from(grouped).project(columns.collect::<Vec<_>>())?.build()
}

fn aggregated(function: Arc<datafusion::logical_expr::AggregateUDF>, args: Vec<Expr>) -> Expr {
    Expr::AggregateFunction(AggregateFunction::new_udf(function, args, false, None, vec![], None))
}

fn no_extreme(kind: &Type) -> Error {
    let message = format!("function min({kind}) does not exist");
    Error::new(SqlState::UNDEFINED_FUNCTION, message)
}
