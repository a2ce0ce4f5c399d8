//! Calls that are something else: casts in the form of functions, and moments of the clock.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, TimezoneInfo, Value, ValueWithSpan,
};

use super::{call, intervals, take};
use crate::parser::VARIADIC;
use crate::{Error, names};

/// The arguments of a call that has nothing but arguments.
fn arguments(function: &Function) -> Option<Vec<Expr>> {
    let is_plain = function.over.is_none()
        && function.filter.is_none()
        && function.within_group.is_empty()
        && function.null_treatment.is_none();
    if !is_plain {
        return None;
    }
    match &function.args {
        FunctionArguments::None => Some(vec![]),
        FunctionArguments::List(list) => {
            let arguments = list.args.iter().map(|argument| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
                _ => None,
            });
            let is_plain = list.duplicate_treatment.is_none() && list.clauses.is_empty();
            arguments.collect::<Option<Vec<_>>>().filter(|_| is_plain)
        }
        FunctionArguments::Subquery(_) => None,
    }
}

/// What a call is, if it is something else.
pub(super) fn plain(function: &Function) -> Option<Expr> {
    let name = names::function(&function.name);
    let mut arguments = arguments(function)?;
    match arguments.as_mut_slice() {
        [] => intervals::clock(&name, None),
        [only] => {
            if let Some(digits) = digits(only)
                && let Some(moment) = intervals::clock(&name, Some(digits))
            {
                return Some(moment);
            }
            let data_type = named_type(&name)?;
            Some(Expr::Cast {
                kind: CastKind::DoubleColon,
                expr: Box::new(take(only)),
                data_type,
                array: false,
                format: None,
            })
        }
        [day, time] if name == "timestamp" || name == "timestamptz" => {
            let sum = Expr::Nested(Box::new(Expr::BinaryOp {
                left: Box::new(take(day)),
                op: BinaryOperator::Plus,
                right: Box::new(take(time)),
            }));
            let zone = if name == "timestamp" { TimezoneInfo::None } else { TimezoneInfo::Tz };
            Some(Expr::Cast {
                kind: CastKind::DoubleColon,
                expr: Box::new(sum),
                data_type: DataType::Timestamp(None, zone),
                array: false,
                format: None,
            })
        }
        _ => None,
    }
}

/// A number of digits, which is a constant.
fn digits(expr: &Expr) -> Option<u64> {
    match expr {
        Expr::Cast { expr, .. } => digits(expr),
        Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => digits.parse().ok(),
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(digits), .. }) => {
            digits.parse().ok()
        }
        _ => None,
    }
}

/// Whether a name of a function is only another way to say something.
pub(crate) fn is_spelling(name: &str) -> bool {
    let clocks = ["current_time", "localtime", "localtimestamp"];
    let quantifiers = ["all", "any", "some"];
    name == VARIADIC
        || named_type(name).is_some()
        || clocks.contains(&name)
        || quantifiers.contains(&name)
        || super::ordered_set::NAMES.contains(&name)
}

/// The type that a function of its name casts to.
fn named_type(name: &str) -> Option<DataType> {
    Some(match name {
        "bool" => DataType::Bool,
        "int2" => DataType::Int2(None),
        "int4" => DataType::Int4(None),
        "int8" => DataType::Int8(None),
        "float4" => DataType::Float4,
        "float8" => DataType::Float8,
        "numeric" => DataType::Numeric(datafusion::sql::sqlparser::ast::ExactNumberInfo::None),
        "text" => DataType::Text,
        "varchar" => DataType::Varchar(None),
        "bytea" => DataType::Bytea,
        "date" => DataType::Date,
        "time" => DataType::Time(None, TimezoneInfo::None),
        "timetz" => DataType::Time(None, TimezoneInfo::Tz),
        "timestamp" => DataType::Timestamp(None, TimezoneInfo::None),
        "timestamptz" => DataType::Timestamp(None, TimezoneInfo::Tz),
        "interval" => DataType::Interval { fields: None, precision: None },
        "uuid" => DataType::Uuid,
        "json" => DataType::JSON,
        "jsonb" => DataType::JSONB,
        _ => return None,
    })
}

/// `x LIKE ALL (array)`: how the parser reads it, what quantifies, and the array.
pub(super) fn quantified(pattern: &Expr) -> Option<(&'static str, Expr)> {
    let Expr::Function(function) = pattern else { return None };
    let quantifier = match names::function(&function.name).as_str() {
        "all" => "all",
        "any" | "some" => "any",
        _ => return None,
    };
    match arguments(function)?.as_mut_slice() {
        [array] => Some((quantifier, take(array))),
        _ => None,
    }
}

/// The integer that a call is, of a function that counts in `bigint`s where PostgreSQL doesn't.
pub(super) fn as_integer(function: &Function) -> Option<Expr> {
    if names::function(&function.name) != "ntile" || function.over.is_none() {
        return None;
    }
    let mut counted = function.clone();
    // It isn't to be found again.
    counted.name = datafusion::sql::sqlparser::ast::ObjectName::from(vec![
        datafusion::sql::sqlparser::ast::Ident::with_quote('"', "ntile"),
    ]);
    Some(Expr::Cast {
        kind: CastKind::DoubleColon,
        expr: Box::new(Expr::Function(counted)),
        data_type: DataType::Int4(None),
        array: false,
        format: None,
    })
}

/// `BETWEEN SYMMETRIC`, of which the parser takes the mark off: with the bounds in both orders.
pub(super) fn symmetric(expr: &mut Expr) -> Option<Expr> {
    let Expr::Between { expr: operand, negated, low, high } = expr else { return None };
    if !unmark(low) {
        return None;
    }
    let between = |low: &Expr, high: &Expr| Expr::Between {
        expr: operand.clone(),
        negated: *negated,
        low: Box::new(low.clone()),
        high: Box::new(high.clone()),
    };
    let op = if *negated { BinaryOperator::And } else { BinaryOperator::Or };
    let (left, right) = (between(low, high), between(high, low));
    Some(Expr::Nested(Box::new(Expr::BinaryOp {
        left: Box::new(left),
        op,
        right: Box::new(right),
    })))
}

/// Takes the mark away that stands before the first operand.
fn unmark(expr: &mut Expr) -> bool {
    use datafusion::sql::sqlparser::ast::UnaryOperator;
    match expr {
        Expr::UnaryOp { op: UnaryOperator::PGPrefixFactorial, expr: inner } => {
            *expr = take(inner);
            true
        }
        Expr::BinaryOp { left, .. } => unmark(left),
        Expr::AtTimeZone { timestamp, .. } => unmark(timestamp),
        _ => false,
    }
}

/// `(a, b) OVERLAPS (c, d)`
pub(super) fn overlaps(fields: Vec<Expr>) -> Expr {
    call("overlaps", fields)
}

/// Spreads the array that `VARIADIC` marks over the arguments; a path of JSON is an operator.
pub(super) fn spread(function: &mut Function) -> Result<Option<Expr>, Error> {
    let name = names::function(&function.name);
    let FunctionArguments::List(list) = &mut function.args else { return Ok(None) };
    let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Function(marked)))) =
        list.args.last()
    else {
        return Ok(None);
    };
    if names::function(&marked.name) != VARIADIC {
        return Ok(None);
    }
    let Some([array]) = arguments(marked).map(<[Expr; 1]>::try_from).and_then(Result::ok) else {
        return Ok(None);
    };
    let path = match name.as_str() {
        "json_extract_path" | "jsonb_extract_path" => Some(BinaryOperator::HashArrow),
        "json_extract_path_text" | "jsonb_extract_path_text" => Some(BinaryOperator::HashLongArrow),
        _ => None,
    };
    if let (Some(op), [FunctionArg::Unnamed(FunctionArgExpr::Expr(json)), _]) =
        (path, list.args.as_slice())
    {
        let path = Expr::BinaryOp { left: Box::new(json.clone()), op, right: Box::new(array) };
        return Ok(Some(Expr::Nested(Box::new(path))));
    }
    let elements = match &array {
        Expr::Function(of) if names::function(&of.name) == super::arrays::CONSTRUCTOR => {
            arguments(of)
        }
        _ => None,
    };
    let Some(elements) = elements else {
        let what = format!("{name} with a VARIADIC array that isn't written out as ARRAY[...]");
        return Err(Error::unsupported(what));
    };
    list.args.pop();
    let elements = elements.into_iter();
    list.args.extend(elements.map(|element| FunctionArg::Unnamed(FunctionArgExpr::Expr(element))));
    Ok(None)
}
