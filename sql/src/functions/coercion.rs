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
mod keys;
mod numbers;
mod operands;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRewriter};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, GroupingSet, LogicalPlan};
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
    let operands = Operands { schema: &schema, format };
    let plan = operands.plan(plan)?;
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
