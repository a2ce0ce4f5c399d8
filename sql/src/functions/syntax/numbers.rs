//! Numbers with the types that they look like in PostgreSQL.

use datafusion::sql::sqlparser::ast::{
    self, DataType, ExactNumberInfo, Expr, Function, FunctionArg, FunctionArgExpr, UnaryOperator,
    Value, ValueWithSpan, WindowFrameBound, WindowType,
};
use datafusion::sql::sqlparser::tokenizer::Span;
use stillframe_protocol::numeric::Numeric;

use super::cast;
use crate::text::decimal_digits;
use crate::{Error, SqlState};

/// The number with its type, unless its type is the one that DataFusion gives it.
pub(super) fn typed_number(digits: &str, span: Span) -> Result<Option<Expr>, Error> {
    if digits.parse::<i32>().is_ok() {
        let number = Value::Number(digits.to_owned(), false);
        return Ok(Some(cast(ValueWithSpan { value: number, span }, DataType::Int4(None))));
    }
    if digits.parse::<i64>().is_ok() {
        return Ok(None);
    }
    let value = Numeric::parse(digits).map_err(|error| match error.sqlstate.as_str() {
        "22P02" => Error::new(
            SqlState::SYNTAX_ERROR,
            format!("trailing junk after numeric literal at or near \"{digits}\""),
        ),
        _ => Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, error.message),
    })?;
    let info = match decimal_digits(&value) {
        Some((_, precision, scale)) => {
            ExactNumberInfo::PrecisionAndScale(precision.into(), scale.into())
        }
        None => ExactNumberInfo::None,
    };
    let value = Value::SingleQuotedString(value.to_string());
    Ok(Some(cast(ValueWithSpan { value, span }, DataType::Numeric(info))))
}

/// An `integer`.
pub(super) fn integer(value: i32) -> Expr {
    let number = Value::Number(value.to_string(), false);
    cast(ValueWithSpan { value: number, span: Span::empty() }, DataType::Int4(None))
}

/// The number without the type that was given to it.
pub(super) fn untype(expr: &mut Expr) {
    if let Expr::Cast { expr: operand, data_type: DataType::Int4(None), .. } = expr
        && matches!(operand.as_ref(), Expr::Value(ValueWithSpan { value: Value::Number(..), .. }))
    {
        *expr = std::mem::replace(operand.as_mut(), Expr::value(Value::Null));
    }
}

/// The same for the numbers that an argument of a function in FROM is computed of.
pub(super) fn untype_argument(argument: &mut FunctionArg) {
    if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument {
        untype_operands(expr);
    }
}

fn untype_operands(expr: &mut Expr) {
    match expr {
        Expr::BinaryOp { left, right, .. } => {
            untype_operands(left);
            untype_operands(right);
        }
        Expr::UnaryOp { expr, .. } | Expr::Nested(expr) => untype_operands(expr),
        other => untype(other),
    }
}

pub(super) fn untype_frame(function: &mut Function) {
    let Some(WindowType::WindowSpec(window)) = &mut function.over else { return };
    let Some(frame) = &mut window.window_frame else { return };
    for bound in std::iter::once(&mut frame.start_bound).chain(&mut frame.end_bound) {
        if let WindowFrameBound::Preceding(Some(rows)) | WindowFrameBound::Following(Some(rows)) =
            bound
        {
            untype(rows);
            without_type(rows);
        }
    }
    window.order_by.iter_mut().for_each(|order| untype(&mut order.expr));
}

/// A frame's distance as DataFusion wants it, which reads it as what the order asks for.
fn without_type(expr: &mut Expr) {
    let distance = match &*expr {
        Expr::Cast { expr: operand, .. } => operand.as_ref(),
        other => other,
    };
    let Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), span }) = distance
    else {
        return;
    };
    let (text, span) = (text.clone(), *span);
    let number = Value::Number(text.clone(), false);
    *expr = match text.parse::<f64>() {
        Ok(_) => Expr::Value(ValueWithSpan { value: number, span }),
        Err(_) => Expr::Interval(ast::Interval {
            value: Box::new(Expr::Value(ValueWithSpan {
                value: Value::SingleQuotedString(text),
                span,
            })),
            leading_field: None,
            leading_precision: None,
            last_field: None,
            fractional_seconds_precision: None,
        }),
    };
}

/// `1e300::float8` is read at once: as a `numeric` on the way it might have too many digits.
pub(super) fn read_as_float(expr: &mut Expr) {
    let Expr::Cast { expr: operand, data_type, .. } = expr else { return };
    let is_float = matches!(
        data_type,
        DataType::Float(_)
            | DataType::Float4
            | DataType::Float8
            | DataType::Real
            | DataType::DoublePrecision
            | DataType::Double(_)
    );
    if is_float && let Some((digits, span)) = signed(operand, "") {
        let value = ValueWithSpan { value: Value::SingleQuotedString(digits), span };
        **operand = Expr::Value(value);
    }
}

/// The digits of a number in parentheses and behind signs.
fn signed(expr: &Expr, sign: &str) -> Option<(String, Span)> {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::Number(digits, _), span }) => {
            Some((format!("{sign}{digits}"), *span))
        }
        Expr::Nested(inner) => signed(inner, sign),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } if sign.is_empty() => signed(expr, "-"),
        _ => None,
    }
}
