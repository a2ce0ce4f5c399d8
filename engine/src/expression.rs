//! Scalar expressions: from the protocol's form to DataFusion's kernels.
//!
//! Views, scans and ad-hoc queries all evaluate these same kernels. Types are settled already, so
//! nothing is coerced here; what is added is PostgreSQL's strictness: arithmetic that overflows or
//! divides by zero is an error ([`row_error`]), never a wrapped number or an infinity.

mod arithmetic;
mod classify;
mod fallible;

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, IntervalMonthDayNano, Schema};
use datafusion::common::ScalarValue;
use datafusion::common::config::ConfigOptions;
use datafusion::logical_expr::registry::FunctionRegistry;
use datafusion::logical_expr::{AggregateUDF, Operator, WindowUDF};
use datafusion::physical_expr::expressions::{
    self as physical, BinaryExpr, CaseExpr, CastExpr, Column, IsNotNullExpr, IsNullExpr, LikeExpr,
    NegativeExpr, NotExpr, TryCastExpr,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use stillframe_protocol::{BinaryOperator, Expression, Literal, UnaryOperator};

pub use classify::row_error;
pub(crate) use fallible::can_fail;

use crate::EngineError;
use arithmetic::Arithmetic;

type Physical = Arc<dyn PhysicalExpr>;

/// The functions that plans may call, and the settings they see.
#[derive(Clone)]
pub struct Functions {
    registry: Arc<dyn FunctionRegistry + Send + Sync>,
    options: Arc<ConfigOptions>,
}

impl Functions {
    /// Functions with DataFusion's default settings.
    pub fn new(registry: Arc<dyn FunctionRegistry + Send + Sync>) -> Self {
        Self { registry, options: Arc::default() }
    }

    /// The aggregate function of this name.
    pub(crate) fn aggregate(&self, name: &str) -> Result<Arc<AggregateUDF>, EngineError> {
        let missing = |_| EngineError::InvalidPlan(format!("no aggregate function {name}"));
        self.registry.udaf(name).map_err(missing)
    }

    /// The window function of this name.
    pub(crate) fn window(&self, name: &str) -> Result<Arc<WindowUDF>, EngineError> {
        let missing = |_| EngineError::InvalidPlan(format!("no window function {name}"));
        self.registry.udwf(name).map_err(missing)
    }
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Functions").finish_non_exhaustive()
    }
}

/// Compiles an expression over the columns of `schema`.
///
/// # Errors
///
/// [`EngineError::InvalidPlan`] if it names a column or function that isn't there or an operator
/// doesn't take its operands; nothing that depends on a row.
pub fn compile(
    expression: &Expression,
    schema: &Schema,
    functions: &Functions,
) -> Result<Arc<dyn PhysicalExpr>, EngineError> {
    Compiler { schema, functions }.compile(expression)
}

struct Compiler<'a> {
    schema: &'a Schema,
    functions: &'a Functions,
}

impl Compiler<'_> {
    fn compile(&self, expression: &Expression) -> Result<Physical, EngineError> {
        Ok(match expression {
            Expression::Column(index) => {
                let Some(field) = self.schema.fields().get(*index) else {
                    return Err(EngineError::InvalidPlan(format!("no column {index}")));
                };
                Arc::new(Column::new(field.name(), *index))
            }
            Expression::Literal(value) => Arc::new(physical::Literal::new(scalar(value))),
            Expression::Unary { operator, operand } => self.unary(*operator, operand)?,
            Expression::Binary { operator, left, right } => {
                self.binary(*operator, self.compile(left)?, self.compile(right)?)?
            }
            Expression::Cast { operand, to, null_on_error } => {
                let operand = self.compile(operand)?;
                if *null_on_error {
                    Arc::new(TryCastExpr::new(operand, to.clone()))
                } else {
                    Arc::new(CastExpr::new(operand, to.clone(), None))
                }
            }
            Expression::Case { operand, branches, otherwise } => {
                let optional = |expression: &Option<Box<Expression>>| {
                    expression.as_deref().map(|expression| self.compile(expression)).transpose()
                };
                let branches = branches
                    .iter()
                    .map(|(when, then)| Ok((self.compile(when)?, self.compile(then)?)))
                    .collect::<Result<Vec<_>, EngineError>>()?;
                let case = CaseExpr::try_new(optional(operand)?, branches, optional(otherwise)?)?;
                Arc::new(case)
            }
            Expression::Like { operand, pattern, negated, case_insensitive, escape } => {
                let pattern = match escape {
                    None | Some('\\') => self.compile(pattern)?,
                    Some(escape) => escaped_pattern(pattern, *escape)?,
                };
                let operand = self.compile(operand)?;
                Arc::new(LikeExpr::new(*negated, *case_insensitive, operand, pattern))
            }
            Expression::InList { operand, list, negated } => {
                let list = list.iter().map(|item| self.compile(item)).collect::<Result<_, _>>()?;
                physical::in_list(self.compile(operand)?, list, negated, self.schema)?
            }
            Expression::Call { function, arguments, returns } => {
                self.call(function, arguments, returns)?
            }
        })
    }

    fn unary(
        &self,
        operator: UnaryOperator,
        operand: &Expression,
    ) -> Result<Physical, EngineError> {
        let operand = self.compile(operand)?;
        let compare = |operator, operand, value| -> Physical {
            let value = Arc::new(physical::Literal::new(ScalarValue::Boolean(value)));
            Arc::new(BinaryExpr::new(operand, operator, value))
        };
        let (same, differs) = (Operator::IsNotDistinctFrom, Operator::IsDistinctFrom);
        Ok(match operator {
            UnaryOperator::Not => Arc::new(NotExpr::new(operand)),
            UnaryOperator::Negative => self.negative(operand)?,
            UnaryOperator::IsNull | UnaryOperator::IsUnknown => Arc::new(IsNullExpr::new(operand)),
            UnaryOperator::IsNotNull | UnaryOperator::IsNotUnknown => {
                Arc::new(IsNotNullExpr::new(operand))
            }
            UnaryOperator::IsTrue => compare(same, operand, Some(true)),
            UnaryOperator::IsNotTrue => compare(differs, operand, Some(true)),
            UnaryOperator::IsFalse => compare(same, operand, Some(false)),
            UnaryOperator::IsNotFalse => compare(differs, operand, Some(false)),
        })
    }

    /// Integers are subtracted from zero, so that the smallest of a type is an error and not itself.
    fn negative(&self, operand: Physical) -> Result<Physical, EngineError> {
        let data_type = operand.data_type(self.schema)?;
        if !data_type.is_integer() {
            return Ok(Arc::new(NegativeExpr::new(operand)));
        }
        let zero = physical::Literal::new(ScalarValue::new_zero(&data_type)?);
        self.binary(BinaryOperator::Subtract, Arc::new(zero), operand)
    }

    fn binary(
        &self,
        operator: BinaryOperator,
        left: Physical,
        right: Physical,
    ) -> Result<Physical, EngineError> {
        let arithmetic = matches!(
            operator,
            BinaryOperator::Add
                | BinaryOperator::Subtract
                | BinaryOperator::Multiply
                | BinaryOperator::Divide
                | BinaryOperator::Modulo
        );
        let operator = binary_operator(operator);
        if arithmetic && left.data_type(self.schema)?.is_numeric() {
            return Ok(Arc::new(Arithmetic::new(left, operator, right, self.schema)?));
        }
        let binary = BinaryExpr::new(left, operator, right).with_fail_on_overflow(true);
        binary.data_type(self.schema)?;
        Ok(Arc::new(binary))
    }

    fn call(
        &self,
        function: &str,
        arguments: &[Expression],
        returns: &DataType,
    ) -> Result<Physical, EngineError> {
        let Ok(implementation) = self.functions.registry.udf(function) else {
            return Err(EngineError::InvalidPlan(format!("no function {function}")));
        };
        let arguments =
            arguments.iter().map(|argument| self.compile(argument)).collect::<Result<_, _>>()?;
        let returns = Arc::new(Field::new(function, returns.clone(), true));
        let options = Arc::clone(&self.functions.options);
        Ok(Arc::new(ScalarFunctionExpr::new(function, implementation, arguments, returns, options)))
    }
}

/// A constant as DataFusion knows it. Floats are normalised as in stored rows.
pub(crate) fn scalar(value: &Literal) -> ScalarValue {
    match value {
        Literal::Null(data_type) => ScalarValue::try_from(data_type).unwrap_or(ScalarValue::Null),
        Literal::Boolean(value) => ScalarValue::Boolean(Some(*value)),
        Literal::Int16(value) => ScalarValue::Int16(Some(*value)),
        Literal::Int32(value) => ScalarValue::Int32(Some(*value)),
        Literal::Int64(value) => ScalarValue::Int64(Some(*value)),
        Literal::Float32(bits) => {
            let value = f32::from_bits(*bits);
            ScalarValue::Float32(Some(if value.is_nan() { f32::NAN } else { value + 0.0 }))
        }
        Literal::Float64(bits) => {
            let value = f64::from_bits(*bits);
            ScalarValue::Float64(Some(if value.is_nan() { f64::NAN } else { value + 0.0 }))
        }
        Literal::Decimal128(value, precision, scale) => {
            ScalarValue::Decimal128(Some(*value), *precision, *scale)
        }
        Literal::Numeric(value) => ScalarValue::LargeBinary(Some(value.clone())),
        Literal::Utf8(value) => ScalarValue::Utf8(Some(value.clone())),
        Literal::Binary(value) => ScalarValue::Binary(Some(value.clone())),
        Literal::Date32(value) => ScalarValue::Date32(Some(*value)),
        Literal::Time64Microsecond(value) => ScalarValue::Time64Microsecond(Some(*value)),
        Literal::TimestampMicrosecond(value, zone) => {
            ScalarValue::TimestampMicrosecond(Some(*value), zone.as_deref().map(Arc::from))
        }
        Literal::IntervalMonthDayNano(months, days, nanoseconds) => {
            let interval = IntervalMonthDayNano::new(*months, *days, *nanoseconds);
            ScalarValue::IntervalMonthDayNano(Some(interval))
        }
        Literal::List(element, values) => {
            let values: Vec<_> = values.iter().map(scalar).collect();
            ScalarValue::List(ScalarValue::new_list_nullable(&values, element))
        }
    }
}

fn binary_operator(operator: BinaryOperator) -> Operator {
    match operator {
        BinaryOperator::Equal => Operator::Eq,
        BinaryOperator::NotEqual => Operator::NotEq,
        BinaryOperator::Less => Operator::Lt,
        BinaryOperator::LessOrEqual => Operator::LtEq,
        BinaryOperator::Greater => Operator::Gt,
        BinaryOperator::GreaterOrEqual => Operator::GtEq,
        BinaryOperator::IsDistinctFrom => Operator::IsDistinctFrom,
        BinaryOperator::IsNotDistinctFrom => Operator::IsNotDistinctFrom,
        BinaryOperator::And => Operator::And,
        BinaryOperator::Or => Operator::Or,
        BinaryOperator::Add => Operator::Plus,
        BinaryOperator::Subtract => Operator::Minus,
        BinaryOperator::Multiply => Operator::Multiply,
        BinaryOperator::Divide => Operator::Divide,
        BinaryOperator::Modulo => Operator::Modulo,
        BinaryOperator::BitwiseAnd => Operator::BitwiseAnd,
        BinaryOperator::BitwiseOr => Operator::BitwiseOr,
        BinaryOperator::BitwiseXor => Operator::BitwiseXor,
        BinaryOperator::ShiftLeft => Operator::BitwiseShiftLeft,
        BinaryOperator::ShiftRight => Operator::BitwiseShiftRight,
        BinaryOperator::Concat => Operator::StringConcat,
        BinaryOperator::RegexMatch => Operator::RegexMatch,
        BinaryOperator::RegexIMatch => Operator::RegexIMatch,
        BinaryOperator::RegexNotMatch => Operator::RegexNotMatch,
        BinaryOperator::RegexNotIMatch => Operator::RegexNotIMatch,
    }
}

/// A LIKE pattern whose escape character is the kernel's, a backslash. Only a constant pattern can
/// be rewritten so.
fn escaped_pattern(pattern: &Expression, escape: char) -> Result<Physical, EngineError> {
    let Expression::Literal(Literal::Utf8(pattern)) = pattern else {
        let message = "LIKE with ESCAPE needs a constant pattern".to_owned();
        return Err(EngineError::InvalidPlan(message));
    };
    let mut rewritten = String::with_capacity(pattern.len() + 4);
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        let literal = if character == escape {
            match characters.next() {
                Some(escaped) => Some(escaped),
                None => {
                    let message = "LIKE pattern must not end with escape character".to_owned();
                    return Err(EngineError::InvalidPlan(message));
                }
            }
        } else {
            (character == '\\').then_some(character)
        };
        match literal {
            Some(literal) => rewritten.extend(['\\', literal]),
            None => rewritten.push(character),
        }
    }
    Ok(Arc::new(physical::Literal::new(ScalarValue::Utf8(Some(rewritten)))))
}

#[cfg(test)]
mod tests;
