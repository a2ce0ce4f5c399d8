//! Plans that outlive the frame they were made under: those of a prepared statement.
//!
//! A plan is kept once it is optimized, its parameters still open. It holds nothing of its frame, so
//! it may be run under any other with the same catalog and the same settings.

use std::sync::{Arc, Mutex, PoisonError};

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Result as PlanResult, ScalarValue};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};
use datafusion::sql::sqlparser::ast;

use super::{PlannedQuery, Purpose, QueryContext, classify};
use crate::scan::{StoredTable, is_widening};
use crate::settings::Settings;
use crate::{Catalog, Error, RelationKind, Type};

/// A statement has one query, or those that find the rows which it changes.
const PLANS_MAX: usize = 8;

/// The plans of one prepared statement. Its clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plans(Arc<Mutex<Vec<Kept>>>);

/// A plan, and what it holds for.
#[derive(Clone, Debug)]
struct Kept {
    query: ast::Query,
    catalog: Arc<Catalog>,
    settings: Settings,
    ready: Arc<Ready>,
}

/// A query that only needs the values of its parameters to be run.
#[derive(Clone, Debug)]
pub(crate) struct Ready {
    pub(crate) planned: PlannedQuery,
    pub(super) way: Way,
}

/// How a plan becomes operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Once its parameters have their values it is optimized.
    Optimize,
    /// It is optimized.
    Optimized,
    /// It is optimized, and its operators can't be put together better than they are.
    Plain,
}

impl Plans {
    fn find(
        &self,
        context: &QueryContext,
        query: &ast::Query,
        declared: &[Option<Type>],
    ) -> Option<Arc<Ready>> {
        let plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = plans.iter().find(|kept| {
            Arc::ptr_eq(&kept.catalog, &context.catalog)
                && kept.settings.plans_like(&context.settings)
                && kept.ready.is_of_types(declared)
                && kept.query == *query
        })?;
        context.can_keep(&kept.ready.planned).then(|| Arc::clone(&kept.ready))
    }

    fn keep(&self, kept: Kept) {
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A plan of another catalog isn't asked for again.
        plans.retain(|other| Arc::ptr_eq(&other.catalog, &kept.catalog));
        if plans.len() == PLANS_MAX {
            plans.remove(0);
        }
        plans.push(kept);
    }
}

impl QueryContext {
    /// Plans a query, unless the statement has its plan already.
    pub(crate) fn ready(
        &self,
        query: &ast::Query,
        declared: &[Option<Type>],
    ) -> Result<Arc<Ready>, Error> {
        let Some(plans) = &self.plans else {
            let planned = self.plan(query, declared)?;
            return Ok(Arc::new(Ready { planned, way: Way::Optimize }));
        };
        if let Some(ready) = plans.find(self, query, declared) {
            return Ok(ready);
        }
        let mut planned = self.plan(query, declared)?;
        if !self.can_keep(&planned) || !is_lasting(&planned.plan).map_err(classify)? {
            return Ok(Arc::new(Ready { planned, way: Way::Optimize }));
        }
        let optimized = self.optimize(&planned.plan)?;
        if has_extensions(&optimized).map_err(classify)? {
            return Ok(Arc::new(Ready { planned, way: Way::Optimize }));
        }
        planned.plan = optimized;
        let way = if is_plain(&planned.plan) { Way::Plain } else { Way::Optimized };
        let ready = Arc::new(Ready { planned, way });
        plans.keep(Kept {
            query: query.clone(),
            catalog: Arc::clone(&self.catalog),
            settings: self.settings.clone(),
            ready: Arc::clone(&ready),
        });
        Ok(ready)
    }

    /// Whether a plan of the context is the same under other frames. A view isn't that reads what the
    /// transaction has changed.
    fn can_keep(&self, planned: &PlannedQuery) -> bool {
        let is_table = |id| {
            let relation = self.catalog.relations.get(id);
            relation.is_some_and(|relation| matches!(relation.kind, RelationKind::Table { .. }))
        };
        self.purpose == Purpose::Run
            && self.given.is_empty()
            && (self.frame.overlay().is_empty() || planned.reads.iter().all(is_table))
    }
}

impl Ready {
    /// Whether its parameters have the types that are declared.
    fn is_of_types(&self, declared: &[Option<Type>]) -> bool {
        let types = &self.planned.parameters;
        let is_declared = |(found, declared): (&Type, &Option<Type>)| {
            found == declared.as_ref().unwrap_or(&Type::Unknown)
        };
        types.len() <= declared.len() && types.iter().zip(declared).all(is_declared)
    }

    /// The plan with the values of its parameters.
    pub(super) fn bind(&self, values: Vec<ScalarValue>) -> Result<LogicalPlan, Error> {
        let plan = self.planned.plan.clone();
        if values.is_empty() { Ok(plan) } else { plan.with_param_values(values).map_err(classify) }
    }
}

/// Whether a plan depends on nothing but the relations' rows and the values of its parameters, and
/// is optimized as well without those.
fn is_lasting(plan: &LogicalPlan) -> PlanResult<bool> {
    let mut is_lasting = true;
    plan.apply_with_subqueries(|plan| {
        is_lasting &= match plan {
            LogicalPlan::TableScan(scan) => {
                let provider = source_as_provider(&scan.source)?;
                let provider = provider.as_ref() as &dyn std::any::Any;
                provider.is::<StoredTable>()
            }
            // How many rows are wanted decides how they are sorted.
            LogicalPlan::Limit(limit) => {
                let bounds = limit.skip.iter().chain(&limit.fetch);
                bounds.into_iter().all(|bound| matches!(bound.as_ref(), Expr::Literal(..)))
            }
            _ => true,
        };
        plan.apply_expressions(|expr| {
            is_lasting &= !expr.exists(|expr| Ok(is_of_the_statement(expr) || is_open(expr)))?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(is_lasting)
}

/// Whether an expression depends on the session or on the time.
fn is_of_the_statement(expr: &Expr) -> bool {
    let volatility = match expr {
        Expr::ScalarFunction(function) => function.func.signature().volatility,
        Expr::AggregateFunction(function) => function.func.signature().volatility,
        Expr::ScalarVariable(..) => Volatility::Volatile,
        _ => Volatility::Immutable,
    };
    volatility != Volatility::Immutable
}

/// Whether an expression becomes a constant once parameters have values: then the optimizer could do
/// more with it.
fn is_open(expr: &Expr) -> bool {
    if matches!(expr, Expr::Placeholder(_) | Expr::Alias(_)) || is_widening(expr) {
        return false;
    }
    let has_columns =
        expr.exists(|expr| Ok(matches!(expr, Expr::Column(_) | Expr::OuterReferenceColumn(..))));
    let has_parameters = expr.exists(|expr| Ok(matches!(expr, Expr::Placeholder(_))));
    has_parameters.unwrap_or(true) && !has_columns.unwrap_or(false)
}

/// Whether a plan has nodes that DataFusion doesn't know.
fn has_extensions(plan: &LogicalPlan) -> PlanResult<bool> {
    let mut has_extensions = false;
    plan.apply_with_subqueries(|plan| {
        has_extensions |= matches!(plan, LogicalPlan::Extension(_));
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(has_extensions)
}

/// Whether a plan only picks rows of one relation and computes something of each.
fn is_plain(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::TableScan(scan) => scan.fetch.is_none(),
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) => {
            // Whoever optimizes the operators of a subquery does so to its own.
            let has_subqueries = plan.expressions().iter().any(|expr| {
                expr.exists(|expr| Ok(matches!(expr, Expr::ScalarSubquery(_)))).unwrap_or(true)
            });
            !has_subqueries && plan.inputs().into_iter().all(is_plain)
        }
        _ => false,
    }
}
