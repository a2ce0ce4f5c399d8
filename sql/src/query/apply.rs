//! Subqueries that DataFusion can't turn into joins, computed for each row around them.
//!
//! DataFusion goes first: what it plans is planned as a whole. Where it fails, or is known to be
//! wrong, such a subquery becomes an [`Apply`] below the node that asks for it: an operator that
//! computes it once for each distinct value of the columns it takes from outside. That is slower
//! than a join, and right for whatever the subquery is.

mod early;
mod operator;
mod outer;
mod rewrite;

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DFSchemaRef, Result};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::expr::SetQuantifier;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    Expr, Extension, LogicalPlan, Operator, UserDefinedLogicalNode, UserDefinedLogicalNodeCore,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};

use crate::Error;
use operator::ApplyExec;
use rewrite::Reach;

/// The operators that run a plan.
pub(super) async fn physical(
    state: &SessionState,
    plan: &LogicalPlan,
) -> Result<Arc<dyn ExecutionPlan>> {
    let optimized = optimize(state, plan)?;
    let planner = Planner { state: state.clone() };
    let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(planner)]);
    planner.create_physical_plan(&optimized, state).await
}

/// The operators that run a plan which is optimized and has nothing of ours in it.
pub(super) async fn operators(
    session: &dyn Session,
    plan: &LogicalPlan,
) -> Result<Arc<dyn ExecutionPlan>> {
    DefaultPhysicalPlanner::default().create_physical_plan(plan, session).await
}

/// The plan as it would be run.
pub(super) fn optimize(state: &SessionState, plan: &LogicalPlan) -> Result<LogicalPlan> {
    if !rewrite::has_subqueries(plan)? {
        return state.optimize(plan);
    }
    let mut failure = None;
    if !is_mistaken(plan)? {
        match state.optimize(plan) {
            Ok(optimized) if is_joined(&optimized)? => return Ok(optimized),
            Ok(_) => {}
            Err(error) => failure = Some(error),
        }
    }
    for reach in [Reach::Values, Reach::All] {
        let rewritten = rewrite::rewrite(plan, reach)?;
        match state.optimize(&rewritten) {
            Ok(optimized) if is_joined(&optimized)? => return Ok(optimized),
            Ok(_) => {}
            Err(error) => failure = Some(error),
        }
    }
    Err(failure.unwrap_or_else(|| Error::unsupported("such a correlated subquery").into()))
}

/// The plan with an [`Apply`] for every subquery that stands in an expression or in FROM, and none in
/// those: they may have some in turn.
pub(crate) fn with_applies(plan: &LogicalPlan) -> Result<LogicalPlan> {
    match rewrite::has_subqueries(plan)? {
        true => rewrite::rewrite(&early::early(plan)?, Reach::Everything),
        false => Ok(plan.clone()),
    }
}

/// Whether nothing is left that has no operator.
fn is_joined(plan: &LogicalPlan) -> Result<bool> {
    let mut is_joined = true;
    plan.apply(|plan| {
        is_joined &= !matches!(plan, LogicalPlan::Subquery(_));
        plan.apply_expressions(|expr| {
            expr.apply(|expr| {
                is_joined &= match expr {
                    Expr::Exists(_)
                    | Expr::InSubquery(_)
                    | Expr::SetComparison(_)
                    | Expr::OuterReferenceColumn(..) => false,
                    Expr::ScalarSubquery(subquery) => {
                        subquery.outer_ref_columns.is_empty()
                            && self::is_joined(&subquery.subquery)?
                    }
                    _ => true,
                };
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(is_joined)
}

/// Whether DataFusion would plan something else than is meant.
fn is_mistaken(plan: &LogicalPlan) -> Result<bool> {
    let mut is_mistaken = false;
    plan.apply_with_subqueries(|plan| {
        is_mistaken |= match plan {
            LogicalPlan::Filter(filter) => !rewrite::may_be_marked(&filter.predicate),
            LogicalPlan::Join(join) => !join.filter.iter().all(rewrite::may_be_marked),
            _ => false,
        };
        plan.apply_expressions(|expr| {
            is_mistaken |= expr.exists(rewrite::is_mistaken)?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(is_mistaken)
}

/// What is made of a subquery's rows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Hash)]
pub(crate) enum Kind {
    /// One column with the only row's value, or NULL.
    Scalar,
    /// One column: whether there is a row.
    Exists,
    /// One column: how the operand compares with the rows' values.
    Compared { op: Operator, quantifier: SetQuantifier },
    /// The subquery's columns, a row for each of its rows; or one with NULLs if it has none and
    /// none is to be lost.
    Lateral { keeps: bool },
}

/// Computes a subquery for each row of its input, and puts the outcome beside the row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Apply {
    pub(crate) input: LogicalPlan,
    /// With references to the columns of `outer`, and perhaps others from further outside.
    pub(crate) subquery: LogicalPlan,
    pub(crate) kind: Kind,
    /// The columns that the subquery takes from the input, by the name it calls them.
    pub(crate) outer: Vec<Column>,
    /// What the input has for them, followed by the operand of a comparison.
    pub(crate) expressions: Vec<Expr>,
    pub(crate) schema: DFSchemaRef,
}

impl PartialOrd for Apply {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match self.input.partial_cmp(&other.input) {
            Some(Ordering::Equal) => self.subquery.partial_cmp(&other.subquery),
            different => different,
        }
    }
}

impl Apply {
    fn into_plan(self) -> LogicalPlan {
        LogicalPlan::Extension(Extension { node: Arc::new(self) })
    }
}

impl UserDefinedLogicalNodeCore for Apply {
    fn name(&self) -> &str {
        "Apply"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        self.expressions.clone()
    }

    /// What a condition says of the rows alone is asked first: the subquery may fail for others.
    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        let added = self.schema.fields().iter().skip(self.input.schema().fields().len());
        added.map(|field| field.name().clone()).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Apply: {:?}", self.kind)
    }

    fn with_exprs_and_inputs(
        &self,
        expressions: Vec<Expr>,
        mut inputs: Vec<LogicalPlan>,
    ) -> Result<Self> {
        let input = inputs.pop().ok_or_else(|| Error::internal("an Apply without its input"))?;
        let added = self.schema.iter().skip(self.input.schema().fields().len());
        let fields = input.schema().iter().chain(added);
        let fields = fields.map(|(qualifier, field)| (qualifier.cloned(), Arc::clone(field)));
        let metadata = self.schema.as_arrow().metadata().clone();
        let schema = Arc::new(DFSchema::new_with_metadata(fields.collect(), metadata)?);
        Ok(Self { input, expressions, schema, ..self.clone() })
    }

    /// What the subquery takes stands in the expressions.
    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let width = self.input.schema().fields().len();
        Some(vec![output_columns.iter().copied().filter(|column| *column < width).collect()])
    }
}

/// Plans an [`Apply`].
struct Planner {
    state: SessionState,
}

#[async_trait]
impl ExtensionPlanner for Planner {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        planning: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(apply) = node.as_any().downcast_ref::<Apply>() else { return Ok(None) };
        let [input] = inputs else {
            return Err(Error::internal("an Apply needs one input").into());
        };
        let schema = apply.input.schema();
        let expressions = apply.expressions.iter();
        let expressions =
            expressions.map(|expr| planner.create_physical_expr(expr, schema, session, planning));
        let expressions = expressions.collect::<Result<_>>()?;
        Ok(Some(Arc::new(ApplyExec::new(apply, Arc::clone(input), expressions, &self.state))))
    }
}
