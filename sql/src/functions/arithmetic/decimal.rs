//! Decimals whose types leave room for every result, and whose scale is known.

use arrow::datatypes::{DataType, Decimal128Type};
use arrow::error::ArrowError;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use crate::functions::arithmetic::Operator;
use crate::functions::row::{binary, division_by_zero, raise_error};
use crate::text::out_of_digits;

/// Computes decimals with these scales.
pub(super) fn numeric(
    operator: Operator,
    left_scale: i8,
    right_scale: i8,
    arguments: &ScalarFunctionArgs,
) -> Result<ColumnarValue> {
    type Decimal = Decimal128Type;
    let DataType::Decimal128(_, scale) = *arguments.return_type() else {
        return Err(DataFusionError::Internal("a decimal operator of another type".to_owned()));
    };
    let left_factor = power(scale - left_scale)?;
    let right_factor = power(scale - right_scale)?;
    match operator {
        Operator::Add => binary::<Decimal, Decimal, Decimal>(arguments, |left, right| {
            within(scaled(left, left_factor)?.checked_add(scaled(right, right_factor)?))
        }),
        Operator::Subtract => binary::<Decimal, Decimal, Decimal>(arguments, |left, right| {
            within(scaled(left, left_factor)?.checked_sub(scaled(right, right_factor)?))
        }),
        Operator::Multiply => binary::<Decimal, Decimal, Decimal>(arguments, |left, right| {
            within(left.checked_mul(right))
        }),
        Operator::Modulo => binary::<Decimal, Decimal, Decimal>(arguments, |left, right| {
            if right == 0 {
                return Err(division_by_zero());
            }
            Ok(scaled(left, left_factor)? % scaled(right, right_factor)?)
        }),
        Operator::Divide => {
            Err(DataFusionError::Internal("a quotient has no scale of its type".to_owned()))
        }
    }
}

fn power(scale: i8) -> Result<i128> {
    // A product's factors keep their own scales, which are smaller than the product's.
    let exponent = u32::try_from(scale.max(0)).unwrap_or(0);
    let power = 10i128.checked_pow(exponent);
    power.ok_or_else(|| DataFusionError::Internal(format!("a scale of {scale} digits")))
}

fn scaled(value: i128, factor: i128) -> std::result::Result<i128, ArrowError> {
    within(value.checked_mul(factor))
}

/// Types leave room for what values of their digits give; a value with more is none of theirs.
fn within(value: Option<i128>) -> std::result::Result<i128, ArrowError> {
    value.ok_or_else(|| raise_error(out_of_digits()))
}
