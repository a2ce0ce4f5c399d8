//! Values that need no planning: literals and parameters as a column takes them.

use datafusion::sql::sqlparser::ast::{Expr, UnaryOperator, Value};

use super::Arguments;
use crate::session::Parameter;
use crate::text::TextDecoder;
use crate::{Error, SqlState, Type};

/// A literal or parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Constant<'a> {
    Null,
    /// Text that is read as whatever type is wanted.
    Text(&'a str),
    Number {
        is_negative: bool,
        digits: &'a str,
    },
    Boolean(bool),
}

impl<'a> Constant<'a> {
    /// The constant that an expression is, if it is one that a column of this type takes as it
    /// stands. Everything else is left to the planner.
    pub(super) fn of(expr: &'a Expr, kind: &Type, arguments: &Arguments<'a>) -> Option<Self> {
        let constant = Self::read(expr, kind, arguments)?;
        let fits = match (&constant, kind) {
            (Self::Null | Self::Text(_), _) => true,
            (Self::Boolean(_), kind) => *kind == Type::Boolean,
            (Self::Number { digits, .. }, Type::SmallInt | Type::Integer | Type::BigInt) => {
                digits.bytes().all(|byte| byte.is_ascii_digit())
            }
            (Self::Number { .. }, kind) => {
                matches!(kind, Type::Real | Type::Double | Type::Numeric(_))
            }
        };
        fits.then_some(constant)
    }

    fn read(expr: &'a Expr, kind: &Type, arguments: &Arguments<'a>) -> Option<Self> {
        match expr {
            Expr::Nested(expr) => Self::read(expr, kind, arguments),
            Expr::UnaryOp { op, expr } => {
                let flips = match op {
                    UnaryOperator::Minus => true,
                    UnaryOperator::Plus => false,
                    _ => return None,
                };
                match Self::read(expr, kind, arguments)? {
                    Self::Number { is_negative, digits } => {
                        Some(Self::Number { is_negative: is_negative != flips, digits })
                    }
                    _ => None,
                }
            }
            Expr::Value(value) => match &value.value {
                Value::Null => Some(Self::Null),
                Value::Boolean(value) => Some(Self::Boolean(*value)),
                Value::Number(digits, _) => Some(Self::Number { is_negative: false, digits }),
                Value::SingleQuotedString(text)
                | Value::EscapedStringLiteral(text)
                | Value::UnicodeStringLiteral(text) => Some(Self::Text(text)),
                Value::DollarQuotedString(text) => Some(Self::Text(&text.value)),
                Value::Placeholder(name) => {
                    let (value, declared) = arguments.get(name)?;
                    // A parameter of another type is cast like any expression.
                    let is_plain = *declared == Type::Unknown || declared.oid() == kind.oid();
                    match value {
                        Parameter::Null => Some(Self::Null),
                        Parameter::Text(text) => is_plain.then_some(Self::Text(text)),
                    }
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Appends the value to a column of a type.
    pub(super) fn append(&self, kind: &Type, decoder: &mut TextDecoder) -> Result<(), Error> {
        match self {
            Self::Null => {
                decoder.append_null();
                Ok(())
            }
            Self::Text(text) => decoder.append(text),
            Self::Boolean(value) => decoder.append(if *value { "t" } else { "f" }),
            Self::Number { is_negative, digits } => {
                let sign = if *is_negative { "-" } else { "" };
                let number = format!("{sign}{digits}");
                if !is_in_range(&number, kind) {
                    let message = format!("{kind} out of range");
                    return Err(Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
                }
                decoder.append(&number)
            }
        }
    }
}

/// Whether an integer can be one of an integer type.
fn is_in_range(number: &str, kind: &Type) -> bool {
    match kind {
        Type::SmallInt => number.parse::<i16>().is_ok(),
        Type::Integer => number.parse::<i32>().is_ok(),
        Type::BigInt => number.parse::<i64>().is_ok(),
        _ => true,
    }
}
