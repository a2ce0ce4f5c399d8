//! IN, and comparisons with ANY or ALL of a subquery's values.
//!
//! `x op ANY (...)` is true where it is for some value; else NULL where it is for some value, that
//! is, where x is NULL and there is a value, or a value is NULL; else false. `x op ALL (...)` is
//! NOT (x inverse-op ANY (...)).

use std::sync::Arc;

use datafusion::logical_expr::Operator;
use datafusion::logical_expr::expr::SetQuantifier;
use stillframe_protocol::{BinaryOperator, Expression, JoinKey, Plan, UnaryOperator};

use super::{Asked, Wanted, boolean, union};
use crate::Error;
use crate::view::equal::{joined, same};
use crate::view::{build, refused};

/// What can be NULL.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nullable {
    pub(super) operand: bool,
    pub(super) value: bool,
}

/// Rows beside how their operand compares with the subquery's values.
pub(super) fn compared(
    asked: &Asked,
    operand: usize,
    op: Operator,
    quantifier: SetQuantifier,
    wanted: Wanted,
    nullable: Nullable,
) -> Result<Arc<Plan>, Error> {
    let is_all = quantifier == SetQuantifier::All;
    let op = operator(op, is_all)?;
    build::keys(&asked.plan, [operand], "IN, ANY or ALL")?;
    let met = |negated| meets(asked, operand, op, negated);
    let beside = |plan, outcome: Option<bool>| {
        let outcome = outcome.map(|outcome| outcome != is_all);
        asked.outcome(plan, vec![boolean(outcome)])
    };
    let (wants_met, wants_unmet) = match (wanted, is_all) {
        (Wanted::All, _) => (true, true),
        (Wanted::True, false) | (Wanted::False, true) => (true, false),
        (Wanted::False, false) | (Wanted::True, true) => (false, true),
    };
    let mut parts = vec![];
    if wants_met {
        parts.push(beside(met(false)?, Some(true)));
    }
    if wants_unmet {
        let Unmet { certain, unknown } = unmet(asked, operand, met(true)?, nullable);
        parts.extend(certain.into_iter().map(|plan| beside(plan, Some(false))));
        if wanted == Wanted::All {
            parts.extend(unknown.into_iter().map(|plan| beside(plan, None)));
        }
    }
    Ok(match parts.len() {
        1 => parts.remove(0),
        _ => union(parts),
    })
}

/// The operator of ANY that decides.
fn operator(op: Operator, is_all: bool) -> Result<BinaryOperator, Error> {
    let op = match op.negate() {
        Some(inverse) if is_all => inverse,
        _ => op,
    };
    Ok(match op {
        Operator::Eq => BinaryOperator::Equal,
        Operator::NotEq => BinaryOperator::NotEqual,
        Operator::Lt => BinaryOperator::Less,
        Operator::LtEq => BinaryOperator::LessOrEqual,
        Operator::Gt => BinaryOperator::Greater,
        Operator::GtEq => BinaryOperator::GreaterOrEqual,
        other => return Err(refused(format!("{other} with ANY or ALL"))),
    })
}

/// The rows for which the comparison is true for some value, or for none.
fn meets(
    asked: &Asked,
    operand: usize,
    op: BinaryOperator,
    negated: bool,
) -> Result<Arc<Plan>, Error> {
    let semijoin =
        |right, on| Arc::new(Plan::Semijoin { left: Arc::clone(&asked.plan), right, on, negated });
    let answer = &asked.answer;
    if op == BinaryOperator::Equal {
        let on = asked.on().into_iter().chain([JoinKey::new(operand, 0)]);
        return Ok(semijoin(Arc::clone(&answer.plan), on.collect()));
    }
    // Each distinct operand is compared once.
    let places: Vec<_> = asked.keys.iter().copied().chain([operand]).collect();
    let input = build::pick(Arc::clone(&asked.plan), &places);
    let operands = Arc::new(Plan::Distinct { input });
    let keys = asked.keys.len();
    let found = Arc::new(Plan::Join {
        on: same(0..keys, answer.width..answer.width + keys),
        residual: Some(Expression::Binary {
            operator: op,
            left: Box::new(Expression::Column(keys)),
            right: Box::new(Expression::Column(places.len())),
        }),
        schema: joined(&operands, &answer.plan),
        left: operands,
        right: Arc::clone(&answer.plan),
    });
    let input = build::pick(found, &(0..places.len()).collect::<Vec<_>>());
    let found = Arc::new(Plan::Distinct { input });
    let on = same(places.iter().copied(), 0..places.len());
    Ok(semijoin(found, on))
}

/// Rows for which no comparison is true: those for which all are false, and those for which one
/// is NULL.
struct Unmet {
    certain: Vec<Arc<Plan>>,
    unknown: Vec<Arc<Plan>>,
}

fn unmet(asked: &Asked, operand: usize, rows: Arc<Plan>, nullable: Nullable) -> Unmet {
    let answer = &asked.answer.plan;
    let on = asked.on();
    let mut unknown = vec![];
    let semijoin = |left: &Arc<Plan>, right: &Arc<Plan>, negated| {
        Arc::new(Plan::Semijoin {
            left: Arc::clone(left),
            right: Arc::clone(right),
            on: on.clone(),
            negated,
        })
    };
    let filter = |input: &Arc<Plan>, operator, place| {
        let operand = Box::new(Expression::Column(place));
        let predicate = Expression::Unary { operator, operand };
        Arc::new(Plan::Filter { input: Arc::clone(input), predicate })
    };
    let mut rows = rows;
    if nullable.value {
        let nulls = filter(answer, UnaryOperator::IsNull, 0);
        unknown.push(semijoin(&rows, &nulls, false));
        rows = semijoin(&rows, &nulls, true);
    }
    if !nullable.operand {
        return Unmet { certain: vec![rows], unknown };
    }
    let without = filter(&rows, UnaryOperator::IsNull, operand);
    unknown.push(semijoin(&without, answer, false));
    let certain =
        vec![filter(&rows, UnaryOperator::IsNotNull, operand), semijoin(&without, answer, true)];
    Unmet { certain, unknown }
}
