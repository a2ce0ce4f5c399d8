//! `+ - * / %` and the sign, as PostgreSQL computes them: no integer wraps, nothing divided by zero
//! becomes infinite, and the types that come out are PostgreSQL's.
//!
//! Sums and products of decimals whose digits are sure to suffice are decimals again, with the
//! scale that PostgreSQL gives them; all else is a `numeric` with a scale of its own.

mod decimal;
mod exact;
mod float;
mod moment;

use arrow::datatypes::{
    DataType, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    IntervalMonthDayNanoType, IntervalUnit,
};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use crate::functions::numeric::{self, CARRIER};
use crate::functions::resolve::{Purpose, Rank, common, decimal, rank};
use crate::functions::row::unary;
use crate::functions::scalar::{Definition, Resolved, no_operator};
use crate::text::MAX_PRECISION;
use crate::{Error, Type};

pub(super) use moment::{divide as interval_quotient, move_stamp};

/// An operator of two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

impl Operator {
    fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Modulo => "%",
        }
    }

    /// What the operator is as a function.
    pub(super) fn definition(self) -> &'static Definition {
        match self {
            Self::Add => &ADD,
            Self::Subtract => &SUBTRACT,
            Self::Multiply => &MULTIPLY,
            Self::Divide => &DIVIDE,
            Self::Modulo => &MODULO,
        }
    }
}

pub(super) static ADD: Definition = Definition {
    name: "operator +",
    resolve: |types| resolve(Operator::Add, types),
    invoke: |arguments| invoke(Operator::Add, arguments),
};

pub(super) static SUBTRACT: Definition = Definition {
    name: "operator -",
    resolve: |types| resolve(Operator::Subtract, types),
    invoke: |arguments| invoke(Operator::Subtract, arguments),
};

pub(super) static MULTIPLY: Definition = Definition {
    name: "operator *",
    resolve: |types| resolve(Operator::Multiply, types),
    invoke: |arguments| invoke(Operator::Multiply, arguments),
};

pub(super) static DIVIDE: Definition = Definition {
    name: "operator /",
    resolve: |types| resolve(Operator::Divide, types),
    invoke: |arguments| invoke(Operator::Divide, arguments),
};

pub(super) static MODULO: Definition = Definition {
    name: "operator %",
    resolve: |types| resolve(Operator::Modulo, types),
    invoke: |arguments| invoke(Operator::Modulo, arguments),
};

/// The sign, which is no operator of two operands with one missing.
pub(super) static NEGATE: Definition =
    Definition { name: "operator negate", resolve: resolve_sign, invoke: negate };

/// `mod(a, b)`, which takes exact numbers only.
pub(super) static MOD: Definition = Definition {
    name: "mod",
    resolve: |types| resolve(Operator::Modulo, types),
    invoke: |arguments| invoke(Operator::Modulo, arguments),
};

fn resolve(operator: Operator, types: &[DataType]) -> Result<Resolved, Error> {
    let none = || no_operator(operator.symbol(), types);
    let [left, right, ..] = types else { return Err(none()) };
    if let Some(resolved) = moment::resolve(operator, left, right, types.get(2)) {
        return Ok(resolved);
    }
    // An operand of no type takes that of the other.
    let (left, right) = match (left.is_null(), right.is_null()) {
        (true, true) => return Err(none()),
        (true, false) => (right, right),
        (false, true) => (left, left),
        (false, false) => (left, right),
    };
    let (Some(left_rank), Some(right_rank)) = (rank(left), rank(right)) else { return Err(none()) };
    let high = left_rank.max(right_rank);
    match high {
        Rank::SmallInt | Rank::Integer | Rank::BigInt => {
            let both = common(&[left.clone(), right.clone()], Purpose::Column).ok_or_else(none)?;
            let returns = Type::from_arrow(&both).ok_or_else(none)?;
            Ok(Resolved::new(vec![both.clone(), both], returns))
        }
        Rank::Numeric => {
            let operands = decimal(left).zip(decimal(right));
            let result = operands.and_then(|(left, right)| decimal_result(operator, left, right));
            let (Some((left, right)), Some(returns)) = (operands, result) else {
                return Ok(Resolved::new(vec![CARRIER; 2], Type::Numeric(None)));
            };
            let arguments =
                [left, right].map(|(precision, scale)| DataType::Decimal128(precision, scale));
            Ok(Resolved::new(arguments.to_vec(), returns))
        }
        Rank::Real | Rank::Double if operator == Operator::Modulo => Err(none()),
        Rank::Real if left_rank == right_rank => {
            Ok(Resolved::new(vec![DataType::Float32; 2], Type::Real))
        }
        Rank::Real | Rank::Double => Ok(Resolved::new(vec![DataType::Float64; 2], Type::Double)),
    }
}

/// The type of what two decimals give; none if it has no type with room for all results and a
/// scale that is known.
fn decimal_result(operator: Operator, left: (u8, i8), right: (u8, i8)) -> Option<Type> {
    let whole = |(precision, scale): (u8, i8)| i32::from(precision) - i32::from(scale);
    let scale = i32::from(left.1.max(right.1));
    let (precision, scale) = match operator {
        Operator::Add | Operator::Subtract => (whole(left).max(whole(right)) + 1 + scale, scale),
        Operator::Multiply => {
            (i32::from(left.0) + i32::from(right.0), i32::from(left.1) + i32::from(right.1))
        }
        Operator::Divide => return None,
        Operator::Modulo => (whole(left).max(whole(right)) + scale, scale),
    };
    let fits = precision.max(scale) <= i32::from(MAX_PRECISION) && scale >= 0;
    fits.then(|| Type::Numeric(Some((precision.max(scale).max(1) as u8, scale as i8))))
}

fn invoke(operator: Operator, arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let types: Vec<_> = arguments.args.iter().map(ColumnarValue::data_type).collect();
    match types.as_slice() {
        [DataType::Int16, DataType::Int16] => exact::small(operator, arguments),
        [DataType::Int32, DataType::Int32] => exact::integer(operator, arguments),
        [DataType::Int64, DataType::Int64] => exact::big(operator, arguments),
        [DataType::Float32, DataType::Float32] => float::real(operator, arguments),
        [DataType::Float64, DataType::Float64] => float::double(operator, arguments),
        [DataType::Decimal128(_, left), DataType::Decimal128(_, right)] => {
            decimal::numeric(operator, *left, *right, arguments)
        }
        [DataType::LargeBinary, DataType::LargeBinary] => {
            numeric::binary(arguments, |left, right| match operator {
                Operator::Add => left.add(right),
                Operator::Subtract => left.subtract(right),
                Operator::Multiply => left.multiply(right),
                Operator::Divide => left.divide(right),
                Operator::Modulo => left.modulo(right),
            })
        }
        [left, right, ..] => moment::invoke(operator, left, right, arguments),
        _ => Err(DataFusionError::Internal(format!("{} of {types:?}", operator.symbol()))),
    }
}

fn resolve_sign(types: &[DataType]) -> Result<Resolved, Error> {
    let none = || no_operator("-", types);
    let [operand] = types else { return Err(none()) };
    let returns = match operand {
        DataType::Interval(IntervalUnit::MonthDayNano) => Type::Interval,
        operand if rank(operand).is_some() => {
            let plain = common(std::slice::from_ref(operand), Purpose::Column).ok_or_else(none)?;
            Type::from_arrow(&plain).ok_or_else(none)?
        }
        _ => return Err(none()),
    };
    Ok(Resolved::new(vec![returns.arrow()], returns))
}

fn negate(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let output = arguments.return_type();
    let operand = &arguments.args[0];
    match operand.data_type() {
        DataType::Int16 => unary::<Int16Type, Int16Type>(operand, output, exact::negate_small),
        DataType::Int32 => unary::<Int32Type, Int32Type>(operand, output, exact::negate_integer),
        DataType::Int64 => unary::<Int64Type, Int64Type>(operand, output, exact::negate_big),
        // Zero has no sign here.
        DataType::Float32 => {
            unary::<Float32Type, Float32Type>(operand, output, |value| Ok(0.0 - value))
        }
        DataType::Float64 => {
            unary::<Float64Type, Float64Type>(operand, output, |value| Ok(0.0 - value))
        }
        DataType::Decimal128(..) => {
            unary::<Decimal128Type, Decimal128Type>(operand, output, |value| Ok(-value))
        }
        DataType::LargeBinary => numeric::unary(arguments, |value| Ok(value.negate())),
        DataType::Interval(IntervalUnit::MonthDayNano) => unary::<
            IntervalMonthDayNanoType,
            IntervalMonthDayNanoType,
        >(operand, output, moment::negate),
        other => Err(DataFusionError::Internal(format!("the sign of {other}"))),
    }
}
