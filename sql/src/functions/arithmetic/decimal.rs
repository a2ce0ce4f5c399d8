//! Decimals: exact, with quotients rounded half away from zero; 22003 for more than 38 digits,
//! 22012 for what is divided by zero.

use arrow::datatypes::{DataType, Decimal128Type, i256};
use arrow::error::ArrowError;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use crate::functions::arithmetic::Operator;
use crate::functions::row::{binary, division_by_zero, raise_error};
use crate::text::out_of_digits;

/// The first number with too many digits.
const LIMIT: i128 = 10i128.pow(38);

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
            let (left, right) = (scaled(left, left_factor)?, scaled(right, right_factor)?);
            within(left.checked_add(right))
        }),
        Operator::Subtract => binary::<Decimal, Decimal, Decimal>(arguments, |left, right| {
            let (left, right) = (scaled(left, left_factor)?, scaled(right, right_factor)?);
            within(left.checked_sub(right))
        }),
        Operator::Multiply => binary::<Decimal, Decimal, Decimal>(arguments, |left, right| {
            within(left.checked_mul(right))
        }),
        Operator::Divide => {
            let factor = power(scale - left_scale + right_scale)?;
            binary::<Decimal, Decimal, Decimal>(arguments, |left, right| {
                quotient(left, factor, right)
            })
        }
        Operator::Modulo => binary::<Decimal, Decimal, Decimal>(arguments, |left, right| {
            if right == 0 {
                return Err(division_by_zero());
            }
            let (left, right) = (scaled(left, left_factor)?, scaled(right, right_factor)?);
            Ok(left % right)
        }),
    }
}

fn power(scale: i8) -> Result<i128> {
    // A product's factors keep their own scales, which are smaller than the product's.
    let exponent = u32::try_from(scale.max(0)).unwrap_or(0);
    let power = 10i128.checked_pow(exponent);
    power.ok_or_else(|| DataFusionError::Internal(format!("a scale of {scale} digits")))
}

fn too_long() -> ArrowError {
    raise_error(out_of_digits())
}

fn scaled(value: i128, factor: i128) -> std::result::Result<i128, ArrowError> {
    value.checked_mul(factor).ok_or_else(too_long)
}

fn within(value: Option<i128>) -> std::result::Result<i128, ArrowError> {
    value.filter(|value| -LIMIT < *value && *value < LIMIT).ok_or_else(too_long)
}

/// `left * factor / right`, rounded half away from zero.
pub(in crate::functions) fn quotient(
    left: i128,
    factor: i128,
    right: i128,
) -> std::result::Result<i128, ArrowError> {
    if right == 0 {
        return Err(division_by_zero());
    }
    if let Some(dividend) = left.checked_mul(factor) {
        let (quotient, remainder) = (dividend / right, dividend % right);
        let remainder = remainder.unsigned_abs();
        let rounds_away = remainder >= right.unsigned_abs() - remainder;
        let sign = if (dividend < 0) == (right < 0) { 1 } else { -1 };
        return within(Some(if rounds_away { quotient + sign } else { quotient }));
    }
    let dividend = i256::from_i128(left).wrapping_mul(i256::from_i128(factor));
    let divisor = i256::from_i128(right);
    let quotient = dividend.wrapping_div(divisor);
    let remainder = dividend.wrapping_rem(divisor).wrapping_abs();
    let rounds_away = remainder >= divisor.wrapping_abs().wrapping_sub(remainder);
    let sign = if (left < 0) == (right < 0) { i256::ONE } else { i256::MINUS_ONE };
    let rounded = if rounds_away { quotient.wrapping_add(sign) } else { quotient };
    within(rounded.to_i128())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_rounded_half_away_from_zero() {
        assert_eq!(quotient(1, 100, 3).unwrap(), 33);
        assert_eq!(quotient(2, 100, 3).unwrap(), 67);
        assert_eq!(quotient(-2, 100, 3).unwrap(), -67);
        assert_eq!(quotient(1, 10, -20).unwrap(), -1);
        assert_eq!(quotient(10i128.pow(37), 10i128.pow(16), 3 * 10i128.pow(16)).unwrap(), {
            3_333_333_333_333_333_333_333_333_333_333_333_333
        });
        assert_eq!(quotient(-2 * 10i128.pow(37), 10i128.pow(16), 3 * 10i128.pow(16)).unwrap(), {
            -6_666_666_666_666_666_666_666_666_666_666_666_667
        });
        assert!(quotient(10i128.pow(37), 10i128.pow(16), 3).is_err());
        assert!(quotient(1, 1, 0).is_err());
    }
}
