//! `generate_series` and the numbers of rows, as arrays that `unnest` makes rows of.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Int32Builder, Int64Builder, LargeBinaryBuilder, ListArray,
    ListBuilder, TimestampMicrosecondBuilder,
};
use arrow::datatypes::{
    DataType, Int32Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
    TimestampMicrosecondType,
};
use arrow::error::ArrowError;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};
use stillframe_protocol::numeric::Numeric;

use super::arithmetic::move_stamp;
use super::interval::sign;
use super::numeric;
use super::row::{arrays, raise, shaped};
use super::typed::{Settled, Typed, Wanted, is_integer, is_text};
use crate::{Error, SqlState, TimeZone, Type};

/// A series longer than this doesn't become an array, which has all of its values at once.
const LONGEST: usize = 10_000_000;

pub(super) static DEFINITIONS: &[Typed] = &[
    Typed { name: "generate_series list", settle: series, invoke: generate },
    Typed { name: "ordinality list", settle: ordinals, invoke: number },
];

type Row<T> = std::result::Result<T, ArrowError>;

fn series(kinds: &[Type]) -> Option<Settled> {
    let integers = |kind: &Type| is_integer(kind) || *kind == Type::BigInt;
    if (2..=3).contains(&kinds.len()) && kinds.iter().all(integers) {
        let of = if kinds.contains(&Type::BigInt) { Type::BigInt } else { Type::Integer };
        return Some(Settled::new(vec![of.clone(); kinds.len()], Type::Array(Box::new(of))));
    }
    let numbers = |kind: &Type| integers(kind) || matches!(kind, Type::Numeric(_));
    if (2..=3).contains(&kinds.len()) && kinds.iter().all(numbers) {
        let of = Type::Numeric(None);
        return Some(Settled::new(vec![of.clone(); kinds.len()], Type::Array(Box::new(of))));
    }
    let [first, last, step, zone @ ..] = kinds else { return None };
    let is_step = matches!(step, Type::Interval | Type::Unknown);
    let is_moment = |kind: &Type| {
        matches!(kind, Type::Timestamp | Type::Timestamptz | Type::Date | Type::Unknown)
    };
    let is_zone = match zone {
        [] => true,
        [zone] => is_text(zone),
        _ => false,
    };
    if !is_step || !is_moment(first) || !is_moment(last) || !is_zone {
        return None;
    }
    // PostgreSQL has none of dates, and prefers moments to clocks.
    let of_clocks =
        [first, last].contains(&&Type::Timestamp) && ![first, last].contains(&&Type::Timestamptz);
    let of = if of_clocks { Type::Timestamp } else { Type::Timestamptz };
    let returns = Type::Array(Box::new(of.clone()));
    let mut settled = Settled::new([of.clone(), of.clone(), Type::Interval], returns);
    match zone {
        [] if of == Type::Timestamptz => settled.arguments.push(Wanted::Zone),
        [] => {}
        _ => settled.arguments.push(Wanted::As(Type::Text)),
    }
    Some(settled)
}

fn ordinals(kinds: &[Type]) -> Option<Settled> {
    let is_array = |kind: &Type| matches!(kind, Type::Array(_) | Type::Unknown);
    let returns = Type::Array(Box::new(Type::BigInt));
    kinds.iter().all(is_array).then(|| Settled::new(kinds.to_vec(), returns))
}

fn generate(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let DataType::List(element) = arguments.return_type() else {
        return Err(Error::internal("a series that is no array").into());
    };
    let mut lists: ListArray = match element.data_type() {
        DataType::Int32 => integers(&arrays)?,
        DataType::Int64 => bigints(&arrays)?,
        DataType::LargeBinary => numerics(&arrays)?,
        _ => moments(&arrays, element.data_type())?,
    };
    if lists.data_type() != arguments.return_type() {
        let (_, offsets, values, nulls) = lists.into_parts();
        lists = ListArray::try_new(Arc::clone(element), offsets, values, nulls)?;
    }
    shaped(Arc::new(lists), is_scalar)
}

fn integers(arrays: &[ArrayRef]) -> Result<ListArray> {
    let mut builder = ListBuilder::new(Int32Builder::new());
    for row in 0..arrays[0].len() {
        let value = |place: usize| {
            let array = arrays[place].as_primitive::<Int32Type>();
            array.is_valid(row).then(|| i64::from(array.value(row)))
        };
        let step = if arrays.len() > 2 { value(2) } else { Some(1) };
        // Narrow numbers came in, so narrow ones come out.
        each(value(0), value(1), step, |value| builder.values().append_value(value as i32))?;
        builder.append(true);
    }
    Ok(builder.finish())
}

fn bigints(arrays: &[ArrayRef]) -> Result<ListArray> {
    let mut builder = ListBuilder::new(Int64Builder::new());
    for row in 0..arrays[0].len() {
        let value = |place: usize| {
            let array = arrays[place].as_primitive::<Int64Type>();
            array.is_valid(row).then(|| array.value(row))
        };
        let step = if arrays.len() > 2 { value(2) } else { Some(1) };
        each(value(0), value(1), step, |value| builder.values().append_value(value))?;
        builder.append(true);
    }
    Ok(builder.finish())
}

fn numerics(arrays: &[ArrayRef]) -> Result<ListArray> {
    let columns = arrays.iter().map(numeric::exact_values).collect::<Result<Vec<_>>>()?;
    let one = Some(Numeric::from(1_i64));
    let mut builder = ListBuilder::new(LargeBinaryBuilder::new());
    for row in 0..arrays[0].len() {
        let step = columns.get(2).map_or(&one, |steps| &steps[row]);
        if let (Some(first), Some(last), Some(step)) = (&columns[0][row], &columns[1][row], step) {
            for value in numeric_series(first, last, step)? {
                builder.values().append_value(value.to_bytes());
            }
        }
        builder.append(true);
    }
    Ok(builder.finish())
}

fn numeric_series(first: &Numeric, last: &Numeric, step: &Numeric) -> Row<Vec<Numeric>> {
    for (value, what) in [(first, "start value"), (last, "stop value"), (step, "step size")] {
        if value.scale().is_none() {
            let shown = value.to_string();
            let shown = if shown == "NaN" { "NaN" } else { "infinity" };
            let message = format!("{what} cannot be {shown}");
            return Err(raise(SqlState::INVALID_PARAMETER_VALUE, message));
        }
    }
    let zero = Numeric::zero();
    if *step == zero {
        return Err(no_step());
    }
    let mut found = vec![];
    let mut next = first.clone();
    while if *step > zero { next <= *last } else { next >= *last } {
        if found.len() == LONGEST {
            return Err(too_long());
        }
        let following = next.add(step).map_err(numeric::raised)?;
        found.push(std::mem::replace(&mut next, following));
    }
    Ok(found)
}

/// The numbers of a series; none if anything about it is NULL.
fn each(
    first: Option<i64>,
    last: Option<i64>,
    step: Option<i64>,
    mut push: impl FnMut(i64),
) -> Row<()> {
    let (Some(first), Some(last), Some(step)) = (first, last, step) else { return Ok(()) };
    if step == 0 {
        return Err(no_step());
    }
    let span = i128::from(last) - i128::from(first);
    if span / i128::from(step) >= LONGEST as i128 {
        return Err(too_long());
    }
    let mut next = Some(first);
    while let Some(value) =
        next.filter(|value| if step > 0 { *value <= last } else { *value >= last })
    {
        push(value);
        next = value.checked_add(step);
    }
    Ok(())
}

fn moments(arrays: &[ArrayRef], element: &DataType) -> Result<ListArray> {
    let zone = match arrays.get(3) {
        Some(names) if !names.is_empty() && names.is_valid(0) => {
            Some(TimeZone::parse(names.as_string::<i32>().value(0))?)
        }
        _ => None,
    };
    let values = TimestampMicrosecondBuilder::new().with_data_type(element.clone());
    let mut builder = ListBuilder::new(values);
    let moment = |place: usize, row: usize| {
        let array = arrays[place].as_primitive::<TimestampMicrosecondType>();
        array.is_valid(row).then(|| array.value(row))
    };
    let steps = arrays[2].as_primitive::<IntervalMonthDayNanoType>();
    for row in 0..arrays[0].len() {
        if let (Some(first), Some(last)) = (moment(0, row), moment(1, row))
            && steps.is_valid(row)
        {
            for value in stamps(first, last, steps.value(row), zone)? {
                builder.values().append_value(value);
            }
        }
        builder.append(true);
    }
    Ok(builder.finish())
}

fn stamps(
    first: i64,
    last: i64,
    step: IntervalMonthDayNano,
    zone: Option<TimeZone>,
) -> Row<Vec<i64>> {
    let direction = sign(step);
    if direction.is_eq() {
        return Err(no_step());
    }
    let mut found = vec![];
    let mut next = first;
    while if direction.is_gt() { next <= last } else { next >= last } {
        if found.len() == LONGEST {
            return Err(too_long());
        }
        found.push(next);
        next = move_stamp(next, step, zone)?;
    }
    Ok(found)
}

/// The numbers of the elements, 1 for the first; as many as the longest array has.
fn number(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let mut builder = ListBuilder::new(Int64Builder::new());
    for row in 0..arrays.first().map_or(0, |array| array.len()) {
        let lengths = arrays.iter().map(|array| match array.as_list_opt::<i32>() {
            Some(list) if list.is_valid(row) => i64::from(list.value_length(row)),
            _ => 0,
        });
        builder.append_value((1..=lengths.max().unwrap_or(0)).map(Some));
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

fn no_step() -> ArrowError {
    raise(SqlState::INVALID_PARAMETER_VALUE, "step size cannot equal zero")
}

fn too_long() -> ArrowError {
    let message = format!(
        "a series of more than {LONGEST} values is only possible in FROM, with constant integers"
    );
    raise(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
}
