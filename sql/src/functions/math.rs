//! Functions of numbers whose results or errors DataFusion's differ from PostgreSQL's.

use arrow::datatypes::{
    DataType, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
};
use arrow::error::ArrowError;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use crate::functions::resolve::{Purpose, Rank, common, decimal, rank};
use crate::functions::row::{
    binary, division_by_zero, out_of_range, overflow, raise, raise_error, unary, underflow,
};
use crate::functions::scalar::{Definition, Resolved, no_function};
use crate::text::{MAX_PRECISION, out_of_digits, rescale};
use crate::{Error, SqlState, Type};

pub(super) static DEFINITIONS: &[Definition] = &[
    Definition { name: "abs", resolve: |types| same("abs", types), invoke: abs },
    Definition { name: "sign", resolve: sign_types, invoke: sign },
    Definition {
        name: "ceil",
        resolve: |types| whole("ceil", types),
        invoke: |a| to_whole(a, Round::Up),
    },
    Definition {
        name: "ceiling",
        resolve: |types| whole("ceiling", types),
        invoke: |a| to_whole(a, Round::Up),
    },
    Definition {
        name: "floor",
        resolve: |types| whole("floor", types),
        invoke: |a| to_whole(a, Round::Down),
    },
    Definition {
        name: "round",
        resolve: |types| to_scale("round", types),
        invoke: |a| rounded(a, Round::Nearest),
    },
    Definition {
        name: "trunc",
        resolve: |types| to_scale("trunc", types),
        invoke: |a| rounded(a, Round::Zero),
    },
    Definition { name: "div", resolve: div_types, invoke: div },
    Definition { name: "power", resolve: |types| doubles("power", types, 2), invoke: power },
    Definition { name: "pow", resolve: |types| doubles("pow", types, 2), invoke: power },
    Definition { name: "sqrt", resolve: |types| doubles("sqrt", types, 1), invoke: sqrt },
    Definition { name: "exp", resolve: |types| doubles("exp", types, 1), invoke: exp },
    Definition {
        name: "ln",
        resolve: |types| doubles("ln", types, 1),
        invoke: |a| logarithm(a, f64::ln),
    },
    Definition {
        name: "log",
        resolve: |types| doubles("log", types, 1),
        invoke: |a| logarithm(a, f64::log10),
    },
    Definition {
        name: "log10",
        resolve: |types| doubles("log10", types, 1),
        invoke: |a| logarithm(a, f64::log10),
    },
];

type Row<T> = std::result::Result<T, ArrowError>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Round {
    Up,
    Down,
    Zero,
    Nearest,
}

/// One argument, whose type comes out.
fn same(name: &'static str, types: &[DataType]) -> Result<Resolved, Error> {
    let none = || no_function(name, types);
    let [operand] = types else { return Err(none()) };
    if operand.is_null() {
        return Ok(Resolved::new(vec![DataType::Float64], Type::Double));
    }
    rank(operand).ok_or_else(none)?;
    let plain = common(std::slice::from_ref(operand), Purpose::Column).ok_or_else(none)?;
    let returns = Type::from_arrow(&plain).ok_or_else(none)?;
    Ok(Resolved::new(vec![plain], returns))
}

/// A decimal stays one, every other number is a double.
fn double_or_decimal(name: &'static str, types: &[DataType]) -> Result<Resolved, Error> {
    match types {
        [DataType::Decimal128(..)] => same(name, types),
        [operand] if rank(operand).is_some() || operand.is_null() => {
            Ok(Resolved::new(vec![DataType::Float64], Type::Double))
        }
        _ => Err(no_function(name, types)),
    }
}

fn sign_types(types: &[DataType]) -> Result<Resolved, Error> {
    let mut resolved = double_or_decimal("sign", types)?;
    if matches!(resolved.returns, Type::Numeric(_)) {
        resolved.returns = Type::Numeric(Some((1, 0)));
    }
    Ok(resolved)
}

/// A decimal loses its fraction, every other number is a double.
fn whole(name: &'static str, types: &[DataType]) -> Result<Resolved, Error> {
    match types {
        [operand @ DataType::Decimal128(precision, scale)] => {
            let digits = (precision.saturating_sub((*scale).max(0) as u8) + 1).min(MAX_PRECISION);
            Ok(Resolved::new(vec![operand.clone()], Type::Numeric(Some((digits, 0)))))
        }
        _ => double_or_decimal(name, types),
    }
}

/// `round(x)` and `round(numeric, digits)`.
fn to_scale(name: &'static str, types: &[DataType]) -> Result<Resolved, Error> {
    match types {
        [_] => whole(name, types),
        [number, digits] => {
            let none = || no_function(name, types);
            // What is of no type yet is a numeric here.
            let bare = Type::Numeric(None).arrow();
            let number = if number.is_null() { &bare } else { number };
            let (precision, scale) = decimal(number).ok_or_else(none)?;
            if !matches!(rank(digits), Some(Rank::SmallInt | Rank::Integer)) {
                return Err(none());
            }
            // How many digits are asked for isn't part of a type; `Coercion` narrows the scale
            // where it is a constant.
            let returns = Type::Numeric(Some(((precision + 1).min(MAX_PRECISION), scale)));
            Ok(Resolved::new(
                vec![DataType::Decimal128(precision, scale), DataType::Int32],
                returns,
            ))
        }
        _ => Err(no_function(name, types)),
    }
}

fn doubles(name: &'static str, types: &[DataType], count: usize) -> Result<Resolved, Error> {
    if types.len() != count || types.iter().any(|operand| rank(operand).is_none()) {
        return Err(no_function(name, types));
    }
    // PostgreSQL computes these of numerics to many digits.
    if types.iter().any(|operand| rank(operand) == Some(Rank::Numeric))
        && !types.iter().any(|operand| rank(operand) >= Some(Rank::Real))
    {
        return Err(Error::unsupported(format!("{name} of a numeric"))
            .with_hint("Cast it to double precision."));
    }
    Ok(Resolved::new(vec![DataType::Float64; count], Type::Double))
}

fn div_types(types: &[DataType]) -> Result<Resolved, Error> {
    let none = || no_function("div", types);
    let [left, right] = types else { return Err(none()) };
    let (left, right) = (decimal(left).ok_or_else(none)?, decimal(right).ok_or_else(none)?);
    let both = DataType::Decimal128(MAX_PRECISION, left.1.max(right.1));
    Ok(Resolved::new(vec![both.clone(), both], Type::Numeric(Some((MAX_PRECISION, 0)))))
}

fn unexpected(operand: &ColumnarValue) -> DataFusionError {
    DataFusionError::Internal(format!("a function of numbers of {}", operand.data_type()))
}

fn abs(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (operand, output) = (&arguments.args[0], arguments.return_type());
    match operand.data_type() {
        DataType::Int16 => unary::<Int16Type, Int16Type>(operand, output, |value| {
            value.checked_abs().ok_or_else(|| out_of_range("smallint"))
        }),
        DataType::Int32 => unary::<Int32Type, Int32Type>(operand, output, |value| {
            value.checked_abs().ok_or_else(|| out_of_range("integer"))
        }),
        DataType::Int64 => unary::<Int64Type, Int64Type>(operand, output, |value| {
            value.checked_abs().ok_or_else(|| out_of_range("bigint"))
        }),
        DataType::Float32 => {
            unary::<Float32Type, Float32Type>(operand, output, |value| Ok(value.abs()))
        }
        DataType::Float64 => {
            unary::<Float64Type, Float64Type>(operand, output, |value| Ok(value.abs()))
        }
        DataType::Decimal128(..) => {
            unary::<Decimal128Type, Decimal128Type>(operand, output, |value| Ok(value.abs()))
        }
        _ => Err(unexpected(operand)),
    }
}

fn sign(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (operand, output) = (&arguments.args[0], arguments.return_type());
    match operand.data_type() {
        DataType::Float64 => unary::<Float64Type, Float64Type>(operand, output, |value| {
            Ok(if value == 0.0 || value.is_nan() { value } else { value.signum() })
        }),
        DataType::Decimal128(..) => {
            unary::<Decimal128Type, Decimal128Type>(operand, output, |value| Ok(value.signum()))
        }
        _ => Err(unexpected(operand)),
    }
}

fn to_whole(arguments: &ScalarFunctionArgs, round: Round) -> Result<ColumnarValue> {
    let (operand, output) = (&arguments.args[0], arguments.return_type());
    match operand.data_type() {
        // What is rounded to zero has no sign.
        DataType::Float64 => unary::<Float64Type, Float64Type>(operand, output, |value| {
            Ok(match round {
                Round::Up => value.ceil(),
                Round::Down => value.floor(),
                Round::Zero => value.trunc(),
                Round::Nearest => value.round_ties_even(),
            } + 0.0)
        }),
        DataType::Decimal128(_, scale) => {
            unary::<Decimal128Type, Decimal128Type>(operand, output, |value| {
                at_scale(value, scale, 0, round)
            })
        }
        _ => Err(unexpected(operand)),
    }
}

/// The value with fewer digits after the point, at their scale.
fn at_scale(value: i128, from: i8, to: i8, round: Round) -> Row<i128> {
    if round == Round::Nearest {
        return rescale(value, from, to).ok_or_else(|| raise_error(out_of_digits()));
    }
    let Some(unit) = 10i128.checked_pow((i32::from(from) - i32::from(to)).max(0) as u32) else {
        return Ok(0);
    };
    Ok(match round {
        Round::Up => value.div_euclid(unit) + i128::from(value.rem_euclid(unit) != 0),
        Round::Down => value.div_euclid(unit),
        Round::Zero | Round::Nearest => value / unit,
    })
}

/// Rounds to a number of digits after the point, which may be negative.
fn rounded(arguments: &ScalarFunctionArgs, round: Round) -> Result<ColumnarValue> {
    let [number, _] = arguments.args.as_slice() else { return to_whole(arguments, round) };
    let (DataType::Decimal128(_, from), DataType::Decimal128(_, to)) =
        (number.data_type(), arguments.return_type().clone())
    else {
        return Err(unexpected(number));
    };
    let limit = 10i128.pow(u32::from(MAX_PRECISION));
    binary::<Decimal128Type, Int32Type, Decimal128Type>(arguments, |value, digits| {
        let digits = digits.clamp(-i32::from(MAX_PRECISION), i32::from(from)) as i8;
        let kept = at_scale(value, from, digits, round)?;
        rescale(kept, digits, to)
            .filter(|value| value.abs() < limit)
            .ok_or_else(|| raise_error(out_of_digits()))
    })
}

fn div(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    binary::<Decimal128Type, Decimal128Type, Decimal128Type>(arguments, |left, right| {
        if right == 0 { Err(division_by_zero()) } else { Ok(left / right) }
    })
}

fn power(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    binary::<Float64Type, Float64Type, Float64Type>(arguments, |base, exponent| {
        if base == 0.0 && exponent < 0.0 {
            let message = "zero raised to a negative power is undefined";
            return Err(raise(SqlState::from_code("2201F"), message));
        }
        if base < 0.0 && exponent.fract() != 0.0 && exponent.is_finite() {
            let message = "a negative number raised to a non-integer power yields a complex result";
            return Err(raise(SqlState::from_code("2201F"), message));
        }
        let finite = base.is_finite() && exponent.is_finite();
        checked(base.powf(exponent), finite, finite && base != 0.0)
    })
}

fn sqrt(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (operand, output) = (&arguments.args[0], arguments.return_type());
    unary::<Float64Type, Float64Type>(operand, output, |value| {
        if value < 0.0 {
            let message = "cannot take square root of a negative number";
            return Err(raise(SqlState::from_code("2201F"), message));
        }
        Ok(value.sqrt())
    })
}

fn exp(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (operand, output) = (&arguments.args[0], arguments.return_type());
    unary::<Float64Type, Float64Type>(operand, output, |value| {
        checked(value.exp(), value.is_finite(), value.is_finite())
    })
}

fn logarithm(arguments: &ScalarFunctionArgs, logarithm: fn(f64) -> f64) -> Result<ColumnarValue> {
    let (operand, output) = (&arguments.args[0], arguments.return_type());
    unary::<Float64Type, Float64Type>(operand, output, |value| {
        let refuse = |message| Err(raise(SqlState::from_code("2201E"), message));
        if value == 0.0 {
            return refuse("cannot take logarithm of zero");
        }
        if value < 0.0 {
            return refuse("cannot take logarithm of a negative number");
        }
        Ok(logarithm(value) + 0.0)
    })
}

fn checked(result: f64, must_be_finite: bool, must_not_vanish: bool) -> Row<f64> {
    if must_be_finite && result.is_infinite() {
        return Err(overflow());
    }
    if must_not_vanish && result == 0.0 {
        return Err(underflow());
    }
    Ok(if result.is_nan() { f64::NAN } else { result + 0.0 })
}
