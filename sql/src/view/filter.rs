//! WHERE and HAVING.

use std::sync::Arc;

use datafusion::common::DFSchema;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Filter, LogicalPlan, Operator, Projection,
};
use stillframe_protocol::{BinaryOperator, Expression, Plan};

use super::equal::{Equalities, Key};
use super::{Compiler, Rows, build, temporal, topk};
use crate::Error;
use crate::query::{Apply, classify};

impl Compiler<'_> {
    /// The rows for which a condition is true.
    pub(super) fn filter(&self, filter: &Filter) -> Result<Rows, Error> {
        let conditions = split_conjunction(&filter.predicate);
        match filter.input.as_ref() {
            LogicalPlan::Extension(extension) => {
                if let Some(apply) = extension.node.as_any().downcast_ref::<Apply>() {
                    return self.filtered_apply(apply, &conditions);
                }
            }
            // What the optimizer puts between a subquery's outcome and the condition on it.
            LogicalPlan::Projection(projection) if picks_of_apply(projection) => {
                let input = Arc::clone(&projection.input);
                let below = Filter::try_new(filter.predicate.clone(), input).map_err(classify)?;
                return self.projected(projection, self.filter(&below)?);
            }
            _ => {}
        }
        let rows = self.rows(&filter.input)?;
        self.filtered(rows, filter.input.schema(), &conditions)
    }

    /// The rows for which all conditions are true.
    pub(super) fn filtered(
        &self,
        rows: Rows,
        schema: &DFSchema,
        conditions: &[&Expr],
    ) -> Result<Rows, Error> {
        if rows.depends || !conditions.iter().any(|condition| self.around.is_read_by(condition)) {
            return self.passing(rows, schema, conditions);
        }
        let (around, own): (Vec<_>, Vec<_>) =
            conditions.iter().copied().partition(|condition| self.around.is_read_by(condition));
        let rows = self.passing(rows, schema, &own)?;
        let mut equalities: Equalities = vec![];
        let mut residual = vec![];
        for condition in around {
            match self.equality(condition, schema, &rows)? {
                Some(equality) => equalities.push(equality),
                None => residual.push(self.convert(condition, schema, &rows)?),
            }
        }
        self.depending_where(rows, equalities, conjunction(residual))
    }

    fn passing(&self, rows: Rows, schema: &DFSchema, conditions: &[&Expr]) -> Result<Rows, Error> {
        let (of_clock, conditions): (Vec<&Expr>, Vec<&Expr>) =
            conditions.iter().copied().partition(|condition| temporal::reads_clock(condition));
        let rows = self.passing_always(rows, schema, &conditions)?;
        self.passing_now(rows, schema, &of_clock)
    }

    pub(super) fn passing_always(
        &self,
        rows: Rows,
        schema: &DFSchema,
        conditions: &[&Expr],
    ) -> Result<Rows, Error> {
        let conditions = conditions.iter().map(|expr| self.convert(expr, schema, &rows));
        match conjunction(conditions.collect::<Result<_, _>>()?) {
            None => Ok(rows),
            Some(predicate) => {
                let input = topk::cut(Arc::clone(&rows.plan), &predicate);
                let plan = Arc::new(Plan::Filter { input, predicate });
                Ok(Rows { plan, ..rows })
            }
        }
    }

    /// A condition that ties something of the rows to a value from around.
    fn equality(
        &self,
        condition: &Expr,
        schema: &DFSchema,
        rows: &Rows,
    ) -> Result<Option<(Key, usize)>, Error> {
        let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition else {
            return Ok(None);
        };
        let (own, outer) = match (left.as_ref(), right.as_ref()) {
            (Expr::OuterReferenceColumn(..), own) => (own, left.as_ref()),
            (own, Expr::OuterReferenceColumn(..)) => (own, right.as_ref()),
            _ => return Ok(None),
        };
        if own.contains_outer() || !own.any_column_refs() {
            return Ok(None);
        }
        let Expression::Column(value) = self.convert(outer, schema, rows)? else {
            return Ok(None);
        };
        let Some(domain) = &self.around.domain else { return Ok(None) };
        let value = value - rows.width;
        let found = own.get_type(schema).map_err(classify)?;
        let stored = build::stored_type(&found)?;
        if *domain.schema().field(value).data_type() != stored {
            return Ok(None);
        }
        let expression = self.convert(own, schema, rows)?;
        Ok(Some((Key { expression, found, stored }, value)))
    }
}

/// Whether a projection leaves columns of rows with the outcome of a subquery out, and does nothing else.
fn picks_of_apply(projection: &Projection) -> bool {
    let LogicalPlan::Extension(extension) = projection.input.as_ref() else { return false };
    extension.node.as_any().is::<Apply>()
        && projection.expr.iter().all(|expr| matches!(expr, Expr::Column(_)))
}

/// All of some conditions.
pub(super) fn conjunction(conditions: Vec<Expression>) -> Option<Expression> {
    conditions.into_iter().reduce(|left, right| Expression::Binary {
        operator: BinaryOperator::And,
        left: Box::new(left),
        right: Box::new(right),
    })
}
