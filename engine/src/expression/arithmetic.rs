//! `+ - * / %` of numbers, as PostgreSQL computes them: an impossible result is an error.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use arrow::compute::kernels::numeric;
use arrow::compute::try_binary;
use arrow::datatypes::{ArrowPrimitiveType, DataType, Float32Type, Float64Type, Schema};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr_common::datum;
use stillframe_protocol::RowError;

use crate::EngineError;

/// Arithmetic of two numbers of one type, or of two decimals.
#[derive(Debug, Eq, Hash)]
#[expect(clippy::derived_hash_with_manual_eq, reason = "it compares all fields, as a derived one")]
pub(super) struct Arithmetic {
    left: Arc<dyn PhysicalExpr>,
    operator: Operator,
    right: Arc<dyn PhysicalExpr>,
    returns: DataType,
}

// A derived comparison would move out of the operands (rust-lang/rust#78808).
impl PartialEq for Arithmetic {
    fn eq(&self, other: &Self) -> bool {
        self.left.eq(&other.left)
            && self.operator == other.operator
            && self.right.eq(&other.right)
            && self.returns == other.returns
    }
}

impl Arithmetic {
    /// # Errors
    ///
    /// [`EngineError::InvalidPlan`] if there is no such arithmetic of these types.
    pub(super) fn new(
        left: Arc<dyn PhysicalExpr>,
        operator: Operator,
        right: Arc<dyn PhysicalExpr>,
        schema: &Schema,
    ) -> std::result::Result<Self, EngineError> {
        let types = (left.data_type(schema)?, right.data_type(schema)?);
        let returns = match &types {
            (left, right) if left == right && !left.is_decimal() => left.clone(),
            (DataType::Decimal128(..), DataType::Decimal128(..)) => {
                let empty = |data_type| arrow::array::new_empty_array(data_type);
                let result = kernel(operator)(&empty(&types.0), &empty(&types.1))?;
                result.data_type().clone()
            }
            (left, right) => {
                let message = format!("no arithmetic of {left} and {right}");
                return Err(EngineError::InvalidPlan(message));
            }
        };
        Ok(Self { left, operator, right, returns })
    }
}

impl fmt::Display for Arithmetic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({} {} {})", self.left, self.operator, self.right)
    }
}

impl PhysicalExpr for Arithmetic {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(self.returns.clone())
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        Ok(self.left.nullable(schema)? || self.right.nullable(schema)?)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let (left, right) = (self.left.evaluate(batch)?, self.right.evaluate(batch)?);
        match self.returns {
            DataType::Float32 => floats::<Float32Type>(left, self.operator, right, batch),
            DataType::Float64 => floats::<Float64Type>(left, self.operator, right, batch),
            _ => datum::apply(&left, &right, |left, right| {
                kernel(self.operator)(left, right).map_err(|error| self.named(error))
            }),
        }
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.left, &self.right]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let [left, right] = <[_; 2]>::try_from(children)
            .map_err(|_| DataFusionError::Internal("arithmetic has two operands".to_owned()))?;
        let (operator, returns) = (self.operator, self.returns.clone());
        Ok(Arc::new(Self { left, operator, right, returns }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.left.fmt_sql(f)?;
        write!(f, " {} ", self.operator)?;
        self.right.fmt_sql(f)
    }
}

impl Arithmetic {
    /// Arrow knows that a number is too large, but not what PostgreSQL calls its type.
    fn named(&self, error: ArrowError) -> ArrowError {
        match error {
            ArrowError::ArithmeticOverflow(_) => {
                ArrowError::from_external_error(Box::new(out_of_range(&self.returns)))
            }
            error => error,
        }
    }
}

/// The error of a number that its type can't hold.
pub(super) fn out_of_range(data_type: &DataType) -> RowError {
    let message = match data_type {
        DataType::Int16 => "smallint out of range",
        DataType::Int32 => "integer out of range",
        DataType::Int64 => "bigint out of range",
        DataType::Float32 | DataType::Float64 => "value out of range: overflow",
        DataType::Decimal128(..) => "value overflows numeric format",
        _ => "value out of range",
    };
    RowError { sqlstate: "22003".to_owned(), message: message.to_owned() }
}

type Kernel =
    fn(&dyn arrow::array::Datum, &dyn arrow::array::Datum) -> Result<ArrayRef, ArrowError>;

fn kernel(operator: Operator) -> Kernel {
    match operator {
        Operator::Plus => numeric::add,
        Operator::Minus => numeric::sub,
        Operator::Multiply => numeric::mul,
        Operator::Divide => numeric::div,
        _ => numeric::rem,
    }
}

/// Float arithmetic, which the kernels would let run into infinity. Single precision is computed in
/// double precision and rounded, which gives the same numbers (Figueroa, 1995).
fn floats<T>(
    left: ColumnarValue,
    operator: Operator,
    right: ColumnarValue,
    batch: &RecordBatch,
) -> Result<ColumnarValue>
where
    T: ArrowPrimitiveType,
    T::Native: Into<f64> + Narrow,
{
    let rows = batch.num_rows();
    let (left, right) = (left.into_array(rows)?, right.into_array(rows)?);
    let compute = |left: T::Native, right: T::Native| {
        let (left, right) = (left.into(), right.into());
        let result = checked(left, operator, right).and_then(T::Native::narrow);
        result.map_err(|error| ArrowError::from_external_error(Box::new(error)))
    };
    let result: PrimitiveArray<T> =
        try_binary(left.as_primitive::<T>(), right.as_primitive::<T>(), compute)?;
    Ok(ColumnarValue::Array(Arc::new(result)))
}

fn checked(left: f64, operator: Operator, right: f64) -> Result<f64, RowError> {
    let divides = matches!(operator, Operator::Divide | Operator::Modulo);
    if divides && right == 0.0 && !left.is_nan() {
        return Err(division_by_zero());
    }
    let result = match operator {
        Operator::Plus => left + right,
        Operator::Minus => left - right,
        Operator::Multiply => left * right,
        Operator::Divide => left / right,
        _ => left % right,
    };
    if result.is_infinite() && !left.is_infinite() && !right.is_infinite() {
        return Err(out_of_range(&DataType::Float64));
    }
    let vanishes = match operator {
        Operator::Multiply => left != 0.0 && right != 0.0,
        Operator::Divide => left != 0.0 && !right.is_infinite(),
        _ => false,
    };
    if result == 0.0 && vanishes {
        return Err(underflow());
    }
    // The processor's NaN has a sign; ours, which is stored and compared, has none.
    Ok(if result.is_nan() { f64::NAN } else { result })
}

/// Rounds a result of double precision to a type.
trait Narrow: Sized {
    fn narrow(value: f64) -> Result<Self, RowError>;
}

impl Narrow for f64 {
    fn narrow(value: f64) -> Result<Self, RowError> {
        Ok(value)
    }
}

impl Narrow for f32 {
    fn narrow(value: f64) -> Result<Self, RowError> {
        let narrowed = value as f32;
        if narrowed.is_infinite() && value.is_finite() {
            Err(out_of_range(&DataType::Float32))
        } else if narrowed == 0.0 && value != 0.0 {
            Err(underflow())
        } else {
            Ok(narrowed)
        }
    }
}

/// The error of a division by zero.
pub(super) fn division_by_zero() -> RowError {
    RowError { sqlstate: "22012".to_owned(), message: "division by zero".to_owned() }
}

fn underflow() -> RowError {
    RowError { sqlstate: "22003".to_owned(), message: "value out of range: underflow".to_owned() }
}
