//! Lifts columns of the query around out of a subquery.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType, Result, ScalarValue};
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{find_out_reference_exprs, split_conjunction};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, EmptyRelation, Expr, ExprFunctionExt, FetchType, Filter, Join,
    Limit, LogicalPlan, LogicalPlanBuilder, Operator, Projection, SkipType, Sort, cast, lit,
};

/// What a subquery is lifted from.
pub(super) struct Lift<'a> {
    /// The rows around, one of which the subquery is asked for at a time.
    pub(super) around: &'a LogicalPlan,
    /// The number of the next column that is read from there.
    pub(super) next: &'a Cell<usize>,
}

/// A column of a subquery, and what it equals in the row around.
type Key = (Column, Expr);

/// A plan without columns from around, and the keys that tie it to the row around.
type Lifted = (LogicalPlan, Vec<Key>);

impl Lift<'_> {
    /// A scalar subquery; what can't be lifted stays as it is.
    pub(super) fn scalar(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        self.subquery(plan, true)
    }

    /// The subquery of EXISTS or IN, of which conditions of every form can be lifted by DataFusion.
    pub(super) fn predicate(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        self.subquery(plan, false)
    }

    fn subquery(&self, plan: LogicalPlan, is_scalar: bool) -> Result<LogicalPlan> {
        if !is_needed(&plan, is_scalar)? {
            return Ok(plan);
        }
        let columns: Vec<_> = plan.schema().columns().into_iter().map(Expr::Column).collect();
        match self.plan(plan.clone())? {
            None => Ok(plan),
            Some((lifted, keys)) if keys.is_empty() => Ok(lifted),
            Some((lifted, keys)) => {
                LogicalPlanBuilder::from(tied(lifted, keys)?).project(columns)?.build()
            }
        }
    }

    /// `None` for what can't be lifted.
    fn plan(&self, plan: LogicalPlan) -> Result<Option<Lifted>> {
        if plan.all_out_ref_exprs().is_empty() {
            return Ok(Some((plan, vec![])));
        }
        let names = NamePreserver::new(&plan);
        match plan {
            LogicalPlan::Projection(projection) => {
                let Some(lifted) = self.plan(projection.input.as_ref().clone())? else {
                    return Ok(None);
                };
                let Some((input, keys, mut expr)) = self.read(lifted, projection.expr, &names)?
                else {
                    return Ok(None);
                };
                expr.extend(keys.iter().map(|(column, _)| Expr::Column(column.clone())));
                let plan = Projection::try_new(expr, Arc::new(input))?;
                Ok(Some((LogicalPlan::Projection(plan), keys)))
            }
            LogicalPlan::Filter(filter) => {
                let Some(lifted) = self.plan(filter.input.as_ref().clone())? else {
                    return Ok(None);
                };
                let read = self.read(lifted, vec![filter.predicate], &names)?;
                let Some((input, keys, mut predicate)) = read else { return Ok(None) };
                let Some(predicate) = predicate.pop() else { return Ok(None) };
                let plan = Filter::try_new(predicate, Arc::new(input))?;
                Ok(Some((LogicalPlan::Filter(plan), keys)))
            }
            LogicalPlan::Aggregate(aggregate) => {
                let Some(lifted) = self.plan(aggregate.input.as_ref().clone())? else {
                    return Ok(None);
                };
                let grouped = aggregate.group_expr.len();
                let is_one_row = grouped == 0;
                let expr = [aggregate.group_expr, aggregate.aggr_expr].concat();
                let Some((input, keys, mut group)) = self.read(lifted, expr, &names)? else {
                    return Ok(None);
                };
                let aggregates = group.split_off(grouped);
                if !is_one_row {
                    group.extend(keys.iter().map(|(column, _)| Expr::Column(column.clone())));
                    let plan = Aggregate::try_new(Arc::new(input), group, aggregates)?;
                    return Ok(Some((LogicalPlan::Aggregate(plan), keys)));
                }
                // What there is of no rows, DataFusion knows, if it finds the keys below.
                let input = tied(input, keys)?;
                let plan = Aggregate::try_new(Arc::new(input), group, aggregates)?;
                Ok(Some((LogicalPlan::Aggregate(plan), vec![])))
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let Some((input, keys)) = self.plan(alias.input.as_ref().clone())? else {
                    return Ok(None);
                };
                let plan = LogicalPlanBuilder::from(input).alias(alias.alias.clone())?.build()?;
                let keys = keys.into_iter().map(|(column, outer)| {
                    (Column::new(Some(alias.alias.clone()), column.name), outer)
                });
                Ok(Some((plan, keys.collect())))
            }
            // What stands in FROM and could read from its neighbours.
            LogicalPlan::Subquery(lateral) => self.plan(lateral.subquery.as_ref().clone()),
            LogicalPlan::Unnest(unnest) => {
                let Some((input, keys)) = self.plan(unnest.input.as_ref().clone())? else {
                    return Ok(None);
                };
                let plan = LogicalPlanBuilder::from(input)
                    .unnest_columns_with_options(unnest.exec_columns, unnest.options)?
                    .build()?;
                Ok(Some((plan, keys)))
            }
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let Some((input, keys)) = self.plan(input.as_ref().clone())? else {
                    return Ok(None);
                };
                Ok(Some((LogicalPlan::Distinct(Distinct::All(Arc::new(input))), keys)))
            }
            LogicalPlan::Sort(Sort { expr, input, fetch: None })
                if !expr.iter().any(|sort| sort.expr.contains_outer()) =>
            {
                let Some((input, keys)) = self.plan(input.as_ref().clone())? else {
                    return Ok(None);
                };
                let plan = Sort { expr, input: Arc::new(input), fetch: None };
                Ok(Some((LogicalPlan::Sort(plan), keys)))
            }
            LogicalPlan::Limit(limit) => self.limit(limit),
            LogicalPlan::Join(join) => self.join(join),
            _ => Ok(None),
        }
    }

    /// Rows are counted for each row around.
    fn limit(&self, limit: Limit) -> Result<Option<Lifted>> {
        let (SkipType::Literal(skip), FetchType::Literal(fetch)) =
            (limit.get_skip_type()?, limit.get_fetch_type()?)
        else {
            return Ok(None);
        };
        // What is ordered may be projected before it is counted.
        if let LogicalPlan::Projection(projection) = limit.input.as_ref()
            && matches!(projection.input.as_ref(), LogicalPlan::Sort(_))
        {
            let input = Arc::clone(&projection.input);
            let counted = LogicalPlan::Limit(Limit { input, ..limit.clone() });
            let plan = Projection::try_new(projection.expr.clone(), Arc::new(counted))?;
            return self.plan(LogicalPlan::Projection(plan));
        }
        let (input, order) = match limit.input.as_ref() {
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => {
                (sort.input.as_ref().clone(), sort.expr.clone())
            }
            other => (other.clone(), vec![]),
        };
        if order.iter().any(|sort| sort.expr.contains_outer()) {
            return Ok(None);
        }
        let Some((input, keys)) = self.plan(input)? else { return Ok(None) };
        let partition = keys.iter().map(|(column, _)| Expr::Column(column.clone())).collect();
        let number = format!("row {}", self.next.replace(self.next.get() + 1));
        let counted = row_number().partition_by(partition);
        let counted = if order.is_empty() { counted } else { counted.order_by(order) }.build()?;
        let count = Expr::Column(Column::new_unqualified(number.clone()));
        let (skip, fetch) = (skip as i64, fetch.map(|fetch| fetch as i64));
        let first = cast(count.clone(), DataType::Int64).gt(lit(skip));
        let condition = match fetch {
            None => first,
            Some(fetch) => {
                first.and(cast(count, DataType::Int64).lt_eq(lit(skip.saturating_add(fetch))))
            }
        };
        let columns: Vec<_> = input.schema().columns().into_iter().map(Expr::Column).collect();
        let plan = LogicalPlanBuilder::from(input)
            .window(vec![counted.alias(number)])?
            .filter(condition)?
            .project(columns)?
            .build()?;
        Ok(Some((plan, keys)))
    }

    fn join(&self, join: Join) -> Result<Option<Lifted>> {
        let has_outer = |expr: &Expr| expr.contains_outer();
        let is_tied = join.filter.as_ref().is_some_and(has_outer)
            || join.on.iter().any(|(left, right)| has_outer(left) || has_outer(right));
        let left = self.plan(join.left.as_ref().clone())?;
        let right = self.plan(join.right.as_ref().clone())?;
        let (Some((left, mut keys)), Some((right, of_right))) = (left, right) else {
            return Ok(None);
        };
        let is_kept = match join.join_type {
            JoinType::Inner => true,
            // The right side's keys would be NULL where it has no row.
            JoinType::Left => of_right.is_empty(),
            _ => keys.is_empty() && of_right.is_empty(),
        };
        if is_tied || !is_kept {
            return Ok(None);
        }
        keys.extend(of_right);
        let plan = Join::try_new(
            Arc::new(left),
            Arc::new(right),
            join.on,
            join.filter,
            join.join_type,
            join.join_constraint,
            join.null_equality,
            join.null_aware,
        )?;
        Ok(Some((LogicalPlan::Join(plan), keys)))
    }

    /// Joins an input with the values from around that expressions need, and makes the expressions
    /// read them there.
    fn read(
        &self,
        (input, mut keys): Lifted,
        exprs: Vec<Expr>,
        names: &NamePreserver,
    ) -> Result<Option<(LogicalPlan, Vec<Key>, Vec<Expr>)>> {
        let mut columns = HashMap::new();
        let mut values = vec![];
        for outer in exprs.iter().flat_map(find_out_reference_exprs) {
            let Expr::OuterReferenceColumn(field, column) = &outer else { continue };
            if columns.contains_key(column) {
                continue;
            }
            // That of LATERAL stands beside, not around.
            if !self.around.schema().has_column(column) {
                return Ok(None);
            }
            let number = self.next.replace(self.next.get() + 1);
            let mut value = |what: &str, expr: Expr| {
                let name = format!("outer {number}{what}");
                values.push(expr.alias(name.clone()));
                Column::new_unqualified(name)
            };
            let own = Expr::Column(column.clone());
            let place = value("", own.clone());
            if field.is_nullable() {
                // NULL equals NULL here: it is the same row around.
                let Some(default) = some_value(field.data_type()) else { return Ok(None) };
                let default = Expr::Literal(default, None);
                let is_null = value(" is null", own.clone().is_null());
                keys.push((is_null, outer.clone().is_null()));
                let or_default = value(" or default", coalesce(vec![own, default.clone()]));
                keys.push((or_default, coalesce(vec![outer.clone(), default])));
            } else {
                keys.push((place.clone(), outer.clone()));
            }
            columns.insert(column.clone(), place);
        }
        if columns.is_empty() {
            return Ok(Some((input, keys, exprs)));
        }
        let around = LogicalPlanBuilder::from(self.around.clone()).project(values)?.distinct()?;
        let around = around.build()?;
        let input = match input {
            LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: true, .. }) => around,
            input => LogicalPlanBuilder::from(input).cross_join(around)?.build()?,
        };
        let exprs = exprs.into_iter().map(|expr| {
            let name = names.save(&expr);
            let replaced = expr.transform_up(|expr| {
                Ok(match &expr {
                    Expr::OuterReferenceColumn(_, column) => match columns.get(column) {
                        Some(column) => Transformed::yes(Expr::Column(column.clone())),
                        None => Transformed::no(expr),
                    },
                    _ => Transformed::no(expr),
                })
            })?;
            Ok(name.restore(replaced.data))
        });
        let exprs = exprs.collect::<Result<Vec<_>>>()?;
        Ok(Some((input, keys, exprs)))
    }
}

/// The rows that a subquery is asked for, or more: none of what stands around those in turn.
pub(super) fn around(plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    if plan.all_out_ref_exprs().is_empty() {
        return Ok(Some(plan.clone()));
    }
    let input = |plan: &Arc<LogicalPlan>| around(plan);
    Ok(match plan {
        LogicalPlan::Filter(filter) => match input(&filter.input)? {
            None => None,
            Some(input) => {
                let conditions = split_conjunction(&filter.predicate).into_iter();
                let own = conditions.filter(|condition| !condition.contains_outer()).cloned();
                match own.reduce(Expr::and) {
                    None => Some(input),
                    Some(predicate) => {
                        Some(LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(input))?))
                    }
                }
            }
        },
        LogicalPlan::SubqueryAlias(alias) => match input(&alias.input)? {
            None => None,
            Some(input) => {
                Some(LogicalPlanBuilder::from(input).alias(alias.alias.clone())?.build()?)
            }
        },
        LogicalPlan::Projection(projection)
            if !projection.expr.iter().any(|expr| expr.contains_outer()) =>
        {
            match input(&projection.input)? {
                None => None,
                Some(input) => {
                    let plan = Projection::try_new(projection.expr.clone(), Arc::new(input))?;
                    Some(LogicalPlan::Projection(plan))
                }
            }
        }
        _ => None,
    })
}

/// Any value of a type.
fn some_value(data_type: &DataType) -> Option<ScalarValue> {
    match data_type {
        DataType::List(field) => {
            Some(ScalarValue::List(ScalarValue::new_list_nullable(&[], field.data_type())))
        }
        other => ScalarValue::new_default(other).ok(),
    }
}

/// The rows that belong to the row around.
fn tied(plan: LogicalPlan, keys: Vec<Key>) -> Result<LogicalPlan> {
    let equalities = keys.into_iter().map(|(column, outer)| Expr::Column(column).eq(outer));
    match equalities.reduce(Expr::and) {
        None => Ok(plan),
        Some(predicate) => Ok(LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(plan))?)),
    }
}

/// Whether columns from around stand where DataFusion doesn't take them.
fn is_needed(plan: &LogicalPlan, is_scalar: bool) -> Result<bool> {
    let mut is_needed = false;
    plan.apply(|node| {
        match node {
            LogicalPlan::Filter(filter) => {
                let mut conditions = split_conjunction(&filter.predicate).into_iter();
                is_needed |= is_scalar
                    && conditions.any(|condition| condition.contains_outer() && !is_key(condition));
            }
            // DataFusion loses a condition that stands below some nodes.
            LogicalPlan::Join(_) | LogicalPlan::Limit(_) | LogicalPlan::Distinct(_) => {
                is_needed |= !node.all_out_ref_exprs().is_empty();
            }
            LogicalPlan::Aggregate(aggregate) if !aggregate.group_expr.is_empty() => {
                is_needed |= !node.all_out_ref_exprs().is_empty();
            }
            node => is_needed |= node.contains_outer_reference(),
        }
        Ok(if is_needed { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(is_needed)
}

/// Whether it ties a column to the row around.
fn is_key(condition: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition else {
        return false;
    };
    match (left.as_ref(), right.as_ref()) {
        (Expr::Column(_), other) | (other, Expr::Column(_)) => !other.any_column_refs(),
        _ => false,
    }
}
