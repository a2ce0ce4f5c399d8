//! Aggregates WITHIN GROUP: what would be the place of a row among the others, and a value at a
//! place, as aggregates that there are.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArgumentList, FunctionArguments, Ident, ObjectName, OrderByExpr,
};

use super::{call, function};
use crate::{Error, SqlState, names};

/// The names of those that are other aggregates.
pub(super) const NAMES: &[&str] = &["percentile_cont", "percentile_disc", "mode"];

/// What such an aggregate is, if it is one.
pub(super) fn plain(aggregate: &Function) -> Result<Option<Expr>, Error> {
    if aggregate.within_group.is_empty() || aggregate.over.is_some() {
        return Ok(None);
    }
    let name = names::function(&aggregate.name);
    let arguments = match &aggregate.args {
        FunctionArguments::List(list) => list
            .args
            .iter()
            .map(|argument| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
                _ => None,
            })
            .collect::<Option<Vec<_>>>(),
        _ => Some(vec![]),
    };
    let Some(arguments) = arguments else { return Ok(None) };
    let orders = aggregate.within_group.as_slice();
    Ok(match (name.as_str(), arguments.as_slice(), orders) {
        ("percentile_cont" | "percentile_disc", [fraction], [_]) => {
            let function = match name.as_str() {
                "percentile_cont" => "interpolated percentile of array",
                _ => "percentile of array",
            };
            Some(call(function, vec![collected(aggregate), fraction.clone()]))
        }
        ("mode", [], [_]) => Some(call("mode of array", vec![collected(aggregate)])),
        ("rank" | "dense_rank" | "percent_rank" | "cume_dist", [_, ..], _) => {
            let ([value], [order]) = (arguments.as_slice(), orders) else {
                return match arguments.len() == orders.len() {
                    true => Err(Error::unsupported(format!("{name} of a row of several columns"))),
                    false => {
                        let message = format!(
                            "To use the hypothetical-set aggregate {name}, the number of \
                             hypothetical direct arguments must match the number of ordering columns"
                        );
                        Err(Error::new(SqlState::UNDEFINED_FUNCTION, message))
                    }
                };
            };
            Some(place(aggregate, &name, value, order))
        }
        _ => None,
    })
}

/// The values in their order, as an array.
fn collected(aggregate: &Function) -> Expr {
    let [order] = aggregate.within_group.as_slice() else {
        return Expr::Function(aggregate.clone());
    };
    let value = FunctionArg::Unnamed(FunctionArgExpr::Expr(order.expr.clone()));
    let clauses = vec![FunctionArgumentClause::OrderBy(aggregate.within_group.clone())];
    let Expr::Function(mut collected) = function("array_agg", vec![value], clauses) else {
        return Expr::Function(aggregate.clone());
    };
    collected.filter.clone_from(&aggregate.filter);
    Expr::Function(collected)
}

/// `count(...)` of the aggregate's rows for which a condition holds, too.
fn count(aggregate: &Function, of: FunctionArgumentList, condition: Option<Expr>) -> Expr {
    let conditions = aggregate.filter.iter().map(|filter| filter.as_ref().clone()).chain(condition);
    let filter = conditions.reduce(|left, right| binary(left, BinaryOperator::And, right));
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::with_quote('"', "count")]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(of),
        filter: filter.map(Box::new),
        null_treatment: None,
        over: None,
        within_group: vec![],
    })
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::Nested(Box::new(Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }))
}

fn rows() -> FunctionArgumentList {
    FunctionArgumentList {
        duplicate_treatment: None,
        args: vec![FunctionArg::Unnamed(FunctionArgExpr::Wildcard)],
        clauses: vec![],
    }
}

fn one() -> Expr {
    super::numbers::integer(1)
}

/// The place that a value would have.
fn place(aggregate: &Function, name: &str, value: &Expr, order: &OrderByExpr) -> Expr {
    let is_descending = order.options.asc == Some(false);
    let nulls_first = order.options.nulls_first.unwrap_or(is_descending);
    let ordered = order.expr.clone();
    let before = |or_equal: bool| {
        let op = match (is_descending, or_equal) {
            (false, false) => BinaryOperator::Lt,
            (false, true) => BinaryOperator::LtEq,
            (true, false) => BinaryOperator::Gt,
            (true, true) => BinaryOperator::GtEq,
        };
        let before = binary(ordered.clone(), op, value.clone());
        let null = Expr::IsNull(Box::new(Expr::Nested(Box::new(ordered.clone()))));
        match nulls_first {
            true => binary(before, BinaryOperator::Or, null),
            false => before,
        }
    };
    let double = |expr: Expr| super::intervals::cast(expr, super::intervals::double());
    match name {
        "rank" => {
            binary(count(aggregate, rows(), Some(before(false))), BinaryOperator::Plus, one())
        }
        "dense_rank" => {
            let mut distinct = rows();
            distinct.duplicate_treatment =
                Some(datafusion::sql::sqlparser::ast::DuplicateTreatment::Distinct);
            distinct.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(ordered.clone()))];
            binary(count(aggregate, distinct, Some(before(false))), BinaryOperator::Plus, one())
        }
        "percent_rank" => {
            let smaller = count(aggregate, rows(), Some(before(false)));
            let all =
                call("nullif", vec![count(aggregate, rows(), None), super::numbers::integer(0)]);
            let share = binary(double(smaller), BinaryOperator::Divide, double(all));
            call("coalesce", vec![share, double(super::numbers::integer(0))])
        }
        _ => {
            let until = count(aggregate, rows(), Some(before(true)));
            let until = binary(until, BinaryOperator::Plus, one());
            let all = binary(count(aggregate, rows(), None), BinaryOperator::Plus, one());
            binary(double(until), BinaryOperator::Divide, double(all))
        }
    }
}
