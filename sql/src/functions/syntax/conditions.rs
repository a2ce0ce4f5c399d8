//! Conditions are marked with what they belong to: what isn't `boolean` is an error that says so.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Join, JoinConstraint, JoinOperator, UnaryOperator, Value, ValueWithSpan,
};

use super::call;
use crate::functions::marker::condition;

/// Marks a condition, unless it is plain to see that it is one.
pub(super) fn mark(expr: &mut Expr, of: &str) {
    if is_boolean(expr) {
        return;
    }
    let inner = std::mem::replace(expr, Expr::value(Value::Null));
    *expr = call(&condition(of), vec![inner]);
}

/// Marks the conditions of joins.
pub(super) fn mark_joins(joins: &mut [Join]) {
    for join in joins {
        let constraint = match &mut join.join_operator {
            JoinOperator::Join(constraint)
            | JoinOperator::Inner(constraint)
            | JoinOperator::Left(constraint)
            | JoinOperator::LeftOuter(constraint)
            | JoinOperator::Right(constraint)
            | JoinOperator::RightOuter(constraint)
            | JoinOperator::FullOuter(constraint) => constraint,
            _ => continue,
        };
        if let JoinConstraint::On(condition) = constraint {
            mark(condition, "JOIN/ON");
        }
    }
}

/// Marks the operands of operators that take conditions.
pub(super) fn mark_operands(expr: &mut Expr) {
    match expr {
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => mark(expr, "NOT"),
        Expr::IsTrue(expr) => mark(expr, "IS TRUE"),
        Expr::IsNotTrue(expr) => mark(expr, "IS NOT TRUE"),
        Expr::IsFalse(expr) => mark(expr, "IS FALSE"),
        Expr::IsNotFalse(expr) => mark(expr, "IS NOT FALSE"),
        Expr::IsUnknown(expr) => mark(expr, "IS UNKNOWN"),
        Expr::IsNotUnknown(expr) => mark(expr, "IS NOT UNKNOWN"),
        _ => {}
    }
}

fn is_boolean(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_boolean(inner),
        Expr::Value(ValueWithSpan { value: Value::Boolean(_), .. })
        | Expr::UnaryOp { op: UnaryOperator::Not, .. }
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotUnknown(_)
        | Expr::IsDistinctFrom(..)
        | Expr::IsNotDistinctFrom(..)
        | Expr::InList { .. }
        | Expr::InSubquery { .. }
        | Expr::Between { .. }
        | Expr::Like { .. }
        | Expr::ILike { .. }
        | Expr::SimilarTo { .. }
        | Expr::Exists { .. }
        | Expr::AnyOp { .. }
        | Expr::AllOp { .. } => true,
        Expr::BinaryOp { op, .. } => matches!(
            op,
            BinaryOperator::And
                | BinaryOperator::Or
                | BinaryOperator::Eq
                | BinaryOperator::NotEq
                | BinaryOperator::Lt
                | BinaryOperator::LtEq
                | BinaryOperator::Gt
                | BinaryOperator::GtEq
                | BinaryOperator::PGRegexMatch
                | BinaryOperator::PGRegexIMatch
                | BinaryOperator::PGRegexNotMatch
                | BinaryOperator::PGRegexNotIMatch
                | BinaryOperator::PGLikeMatch
                | BinaryOperator::PGILikeMatch
                | BinaryOperator::PGNotLikeMatch
                | BinaryOperator::PGNotILikeMatch
        ),
        _ => false,
    }
}
