//! Integers: 22003 for what doesn't fit, 22012 for what is divided by zero.

use arrow::datatypes::{Int16Type, Int32Type, Int64Type};
use arrow::error::ArrowError;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use crate::functions::arithmetic::Operator;
use crate::functions::row::{binary, division_by_zero, out_of_range};

macro_rules! integer_kind {
    ($function:ident, $negate:ident, $arrow:ty, $native:ty, $name:literal) => {
        pub(super) fn $function(
            operator: Operator,
            arguments: &ScalarFunctionArgs,
        ) -> Result<ColumnarValue> {
            // One loop to each operator, not one that asks for each value.
            match operator {
                Operator::Add => binary::<$arrow, $arrow, $arrow>(arguments, |left, right| {
                    left.checked_add(right).ok_or_else(|| out_of_range($name))
                }),
                Operator::Subtract => binary::<$arrow, $arrow, $arrow>(arguments, |left, right| {
                    left.checked_sub(right).ok_or_else(|| out_of_range($name))
                }),
                Operator::Multiply => binary::<$arrow, $arrow, $arrow>(arguments, |left, right| {
                    left.checked_mul(right).ok_or_else(|| out_of_range($name))
                }),
                Operator::Divide => binary::<$arrow, $arrow, $arrow>(arguments, |left, right| {
                    if right == 0 {
                        return Err(division_by_zero());
                    }
                    left.checked_div(right).ok_or_else(|| out_of_range($name))
                }),
                Operator::Modulo => binary::<$arrow, $arrow, $arrow>(arguments, |left, right| {
                    if right == 0 {
                        return Err(division_by_zero());
                    }
                    // The lowest value by -1 leaves nothing.
                    Ok(left.wrapping_rem(right))
                }),
            }
        }

        pub(super) fn $negate(value: $native) -> std::result::Result<$native, ArrowError> {
            value.checked_neg().ok_or_else(|| out_of_range($name))
        }
    };
}

integer_kind!(small, negate_small, Int16Type, i16, "smallint");
integer_kind!(integer, negate_integer, Int32Type, i32, "integer");
integer_kind!(big, negate_big, Int64Type, i64, "bigint");
