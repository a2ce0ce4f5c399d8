//! `ARRAY[...]`, slices, and `ANY` and `ALL` of an array as calls.

use datafusion::sql::sqlparser::ast::{AccessExpr, BinaryOperator, Expr, Subscript, Value};

use super::{call, operator};
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
