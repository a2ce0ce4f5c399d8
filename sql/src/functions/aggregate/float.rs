//! Totals of floats, always summed as doubles.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float32Array, Float64Array, Int64Array,
};
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int64Type};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};

use crate::functions::aggregate::Kind;
use crate::functions::aggregate::total::passes;

#[derive(Clone, Copy, Default)]
struct Total {
    sum: f64,
    count: i64,
}

fn result(kind: Kind, output: &DataType, totals: &[Total]) -> ArrayRef {
    let values = totals.iter().map(|total| {
        (total.count > 0).then(|| {
            let value = match kind {
                Kind::Sum => total.sum,
                Kind::Average => total.sum / total.count as f64,
            };
            if value.is_nan() { f64::NAN } else { value + 0.0 }
        })
    });
    match output {
        DataType::Float32 => {
            Arc::new(values.map(|value| value.map(|value| value as f32)).collect::<Float32Array>())
        }
        _ => Arc::new(values.collect::<Float64Array>()),
    }
}

fn each(array: &ArrayRef, mut visit: impl FnMut(usize, f64)) -> Result<()> {
    match array.data_type() {
        DataType::Float32 => {
            for (place, value) in array.as_primitive::<Float32Type>().iter().enumerate() {
                if let Some(value) = value {
                    visit(place, value.into());
                }
            }
        }
        DataType::Float64 => {
            for (place, value) in array.as_primitive::<Float64Type>().iter().enumerate() {
                if let Some(value) = value {
                    visit(place, value);
                }
            }
        }
        other => return Err(DataFusionError::Internal(format!("a float total of {other}"))),
    }
    Ok(())
}

/// The totals of groups.
pub(super) struct FloatTotals {
    kind: Kind,
    output: DataType,
    totals: Vec<Total>,
}

impl FloatTotals {
    pub(super) fn new(kind: Kind, output: DataType) -> Self {
        Self { kind, output, totals: vec![] }
    }
}

fn state_arrays(totals: &[Total]) -> Vec<ArrayRef> {
    let sums: Float64Array = totals.iter().map(|total| Some(total.sum)).collect();
    let counts: Int64Array = totals.iter().map(|total| Some(total.count)).collect();
    vec![Arc::new(sums), Arc::new(counts)]
}

impl GroupsAccumulator for FloatTotals {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.totals.resize(total_num_groups, Total::default());
        let totals = &mut self.totals;
        each(&values[0], |place, value| {
            if passes(opt_filter, place) {
                let total = &mut totals[group_indices[place]];
                total.sum += value;
                total.count += 1;
            }
        })
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        Ok(result(self.kind, &self.output, &emit_to.take_needed(&mut self.totals)))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(state_arrays(&emit_to.take_needed(&mut self.totals)))
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.totals.resize(total_num_groups, Total::default());
        let sums = values[0].as_primitive::<Float64Type>();
        let counts = values[1].as_primitive::<Int64Type>();
        for (place, group) in group_indices.iter().enumerate() {
            let total = &mut self.totals[*group];
            total.sum += sums.value(place);
            total.count += counts.value(place);
        }
        Ok(())
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let mut totals = vec![Total::default(); values[0].len()];
        each(&values[0], |place, value| {
            if passes(opt_filter, place) {
                totals[place] = Total { sum: value, count: 1 };
            }
        })?;
        Ok(state_arrays(&totals))
    }

    fn size(&self) -> usize {
        self.totals.capacity() * size_of::<Total>()
    }
}

/// The values of a window's frame, summed anew each time: to subtract what leaves would lose digits,
/// and infinity and NaN would stay.
#[derive(Debug)]
pub(super) struct WindowedFloats {
    kind: Kind,
    output: DataType,
    values: VecDeque<f64>,
}

impl WindowedFloats {
    pub(super) fn new(kind: Kind, output: DataType) -> Self {
        Self { kind, output, values: VecDeque::new() }
    }
}

impl Accumulator for WindowedFloats {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        each(&values[0], |_, value| self.values.push_back(value))
    }

    /// What leaves a frame is what has come first.
    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let leaving = values[0].len() - values[0].null_count();
        self.values.drain(..leaving.min(self.values.len()));
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let total = Total { sum: self.values.iter().sum(), count: self.values.len() as i64 };
        ScalarValue::try_from_array(&result(self.kind, &self.output, &[total]), 0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Err(DataFusionError::Internal("a window's total has no state".to_owned()))
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<()> {
        Err(DataFusionError::Internal("a window's total is never merged".to_owned()))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.values.capacity() * size_of::<f64>()
    }
}
