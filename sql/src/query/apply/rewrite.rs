//! Puts an `Apply` below what asks for a subquery.

use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ExprSchema, JoinType, Result, TableReference};
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    BinaryExpr, Expr, Filter, Join, LogicalPlan, LogicalPlanBuilder, Operator, Projection, Sort,
    Subquery,
};

use super::{Apply, Kind, outer};
use crate::{Error, Type};

/// The name that the columns of outcomes have in common.
const OUTCOME: &str = "stillframe outcome";

/// Which subqueries are computed row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Those that are more than a condition of WHERE.
    Values,
    /// All that DataFusion would have to turn into joins.
    All,
    /// All there are.
    Everything,
}

/// Whether a plan has subqueries in expressions, or beside the rows that they refer to.
pub(super) fn has_subqueries(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|plan| {
        if matches!(plan, LogicalPlan::Subquery(_)) {
            return Ok(true);
        }
        let mut found = false;
        plan.apply_expressions(|expr| {
            found |= expr.exists(|expr| {
                Ok(matches!(
                    expr,
                    Expr::Exists(_)
                        | Expr::InSubquery(_)
                        | Expr::SetComparison(_)
                        | Expr::ScalarSubquery(_)
                ))
            })?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(found)
    })
}

/// The plan with subqueries computed row by row.
pub(super) fn rewrite(plan: &LogicalPlan, reach: Reach) -> Result<LogicalPlan> {
    let mut rewriter = Rewriter { reach, outcomes: 0 };
    let rewritten = plan.clone().transform_up(|plan| rewriter.node(plan))?.data;
    if reach == Reach::Values {
        return Ok(rewritten);
    }
    // What is left stands in FROM without a neighbour that it could read from.
    let alone = rewritten.transform_up(|plan| match plan {
        LogicalPlan::Subquery(alone) => Ok(Transformed::yes(Arc::unwrap_or_clone(alone.subquery))),
        other => Ok(Transformed::no(other)),
    })?;
    Ok(alone.data)
}

struct Rewriter {
    reach: Reach,
    /// How many outcomes have a name.
    outcomes: usize,
}

impl Rewriter {
    fn node(&mut self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Join(join) if self.reach != Reach::Values && is_lateral(&join.right) => {
                Ok(Transformed::yes(lateral(join)?))
            }
            LogicalPlan::Join(join)
                if self.reach == Reach::Everything || !join.filter.iter().all(may_be_marked) =>
            {
                self.join(join)
            }
            LogicalPlan::Filter(filter) => self.filter(filter),
            LogicalPlan::Sort(sort) => self.sort(sort),
            plan @ (LogicalPlan::Projection(_)
            | LogicalPlan::Aggregate(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Limit(_)
            | LogicalPlan::Distinct(_)) => self.expressions(plan),
            other => Ok(Transformed::no(other)),
        }
    }

    fn filter(&mut self, filter: Filter) -> Result<Transformed<LogicalPlan>> {
        let columns = filter.input.schema().columns();
        let mut input = Arc::unwrap_or_clone(filter.input);
        let mut asked = split_conjunction_owned(filter.predicate);
        if self.reach == Reach::Everything {
            // Rows that another condition drops aren't asked about.
            let (with, without): (Vec<_>, Vec<_>) = asked.into_iter().partition(has_subquery);
            asked = with;
            if let Some(predicate) = conjunction(without) {
                input = LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(input))?);
            }
            if asked.is_empty() {
                return Ok(Transformed::yes(input));
            }
        }
        let mut conjuncts = vec![];
        for conjunct in asked {
            if self.reach == Reach::Values && is_join(&conjunct)? {
                conjuncts.push(conjunct);
            } else {
                conjuncts.push(self.expression(conjunct, &mut input)?);
            }
        }
        let predicate = conjunction(conjuncts)
            .ok_or_else(|| Error::internal("a filter without a condition"))?;
        let grows = input.schema().fields().len() > columns.len();
        let plan = LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(input))?);
        Ok(Transformed::yes(if grows { only(plan, columns)? } else { plan }))
    }

    /// A join whose condition asks for subqueries.
    fn join(&mut self, mut join: Join) -> Result<Transformed<LogicalPlan>> {
        let conjuncts = join.filter.clone().map(split_conjunction_owned).unwrap_or_default();
        let (asked, plain): (Vec<_>, Vec<_>) = conjuncts.into_iter().partition(has_subquery);
        if asked.is_empty() {
            return Ok(Transformed::no(LogicalPlan::Join(join)));
        }
        join.filter = conjunction(plain);
        if join.join_type == JoinType::Inner {
            let predicate =
                conjunction(asked).ok_or_else(|| Error::internal("a condition is lost"))?;
            let plan = LogicalPlan::Join(join);
            return self.filter(Filter::try_new(predicate, Arc::new(plan))?);
        }
        // Their outcomes are computed beside the rows of one side.
        let columns = join.schema.columns();
        let mut left = Arc::unwrap_or_clone(join.left);
        let mut right = Arc::unwrap_or_clone(join.right);
        let mut conjuncts = join.filter.into_iter().collect::<Vec<_>>();
        for conjunct in asked {
            let is_left = is_of(&conjunct, left.schema())?;
            if !is_left && !is_of(&conjunct, right.schema())? {
                let what = "a subquery of both sides in the condition of an outer join";
                return Err(Error::unsupported(what).into());
            }
            let side = if is_left { &mut left } else { &mut right };
            conjuncts.push(self.expression(conjunct, side)?);
        }
        let plan = Join::try_new(
            Arc::new(left),
            Arc::new(right),
            join.on,
            conjunction(conjuncts),
            join.join_type,
            join.join_constraint,
            join.null_equality,
            join.null_aware,
        )?;
        Ok(Transformed::yes(only(LogicalPlan::Join(plan), columns)?))
    }

    /// A subquery in ORDER BY may take columns that aren't among the results.
    fn sort(&mut self, mut sort: Sort) -> Result<Transformed<LogicalPlan>> {
        let columns = sort.input.schema().columns();
        if let LogicalPlan::Projection(projection) = sort.input.as_ref() {
            let mut missing = vec![];
            for order in &sort.expr {
                order.expr.apply(|expr| {
                    if let Some(subquery) = subquery_of(expr) {
                        let below = projection.input.schema();
                        missing.extend(outer::columns(&subquery.subquery, below)?);
                    }
                    Ok(TreeNodeRecursion::Continue)
                })?;
            }
            missing.retain(|column| !projection.schema.has_column(column));
            missing.dedup();
            let exprs = projection.expr.iter().cloned();
            let exprs = exprs.chain(missing.into_iter().map(Expr::Column)).collect();
            let wider = Projection::try_new(exprs, Arc::clone(&projection.input))?;
            sort.input = Arc::new(LogicalPlan::Projection(wider));
        }
        let plan = self.expressions(LogicalPlan::Sort(sort))?.data;
        let grows = plan.schema().fields().len() > columns.len();
        Ok(Transformed::yes(if grows { only(plan, columns)? } else { plan }))
    }

    fn expressions(&mut self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        let mut found = false;
        plan.apply_expressions(|expr| {
            found |= expr.exists(|expr| Ok(subquery_of(expr).is_some()))?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        let [input] = plan.inputs()[..] else { return Ok(Transformed::no(plan)) };
        if !found {
            return Ok(Transformed::no(plan));
        }
        let columns = plan.schema().columns();
        let mut input = input.clone();
        let names = NamePreserver::new(&plan);
        let mut expressions = vec![];
        for expr in plan.expressions() {
            let name = names.save(&expr);
            expressions.push(name.restore(self.expression(expr, &mut input)?));
        }
        let plan = plan.with_new_exprs(expressions, vec![input])?;
        let grows = plan.schema().fields().len() > columns.len();
        Ok(Transformed::yes(if grows { only(plan, columns)? } else { plan }))
    }

    /// The expression with columns of outcomes in place of subqueries, which `input` computes.
    fn expression(&mut self, expr: Expr, input: &mut LogicalPlan) -> Result<Expr> {
        let rewritten = expr.transform_up(|expr| {
            Ok(match expr {
                Expr::ScalarSubquery(subquery)
                    if subquery.outer_ref_columns.is_empty() && self.reach != Reach::Everything =>
                {
                    // DataFusion computes it once, first of all.
                    let inside = rewrite(&subquery.subquery, self.reach)?;
                    let subquery = Subquery { subquery: Arc::new(inside), ..subquery };
                    Transformed::yes(Expr::ScalarSubquery(subquery))
                }
                Expr::ScalarSubquery(subquery) => {
                    let field = Arc::clone(&subquery.subquery.schema().fields()[0]);
                    Transformed::yes(self.outcome(input, subquery, Kind::Scalar, field, None)?)
                }
                Expr::Exists(Exists { subquery, negated }) => {
                    let outcome = self.outcome(input, subquery, Kind::Exists, boolean(), None)?;
                    Transformed::yes(negated_if(negated, outcome))
                }
                Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
                    let kind = Kind::Compared { op: Operator::Eq, quantifier: SetQuantifier::Any };
                    let outcome = self.outcome(input, subquery, kind, boolean(), Some(*expr))?;
                    Transformed::yes(negated_if(negated, outcome))
                }
                Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
                    let kind = Kind::Compared { op, quantifier };
                    let outcome = self.outcome(input, subquery, kind, boolean(), Some(*expr))?;
                    Transformed::yes(outcome)
                }
                other => Transformed::no(other),
            })
        })?;
        Ok(rewritten.data)
    }

    /// Adds a column with a subquery's outcome to the input; returns it.
    fn outcome(
        &mut self,
        input: &mut LogicalPlan,
        subquery: Subquery,
        kind: Kind,
        field: FieldRef,
        operand: Option<Expr>,
    ) -> Result<Expr> {
        self.outcomes += 1;
        let name = format!("{OUTCOME} {}", self.outcomes);
        let qualifier = TableReference::bare(OUTCOME);
        let field = field.as_ref().clone().with_name(&name).with_nullable(true);
        let fields = vec![(Some(qualifier.clone()), Arc::new(field))];
        let below = std::mem::take(input);
        let subquery = Arc::unwrap_or_clone(subquery.subquery);
        *input = apply(below, subquery, kind, fields, operand)?;
        Ok(Expr::Column(Column::new(Some(qualifier), name)))
    }
}

fn boolean() -> FieldRef {
    Arc::new(Type::Boolean.field("", true))
}

fn negated_if(negated: bool, expr: Expr) -> Expr {
    if negated { Expr::Not(Box::new(expr)) } else { expr }
}

fn only(plan: LogicalPlan, columns: Vec<Column>) -> Result<LogicalPlan> {
    LogicalPlanBuilder::from(plan).project(columns.into_iter().map(Expr::Column))?.build()
}

/// Whether DataFusion would turn a condition of WHERE into a join, and rightly.
fn is_join(conjunct: &Expr) -> Result<bool> {
    Ok(match conjunct {
        Expr::Not(inner) => !is_mistaken(conjunct)? && is_join(inner)?,
        Expr::Exists(_) | Expr::InSubquery(_) => !is_mistaken(conjunct)? && may_be_marked(conjunct),
        _ => false,
    })
}

/// Whether DataFusion would make something else of an expression than is meant.
pub(super) fn is_mistaken(expr: &Expr) -> Result<bool> {
    // For a correlated NOT IN, a NULL of any row would be one of its own.
    let is_not_in = match expr {
        Expr::InSubquery(InSubquery { subquery, negated: true, .. }) => is_correlated(subquery),
        Expr::Not(inner) => match inner.as_ref() {
            Expr::InSubquery(InSubquery { subquery, .. }) => is_correlated(subquery),
            _ => false,
        },
        _ => false,
    };
    let Some(subquery) = subquery_of(expr) else { return Ok(is_not_in) };
    // An aggregate over everything has a row for the outer rows without any, too.
    let has_row = !matches!(expr, Expr::ScalarSubquery(_))
        && is_correlated(subquery)
        && subquery.subquery.exists(|plan| {
            Ok(matches!(plan, LogicalPlan::Aggregate(of_all) if of_all.group_expr.is_empty()))
        })?;
    Ok(is_not_in || has_row || outer::skips_level(&subquery.subquery)?)
}

/// Whether a condition is met by the same rows if an IN that is NULL in it is false instead: that is
/// what a mark says.
pub(super) fn may_be_marked(condition: &Expr) -> bool {
    let is_marked = |expr: &Expr| Ok(matches!(expr, Expr::InSubquery(_)));
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            may_be_marked(left) && may_be_marked(right)
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            is_positive(left) && is_positive(right)
        }
        // As a whole condition it becomes a join, which tells NULL.
        Expr::InSubquery(search) => !search.expr.exists(is_marked).unwrap_or(true),
        Expr::Not(inner) if matches!(inner.as_ref(), Expr::InSubquery(_)) => may_be_marked(inner),
        other => !other.exists(is_marked).unwrap_or(true),
    }
}

/// The same below OR, where it becomes no join.
fn is_positive(condition: &Expr) -> bool {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And | Operator::Or, right }) => {
            is_positive(left) && is_positive(right)
        }
        Expr::InSubquery(search) => !search.negated && may_be_marked(condition),
        Expr::Not(_) => {
            !condition.exists(|expr| Ok(matches!(expr, Expr::InSubquery(_)))).unwrap_or(true)
        }
        other => may_be_marked(other),
    }
}

fn has_subquery(expr: &Expr) -> bool {
    expr.exists(|expr| Ok(subquery_of(expr).is_some())).unwrap_or(true)
}

/// Whether the subqueries of an expression, and what is compared with them, only take columns of
/// a schema.
fn is_of(expr: &Expr, schema: &DFSchema) -> Result<bool> {
    let mut is_of = true;
    expr.apply(|expr| {
        if let Some(subquery) = subquery_of(expr) {
            let is_own = |expr: &Expr| match expr {
                Expr::OuterReferenceColumn(_, column) => schema.has_column(column),
                _ => false,
            };
            is_of &= subquery.outer_ref_columns.iter().all(is_own);
            let operand = match expr {
                Expr::InSubquery(search) => Some(&search.expr),
                Expr::SetComparison(comparison) => Some(&comparison.expr),
                _ => None,
            };
            let columns = operand.map(|operand| operand.column_refs()).unwrap_or_default();
            is_of &= columns.into_iter().all(|column| schema.has_column(column));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(is_of)
}

fn is_correlated(subquery: &Subquery) -> bool {
    !subquery.outer_ref_columns.is_empty()
}

/// The subquery that an expression is about.
pub(super) fn subquery_of(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::ScalarSubquery(subquery)
        | Expr::Exists(Exists { subquery, .. })
        | Expr::InSubquery(InSubquery { subquery, .. })
        | Expr::SetComparison(SetComparison { subquery, .. }) => Some(subquery),
        _ => None,
    }
}

fn apply(
    input: LogicalPlan,
    subquery: LogicalPlan,
    kind: Kind,
    added: Vec<(Option<TableReference>, FieldRef)>,
    operand: Option<Expr>,
) -> Result<LogicalPlan> {
    let schema = input.schema();
    let outer = outer::columns(&subquery, schema)?;
    let expressions = outer.iter().cloned().map(Expr::Column).chain(operand).collect();
    let fields = schema.iter().map(|(qualifier, field)| (qualifier.cloned(), Arc::clone(field)));
    let fields = fields.chain(added).collect();
    let schema =
        Arc::new(DFSchema::new_with_metadata(fields, schema.as_arrow().metadata().clone())?);
    Ok(Apply { input, subquery, kind, outer, expressions, schema }.into_plan())
}

/// Whether the right side of a join refers to the left one.
fn is_lateral(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Subquery(_) => true,
        LogicalPlan::SubqueryAlias(alias) => is_lateral(&alias.input),
        LogicalPlan::Projection(projection) => is_lateral(&projection.input),
        _ => false,
    }
}

/// A join with what refers to its left side.
fn lateral(join: Join) -> Result<LogicalPlan> {
    let keeps = match join.join_type {
        JoinType::Inner => false,
        JoinType::Left => true,
        other => return Err(Error::unsupported(format!("{other} JOIN LATERAL")).into()),
    };
    let left = Arc::unwrap_or_clone(join.left);
    let right = Arc::unwrap_or_clone(join.right).transform_down(|plan| match plan {
        LogicalPlan::Subquery(subquery) => Ok(Transformed::new(
            Arc::unwrap_or_clone(subquery.subquery),
            true,
            TreeNodeRecursion::Stop,
        )),
        other => Ok(Transformed::no(other)),
    })?;
    let mut right = right.data;
    let added: Vec<_> = right
        .schema()
        .iter()
        .map(|(qualifier, field)| {
            (qualifier.cloned(), Arc::new(field.as_ref().clone().with_nullable(true)))
        })
        .collect();
    // The condition is one on the right side, with columns from outside.
    let on = join.on.into_iter().map(|(left, right)| left.eq(right));
    if let Some(condition) = conjunction(on.chain(join.filter)) {
        let schema = left.schema();
        let condition = condition.transform_up(|expr| match expr {
            Expr::Column(column) if schema.has_column(&column) => {
                let field = schema.field_from_column(&column)?;
                let field: FieldRef = Arc::clone(field);
                Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
            }
            other => Ok(Transformed::no(other)),
        })?;
        right = LogicalPlan::Filter(Filter::try_new(condition.data, Arc::new(right))?);
    }
    apply(left, right, Kind::Lateral { keeps }, added, None)
}
