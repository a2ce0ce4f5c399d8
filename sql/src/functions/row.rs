//! Computing row by row: NULL in, NULL out, and the errors that a row can raise.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::compute::{try_binary, try_unary};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};
use stillframe_protocol::RowError;

use crate::{Error, SqlState};

/// An error that a row raises.
pub(super) fn raise(state: SqlState, message: impl Into<String>) -> ArrowError {
    let error = RowError { sqlstate: state.code().to_owned(), message: message.into() };
    ArrowError::ExternalError(Box::new(error))
}

/// The same, of an error with more to it.
pub(super) fn raise_error(error: Error) -> ArrowError {
    raise(error.state, error.message)
}

/// 22012.
pub(super) fn division_by_zero() -> ArrowError {
    raise(SqlState::DIVISION_BY_ZERO, "division by zero")
}

/// 22003, with the type's name.
pub(super) fn out_of_range(kind: &str) -> ArrowError {
    raise(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{kind} out of range"))
}

/// 22003 for a float that has become infinite.
pub(super) fn overflow() -> ArrowError {
    raise(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow")
}

/// 22003 for a float that has become zero.
pub(super) fn underflow() -> ArrowError {
    raise(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: underflow")
}

/// Computes one value of each, in the output's data type.
pub(super) fn unary<I, O>(
    argument: &ColumnarValue,
    output: &DataType,
    operation: impl Fn(I::Native) -> std::result::Result<O::Native, ArrowError>,
) -> Result<ColumnarValue>
where
    I: ArrowPrimitiveType,
    O: ArrowPrimitiveType,
{
    let (array, is_scalar) = one_array(argument)?;
    let result: PrimitiveArray<O> = try_unary(array.as_primitive::<I>(), operation)?;
    shaped(Arc::new(result.with_data_type(output.clone())), is_scalar)
}

/// Computes one value of each pair, in the output's data type.
pub(super) fn binary<L, R, O>(
    arguments: &ScalarFunctionArgs,
    operation: impl Fn(L::Native, R::Native) -> std::result::Result<O::Native, ArrowError>,
) -> Result<ColumnarValue>
where
    L: ArrowPrimitiveType,
    R: ArrowPrimitiveType,
    O: ArrowPrimitiveType,
{
    let output = arguments.return_type();
    let [left, right, ..] = arguments.args.as_slice() else {
        return Err(DataFusionError::Internal("an operator without two operands".to_owned()));
    };
    let ((left, left_is_scalar), (right, right_is_scalar)) = (one_array(left)?, one_array(right)?);
    let left = left.as_primitive::<L>();
    let right = right.as_primitive::<R>();
    let result: PrimitiveArray<O> = match (left_is_scalar, right_is_scalar) {
        (true, true) | (false, false) => try_binary(left, right, operation)?,
        (true, false) if left.is_null(0) => PrimitiveArray::new_null(right.len()),
        (false, true) if right.is_null(0) => PrimitiveArray::new_null(left.len()),
        (true, false) => {
            let constant = left.value(0);
            try_unary(right, |value| operation(constant, value))?
        }
        (false, true) => {
            let constant = right.value(0);
            try_unary(left, |value| operation(value, constant))?
        }
    };
    let is_scalar = left_is_scalar && right_is_scalar;
    shaped(Arc::new(result.with_data_type(output.clone())), is_scalar)
}

/// The values, or the one value of a constant, and whether it is one.
pub(super) fn one_array(argument: &ColumnarValue) -> Result<(ArrayRef, bool)> {
    Ok(match argument {
        ColumnarValue::Array(array) => (Arc::clone(array), false),
        ColumnarValue::Scalar(scalar) => (scalar.to_array()?, true),
    })
}

/// An array, or a constant of its only value.
pub(super) fn shaped(array: ArrayRef, is_scalar: bool) -> Result<ColumnarValue> {
    if is_scalar {
        return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?));
    }
    Ok(ColumnarValue::Array(array))
}

/// All arguments as arrays of the same length, and whether all are constants (of length 1 then).
pub(super) fn arrays(arguments: &ScalarFunctionArgs) -> Result<(Vec<ArrayRef>, bool)> {
    let is_scalar =
        arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
    let rows = if is_scalar { 1 } else { arguments.number_rows };
    let arrays = arguments.args.iter().map(|argument| argument.to_array(rows));
    Ok((arrays.collect::<Result<_>>()?, is_scalar))
}
