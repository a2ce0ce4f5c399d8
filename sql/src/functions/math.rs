//! Functions of numbers whose results or errors DataFusion's differ from PostgreSQL's.

mod angle;

use arrow::array::AsArray;
use arrow::datatypes::{
    DataType, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
};
use arrow::error::ArrowError;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};
use stillframe_protocol::RowError;
use stillframe_protocol::numeric::Numeric;

use crate::functions::numeric::{self, CARRIER};
use crate::functions::resolve::{Purpose, Rank, common, rank};
use crate::functions::row::{
    arrays, binary, out_of_range, overflow, raise, raise_error, shaped, unary, underflow,
};
use crate::functions::scalar::{Definition, Resolved, no_function};
use crate::text::{MAX_PRECISION, out_of_digits, rescale};
use crate::{Error, SqlState, Type};

/// All of them.
pub(super) fn definitions() -> impl Iterator<Item = &'static Definition> {
    DEFINITIONS.iter().chain(angle::DEFINITIONS).chain(angle::PAIRS)
}

static DEFINITIONS: &[Definition] = &[
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
    Definition { name: "factorial", resolve: factorial_types, invoke: factorial },
    Definition { name: "power", resolve: |types| analytic("power", types, 2), invoke: power },
    Definition { name: "pow", resolve: |types| analytic("pow", types, 2), invoke: power },
    Definition { name: "sqrt", resolve: |types| analytic("sqrt", types, 1), invoke: sqrt },
    Definition { name: "exp", resolve: |types| analytic("exp", types, 1), invoke: exp },
    Definition {
        name: "ln",
        resolve: |types| analytic("ln", types, 1),
        invoke: |a| logarithm(a, f64::ln, Numeric::ln),
    },
    Definition {
        name: "log",
        resolve: log_types,
        invoke: |a| match a.args.len() {
            1 => logarithm(a, f64::log10, Numeric::log10),
            _ => numeric::binary(a, |base, value| value.log(base)),
        },
    },
    Definition {
        name: "log10",
        resolve: |types| analytic("log10", types, 1),
        invoke: |a| logarithm(a, f64::log10, Numeric::log10),
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
        [DataType::Decimal128(..) | DataType::LargeBinary] => same(name, types),
        [operand] if rank(operand).is_some() || operand.is_null() => {
            Ok(Resolved::new(vec![DataType::Float64], Type::Double))
        }
        _ => Err(no_function(name, types)),
    }
}

fn sign_types(types: &[DataType]) -> Result<Resolved, Error> {
    let mut resolved = double_or_decimal("sign", types)?;
    if matches!(resolved.returns, Type::Numeric(Some(_))) {
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

/// `round(x)` and `round(numeric, digits)`. A decimal stays one, if `Coercion` doesn't find that the
/// digits aren't constant and make it a numeric.
fn to_scale(name: &'static str, types: &[DataType]) -> Result<Resolved, Error> {
    match types {
        [_] => whole(name, types),
        [number, digits] => {
            let none = || no_function(name, types);
            // What is of no type yet is a numeric here.
            let carrier = CARRIER;
            let number = if number.is_null() { &carrier } else { number };
            if rank(number).is_none_or(|rank| rank > Rank::Numeric)
                || !matches!(rank(digits), Some(Rank::SmallInt | Rank::Integer))
            {
                return Err(none());
            }
            match number {
                DataType::Decimal128(precision, scale) => {
                    let digits = (precision + 1).min(MAX_PRECISION);
                    let returns = Type::Numeric(Some((digits, *scale)));
                    Ok(Resolved::new(vec![number.clone(), DataType::Int32], returns))
                }
                _ => Ok(Resolved::new(vec![CARRIER, DataType::Int32], Type::Numeric(None))),
            }
        }
        _ => Err(no_function(name, types)),
    }
}

/// Doubles, unless there are numerics and nothing else but integers.
fn analytic(name: &'static str, types: &[DataType], count: usize) -> Result<Resolved, Error> {
    let none = || no_function(name, types);
    if types.len() != count {
        return Err(none());
    }
    let mut high = None;
    for data_type in types.iter().filter(|data_type| !data_type.is_null()) {
        high = high.max(Some(rank(data_type).ok_or_else(none)?));
    }
    if high == Some(Rank::Numeric) {
        return Ok(Resolved::new(vec![CARRIER; count], Type::Numeric(None)));
    }
    Ok(Resolved::new(vec![DataType::Float64; count], Type::Double))
}

fn log_types(types: &[DataType]) -> Result<Resolved, Error> {
    match types {
        [_, _] => numerics("log", types, Type::Numeric(None)),
        _ => analytic("log", types, 1),
    }
}

/// Exact numbers only, as numerics.
pub(super) fn numerics(
    name: &'static str,
    types: &[DataType],
    returns: Type,
) -> Result<Resolved, Error> {
    let is_exact = |data_type: &DataType| {
        data_type.is_null() || rank(data_type).is_some_and(|rank| rank <= Rank::Numeric)
    };
    if types.is_empty() || !types.iter().all(is_exact) {
        return Err(no_function(name, types));
    }
    Ok(Resolved::new(vec![CARRIER; types.len()], returns))
}

fn div_types(types: &[DataType]) -> Result<Resolved, Error> {
    match types {
        [_, _] => numerics("div", types, Type::Numeric(None)),
        _ => Err(no_function("div", types)),
    }
}

fn factorial_types(types: &[DataType]) -> Result<Resolved, Error> {
    match types {
        [operand] if operand.is_null() || rank(operand) <= Some(Rank::BigInt) => {
            Ok(Resolved::new(vec![DataType::Int64], Type::Numeric(None)))
        }
        _ => Err(no_function("factorial", types)),
    }
}

fn factorial(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    /// The last number whose factorial a `numeric` can hold.
    const LAST: i64 = 32_177;
    let (arrays, is_scalar) = arrays(arguments)?;
    let numbers = arrays[0].as_primitive::<Int64Type>().iter();
    let factorials = numbers.map(|number| {
        let Some(number) = number else { return Ok(None) };
        let outside = |message: &str| raise(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message);
        if number < 0 {
            return Err(outside("factorial of a negative number is undefined"));
        }
        if number > LAST {
            return Err(outside("value overflows numeric format"));
        }
        let mut product = Numeric::from(1_i64);
        for factor in 2..=number {
            product = product.multiply(&Numeric::from(factor)).map_err(numeric::raised)?;
        }
        Ok::<_, ArrowError>(Some(product))
    });
    shaped(numeric::collect(factorials)?, is_scalar)
}

fn unexpected(operand: &ColumnarValue) -> DataFusionError {
    DataFusionError::Internal(format!("a function of numbers of {}", operand.data_type()))
}

pub(super) fn abs(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
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
        DataType::LargeBinary => numeric::unary(arguments, |value| Ok(value.abs())),
        _ => Err(unexpected(operand)),
    }
}

fn sign(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (operand, output) = (&arguments.args[0], arguments.return_type());
    match operand.data_type() {
        DataType::Float64 => unary::<Float64Type, Float64Type>(operand, output, |value| {
            Ok(if value == 0.0 || value.is_nan() { 0.0 } else { value.signum() })
        }),
        DataType::Decimal128(..) => {
            unary::<Decimal128Type, Decimal128Type>(operand, output, |value| Ok(value.signum()))
        }
        DataType::LargeBinary => numeric::unary(arguments, |value| Ok(value.sign())),
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
        DataType::LargeBinary => numeric::unary(arguments, |value| match round {
            Round::Up => value.ceil(),
            Round::Down => value.floor(),
            Round::Zero => value.truncate(0),
            Round::Nearest => value.round(0),
        }),
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
    if numeric::is_carried(&number.data_type()) {
        return numeric::with_integer(arguments, |value, digits| match round {
            Round::Zero => value.truncate(digits),
            _ => value.round(digits),
        });
    }
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
    numeric::binary(arguments, Numeric::divide_whole)
}

/// Whether it is the function of numerics that is called.
fn of_numerics(arguments: &ScalarFunctionArgs) -> bool {
    numeric::is_carried(&arguments.args[0].data_type())
}

fn power(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    if of_numerics(arguments) {
        return numeric::binary(arguments, Numeric::power);
    }
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
    if of_numerics(arguments) {
        return numeric::unary(arguments, Numeric::sqrt);
    }
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
    if of_numerics(arguments) {
        return numeric::unary(arguments, Numeric::exp);
    }
    let (operand, output) = (&arguments.args[0], arguments.return_type());
    unary::<Float64Type, Float64Type>(operand, output, |value| {
        checked(value.exp(), value.is_finite(), value.is_finite())
    })
}

fn logarithm(
    arguments: &ScalarFunctionArgs,
    logarithm: fn(f64) -> f64,
    of_numeric: fn(&Numeric) -> std::result::Result<Numeric, RowError>,
) -> Result<ColumnarValue> {
    if of_numerics(arguments) {
        return numeric::unary(arguments, of_numeric);
    }
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
