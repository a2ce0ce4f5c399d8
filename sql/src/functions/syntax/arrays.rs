//! `ARRAY[...]`, slices, and `ANY` and `ALL` of an array as calls.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, AccessExpr, BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    Query, Select, SetExpr, Subscript, Value, ValueWithSpan,
};

use super::operators::operator;
use super::{call, function, rows};
use crate::{Error, SqlState, names};

/// The function that makes an array of its arguments.
pub(super) const CONSTRUCTOR: &str = "array of";

/// Whether an expression makes an array of what stands in it.
pub(super) fn is_constructor(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_constructor(inner),
        Expr::Array(_) => true,
        Expr::Function(function) => names::function(&function.name) == CONSTRUCTOR,
        _ => false,
    }
}

/// `x = ANY (array)` as `"any ="(x, array)`.
pub(super) fn quantified(
    quantifier: &str,
    left: Expr,
    op: &BinaryOperator,
    right: Expr,
) -> Result<Expr, Error> {
    let op = match op {
        BinaryOperator::PGCustomBinaryOperator(parts) => &operator(parts)?,
        op => op,
    };
    let symbol = match op {
        BinaryOperator::Eq => "=",
        BinaryOperator::NotEq => "<>",
        BinaryOperator::Lt => "<",
        BinaryOperator::LtEq => "<=",
        BinaryOperator::Gt => ">",
        BinaryOperator::GtEq => ">=",
        BinaryOperator::PGLikeMatch => "~~",
        BinaryOperator::PGNotLikeMatch => "!~~",
        BinaryOperator::PGILikeMatch => "~~*",
        BinaryOperator::PGNotILikeMatch => "!~~*",
        BinaryOperator::PGRegexMatch => "~",
        BinaryOperator::PGRegexIMatch => "~*",
        BinaryOperator::PGRegexNotMatch => "!~",
        BinaryOperator::PGRegexNotIMatch => "!~*",
        other => {
            return Err(Error::unsupported(format!("{other} {}", quantifier.to_uppercase())));
        }
    };
    if matches!(&right, Expr::Tuple(_)) {
        let message = "op ANY/ALL (array) requires array on right side";
        return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message));
    }
    Ok(call(&format!("{quantifier} {symbol}"), vec![left, right]))
}

/// A chain of subscripts with a slice in it as calls.
pub(super) fn sliced(root: &Expr, chain: &[AccessExpr]) -> Result<Option<Expr>, Error> {
    let is_slice =
        |access: &AccessExpr| matches!(access, AccessExpr::Subscript(Subscript::Slice { .. }));
    if !chain.iter().any(is_slice) {
        return Ok(None);
    }
    let refused = || Error::unsupported("a slice of an array of more than one dimension");
    let Some((
        AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride: None }),
        names,
    )) = chain.split_last()
    else {
        return Err(refused());
    };
    let root = qualified(root, names).ok_or_else(refused)?;
    let bound = |bound: &Option<Expr>, default: i32| match bound {
        Some(bound) => bound.clone(),
        None => Expr::Cast {
            kind: datafusion::sql::sqlparser::ast::CastKind::DoubleColon,
            expr: Box::new(Expr::value(Value::SingleQuotedString(default.to_string()))),
            data_type: datafusion::sql::sqlparser::ast::DataType::Int4(None),
            array: false,
            format: None,
        },
    };
    let arguments = vec![root, bound(lower_bound, i32::MIN), bound(upper_bound, i32::MAX)];
    Ok(Some(call("array slice", arguments)))
}

/// What stands before a slice: an expression, or a column with the names before it.
fn qualified(root: &Expr, names: &[AccessExpr]) -> Option<Expr> {
    if names.is_empty() {
        return Some(root.clone());
    }
    let mut parts = match root {
        Expr::Identifier(name) => vec![name.clone()],
        Expr::CompoundIdentifier(names) => names.clone(),
        _ => return None,
    };
    for name in names {
        let AccessExpr::Dot(Expr::Identifier(name)) = name else { return None };
        parts.push(name.clone());
    }
    Some(Expr::CompoundIdentifier(parts))
}

/// `ARRAY(SELECT x ...)` as `array_or_empty((SELECT array_agg(x) ...))`, of the query's own rows where
/// it is simple, and of a relation's otherwise.
pub(super) fn array_of(query: Query) -> Result<Expr, Error> {
    let is_simple = query.limit_clause.is_none()
        && query.fetch.is_none()
        && matches!(query.body.as_ref(), SetExpr::Select(select) if is_plain(select));
    let collected = if is_simple { simple(query)? } else { of_relation(query)? };
    Ok(call("array_or_empty", vec![Expr::Subquery(Box::new(collected))]))
}

/// Whether each row that WHERE leaves is a row of the result.
fn is_plain(select: &Select) -> bool {
    let is_grouped =
        !matches!(&select.group_by, ast::GroupByExpr::Expressions(keys, _) if keys.is_empty());
    let returns_rows = select.projection.iter().any(|item| {
        let found = ast::visit_expressions(item, |expr| match expr {
            // So all functions of rows are called by now.
            Expr::Function(function) if names::function(&function.name) == "unnest" => {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        });
        found.is_break()
    });
    !is_grouped && select.having.is_none() && select.distinct.is_none() && !returns_rows
}

fn element(select: &Select) -> Result<Expr, Error> {
    match select.projection.as_slice() {
        [ast::SelectItem::UnnamedExpr(element)] => Ok(element.clone()),
        [ast::SelectItem::ExprWithAlias { expr, .. }] => Ok(expr.clone()),
        _ => {
            let message = "subquery must return only one column";
            Err(Error::new(SqlState::SYNTAX_ERROR, message))
        }
    }
}

fn keys(order: Option<ast::OrderBy>) -> Result<Vec<ast::OrderByExpr>, Error> {
    match order {
        None => Ok(vec![]),
        Some(ast::OrderBy { kind: ast::OrderByKind::Expressions(keys), .. }) => Ok(keys),
        Some(_) => Err(Error::unsupported("an ARRAY of such a subquery")),
    }
}

/// Whether a key of ORDER BY is the only column, by its place.
fn is_place(key: &Expr) -> bool {
    matches!(key, Expr::Value(ValueWithSpan { value: Value::Number(..), .. }))
}

fn array_agg(element: Expr, keys: Vec<ast::OrderByExpr>) -> Expr {
    let argument = FunctionArg::Unnamed(FunctionArgExpr::Expr(element));
    let clauses = match keys.is_empty() {
        true => vec![],
        false => vec![FunctionArgumentClause::OrderBy(keys)],
    };
    function("array_agg", vec![argument], clauses)
}

fn simple(mut query: Query) -> Result<Query, Error> {
    let mut keys = keys(query.order_by.take())?;
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Err(Error::internal("an ARRAY of what is no SELECT"));
    };
    let element = element(select)?;
    for key in keys.iter_mut().filter(|key| is_place(&key.expr)) {
        key.expr = element.clone();
    }
    select.projection = vec![ast::SelectItem::UnnamedExpr(array_agg(element, keys))];
    Ok(query)
}

/// The rows of a query as a relation, with what orders them in columns of their own.
fn of_relation(mut query: Query) -> Result<Query, Error> {
    let mut keys = keys(query.order_by.clone())?;
    let mut places = vec![0; keys.len()];
    let mut width = 1;
    if let SetExpr::Select(select) = query.body.as_mut() {
        let element = element(select)?;
        for (key, place) in keys.iter().zip(&mut places) {
            // What DISTINCT is ordered by is the only column.
            if !is_place(&key.expr) && key.expr != element && select.distinct.is_none() {
                *place = width;
                width += 1;
                select.projection.push(ast::SelectItem::ExprWithAlias {
                    expr: key.expr.clone(),
                    alias: names::exact(&format!("key {width}")),
                });
            }
        }
    }
    let (relation, columns) = rows::side(&query, width)?;
    for (key, place) in keys.iter_mut().zip(places) {
        key.expr = columns[place].clone();
    }
    Ok(rows::select(array_agg(columns[0].clone(), keys), relation, None))
}
