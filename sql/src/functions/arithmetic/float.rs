//! Floats: 22012 for what is divided by zero, 22003 for finite numbers whose result isn't or which
//! vanish. Zero has no sign and NaN one form, so that equal floats are equal bytes.

use arrow::datatypes::{Float32Type, Float64Type};
use arrow::error::ArrowError;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use crate::functions::arithmetic::Operator;
use crate::functions::row::{binary, division_by_zero, overflow, underflow};

macro_rules! float_kind {
    ($function:ident, $normal:ident, $arrow:ty, $native:ident) => {
        pub(super) fn $function(
            operator: Operator,
            arguments: &ScalarFunctionArgs,
        ) -> Result<ColumnarValue> {
            match operator {
                Operator::Add => binary::<$arrow, $arrow, $arrow>(arguments, |left, right| {
                    $normal(left + right, left.is_infinite() || right.is_infinite(), false)
                }),
                Operator::Subtract => binary::<$arrow, $arrow, $arrow>(arguments, |left, right| {
                    $normal(left - right, left.is_infinite() || right.is_infinite(), false)
                }),
                Operator::Multiply => binary::<$arrow, $arrow, $arrow>(arguments, |left, right| {
                    let infinite = left.is_infinite() || right.is_infinite();
                    $normal(left * right, infinite, left != 0.0 && right != 0.0)
                }),
                Operator::Divide => binary::<$arrow, $arrow, $arrow>(arguments, |left, right| {
                    if right == 0.0 && !left.is_nan() {
                        return Err(division_by_zero());
                    }
                    $normal(left / right, left.is_infinite(), left != 0.0 && !right.is_infinite())
                }),
                Operator::Modulo => {
                    Err(DataFusionError::Internal("the remainder of floats".to_owned()))
                }
            }
        }

        /// The result, if what it is may come of its operands.
        fn $normal(
            result: $native,
            may_be_infinite: bool,
            must_not_vanish: bool,
        ) -> std::result::Result<$native, ArrowError> {
            if result.is_infinite() && !may_be_infinite {
                return Err(overflow());
            }
            if result == 0.0 && must_not_vanish {
                return Err(underflow());
            }
            Ok(if result.is_nan() { $native::NAN } else { result + 0.0 })
        }
    };
}

float_kind!(real, normal_real, Float32Type, f32);
float_kind!(double, normal_double, Float64Type, f64);
