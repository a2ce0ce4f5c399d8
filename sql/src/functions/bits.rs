//! Operators on the bits of integers, and other signs before numbers.

use arrow::datatypes::{DataType, Float64Type, Int16Type, Int32Type, Int64Type};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use crate::functions::math;
use crate::functions::resolve::{Rank, rank};
use crate::functions::row::{binary, raise, unary};
use crate::functions::scalar::{Definition, Resolved, no_operator};
use crate::{Error, SqlState, Type};

/// `x << n`
pub(super) static SHIFT_LEFT: Definition = Definition {
    name: "operator <<",
    resolve: |types| shifted("<<", types),
    invoke: |arguments| shift(arguments, true),
};

/// `x >> n`
pub(super) static SHIFT_RIGHT: Definition = Definition {
    name: "operator >>",
    resolve: |types| shifted(">>", types),
    invoke: |arguments| shift(arguments, false),
};

pub(super) static DEFINITIONS: &[Definition] = &[
    Definition {
        name: "operator bitwise not",
        resolve: |types| one("~", types, |rank| rank <= Rank::BigInt),
        invoke: complement,
    },
    Definition {
        name: "operator unary plus",
        resolve: |types| one("+", types, |_| true),
        invoke: |arguments| Ok(arguments.args[0].clone()),
    },
    Definition {
        name: "operator @",
        resolve: |types| one("@", types, |_| true),
        invoke: math::abs,
    },
    Definition {
        name: "operator |/",
        resolve: |types| double("|/", types),
        invoke: |arguments| {
            let (operand, output) = (&arguments.args[0], arguments.return_type());
            unary::<Float64Type, Float64Type>(operand, output, |value| {
                if value < 0.0 {
                    let message = "cannot take square root of a negative number";
                    return Err(raise(SqlState::from_code("2201F"), message));
                }
                Ok(value.sqrt() + 0.0)
            })
        },
    },
    Definition {
        name: "operator ||/",
        resolve: |types| double("||/", types),
        invoke: |arguments| {
            let (operand, output) = (&arguments.args[0], arguments.return_type());
            unary::<Float64Type, Float64Type>(operand, output, |value| Ok(value.cbrt() + 0.0))
        },
    },
];

/// The type of an integer, as it is carried here.
fn integer(data_type: &DataType) -> Option<DataType> {
    Some(match rank(data_type)? {
        Rank::SmallInt => DataType::Int16,
        Rank::Integer => DataType::Int32,
        Rank::BigInt => DataType::Int64,
        _ => return None,
    })
}

fn shifted(operator: &'static str, types: &[DataType]) -> Result<Resolved, Error> {
    let none = || no_operator(operator, types);
    let [value, count] = types else { return Err(none()) };
    let is_count = count.is_null() || matches!(rank(count), Some(Rank::SmallInt | Rank::Integer));
    let value = integer(value).filter(|_| is_count).ok_or_else(none)?;
    let returns = Type::from_arrow(&value).ok_or_else(none)?;
    Ok(Resolved::new(vec![value, DataType::Int32], returns))
}

/// As processors shift: by the count's low bits.
fn shift(arguments: &ScalarFunctionArgs, is_left: bool) -> Result<ColumnarValue> {
    let of_integer = |value: i32, count: i32| match is_left {
        true => value.wrapping_shl(count as u32),
        false => value.wrapping_shr(count as u32),
    };
    match arguments.args[0].data_type() {
        DataType::Int16 => binary::<Int16Type, Int32Type, Int16Type>(arguments, |value, count| {
            Ok(of_integer(value.into(), count) as i16)
        }),
        DataType::Int32 => binary::<Int32Type, Int32Type, Int32Type>(arguments, |value, count| {
            Ok(of_integer(value, count))
        }),
        _ => binary::<Int64Type, Int32Type, Int64Type>(arguments, |value, count| {
            Ok(match is_left {
                true => value.wrapping_shl(count as u32),
                false => value.wrapping_shr(count as u32),
            })
        }),
    }
}

fn one(
    operator: &'static str,
    types: &[DataType],
    fits: fn(Rank) -> bool,
) -> Result<Resolved, Error> {
    let none = || no_operator(operator, types);
    let [operand] = types else { return Err(none()) };
    let operand = match operand {
        // A literal is a double, if that can be.
        operand if operand.is_null() && fits(Rank::Double) => &DataType::Float64,
        operand => operand,
    };
    rank(operand).filter(|rank| fits(*rank)).ok_or_else(none)?;
    let plain = integer(operand).unwrap_or_else(|| operand.clone());
    let returns = Type::from_arrow(&plain).ok_or_else(none)?;
    Ok(Resolved::new(vec![plain], returns))
}

fn double(operator: &'static str, types: &[DataType]) -> Result<Resolved, Error> {
    match types {
        [operand] if operand.is_null() || rank(operand).is_some() => {
            Ok(Resolved::new(vec![DataType::Float64], Type::Double))
        }
        _ => Err(no_operator(operator, types)),
    }
}

fn complement(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (operand, output) = (&arguments.args[0], arguments.return_type());
    match operand.data_type() {
        DataType::Int16 => unary::<Int16Type, Int16Type>(operand, output, |value| Ok(!value)),
        DataType::Int32 => unary::<Int32Type, Int32Type>(operand, output, |value| Ok(!value)),
        _ => unary::<Int64Type, Int64Type>(operand, output, |value| Ok(!value)),
    }
}
