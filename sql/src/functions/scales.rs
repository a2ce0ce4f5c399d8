//! Functions of `numeric`s alone: their scales, and what whole numbers have as well.

use std::sync::Arc;

use arrow::array::{Array, AsArray, Int32Builder, LargeBinaryBuilder};
use arrow::datatypes::{DataType, Float64Type, Int32Type, Int64Type};
use arrow::error::ArrowError;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};
use stillframe_protocol::numeric::{Numeric, key};

use crate::functions::math::numerics;
use crate::functions::numeric::{self, CARRIER, values};
use crate::functions::resolve::{Rank, rank};
use crate::functions::row::{arrays, binary, out_of_range, raise, shaped};
use crate::functions::scalar::{Definition, Resolved, no_function};
use crate::{Error, SqlState, Type};

pub(super) static DEFINITIONS: &[Definition] = &[
    Definition {
        name: "scale",
        resolve: |types| one("scale", types, Type::Integer),
        invoke: |a| numeric::integer_of(a, Numeric::scale),
    },
    Definition {
        name: "min_scale",
        resolve: |types| one("min_scale", types, Type::Integer),
        invoke: |a| numeric::integer_of(a, Numeric::min_scale),
    },
    Definition {
        name: "trim_scale",
        resolve: |types| one("trim_scale", types, Type::Numeric(None)),
        invoke: |a| numeric::unary(a, |value| Ok(value.trim_scale())),
    },
    Definition {
        name: "gcd",
        resolve: |types| pair("gcd", types),
        invoke: |a| divisors(a, |x, y| Ok(x.gcd(y)), gcd),
    },
    Definition {
        name: "lcm",
        resolve: |types| pair("lcm", types),
        invoke: |a| divisors(a, Numeric::lcm, lcm),
    },
    Definition { name: "width_bucket", resolve: bucket_types, invoke: width_bucket },
];

static GREATEST: Definition = Definition {
    name: "numeric greatest",
    resolve: |types| numerics("greatest", types, Type::Numeric(None)),
    invoke: |a| choose(a, std::cmp::Ordering::Greater),
};

static LEAST: Definition = Definition {
    name: "numeric least",
    resolve: |types| numerics("least", types, Type::Numeric(None)),
    invoke: |a| choose(a, std::cmp::Ordering::Less),
};

/// What `greatest` and `least` are of numerics.
pub(super) fn extreme(name: &str) -> Option<&'static Definition> {
    match name {
        "greatest" => Some(&GREATEST),
        "least" => Some(&LEAST),
        _ => None,
    }
}

/// Both of them.
pub(super) fn extremes() -> [&'static Definition; 2] {
    [&GREATEST, &LEAST]
}

/// The first of the values that no other exceeds in a direction; NULLs are passed over.
fn choose(arguments: &ScalarFunctionArgs, direction: std::cmp::Ordering) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let arrays: Vec<_> = arrays.iter().map(|array| array.as_binary::<i64>()).collect();
    let rows = arrays.first().map_or(0, |array| array.len());
    let mut builder = LargeBinaryBuilder::with_capacity(rows, rows * 8);
    for row in 0..rows {
        let mut chosen: Option<&[u8]> = None;
        for array in arrays.iter().filter(|array| array.is_valid(row)) {
            let value = array.value(row);
            if chosen.is_none_or(|chosen| key(value).cmp(key(chosen)) == direction) {
                chosen = Some(value);
            }
        }
        builder.append_option(chosen);
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

fn one(name: &'static str, types: &[DataType], returns: Type) -> Result<Resolved, Error> {
    match types {
        [_] => numerics(name, types, returns),
        _ => Err(no_function(name, types)),
    }
}

/// Two integers or two numerics.
fn pair(name: &'static str, types: &[DataType]) -> Result<Resolved, Error> {
    let none = || no_function(name, types);
    let [left, right] = types else { return Err(none()) };
    let high = rank(left).max(rank(right)).ok_or_else(none)?;
    match high {
        Rank::SmallInt | Rank::Integer => {
            Ok(Resolved::new(vec![DataType::Int32; 2], Type::Integer))
        }
        Rank::BigInt => Ok(Resolved::new(vec![DataType::Int64; 2], Type::BigInt)),
        Rank::Numeric => numerics(name, types, Type::Numeric(None)),
        Rank::Real | Rank::Double => Err(none()),
    }
}

fn divisors(
    arguments: &ScalarFunctionArgs,
    of_numerics: impl Fn(
        &Numeric,
        &Numeric,
    ) -> std::result::Result<Numeric, stillframe_protocol::RowError>,
    of_integers: fn(i128, i128) -> i128,
) -> Result<ColumnarValue> {
    match arguments.return_type() {
        DataType::Int32 => binary::<Int32Type, Int32Type, Int32Type>(arguments, |left, right| {
            let result = of_integers(left.into(), right.into());
            i32::try_from(result).map_err(|_| out_of_range("integer"))
        }),
        DataType::Int64 => binary::<Int64Type, Int64Type, Int64Type>(arguments, |left, right| {
            let result = of_integers(left.into(), right.into());
            i64::try_from(result).map_err(|_| out_of_range("bigint"))
        }),
        _ => numeric::binary(arguments, of_numerics),
    }
}

fn gcd(left: i128, right: i128) -> i128 {
    let (mut a, mut b) = (left.abs(), right.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn lcm(left: i128, right: i128) -> i128 {
    match gcd(left, right) {
        0 => 0,
        divisor => (left / divisor * right).abs(),
    }
}

/// Doubles if there is one, else numerics; and how many buckets there are.
fn bucket_types(types: &[DataType]) -> Result<Resolved, Error> {
    let none = || no_function("width_bucket", types);
    let [operands @ .., count] = types else { return Err(none()) };
    if operands.len() != 3 || !matches!(rank(count), Some(Rank::SmallInt | Rank::Integer)) {
        return Err(none());
    }
    let mut carrier = CARRIER;
    for operand in operands.iter().filter(|operand| !operand.is_null()) {
        if rank(operand).ok_or_else(none)? > Rank::Numeric {
            carrier = DataType::Float64;
        }
    }
    let mut arguments = vec![carrier; 3];
    arguments.push(DataType::Int32);
    Ok(Resolved::new(arguments, Type::Integer))
}

fn width_bucket(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let counts = arrays[3].as_primitive::<Int32Type>();
    let mut builder = Int32Builder::with_capacity(counts.len());
    if let Some(operands) = arrays[0].as_primitive_opt::<Float64Type>() {
        let (low, high) = (arrays[1].as_primitive::<Float64Type>(), arrays[2].as_primitive());
        let high: &arrow::array::Float64Array = high;
        for row in 0..counts.len() {
            if arrays.iter().any(|array| array.is_null(row)) {
                builder.append_null();
                continue;
            }
            let bucket =
                of_doubles(operands.value(row), low.value(row), high.value(row), counts.value(row));
            builder.append_value(bucket?);
        }
        return shaped(Arc::new(builder.finish()), is_scalar);
    }
    let bounds = values(&arrays[1])?.zip(values(&arrays[2])?);
    for ((operand, (low, high)), count) in values(&arrays[0])?.zip(bounds).zip(counts) {
        match (operand?, low?, high?, count) {
            (Some(operand), Some(low), Some(high), Some(count)) => {
                builder.append_value(of_numerics(&operand, &low, &high, count)?);
            }
            _ => builder.append_null(),
        }
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

type Row<T> = std::result::Result<T, ArrowError>;

fn refuse<T>(message: &str) -> Row<T> {
    Err(raise(SqlState::from_code("2201G"), message))
}

fn checked(count: i32, is_known: bool, is_finite: bool) -> Row<()> {
    if count <= 0 {
        return refuse("count must be greater than zero");
    }
    if !is_known {
        return refuse("operand, lower bound, and upper bound cannot be NaN");
    }
    if !is_finite {
        return refuse("lower and upper bounds must be finite");
    }
    Ok(())
}

fn past(count: i32) -> Row<i32> {
    count.checked_add(1).ok_or_else(|| out_of_range("integer"))
}

fn of_doubles(operand: f64, low: f64, high: f64, count: i32) -> Row<i32> {
    let is_known = !(operand.is_nan() || low.is_nan() || high.is_nan());
    checked(count, is_known, low.is_finite() && high.is_finite())?;
    let (distance, width) = if low < high {
        (operand - low, high - low)
    } else if low > high {
        (low - operand, low - high)
    } else {
        return refuse("lower bound cannot equal upper bound");
    };
    if distance < 0.0 {
        return Ok(0);
    }
    if distance >= width {
        return past(count);
    }
    Ok(((distance / width * f64::from(count)) as i32).min(count - 1) + 1)
}

fn of_numerics(operand: &Numeric, low: &Numeric, high: &Numeric, count: i32) -> Row<i32> {
    let is_known = ![operand, low, high].iter().any(|value| **value == Numeric::NaN);
    checked(count, is_known, low.scale().is_some() && high.scale().is_some())?;
    let differences = match low.cmp(high) {
        std::cmp::Ordering::Less => (operand.subtract(low), high.subtract(low)),
        std::cmp::Ordering::Greater => (low.subtract(operand), low.subtract(high)),
        std::cmp::Ordering::Equal => return refuse("lower bound cannot equal upper bound"),
    };
    let (distance, width) =
        (differences.0.map_err(numeric::raised)?, differences.1.map_err(numeric::raised)?);
    if distance < Numeric::zero() {
        return Ok(0);
    }
    if distance >= width {
        return past(count);
    }
    let place = distance.multiply(&Numeric::from(i64::from(count)));
    let bucket = place.and_then(|place| place.divide_whole(&width)).map_err(numeric::raised)?;
    Ok(bucket.to_integer().and_then(|bucket| i32::try_from(bucket).ok()).unwrap_or(count) + 1)
}
