//! `ARRAY[...]`, slices, and `ANY` and `ALL` of an array as calls.

use datafusion::sql::sqlparser::ast::{
    self, AccessExpr, BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    Query, SetExpr, Subscript, Value, ValueWithSpan,
};

use super::operators::operator;
use super::{call, function};
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

/// `ARRAY(SELECT x ...)` as `array_or_empty((SELECT array_agg(x) ...))`.
pub(super) fn array_of(mut query: Query) -> Result<Expr, Error> {
    let unsupported = || Error::unsupported("an ARRAY of such a subquery");
    let order = query.order_by.take();
    if query.limit_clause.is_some() || query.fetch.is_some() {
        return Err(unsupported());
    }
    let SetExpr::Select(select) = query.body.as_mut() else { return Err(unsupported()) };
    let is_grouped =
        !matches!(&select.group_by, ast::GroupByExpr::Expressions(keys, _) if keys.is_empty());
    if is_grouped || select.having.is_some() || select.distinct.is_some() {
        return Err(unsupported());
    }
    let element = match select.projection.as_slice() {
        [ast::SelectItem::UnnamedExpr(element)] => element.clone(),
        [ast::SelectItem::ExprWithAlias { expr, .. }] => expr.clone(),
        _ => {
            let message = "subquery must return only one column";
            return Err(Error::new(SqlState::SYNTAX_ERROR, message));
        }
    };
    let clauses = match order {
        None => vec![],
        Some(ast::OrderBy { kind: ast::OrderByKind::Expressions(mut keys), .. }) => {
            for key in &mut keys {
                // The only column, by its place.
                if matches!(&key.expr, Expr::Value(ValueWithSpan { value: Value::Number(..), .. }))
                {
                    key.expr = element.clone();
                }
            }
            vec![FunctionArgumentClause::OrderBy(keys)]
        }
        Some(_) => return Err(unsupported()),
    };
    let argument = FunctionArg::Unnamed(FunctionArgExpr::Expr(element));
    let elements = function("array_agg", vec![argument], clauses);
    select.projection = vec![ast::SelectItem::UnnamedExpr(elements)];
    Ok(call("array_or_empty", vec![Expr::Subquery(Box::new(query))]))
}
