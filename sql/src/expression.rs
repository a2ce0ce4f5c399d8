//! DataFusion's expressions in the form that hosts evaluate.
//!
//! Views and the filters of scans go through here. What can't be said exactly in the protocol's form
//! is [`Inexpressible`]; a scan then evaluates it itself, and a view is refused.

use arrow::array::Array;
use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::{Case, InList, Like, ScalarFunction};
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable, Operator, Volatility};
use stillframe_protocol::{BinaryOperator, Expression, Literal, UnaryOperator};

/// What hosts can't evaluate, as a construct that a message can name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inexpressible(pub(crate) String);

type Converted<T> = std::result::Result<T, Inexpressible>;

fn cannot<T>(what: impl Into<String>) -> Converted<T> {
    Err(Inexpressible(what.into()))
}

/// Converts an expression over the columns of `schema`.
pub(crate) fn convert(expr: &Expr, schema: &DFSchema) -> Converted<Expression> {
    let recurse = |expr: &Expr| convert(expr, schema);
    let boxed = |expr: &Expr| recurse(expr).map(Box::new);
    let unary =
        |operator, operand: &Expr| Ok(Expression::Unary { operator, operand: boxed(operand)? });
    match expr {
        Expr::Alias(alias) => recurse(&alias.expr),
        Expr::Column(column) => match schema.index_of_column(column) {
            Ok(place) => Ok(Expression::Column(place)),
            Err(_) => cannot(format!("a reference to {column} from outside")),
        },
        Expr::Literal(value, _) => Ok(Expression::Literal(literal(value)?)),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => Ok(Expression::Binary {
            operator: binary(*op)?,
            left: boxed(left)?,
            right: boxed(right)?,
        }),
        Expr::Not(operand) => unary(UnaryOperator::Not, operand),
        Expr::Negative(operand) => unary(UnaryOperator::Negative, operand),
        Expr::IsNull(operand) => unary(UnaryOperator::IsNull, operand),
        Expr::IsNotNull(operand) => unary(UnaryOperator::IsNotNull, operand),
        Expr::IsTrue(operand) => unary(UnaryOperator::IsTrue, operand),
        Expr::IsNotTrue(operand) => unary(UnaryOperator::IsNotTrue, operand),
        Expr::IsFalse(operand) => unary(UnaryOperator::IsFalse, operand),
        Expr::IsNotFalse(operand) => unary(UnaryOperator::IsNotFalse, operand),
        Expr::IsUnknown(operand) => unary(UnaryOperator::IsUnknown, operand),
        Expr::IsNotUnknown(operand) => unary(UnaryOperator::IsNotUnknown, operand),
        Expr::Between(between) => self::between(between, schema),
        Expr::Like(Like { negated, expr, pattern, escape_char, case_insensitive }) => {
            if escape_char.is_some_and(|escape| escape != '\\')
                && !matches!(pattern.as_ref(), Expr::Literal(..))
            {
                return cannot("LIKE with ESCAPE and a pattern that varies");
            }
            Ok(Expression::Like {
                operand: boxed(expr)?,
                pattern: boxed(pattern)?,
                negated: *negated,
                case_insensitive: *case_insensitive,
                escape: *escape_char,
            })
        }
        Expr::Case(case) => self::case(case, schema),
        Expr::Cast(cast) => Ok(Expression::Cast {
            operand: boxed(&cast.expr)?,
            to: cast.field.data_type().clone(),
            null_on_error: false,
        }),
        Expr::TryCast(cast) => Ok(Expression::Cast {
            operand: boxed(&cast.expr)?,
            to: cast.field.data_type().clone(),
            null_on_error: true,
        }),
        Expr::InList(InList { expr, list, negated }) => Ok(Expression::InList {
            operand: boxed(expr)?,
            list: list.iter().map(recurse).collect::<Converted<_>>()?,
            negated: *negated,
        }),
        Expr::ScalarFunction(function) => call(function, expr, schema),
        Expr::SimilarTo(_) => cannot("SIMILAR TO"),
        Expr::AggregateFunction(function) => {
            cannot(format!("the aggregate function {} here", function.func.name()))
        }
        Expr::WindowFunction(_) => cannot("a window function"),
        Expr::Exists(_) => cannot("EXISTS"),
        Expr::InSubquery(_) => cannot("IN with a subquery"),
        Expr::SetComparison(_) => cannot("ANY or ALL with a subquery"),
        Expr::ScalarSubquery(_) => cannot("a scalar subquery"),
        Expr::OuterReferenceColumn(..) => cannot("a correlated subquery"),
        Expr::GroupingSet(_) => cannot("GROUPING SETS, CUBE or ROLLUP"),
        Expr::Placeholder(_) => cannot("a parameter"),
        Expr::Unnest(_) => cannot("unnest"),
        other => cannot(format!("the expression {other}")),
    }
}

fn between(between: &Between, schema: &DFSchema) -> Converted<Expression> {
    let compare = |operator, bound: &Expr| {
        Ok(Expression::Binary {
            operator,
            left: Box::new(convert(&between.expr, schema)?),
            right: Box::new(convert(bound, schema)?),
        })
    };
    let inside = Expression::Binary {
        operator: BinaryOperator::And,
        left: Box::new(compare(BinaryOperator::GreaterOrEqual, &between.low)?),
        right: Box::new(compare(BinaryOperator::LessOrEqual, &between.high)?),
    };
    Ok(match between.negated {
        true => Expression::Unary { operator: UnaryOperator::Not, operand: Box::new(inside) },
        false => inside,
    })
}

fn case(case: &Case, schema: &DFSchema) -> Converted<Expression> {
    let optional = |expr: &Option<Box<Expr>>| {
        expr.as_ref().map(|expr| convert(expr, schema).map(Box::new)).transpose()
    };
    let branches = case
        .when_then_expr
        .iter()
        .map(|(when, then)| Ok((convert(when, schema)?, convert(then, schema)?)));
    Ok(Expression::Case {
        operand: optional(&case.expr)?,
        branches: branches.collect::<Converted<_>>()?,
        otherwise: optional(&case.else_expr)?,
    })
}

fn call(function: &ScalarFunction, expr: &Expr, schema: &DFSchema) -> Converted<Expression> {
    if function.func.signature().volatility != Volatility::Immutable {
        return cannot(format!(
            "the function {}(), which depends on more than its arguments,",
            function.name()
        ));
    }
    let arguments = function.args.iter().map(|argument| convert(argument, schema));
    let arguments = arguments.collect::<Converted<_>>()?;
    match expr.get_type(schema) {
        Ok(returns) => {
            Ok(Expression::Call { function: function.name().to_owned(), arguments, returns })
        }
        Err(_) => cannot(format!("the function {}()", function.name())),
    }
}

/// Converts a constant.
pub(crate) fn literal(value: &ScalarValue) -> Converted<Literal> {
    if value.is_null() {
        return Ok(Literal::Null(signed(value.data_type())));
    }
    Ok(match value {
        ScalarValue::Boolean(Some(value)) => Literal::Boolean(*value),
        // What DataFusion counts unsigned is stored signed.
        ScalarValue::Int8(Some(value)) => Literal::Int16(i16::from(*value)),
        ScalarValue::UInt8(Some(value)) => Literal::Int16(i16::from(*value)),
        ScalarValue::UInt16(Some(value)) => Literal::Int32(i32::from(*value)),
        ScalarValue::UInt32(Some(value)) => Literal::Int64(i64::from(*value)),
        ScalarValue::UInt64(Some(value)) => match i64::try_from(*value) {
            Ok(value) => Literal::Int64(value),
            Err(_) => return cannot(format!("the constant {value}")),
        },
        ScalarValue::Int16(Some(value)) => Literal::Int16(*value),
        ScalarValue::Int32(Some(value)) => Literal::Int32(*value),
        ScalarValue::Int64(Some(value)) => Literal::Int64(*value),
        ScalarValue::Float32(Some(value)) => Literal::Float32(value.to_bits()),
        ScalarValue::Float64(Some(value)) => Literal::Float64(value.to_bits()),
        ScalarValue::Decimal128(Some(value), precision, scale) => {
            Literal::Decimal128(*value, *precision, *scale)
        }
        ScalarValue::LargeBinary(Some(value)) => Literal::Numeric(value.clone()),
        ScalarValue::Utf8(Some(value)) => Literal::Utf8(value.clone()),
        ScalarValue::Binary(Some(value)) => Literal::Binary(value.clone()),
        ScalarValue::Date32(Some(value)) => Literal::Date32(*value),
        ScalarValue::Time64Microsecond(Some(value)) => Literal::Time64Microsecond(*value),
        ScalarValue::TimestampMicrosecond(Some(value), zone) => {
            Literal::TimestampMicrosecond(*value, zone.as_ref().map(ToString::to_string))
        }
        ScalarValue::IntervalMonthDayNano(Some(value)) => {
            Literal::IntervalMonthDayNano(value.months, value.days, value.nanoseconds)
        }
        ScalarValue::List(list) => {
            let values = list.value(0);
            let values = (0..values.len()).map(|place| {
                let value = ScalarValue::try_from_array(&values, place);
                literal(&value.map_err(|error| Inexpressible(error.to_string()))?)
            });
            Literal::List(list.value_type(), values.collect::<Converted<_>>()?)
        }
        other => return cannot(format!("a constant of type {}", other.data_type())),
    })
}

/// The type in which a number is stored that DataFusion counts unsigned.
fn signed(data_type: DataType) -> DataType {
    match data_type {
        DataType::Int8 | DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 | DataType::UInt64 => DataType::Int64,
        other => other,
    }
}

fn binary(operator: Operator) -> Converted<BinaryOperator> {
    Ok(match operator {
        Operator::Eq => BinaryOperator::Equal,
        Operator::NotEq => BinaryOperator::NotEqual,
        Operator::Lt => BinaryOperator::Less,
        Operator::LtEq => BinaryOperator::LessOrEqual,
        Operator::Gt => BinaryOperator::Greater,
        Operator::GtEq => BinaryOperator::GreaterOrEqual,
        Operator::IsDistinctFrom => BinaryOperator::IsDistinctFrom,
        Operator::IsNotDistinctFrom => BinaryOperator::IsNotDistinctFrom,
        Operator::And => BinaryOperator::And,
        Operator::Or => BinaryOperator::Or,
        Operator::Plus => BinaryOperator::Add,
        Operator::Minus => BinaryOperator::Subtract,
        Operator::Multiply => BinaryOperator::Multiply,
        Operator::Divide => BinaryOperator::Divide,
        Operator::Modulo => BinaryOperator::Modulo,
        Operator::BitwiseAnd => BinaryOperator::BitwiseAnd,
        Operator::BitwiseOr => BinaryOperator::BitwiseOr,
        Operator::BitwiseXor => BinaryOperator::BitwiseXor,
        Operator::BitwiseShiftLeft => BinaryOperator::ShiftLeft,
        Operator::BitwiseShiftRight => BinaryOperator::ShiftRight,
        Operator::StringConcat => BinaryOperator::Concat,
        Operator::RegexMatch => BinaryOperator::RegexMatch,
        Operator::RegexIMatch => BinaryOperator::RegexIMatch,
        Operator::RegexNotMatch => BinaryOperator::RegexNotMatch,
        Operator::RegexNotIMatch => BinaryOperator::RegexNotIMatch,
        other => return cannot(format!("the operator {other}")),
    })
}

/// Whether hosts can store values of this type.
pub(crate) fn is_storable(data_type: &DataType) -> bool {
    use arrow::datatypes::{IntervalUnit, TimeUnit};
    if let DataType::List(element) = data_type {
        return !element.data_type().is_nested() && is_storable(element.data_type());
    }
    matches!(
        data_type,
        DataType::Boolean
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Float32
            | DataType::Float64
            | DataType::Decimal128(..)
            | DataType::Utf8
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::Date32
            | DataType::Time64(TimeUnit::Microsecond)
            | DataType::Timestamp(TimeUnit::Microsecond, _)
            | DataType::Interval(IntervalUnit::MonthDayNano)
    )
}
