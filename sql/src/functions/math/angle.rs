//! Functions of angles, in radians and in degrees.
//!
//! In degrees the results at multiples of 15 and 30 are exact: the functions are scaled so that they
//! are where the value is known.

use arrow::datatypes::{DataType, Float64Type};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::{Row, analytic, checked};
use crate::functions::row::{binary, raise, unary};
use crate::functions::scalar::{Definition, Resolved, no_function};
use crate::{Error, SqlState, Type};

macro_rules! of_one {
    ($($name:literal: $compute:expr;)*) => {
        &[$(Definition {
            name: $name,
            resolve: |types| doubles($name, types, 1),
            invoke: |arguments| each(arguments, $compute),
        }),*]
    };
}

pub(in crate::functions) static DEFINITIONS: &[Definition] = of_one! {
    "sin": |x| finite(x).map(f64::sin);
    "cos": |x| finite(x).map(f64::cos);
    "tan": |x| finite(x).map(f64::tan);
    "cot": |x| finite(x).map(|x| 1.0 / x.tan());
    "asin": |x| within_one(x).map(f64::asin);
    "acos": |x| within_one(x).map(f64::acos);
    "atan": |x| Ok(x.atan());
    "sinh": |x| Ok(x.sinh());
    "cosh": |x| Ok(x.cosh());
    "tanh": |x| Ok(x.tanh());
    "asinh": |x| Ok(x.asinh());
    "acosh": |x| if x < 1.0 { Err(outside()) } else { Ok(x.acosh()) };
    "atanh": |x| within_one(x).map(f64::atanh);
    "sind": |x| finite(x).map(sine);
    "cosd": |x| finite(x).map(cosine);
    "tand": |x| finite(x).map(tangent);
    "cotd": |x| finite(x).map(cotangent);
    "asind": |x| within_one(x).map(|x| if x < 0.0 { -arc_sine(-x) } else { arc_sine(x) });
    "acosd": |x| within_one(x).map(|x| match x < 0.0 {
        true => 90.0 + arc_sine(-x),
        false => arc_cosine(x),
    });
    "atand": |x| Ok(x.atan() / 1.0_f64.atan() * 45.0);
    "degrees": |x| checked(x / RADIANS_PER_DEGREE, x.is_finite(), false);
    "radians": |x| checked(x * RADIANS_PER_DEGREE, false, x != 0.0);
    "cbrt": |x| Ok(x.cbrt());
};

/// Those of two arguments.
pub(in crate::functions) static PAIRS: &[Definition] = &[
    Definition {
        name: "atan2",
        resolve: |types| doubles("atan2", types, 2),
        invoke: |arguments| {
            binary::<Float64Type, Float64Type, Float64Type>(arguments, |y, x| Ok(plain(y.atan2(x))))
        },
    },
    Definition {
        name: "atan2d",
        resolve: |types| doubles("atan2d", types, 2),
        invoke: |arguments| {
            binary::<Float64Type, Float64Type, Float64Type>(arguments, |y, x| {
                Ok(plain(y.atan2(x) / 1.0_f64.atan() * 45.0))
            })
        },
    },
];

const RADIANS_PER_DEGREE: f64 = 0.017_453_292_519_943_295;

fn doubles(name: &'static str, types: &[DataType], count: usize) -> Result<Resolved, Error> {
    let resolved = analytic(name, types, count)?;
    if resolved.arguments.len() != count {
        return Err(no_function(name, types));
    }
    Ok(Resolved::new(vec![DataType::Float64; count], Type::Double))
}

fn each(
    arguments: &ScalarFunctionArgs,
    compute: impl Fn(f64) -> Row<f64>,
) -> Result<ColumnarValue> {
    let (operand, output) = (&arguments.args[0], arguments.return_type());
    unary::<Float64Type, Float64Type>(operand, output, |value| {
        if value.is_nan() { Ok(f64::NAN) } else { compute(value).map(plain) }
    })
}

/// Zero has no sign here.
fn plain(value: f64) -> f64 {
    value + 0.0
}

fn outside() -> arrow::error::ArrowError {
    raise(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "input is out of range")
}

fn finite(value: f64) -> Row<f64> {
    if value.is_infinite() { Err(outside()) } else { Ok(value) }
}

fn within_one(value: f64) -> Row<f64> {
    if (-1.0..=1.0).contains(&value) { Ok(value) } else { Err(outside()) }
}

/// The sine up to 30 degrees.
fn low_sine(degrees: f64) -> f64 {
    let of_30 = (30.0 * RADIANS_PER_DEGREE).sin();
    (degrees * RADIANS_PER_DEGREE).sin() / of_30 / 2.0
}

/// The cosine up to 60 degrees.
fn low_cosine(degrees: f64) -> f64 {
    let from_one = 1.0 - (60.0 * RADIANS_PER_DEGREE).cos();
    1.0 - (1.0 - (degrees * RADIANS_PER_DEGREE).cos()) / from_one / 2.0
}

fn first_sine(degrees: f64) -> f64 {
    if degrees <= 30.0 { low_sine(degrees) } else { low_cosine(90.0 - degrees) }
}

fn first_cosine(degrees: f64) -> f64 {
    if degrees <= 60.0 { low_cosine(degrees) } else { low_sine(90.0 - degrees) }
}

/// An angle of at most 90 degrees with the same function, and the signs that a change of the angle's
/// sign, of its half and of its quadrant give.
fn reduced(degrees: f64, signs: [f64; 3]) -> (f64, f64) {
    let (mut angle, mut sign) = (degrees % 360.0, 1.0);
    if angle < 0.0 {
        (angle, sign) = (-angle, sign * signs[0]);
    }
    if angle > 180.0 {
        (angle, sign) = (360.0 - angle, sign * signs[1]);
    }
    if angle > 90.0 {
        (angle, sign) = (180.0 - angle, sign * signs[2]);
    }
    (angle, sign)
}

fn sine(degrees: f64) -> f64 {
    let (angle, sign) = reduced(degrees, [-1.0, -1.0, 1.0]);
    sign * first_sine(angle)
}

fn cosine(degrees: f64) -> f64 {
    let (angle, sign) = reduced(degrees, [1.0, 1.0, -1.0]);
    sign * first_cosine(angle)
}

fn tangent(degrees: f64) -> f64 {
    let (angle, sign) = reduced(degrees, [-1.0, -1.0, -1.0]);
    let of_45 = first_sine(45.0) / first_cosine(45.0);
    sign * (first_sine(angle) / first_cosine(angle) / of_45)
}

fn cotangent(degrees: f64) -> f64 {
    let (angle, sign) = reduced(degrees, [-1.0, -1.0, -1.0]);
    let of_45 = first_cosine(45.0) / first_sine(45.0);
    sign * (first_cosine(angle) / first_sine(angle) / of_45)
}

fn arc_sine(value: f64) -> f64 {
    match value <= 0.5 {
        true => value.asin() / 0.5_f64.asin() * 30.0,
        false => 90.0 - value.acos() / 0.5_f64.acos() * 60.0,
    }
}

fn arc_cosine(value: f64) -> f64 {
    match value <= 0.5 {
        true => 90.0 - value.asin() / 0.5_f64.asin() * 30.0,
        false => value.acos() / 0.5_f64.acos() * 60.0,
    }
}
