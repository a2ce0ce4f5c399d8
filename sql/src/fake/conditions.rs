//! Evaluates the conditions that queries give to hosts, row by row.

use std::cmp::Ordering;

use datafusion::common::ScalarValue;
use stillframe_protocol::{BinaryOperator, Expression, Literal, UnaryOperator};

/// True, false or unknown.
pub(super) fn holds(condition: &Expression, row: &[ScalarValue]) -> Option<bool> {
    match condition {
        Expression::Unary { operator, operand } => unary(*operator, operand, row),
        Expression::Binary { operator: BinaryOperator::And, left, right } => {
            match (holds(left, row), holds(right, row)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            }
        }
        Expression::Binary { operator: BinaryOperator::Or, left, right } => {
            match (holds(left, row), holds(right, row)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            }
        }
        Expression::Binary { operator, left, right } => {
            compare(*operator, &value(left, row), &value(right, row))
        }
        Expression::InList { operand, list, negated } => {
            let operand = value(operand, row);
            let mut found = Some(false);
            for item in list {
                match compare(BinaryOperator::Equal, &operand, &value(item, row)) {
                    Some(true) => return Some(!negated),
                    Some(false) => {}
                    None => found = None,
                }
            }
            found.map(|found| found != *negated)
        }
        other => match value(other, row) {
            ScalarValue::Boolean(value) => value,
            _ => panic!("not a condition: {other:?}"),
        },
    }
}

fn unary(operator: UnaryOperator, operand: &Expression, row: &[ScalarValue]) -> Option<bool> {
    match operator {
        UnaryOperator::IsNull => Some(value(operand, row).is_null()),
        UnaryOperator::IsNotNull => Some(!value(operand, row).is_null()),
        UnaryOperator::Not => holds(operand, row).map(|value| !value),
        UnaryOperator::IsTrue => Some(holds(operand, row) == Some(true)),
        UnaryOperator::IsNotTrue => Some(holds(operand, row) != Some(true)),
        UnaryOperator::IsFalse => Some(holds(operand, row) == Some(false)),
        UnaryOperator::IsNotFalse => Some(holds(operand, row) != Some(false)),
        UnaryOperator::IsUnknown => Some(holds(operand, row).is_none()),
        UnaryOperator::IsNotUnknown => Some(holds(operand, row).is_some()),
        UnaryOperator::Negative => panic!("hosts are asked for conditions that can't fail"),
    }
}

fn compare(operator: BinaryOperator, left: &ScalarValue, right: &ScalarValue) -> Option<bool> {
    let distinct = match (left.is_null(), right.is_null()) {
        (true, true) => false,
        (false, false) => left != right,
        _ => true,
    };
    match operator {
        BinaryOperator::IsDistinctFrom => return Some(distinct),
        BinaryOperator::IsNotDistinctFrom => return Some(!distinct),
        _ => {}
    }
    if left.is_null() || right.is_null() {
        return None;
    }
    let order = left.partial_cmp(right).expect("operands have one type");
    Some(match operator {
        BinaryOperator::Equal => order == Ordering::Equal,
        BinaryOperator::NotEqual => order != Ordering::Equal,
        BinaryOperator::Less => order == Ordering::Less,
        BinaryOperator::LessOrEqual => order != Ordering::Greater,
        BinaryOperator::Greater => order == Ordering::Greater,
        BinaryOperator::GreaterOrEqual => order != Ordering::Less,
        other => panic!("not a comparison: {other:?}"),
    })
}

fn value(expression: &Expression, row: &[ScalarValue]) -> ScalarValue {
    match expression {
        Expression::Column(column) => row[*column].clone(),
        Expression::Literal(literal) => scalar(literal),
        condition => ScalarValue::Boolean(holds(condition, row)),
    }
}

fn scalar(literal: &Literal) -> ScalarValue {
    match literal {
        Literal::Null(data_type) => ScalarValue::try_from(data_type).unwrap(),
        Literal::Boolean(value) => ScalarValue::Boolean(Some(*value)),
        Literal::Int16(value) => ScalarValue::Int16(Some(*value)),
        Literal::Int32(value) => ScalarValue::Int32(Some(*value)),
        Literal::Int64(value) => ScalarValue::Int64(Some(*value)),
        Literal::Float32(bits) => ScalarValue::Float32(Some(f32::from_bits(*bits))),
        Literal::Float64(bits) => ScalarValue::Float64(Some(f64::from_bits(*bits))),
        Literal::Decimal128(value, precision, scale) => {
            ScalarValue::Decimal128(Some(*value), *precision, *scale)
        }
        Literal::Numeric(value) => ScalarValue::LargeBinary(Some(value.clone())),
        Literal::Utf8(value) => ScalarValue::Utf8(Some(value.clone())),
        Literal::Binary(value) => ScalarValue::Binary(Some(value.clone())),
        Literal::Date32(value) => ScalarValue::Date32(Some(*value)),
        Literal::Time64Microsecond(value) => ScalarValue::Time64Microsecond(Some(*value)),
        Literal::TimestampMicrosecond(value, zone) => {
            ScalarValue::TimestampMicrosecond(Some(*value), zone.as_deref().map(Into::into))
        }
        Literal::IntervalMonthDayNano(..) => panic!("intervals are compared by their keys"),
        Literal::List(element, values) => {
            let values: Vec<_> = values.iter().map(scalar).collect();
            ScalarValue::List(ScalarValue::new_list_nullable(&values, element))
        }
    }
}
