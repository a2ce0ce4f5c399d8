//! Which expressions a row can make fail.

use arrow::datatypes::{DataType, Schema};
use stillframe_protocol::{BinaryOperator, Expression, UnaryOperator};

/// Whether some row may make the expression fail. Only what is known to be total is told apart:
/// an operator that can't fail needs no book of errors.
pub(crate) fn can_fail(expression: &Expression, schema: &Schema) -> bool {
    let fails_itself = match expression {
        Expression::Column(_) | Expression::Literal(_) => false,
        Expression::Unary { operator, .. } => matches!(operator, UnaryOperator::Negative),
        Expression::Binary { operator, .. } => !is_total(*operator),
        Expression::Cast { operand, to, null_on_error } => {
            !null_on_error && !is_widening(operand, to, schema)
        }
        Expression::Case { .. } | Expression::InList { .. } | Expression::Like { .. } => false,
        Expression::Call { .. } => true,
    };
    let mut fails = fails_itself;
    expression.children(&mut |child| fails = fails || can_fail(child, schema));
    fails
}

fn is_total(operator: BinaryOperator) -> bool {
    match operator {
        BinaryOperator::Equal
        | BinaryOperator::NotEqual
        | BinaryOperator::Less
        | BinaryOperator::LessOrEqual
        | BinaryOperator::Greater
        | BinaryOperator::GreaterOrEqual
        | BinaryOperator::IsDistinctFrom
        | BinaryOperator::IsNotDistinctFrom
        | BinaryOperator::And
        | BinaryOperator::Or
        | BinaryOperator::BitwiseAnd
        | BinaryOperator::BitwiseOr
        | BinaryOperator::BitwiseXor
        | BinaryOperator::Concat => true,
        BinaryOperator::Add
        | BinaryOperator::Subtract
        | BinaryOperator::Multiply
        | BinaryOperator::Divide
        | BinaryOperator::Modulo
        | BinaryOperator::ShiftLeft
        | BinaryOperator::ShiftRight
        | BinaryOperator::RegexMatch
        | BinaryOperator::RegexIMatch
        | BinaryOperator::RegexNotMatch
        | BinaryOperator::RegexNotIMatch => false,
    }
}

/// Whether every value of a column or constant has a counterpart in the type it is cast to.
fn is_widening(operand: &Expression, to: &DataType, schema: &Schema) -> bool {
    let from = match operand {
        Expression::Column(index) => match schema.fields().get(*index) {
            Some(field) => field.data_type().clone(),
            None => return false,
        },
        Expression::Literal(value) => super::scalar(value).data_type(),
        Expression::Cast { to, .. } | Expression::Call { returns: to, .. } => to.clone(),
        _ => return false,
    };
    match (&from, to) {
        (from, to) if from == to => true,
        (DataType::Null, _) => true,
        (DataType::Int16, DataType::Int32 | DataType::Int64)
        | (DataType::Int32, DataType::Int64)
        | (
            DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Float32,
            DataType::Float64,
        ) => true,
        (DataType::Int16, DataType::Decimal128(precision, scale)) => holds(5, *precision, *scale),
        (DataType::Int32, DataType::Decimal128(precision, scale)) => holds(10, *precision, *scale),
        (DataType::Int64, DataType::Decimal128(precision, scale)) => holds(19, *precision, *scale),
        (DataType::Decimal128(precision, scale), DataType::Decimal128(to_precision, to_scale)) => {
            to_scale >= scale
                && i16::from(*to_precision) - i16::from(*to_scale)
                    >= i16::from(*precision) - i16::from(*scale)
        }
        (DataType::Decimal128(..), DataType::Float64) => true,
        _ => false,
    }
}

/// Whether a decimal type has room for integers of so many digits.
fn holds(digits: i16, precision: u8, scale: i8) -> bool {
    i16::from(precision) - i16::from(scale) >= digits
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Field;
    use stillframe_protocol::Literal;

    use super::*;

    fn column() -> Box<Expression> {
        Box::new(Expression::Column(0))
    }

    fn cast(to: DataType) -> Expression {
        Expression::Cast { operand: column(), to, null_on_error: false }
    }

    #[test]
    fn only_total_expressions_cannot_fail() {
        let schema = Schema::new(vec![Field::new("a", DataType::Int32, true)]);
        let one = || Box::new(Expression::Literal(Literal::Int32(1)));
        let binary = |operator| Expression::Binary { operator, left: column(), right: one() };
        assert!(!can_fail(&binary(BinaryOperator::Less), &schema));
        assert!(can_fail(&binary(BinaryOperator::Divide), &schema));
        let nested = Expression::Binary {
            operator: BinaryOperator::Equal,
            left: Box::new(binary(BinaryOperator::Add)),
            right: one(),
        };
        assert!(can_fail(&nested, &schema));
        assert!(!can_fail(&cast(DataType::Int64), &schema));
        assert!(!can_fail(&cast(DataType::Decimal128(12, 2)), &schema));
        assert!(can_fail(&cast(DataType::Decimal128(11, 2)), &schema));
        assert!(can_fail(&cast(DataType::Int16), &schema));
    }
}
