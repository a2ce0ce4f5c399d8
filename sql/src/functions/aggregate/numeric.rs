//! Totals of numerics with scales of their own: exact, and shown with the largest scale of those
//! that are counted.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Int64Array};
use arrow::datatypes::Int64Type;
use arrow::error::ArrowError;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};
use stillframe_protocol::numeric::{DigitSum, Numeric, Position};

use super::Kind;
use super::total::passes;
use crate::functions::numeric::{collect, raised, values};

/// A sum with its number of values.
#[derive(Clone, Debug, Default)]
pub(super) struct Total {
    /// What isn't zero, ascending.
    parts: Vec<(Position, i128)>,
    count: i64,
}

/// Bytes of a part of a sum: its position and its value.
const PART_BYTES: usize = 4 + 16;

impl Total {
    fn add_part(&mut self, position: Position, value: i128) {
        match self.parts.binary_search_by_key(&position, |(known, _)| *known) {
            Ok(place) => {
                self.parts[place].1 += value;
                if self.parts[place].1 == 0 {
                    self.parts.remove(place);
                }
            }
            Err(place) => self.parts.insert(place, (position, value)),
        }
    }

    pub(super) fn add(&mut self, value: &Numeric, times: i64) {
        DigitSum::parts(value, |position, part| self.add_part(position, part * i128::from(times)));
        self.count += times;
    }

    fn result(&self, kind: Kind) -> std::result::Result<Option<Numeric>, ArrowError> {
        if self.count == 0 {
            return Ok(None);
        }
        let sum = DigitSum::read(self.parts.iter().copied());
        let result = match kind {
            Kind::Sum => sum,
            Kind::Average => sum.and_then(|sum| sum.divide(&Numeric::from(self.count))),
        };
        result.map(Some).map_err(raised)
    }

    /// The sum, which is zero of no values.
    pub(super) fn sum(&self) -> std::result::Result<Numeric, ArrowError> {
        DigitSum::read(self.parts.iter().copied()).map_err(raised)
    }

    pub(super) fn count(&self) -> i64 {
        self.count
    }

    pub(super) fn size(&self) -> usize {
        size_of::<Self>() + self.parts.capacity() * size_of::<(Position, i128)>()
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.parts.len() * PART_BYTES);
        for (position, value) in &self.parts {
            bytes.extend_from_slice(&(*position as u32).to_be_bytes());
            bytes.extend_from_slice(&value.to_be_bytes());
        }
        bytes
    }

    pub(super) fn add_bytes(&mut self, bytes: &[u8], count: i64) {
        for part in bytes.chunks_exact(PART_BYTES) {
            if let Some((position, value)) = part.split_first_chunk()
                && let Some(value) = value.first_chunk()
            {
                let position = u32::from_be_bytes(*position) as Position;
                self.add_part(position, i128::from_be_bytes(*value));
            }
        }
        self.count += count;
    }
}

fn state_arrays(totals: &[Total]) -> Vec<ArrayRef> {
    let parts: BinaryArray = totals.iter().map(|total| Some(total.bytes())).collect();
    let counts: Int64Array = totals.iter().map(|total| Some(total.count)).collect();
    vec![Arc::new(parts), Arc::new(counts)]
}

/// The totals of groups.
pub(super) struct NumericTotals {
    kind: Kind,
    totals: Vec<Total>,
}

impl NumericTotals {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, totals: vec![] }
    }

    fn array(&self, totals: &[Total]) -> Result<ArrayRef> {
        Ok(collect(totals.iter().map(|total| total.result(self.kind)))?)
    }
}

impl GroupsAccumulator for NumericTotals {
    fn update_batch(
        &mut self,
        arrays: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.totals.resize(total_num_groups, Total::default());
        for (place, value) in values(&arrays[0])?.enumerate() {
            if let Some(value) = value?.filter(|_| passes(opt_filter, place)) {
                self.totals[group_indices[place]].add(&value, 1);
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let totals = emit_to.take_needed(&mut self.totals);
        self.array(&totals)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(state_arrays(&emit_to.take_needed(&mut self.totals)))
    }

    fn merge_batch(
        &mut self,
        arrays: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.totals.resize(total_num_groups, Total::default());
        let parts = arrays[0].as_binary::<i32>();
        let counts = arrays[1].as_primitive::<Int64Type>();
        for (place, group) in group_indices.iter().enumerate() {
            self.totals[*group].add_bytes(parts.value(place), counts.value(place));
        }
        Ok(())
    }

    fn convert_to_state(
        &self,
        arrays: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let mut totals = vec![Total::default(); arrays[0].len()];
        for (place, value) in values(&arrays[0])?.enumerate() {
            if let Some(value) = value?.filter(|_| passes(opt_filter, place)) {
                totals[place].add(&value, 1);
            }
        }
        Ok(state_arrays(&totals))
    }

    fn size(&self) -> usize {
        self.totals.iter().map(Total::size).sum()
    }
}

/// A total whose rows come and go.
#[derive(Debug)]
pub(super) struct SlidingNumeric {
    kind: Kind,
    total: Total,
}

impl SlidingNumeric {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, total: Total::default() }
    }

    fn change(&mut self, array: &ArrayRef, times: i64) -> Result<()> {
        for value in values(array)? {
            if let Some(value) = value? {
                self.total.add(&value, times);
            }
        }
        Ok(())
    }
}

impl Accumulator for SlidingNumeric {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.change(&values[0], 1)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.change(&values[0], -1)
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let result = self.total.result(self.kind)?;
        Ok(ScalarValue::LargeBinary(result.map(|value| value.to_bytes())))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let arrays = state_arrays(std::slice::from_ref(&self.total));
        arrays.iter().map(|array| ScalarValue::try_from_array(array, 0)).collect()
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<()> {
        Err(DataFusionError::Internal("a window's total is never merged".to_owned()))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.total.size()
    }
}
