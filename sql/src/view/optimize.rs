//! The few optimizer rules that a view's query goes through.

use std::sync::{Arc, LazyLock};

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};
use datafusion::optimizer::Optimizer;
use datafusion::optimizer::eliminate_cross_join::EliminateCrossJoin;
use datafusion::optimizer::eliminate_filter::EliminateFilter;
use datafusion::optimizer::eliminate_outer_join::EliminateOuterJoin;
use datafusion::optimizer::extract_equijoin_predicate::ExtractEquijoinPredicate;
use datafusion::optimizer::optimize_projections::OptimizeProjections;
use datafusion::optimizer::push_down_filter::PushDownFilter;
use datafusion::optimizer::simplify_expressions::SimplifyExpressions;

use super::{set_operation, temporal};
use crate::query::{classify, with_applies};
use crate::{Error, SqlState};

/// Rules whose results stay within the protocol's operators.
static RULES: LazyLock<Optimizer> = LazyLock::new(|| {
    Optimizer::with_rules(vec![
        Arc::new(SimplifyExpressions::new()),
        // A condition without columns would be pushed below an aggregate that has a row of nothing.
        Arc::new(EliminateFilter::new()),
        Arc::new(ExtractEquijoinPredicate::new()),
        Arc::new(EliminateCrossJoin::new()),
        Arc::new(EliminateOuterJoin::new()),
        Arc::new(PushDownFilter::new()),
        Arc::new(OptimizeProjections::new()),
    ])
});

/// Brings a query, whose types are settled, near to the protocol's operators.
pub(super) fn optimize(state: &SessionState, query: &LogicalPlan) -> Result<LogicalPlan, Error> {
    let marked = temporal::marked(query.clone()).map_err(classify)?;
    refuse_volatile(&marked)?;
    optimize_subquery(state, &marked)
}

/// The same for a subquery of a query that has been looked at.
pub(super) fn optimize_subquery(
    state: &SessionState,
    query: &LogicalPlan,
) -> Result<LogicalPlan, Error> {
    let applied = with_applies(query).and_then(set_operation::marked).map_err(classify)?;
    RULES.optimize(applied, state, |_, _| {}).map_err(classify)
}

/// Refuses functions whose value depends on when, where or how often they are called. Must run
/// before anything is simplified: that makes a constant of `now()`.
fn refuse_volatile(query: &LogicalPlan) -> Result<(), Error> {
    let mut found = None;
    let visited = query.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::ScalarFunction(function) = expr
                    && function.func.signature().volatility != Volatility::Immutable
                {
                    found = Some(function.name().to_owned());
                    return Ok(TreeNodeRecursion::Stop);
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    visited.map_err(classify)?;
    let Some(function) = found else { return Ok(()) };
    if temporal::is_clock(&function) {
        return Err(temporal::misplaced(&function));
    }
    let message = format!("function {function}() is not supported in a materialized view");
    Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message).with_hint(
        "A view's rows may depend on nothing but the rows it reads. Store the value in a table, \
         or apply the function in the query that reads the view.",
    ))
}
