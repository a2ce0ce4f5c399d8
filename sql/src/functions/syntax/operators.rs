//! Operators by their symbols, and collations.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, ObjectName, UnaryOperator};

use super::{call, take};
use crate::{Error, SqlState};

/// An operator before its operand as a call; signs of numbers are none.
pub(super) fn prefixed(op: UnaryOperator, operand: &mut Expr) -> Option<Expr> {
    let name = match op {
        UnaryOperator::Plus => "operator unary plus",
        // DataFusion's sign is for the types it knows.
        UnaryOperator::Minus => "operator negate",
        UnaryOperator::BitwiseNot => "operator bitwise not",
        UnaryOperator::PGAbs => "operator @",
        UnaryOperator::PGSquareRoot => "operator |/",
        UnaryOperator::PGCubeRoot => "operator ||/",
        _ => return None,
    };
    Some(call(name, vec![take(operand)]))
}

/// `x ~~ y` as `x LIKE y`, and so on.
pub(super) fn like(left: &mut Expr, op: &BinaryOperator, right: &mut Expr) -> Option<Expr> {
    let (negated, ignores_case) = match op {
        BinaryOperator::PGLikeMatch => (false, false),
        BinaryOperator::PGNotLikeMatch => (true, false),
        BinaryOperator::PGILikeMatch => (false, true),
        BinaryOperator::PGNotILikeMatch => (true, true),
        _ => return None,
    };
    let (expr, pattern) = (Box::new(take(left)), Box::new(take(right)));
    let (any, escape_char) = (false, None);
    Some(match ignores_case {
        false => Expr::Like { negated, any, expr, pattern, escape_char },
        true => Expr::ILike { negated, any, expr, pattern, escape_char },
    })
}

/// `OPERATOR(pg_catalog.~)` as `~`.
pub(super) fn operator(parts: &[String]) -> Result<BinaryOperator, Error> {
    let symbol = match parts {
        [symbol] => symbol,
        [schema, symbol] if schema.eq_ignore_ascii_case("pg_catalog") => symbol,
        _ => {
            let message = format!("operator does not exist: {}", parts.join("."));
            return Err(Error::new(SqlState::UNDEFINED_FUNCTION, message));
        }
    };
    Ok(match symbol.as_str() {
        "=" => BinaryOperator::Eq,
        "<>" | "!=" => BinaryOperator::NotEq,
        "<" => BinaryOperator::Lt,
        "<=" => BinaryOperator::LtEq,
        ">" => BinaryOperator::Gt,
        ">=" => BinaryOperator::GtEq,
        "+" => BinaryOperator::Plus,
        "-" => BinaryOperator::Minus,
        "*" => BinaryOperator::Multiply,
        "/" => BinaryOperator::Divide,
        "%" => BinaryOperator::Modulo,
        "||" => BinaryOperator::StringConcat,
        "~" => BinaryOperator::PGRegexMatch,
        "~*" => BinaryOperator::PGRegexIMatch,
        "!~" => BinaryOperator::PGRegexNotMatch,
        "!~*" => BinaryOperator::PGRegexNotIMatch,
        "~~" => BinaryOperator::PGLikeMatch,
        "~~*" => BinaryOperator::PGILikeMatch,
        "!~~" => BinaryOperator::PGNotLikeMatch,
        "!~~*" => BinaryOperator::PGNotILikeMatch,
        "^" => BinaryOperator::PGExp,
        "&" => BinaryOperator::BitwiseAnd,
        "|" => BinaryOperator::BitwiseOr,
        "#" => BinaryOperator::PGBitwiseXor,
        "<<" => BinaryOperator::PGBitwiseShiftLeft,
        ">>" => BinaryOperator::PGBitwiseShiftRight,
        "^@" => BinaryOperator::PGStartsWith,
        "->" => BinaryOperator::Arrow,
        "->>" => BinaryOperator::LongArrow,
        "#>" => BinaryOperator::HashArrow,
        "#>>" => BinaryOperator::HashLongArrow,
        "#-" => BinaryOperator::HashMinus,
        "@>" => BinaryOperator::AtArrow,
        "<@" => BinaryOperator::ArrowAt,
        "&&" => BinaryOperator::PGOverlap,
        other => return Err(Error::unsupported(format!("the operator {other}"))),
    })
}

/// Texts compare by their bytes: that is one of these.
pub(super) fn check_collation(collation: &ObjectName) -> Result<(), Error> {
    let last = collation.0.last().and_then(|part| part.as_ident());
    let known = ["default", "C", "POSIX", "C.UTF-8", "C.utf8", "ucs_basic"];
    if last.is_some_and(|name| known.contains(&name.value.as_str())) {
        return Ok(());
    }
    Err(Error::unsupported(format!("the collation {collation}")))
}
