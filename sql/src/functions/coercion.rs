//! Settles the types of a plan as PostgreSQL would, from the leaves up.
//!
//! DataFusion's own coercion does most of the work, and each expression goes through it after our
//! rules have: literals of no type take the type that their neighbours ask for, what is compared or
//! put together gets PostgreSQL's common type, and what PostgreSQL refuses to mix is refused. A
//! second pass then makes every cast one of [`super::cast`], so that none is left that rounds, wraps
//! or overflows differently.

mod alike;
mod arguments;
mod casts;
mod columns;
mod keys;
mod numbers;
mod operands;
mod recursion;

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRewriter};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, GroupingSet, LogicalPlan, Projection, Values};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercionRewriter;

use crate::Type;
use crate::text::{TextFormat, TimeZone};
use casts::Casts;
use operands::Operands;

/// The rule.
#[derive(Debug)]
pub(super) struct Coercion;

impl AnalyzerRule for Coercion {
    fn name(&self) -> &str {
        "postgresql_coercion"
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        let format = format(config);
        let plan = plan.transform_down_with_subqueries(gathered)?.data;
        let settled = plan.transform_up_with_subqueries(|plan| settle(plan, &format))?.data;
        let cast = settled.transform_up_with_subqueries(|plan| recast(plan, &format))?.data;
        let alike = cast.transform_up_with_subqueries(alike::rewrite)?.data;
        Ok(alike.transform_up_with_subqueries(keyed)?.data)
    }
}

/// How the session reads the literals of its statements.
fn format(config: &ConfigOptions) -> TextFormat {
    let zone = config.execution.time_zone.as_deref();
    let time_zone = zone.and_then(|zone| TimeZone::parse(zone).ok()).unwrap_or_default();
    TextFormat { time_zone, ..TextFormat::default() }
}

/// The columns that a node's expressions may read.
fn readable(plan: &LogicalPlan) -> Result<DFSchema> {
    let mut schema = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = plan {
        let source =
            DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?;
        schema.merge(&source);
    }
    Ok(schema)
}

fn settle(plan: LogicalPlan, format: &TextFormat) -> Result<Transformed<LogicalPlan>> {
    let schema = readable(&plan)?;
    let plan = Operands { schema: &schema, format }.plan(plan)?;
    // Its inputs may have other types now.
    let schema = readable(&plan)?;
    let operands = Operands { schema: &schema, format };
    let names = NamePreserver::new(&plan);
    let mut rewriter = Settle { operands: &operands, standard: TypeCoercionRewriter::new(&schema) };
    let mut rewrite = |expr: Expr| Ok(expr.rewrite(&mut rewriter)?.data);
    plan.map_expressions(|expr| Ok(Transformed::yes(renamed(expr, &names, &mut rewrite)?)))?
        .map_data(|plan| TypeCoercionRewriter::new(&schema).coerce_plan(plan))?
        .map_data(|plan| plan.recompute_schema())?
        .map_data(operands::elements_known)
}

/// Rewrites an expression of a node, which keeps the name by which others know it. The members of
/// grouping sets have their names, not the sets.
fn renamed(
    expr: Expr,
    names: &NamePreserver,
    rewrite: &mut dyn FnMut(Expr) -> Result<Expr>,
) -> Result<Expr> {
    let Expr::GroupingSet(set) = expr else {
        let name = names.save(&expr);
        return Ok(name.restore(rewrite(expr)?));
    };
    let mut each = |members: Vec<Expr>| {
        let members = members.into_iter().map(|member| renamed(member, names, rewrite));
        members.collect::<Result<Vec<_>>>()
    };
    Ok(Expr::GroupingSet(match set {
        GroupingSet::Rollup(members) => GroupingSet::Rollup(each(members)?),
        GroupingSet::Cube(members) => GroupingSet::Cube(each(members)?),
        GroupingSet::GroupingSets(sets) => {
            GroupingSet::GroupingSets(sets.into_iter().map(each).collect::<Result<_>>()?)
        }
    }))
}

/// A literal or parameter whose type nothing has settled yet.
pub(super) fn is_untyped(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(ScalarValue::Utf8(_), None)) || is_untyped_parameter(expr)
}

/// A parameter whose type nothing has settled yet.
pub(super) fn is_untyped_parameter(expr: &Expr) -> bool {
    matches!(expr, Expr::Placeholder(Placeholder { field: Some(field), .. })
        if Type::of(field) == Some(Type::Unknown))
}

struct Settle<'a> {
    operands: &'a Operands<'a>,
    standard: TypeCoercionRewriter<'a>,
}

impl TreeNodeRewriter for Settle<'_> {
    type Node = Expr;

    fn f_up(&mut self, expr: Expr) -> Result<Transformed<Expr>> {
        let expr = self.operands.expr(expr)?;
        let expr = self.standard.f_up(expr)?.data;
        Ok(Transformed::yes(expr))
    }
}

/// VALUES that came as a UNION ALL of its rows.
fn gathered(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Union(union) = &plan else { return Ok(Transformed::no(plan)) };
    let mut values = vec![];
    let mut inputs: Vec<_> = union.inputs.iter().rev().collect();
    while let Some(input) = inputs.pop() {
        match input.as_ref() {
            LogicalPlan::Union(union) => inputs.extend(union.inputs.iter().rev()),
            LogicalPlan::Projection(Projection { expr, input, .. })
                if matches!(input.as_ref(), LogicalPlan::EmptyRelation(_))
                    && expr.iter().zip(1..).all(|(expr, place)| is_of_values(expr, place)) =>
            {
                values.push(expr.iter().map(|expr| expr.clone().unalias()).collect());
            }
            _ => return Ok(Transformed::no(plan)),
        }
    }
    let schema = Arc::clone(&union.schema);
    Ok(Transformed::yes(LogicalPlan::Values(Values { schema, values })))
}

/// Whether it may be a plain value of VALUES.
fn is_of_values(expr: &Expr, place: usize) -> bool {
    let is_name = matches!(expr, Expr::Alias(alias) if alias.name == format!("column{place}"));
    let is_plain = |expr: &Expr| {
        !matches!(
            expr,
            Expr::ScalarSubquery(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
                | Expr::OuterReferenceColumn(..)
                | Expr::Unnest(_)
                | Expr::AggregateFunction(_)
                | Expr::WindowFunction(_)
        )
    };
    is_name && !expr.exists(|expr| Ok(!is_plain(expr))).unwrap_or(true)
}

fn keyed(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if matches!(plan, LogicalPlan::TableScan(_)) {
        return Ok(Transformed::no(plan));
    }
    let schema = readable(&plan)?;
    keys::plan(plan, &schema)?.map_data(|plan| plan.recompute_schema())
}

fn recast(plan: LogicalPlan, format: &TextFormat) -> Result<Transformed<LogicalPlan>> {
    // A scan's filters are DataFusion's own business; none is there yet.
    if matches!(plan, LogicalPlan::TableScan(_)) {
        return Ok(Transformed::no(plan));
    }
    let schema = readable(&plan)?;
    let casts = Casts { schema: &schema, format };
    let names = NamePreserver::new(&plan);
    let mut rewrite = |expr: Expr| Ok(expr.transform_up(|expr| casts.expr(expr))?.data);
    plan.map_expressions(|expr| Ok(Transformed::yes(renamed(expr, &names, &mut rewrite)?)))?
        .map_data(|plan| plan.recompute_schema())
}
