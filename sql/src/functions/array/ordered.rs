//! What is found at a place of an array in order: `percentile_disc` and `mode`, and `percentile_cont`
//! between two places.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Builder, ListBuilder, make_comparator};
use arrow::compute::interleave;
use arrow::datatypes::{DataType, Float64Type};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::{array_of, lists, places};
use crate::functions::resolve::Purpose;
use crate::functions::row::{arrays, raise, shaped};
use crate::functions::typed::{Settled, Typed, common_kind};
use crate::{SqlState, Type};

pub(super) static DEFINITIONS: &[Typed] = &[
    Typed {
        name: "percentile of array",
        settle: |kinds| {
            let [array @ Type::Array(element), fraction] = kinds else { return None };
            match fraction {
                Type::Array(_) => Some(Settled::new(
                    [array.clone(), array_of(Type::Double)],
                    array_of(element.as_ref().clone()),
                )),
                _ => {
                    let fraction = Type::Double;
                    Some(Settled::new([array.clone(), fraction], element.as_ref().clone()))
                }
            }
        },
        invoke: percentile,
    },
    Typed {
        name: "interpolated percentile of array",
        settle: |kinds| {
            let [Type::Array(element), fraction] = kinds else { return None };
            common_kind([element.as_ref(), &Type::Double], Purpose::Column)?;
            let numbers = array_of(Type::Double);
            match fraction {
                Type::Array(_) => Some(Settled::new([numbers.clone(), numbers.clone()], numbers)),
                _ => Some(Settled::new([numbers, Type::Double], Type::Double)),
            }
        },
        invoke: interpolated,
    },
    Typed {
        name: "mode of array",
        settle: |kinds| match kinds {
            [array @ Type::Array(element)] => {
                Some(Settled::new([array.clone()], element.as_ref().clone()))
            }
            _ => None,
        },
        invoke: mode,
    },
];

/// 22003.
fn check(fraction: f64) -> Result<()> {
    if (0.0..=1.0).contains(&fraction) {
        return Ok(());
    }
    let message = format!("percentile value {fraction} is not between 0 and 1");
    Err(raise(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message).into())
}

/// The place of the first value that is not below a fraction of `count`.
fn place(fraction: f64, count: usize) -> Result<Option<usize>> {
    check(fraction)?;
    if count == 0 {
        return Ok(None);
    }
    Ok(Some(((fraction * count as f64).ceil() as usize).max(1) - 1))
}

/// The values at places, and NULL where there is none.
fn taken(values: &ArrayRef, found: &[Option<usize>]) -> Result<ArrayRef> {
    let null = arrow::array::new_null_array(values.data_type(), 1);
    let picks: Vec<_> = found.iter().map(|at| at.map_or((1, 0), |at| (0, at))).collect();
    Ok(interleave(&[values.as_ref(), null.as_ref()], &picks)?)
}

fn percentile(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let lists_of = lists(&arrays[0])?;
    let values = lists_of.values();
    let present = |row: usize| -> Vec<usize> {
        places(lists_of, row).filter(|place| values.is_valid(*place)).collect()
    };
    if matches!(arrays[1].data_type(), DataType::List(_)) {
        let fractions = lists(&arrays[1])?;
        let numbers = fractions.values().as_primitive::<Float64Type>();
        let mut gatherer = super::Gatherer::new(values.data_type(), vec![]);
        let null = arrow::array::new_null_array(values.data_type(), 1);
        gatherer.sources = vec![values.as_ref(), null.as_ref()];
        for row in 0..lists_of.len() {
            let present = present(row);
            if fractions.is_null(row) || present.is_empty() {
                gatherer.end_null();
                continue;
            }
            for at in places(fractions, row) {
                let found = match numbers.is_valid(at) {
                    true => place(numbers.value(at), present.len())?,
                    false => None,
                };
                match found {
                    Some(found) => gatherer.pick(0, present[found]),
                    None => gatherer.pick(1, 0),
                }
            }
            gatherer.end();
        }
        return shaped(gatherer.finish()?, is_scalar);
    }
    let fractions = arrays[1].as_primitive::<Float64Type>();
    let mut found = vec![];
    for row in 0..lists_of.len() {
        let present = present(row);
        found.push(match fractions.is_valid(row) {
            true => place(fractions.value(row), present.len())?.map(|at| present[at]),
            false => None,
        });
    }
    shaped(taken(values, &found)?, is_scalar)
}

/// Between the two values that stand around a fraction of the way from the first to the last.
fn interpolated(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let lists_of = lists(&arrays[0])?;
    let values = lists_of.values().as_primitive::<Float64Type>();
    let between = |numbers: &[f64], fraction: f64| -> Result<Option<f64>> {
        check(fraction)?;
        let Some(last) = numbers.len().checked_sub(1) else { return Ok(None) };
        let at = fraction * last as f64;
        let (low, high) = (numbers[at.floor() as usize], numbers[at.ceil() as usize]);
        Ok(Some(if at.fract() == 0.0 { low } else { low + at.fract() * (high - low) }))
    };
    let present = |row: usize| -> Vec<f64> {
        places(lists_of, row).filter(|at| values.is_valid(*at)).map(|at| values.value(at)).collect()
    };
    if matches!(arrays[1].data_type(), DataType::List(_)) {
        let fractions = lists(&arrays[1])?;
        let asked = fractions.values().as_primitive::<Float64Type>();
        let mut builder = ListBuilder::new(Float64Builder::new());
        for row in 0..lists_of.len() {
            let numbers = present(row);
            if fractions.is_null(row) || numbers.is_empty() {
                builder.append_null();
                continue;
            }
            for at in places(fractions, row) {
                let found = match asked.is_valid(at) {
                    true => between(&numbers, asked.value(at))?,
                    false => None,
                };
                builder.values().append_option(found);
            }
            builder.append(true);
        }
        return shaped(Arc::new(builder.finish()), is_scalar);
    }
    let fractions = arrays[1].as_primitive::<Float64Type>();
    let mut builder = Float64Builder::new();
    for row in 0..lists_of.len() {
        builder.append_option(match fractions.is_valid(row) {
            true => between(&present(row), fractions.value(row))?,
            false => None,
        });
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

/// The first of the values that are there most often.
fn mode(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let lists_of = lists(&arrays[0])?;
    let values = lists_of.values();
    let compare = make_comparator(values.as_ref(), values.as_ref(), Default::default())?;
    let mut found = vec![];
    for row in 0..lists_of.len() {
        let mut best: Option<(usize, usize)> = None;
        let mut run: Option<(usize, usize)> = None;
        for at in places(lists_of, row).filter(|at| values.is_valid(*at)) {
            run = Some(match run {
                Some((first, count)) if compare(first, at).is_eq() => (first, count + 1),
                _ => (at, 1),
            });
            if run.map(|(_, count)| count) > best.map(|(_, count)| count) {
                best = run;
            }
        }
        found.push(best.map(|(first, _)| first));
    }
    shaped(taken(values, &found)?, is_scalar)
}
