//! The results of a group, from its weight.

use std::sync::Arc;

use arrow::datatypes::{DataType, i256};
use stillframe_protocol::RowError;
use stillframe_protocol::numeric::{DigitSum, Numeric};

use super::layout::{COUNT, Layout, ResultOf, SumKind};
use crate::circuit::error_entry::error_row;
use crate::row::{Row, put_bytes, put_float32, put_float64, put_int64, put_int128, put_null};
use crate::weight::{Accumulator, FloatSum};

/// The least number that has more than 38 digits.
const DECIMAL_LIMIT: i128 = 10i128.pow(38);

/// Reads results out of weights.
#[derive(Clone)]
pub(super) struct Finish {
    layout: Arc<Layout>,
}

/// An encoded integer, an encoded decimal and so on have these lengths with their NULL byte.
const WIDTH_32: usize = 5;
const WIDTH_64: usize = 9;
const WIDTH_128: usize = 17;

impl Finish {
    pub(super) fn new(layout: Arc<Layout>) -> Self {
        Self { layout }
    }

    /// The results of a group as fields of a row; the error that stands for them if one doesn't
    /// fit its type.
    pub(super) fn row(&self, weight: &impl Accumulator) -> Row {
        let mut fields = Vec::with_capacity(WIDTH_128 * self.layout.results().len());
        for result in self.layout.results() {
            if let Err(error) = self.put(&mut fields, result, weight) {
                return error_row(&error);
            }
        }
        Row::new(&fields)
    }

    fn put(
        &self,
        fields: &mut Vec<u8>,
        result: &ResultOf,
        weight: &impl Accumulator,
    ) -> Result<(), RowError> {
        let count_of = |argument: usize| weight.get(self.layout.arguments()[argument].count);
        match result {
            ResultOf::CountAll => put_int64(fields, int64(weight.get(COUNT))?),
            ResultOf::Count(argument) => put_int64(fields, int64(count_of(*argument))?),
            ResultOf::Sum(argument, returns) | ResultOf::Average(argument, returns)
                if count_of(*argument) == 0 =>
            {
                put_null(fields, width(returns));
            }
            ResultOf::Sum(argument, returns) => {
                self.put_sum(fields, *argument, returns, weight)?;
            }
            ResultOf::Average(argument, _) => {
                let count = count_of(*argument);
                match self.layout.sum(*argument) {
                    (SumKind::Float(_), position) => {
                        let sum = float(FloatSum::read(weight, position))?;
                        put_float64(fields, normal(sum / count as f64));
                    }
                    _ => {
                        let sum = self.numeric_sum(*argument, weight)?;
                        put_numeric(fields, &sum.divide(&Numeric::from(count))?);
                    }
                }
            }
        }
        Ok(())
    }

    fn put_sum(
        &self,
        fields: &mut Vec<u8>,
        argument: usize,
        returns: &DataType,
        weight: &impl Accumulator,
    ) -> Result<(), RowError> {
        let (kind, position) = self.layout.sum(argument);
        match returns {
            DataType::Float32 => {
                let sum = float(FloatSum::read(weight, position))?;
                let narrow = sum as f32;
                if narrow.is_infinite() && sum.is_finite() {
                    return Err(out_of_range("value out of range: overflow"));
                }
                put_float32(fields, if narrow.is_nan() { f32::NAN } else { narrow + 0.0 });
            }
            DataType::Float64 => {
                put_float64(fields, normal(float(FloatSum::read(weight, position))?))
            }
            DataType::Int64 => put_int64(fields, int64(weight.get(position))?),
            DataType::LargeBinary => put_numeric(fields, &self.numeric_sum(argument, weight)?),
            _ => put_int128(fields, decimal(exact(kind, position, weight))?),
        }
        Ok(())
    }

    /// The sum of exact numbers, with the digits after the point that they have.
    fn numeric_sum(&self, argument: usize, weight: &impl Accumulator) -> Result<Numeric, RowError> {
        let scale = self.layout.arguments()[argument].scale;
        match self.layout.sum(argument) {
            (SumKind::Numeric, start) => {
                let mut parts = vec![];
                weight.for_each(start, start + DigitSum::POSITIONS, |position, value| {
                    parts.push((position - start, value));
                });
                DigitSum::read(parts.into_iter())
            }
            (kind, position) => Ok(Numeric::from_wide(exact(kind, position, weight), scale)),
        }
    }
}

fn put_numeric(fields: &mut Vec<u8>, value: &Numeric) {
    put_bytes(fields, &value.to_bytes());
}

fn width(data_type: &DataType) -> usize {
    match data_type {
        DataType::LargeBinary => 1,
        DataType::Float32 => WIDTH_32,
        DataType::Float64 | DataType::Int64 => WIDTH_64,
        _ => WIDTH_128,
    }
}

/// A sum of integers or decimals.
fn exact(kind: SumKind, position: usize, weight: &impl Accumulator) -> i256 {
    let low = i256::from_i128(weight.get(position));
    if kind == SumKind::WideDecimal {
        let high = i256::from_i128(weight.get(position + 1));
        low.wrapping_add(high.wrapping_mul(i256::from_i128(1 << 64)))
    } else {
        low
    }
}

fn int64(value: i128) -> Result<i64, RowError> {
    i64::try_from(value).map_err(|_| out_of_range("bigint out of range"))
}

fn decimal(value: i256) -> Result<i128, RowError> {
    let fits = |value: &i128| (-DECIMAL_LIMIT < *value) && (*value < DECIMAL_LIMIT);
    value.to_i128().filter(fits).ok_or_else(|| out_of_range("numeric field overflow"))
}

fn float(sum: FloatSum) -> Result<f64, RowError> {
    match sum {
        FloatSum::Number(sum) => Ok(sum),
        FloatSum::Overflow => Err(out_of_range("value out of range: overflow")),
    }
}

fn normal(value: f64) -> f64 {
    if value.is_nan() { f64::NAN } else { value + 0.0 }
}

fn out_of_range(message: &str) -> RowError {
    RowError { sqlstate: "22003".to_owned(), message: message.to_owned() }
}
