//! Exact totals: integers and decimals in 192 bits, so that an order of rows in which the total is
//! too large for a while makes no difference; only the end result must fit.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Int64Array, IntervalMonthDayNanoArray,
    PrimitiveArray,
};
use arrow::datatypes::{
    DataType, Decimal128Type, Int16Type, Int32Type, Int64Type, IntervalMonthDayNano,
    IntervalMonthDayNanoType, i256,
};
use arrow::error::ArrowError;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};
use stillframe_protocol::numeric::Numeric;

use crate::SqlState;
use crate::functions::aggregate::Kind;
use crate::functions::arithmetic::interval_quotient;
use crate::functions::numeric::{collect, is_carried, raised};
use crate::functions::row::{out_of_range, raise, raise_error};
use crate::text::out_of_digits;

/// A sum with its number of values.
#[derive(Clone, Copy, Default)]
struct Total {
    low: i128,
    /// How often `low` has wrapped.
    high: i64,
    count: i64,
}

impl Total {
    fn add(&mut self, value: i128) {
        let (low, wrapped) = self.low.overflowing_add(value);
        self.low = low;
        if wrapped {
            self.high += if value < 0 { -1 } else { 1 };
        }
    }

    fn subtract(&mut self, value: i128) {
        let (low, wrapped) = self.low.overflowing_sub(value);
        self.low = low;
        if wrapped {
            self.high += if value < 0 { 1 } else { -1 };
        }
    }

    fn wide(self) -> i256 {
        // What has wrapped once is short of one times 2^128.
        i256::from_parts(0, i128::from(self.high)).wrapping_add(i256::from_i128(self.low))
    }
}

/// What a total comes out as.
#[derive(Clone)]
struct Output {
    kind: Kind,
    input_scale: i8,
    data_type: DataType,
}

impl Output {
    fn array(&self, totals: &[Total]) -> Result<ArrayRef> {
        if is_carried(&self.data_type) {
            return Ok(collect(totals.iter().map(|total| self.numeric(*total)))?);
        }
        let values = totals
            .iter()
            .map(|total| if total.count == 0 { Ok(None) } else { sum(*total).map(Some) });
        let values = values.collect::<std::result::Result<Vec<_>, ArrowError>>()?;
        if self.data_type == DataType::Int64 {
            let narrow = values.into_iter().map(|value| {
                let narrow = value.map(i64::try_from).transpose();
                narrow.map_err(|_| out_of_range("bigint"))
            });
            let narrow = narrow.collect::<std::result::Result<Vec<_>, ArrowError>>()?;
            return Ok(Arc::new(Int64Array::from(narrow)));
        }
        let array = Decimal128Array::from(values).with_data_type(self.data_type.clone());
        Ok(Arc::new(array))
    }

    fn numeric(&self, total: Total) -> std::result::Result<Option<Numeric>, ArrowError> {
        if total.count == 0 {
            return Ok(None);
        }
        let scale = self.input_scale.max(0).unsigned_abs().into();
        let sum = Numeric::from_wide(total.wide(), scale);
        match self.kind {
            Kind::Sum => Ok(Some(sum)),
            Kind::Average => sum.divide(&Numeric::from(total.count)).map(Some).map_err(raised),
        }
    }
}

/// A sum whose type has room for it.
fn sum(total: Total) -> std::result::Result<i128, ArrowError> {
    let limit = 10i128.pow(38);
    let sum = total.wide().to_i128().filter(|value| -limit < *value && *value < limit);
    sum.ok_or_else(|| raise_error(out_of_digits()))
}

/// Calls `visit` with each value that isn't NULL and its place.
fn each_exact(array: &ArrayRef, mut visit: impl FnMut(usize, i128)) -> Result<()> {
    macro_rules! each {
        ($arrow:ty) => {{
            let array = array.as_primitive::<$arrow>();
            if array.null_count() == 0 {
                let values = array.values().iter().enumerate();
                values.for_each(|(place, value)| visit(place, i128::from(*value)));
            } else {
                let values = array.iter().enumerate();
                values.for_each(|(place, value)| {
                    if let Some(value) = value {
                        visit(place, i128::from(value));
                    }
                });
            }
        }};
    }
    match array.data_type() {
        DataType::Int16 => each!(Int16Type),
        DataType::Int32 => each!(Int32Type),
        DataType::Int64 => each!(Int64Type),
        DataType::Decimal128(..) => each!(Decimal128Type),
        other => return Err(DataFusionError::Internal(format!("an exact total of {other}"))),
    }
    Ok(())
}

/// Whether a row counts.
pub(super) fn passes(filter: Option<&BooleanArray>, place: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(place) && filter.value(place))
}

/// The totals of groups.
pub(super) struct ExactTotals {
    output: Output,
    totals: Vec<Total>,
}

impl ExactTotals {
    pub(super) fn new(kind: Kind, input_scale: i8, data_type: DataType) -> Self {
        Self { output: Output { kind, input_scale, data_type }, totals: vec![] }
    }
}

fn state_arrays(totals: &[Total]) -> Vec<ArrayRef> {
    let low: Decimal128Array = totals.iter().map(|total| Some(total.low)).collect();
    let low = low.with_data_type(DataType::Decimal128(38, 0));
    let high: Int64Array = totals.iter().map(|total| Some(total.high)).collect();
    let count: Int64Array = totals.iter().map(|total| Some(total.count)).collect();
    vec![Arc::new(low), Arc::new(high), Arc::new(count)]
}

impl GroupsAccumulator for ExactTotals {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.totals.resize(total_num_groups, Total::default());
        let totals = &mut self.totals;
        each_exact(&values[0], |place, value| {
            if passes(opt_filter, place) {
                let total = &mut totals[group_indices[place]];
                total.add(value);
                total.count += 1;
            }
        })
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        self.output.array(&emit_to.take_needed(&mut self.totals))
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
        let low = values[0].as_primitive::<Decimal128Type>();
        let high = values[1].as_primitive::<Int64Type>();
        let count = values[2].as_primitive::<Int64Type>();
        for (place, group) in group_indices.iter().enumerate() {
            let total = &mut self.totals[*group];
            total.add(low.value(place));
            total.high += high.value(place);
            total.count += count.value(place);
        }
        Ok(())
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let mut totals = vec![Total::default(); values[0].len()];
        each_exact(&values[0], |place, value| {
            if passes(opt_filter, place) {
                totals[place] = Total { low: value, high: 0, count: 1 };
            }
        })?;
        Ok(state_arrays(&totals))
    }

    fn size(&self) -> usize {
        self.totals.capacity() * size_of::<Total>()
    }
}

/// A total whose rows come and go.
#[derive(Debug)]
pub(super) struct SlidingExact {
    output: Output,
    total: Total,
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} as {}", self.kind, self.data_type)
    }
}

impl std::fmt::Debug for Total {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} over {}", self.wide(), self.count)
    }
}

impl SlidingExact {
    pub(super) fn new(kind: Kind, input_scale: i8, data_type: DataType) -> Self {
        let output = Output { kind, input_scale, data_type };
        Self { output, total: Total::default() }
    }
}

impl Accumulator for SlidingExact {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let total = &mut self.total;
        each_exact(&values[0], |_, value| {
            total.add(value);
            total.count += 1;
        })
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let total = &mut self.total;
        each_exact(&values[0], |_, value| {
            total.subtract(value);
            total.count -= 1;
        })
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        ScalarValue::try_from_array(&self.output.array(&[self.total])?, 0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let arrays = state_arrays(&[self.total]);
        arrays.iter().map(|array| ScalarValue::try_from_array(array, 0)).collect()
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<()> {
        Err(DataFusionError::Internal("a window's total is never merged".to_owned()))
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}

/// The sums of intervals, part by part.
pub(super) struct IntervalTotals {
    kind: Kind,
    totals: Vec<(IntervalMonthDayNano, i64)>,
}

fn interval_sum(
    left: IntervalMonthDayNano,
    right: IntervalMonthDayNano,
) -> std::result::Result<IntervalMonthDayNano, ArrowError> {
    let sum = (|| {
        Some(IntervalMonthDayNano::new(
            left.months.checked_add(right.months)?,
            left.days.checked_add(right.days)?,
            left.nanoseconds.checked_add(right.nanoseconds)?,
        ))
    })();
    sum.ok_or_else(|| raise(SqlState::DATETIME_FIELD_OVERFLOW, "interval out of range"))
}

impl IntervalTotals {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, totals: vec![] }
    }

    fn add(
        &mut self,
        group: usize,
        value: IntervalMonthDayNano,
        count: i64,
    ) -> std::result::Result<(), ArrowError> {
        let (total, total_count) = &mut self.totals[group];
        *total = interval_sum(*total, value)?;
        *total_count += count;
        Ok(())
    }
}

impl GroupsAccumulator for IntervalTotals {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.totals.resize(total_num_groups, Default::default());
        let array = values[0].as_primitive::<IntervalMonthDayNanoType>();
        for (place, value) in array.iter().enumerate() {
            if let Some(value) = value.filter(|_| passes(opt_filter, place)) {
                self.add(group_indices[place], value, 1)?;
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let totals = emit_to.take_needed(&mut self.totals);
        let mut found = vec![];
        for (sum, count) in totals {
            found.push(match (count > 0, self.kind) {
                (false, _) => None,
                (true, Kind::Sum) => Some(sum),
                (true, Kind::Average) => Some(interval_quotient(sum, count as f64)?),
            });
        }
        Ok(Arc::new(PrimitiveArray::<IntervalMonthDayNanoType>::from(found)))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let totals = emit_to.take_needed(&mut self.totals);
        let sums: IntervalMonthDayNanoArray = totals.iter().map(|(sum, _)| Some(*sum)).collect();
        let counts: Int64Array = totals.iter().map(|(_, count)| Some(*count)).collect();
        Ok(vec![Arc::new(sums), Arc::new(counts)])
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.totals.resize(total_num_groups, Default::default());
        let sums = values[0].as_primitive::<IntervalMonthDayNanoType>();
        let counts = values[1].as_primitive::<Int64Type>();
        for (place, group) in group_indices.iter().enumerate() {
            self.add(*group, sums.value(place), counts.value(place))?;
        }
        Ok(())
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let array = values[0].as_primitive::<IntervalMonthDayNanoType>();
        let rows = array.iter().enumerate();
        let rows = rows.map(|(place, value)| value.filter(|_| passes(opt_filter, place)));
        let rows: Vec<_> = rows.collect();
        let sums = rows.iter().map(|value| Some(value.unwrap_or_default()));
        let counts = rows.iter().map(|value| Some(i64::from(value.is_some())));
        let sums: IntervalMonthDayNanoArray = sums.collect();
        Ok(vec![Arc::new(sums), Arc::new(counts.collect::<Int64Array>())])
    }

    fn size(&self) -> usize {
        self.totals.capacity() * size_of::<(IntervalMonthDayNano, i64)>()
    }
}

/// An accumulator of groups that an accumulator of one can own.
pub(super) type Groups = Box<dyn GroupsAccumulator + Sync>;

/// The only group of an accumulator of groups.
pub(super) struct OneGroup {
    groups: Groups,
}

impl OneGroup {
    pub(super) fn new(groups: Groups) -> Self {
        Self { groups }
    }

    /// Makes sure that the group is there even if no row has come.
    fn touch(&mut self, values: Option<&[ArrayRef]>) -> Result<()> {
        let Some(values) = values else { return Ok(()) };
        self.groups.update_batch(values, &vec![0; values[0].len()], None, 1)
    }
}

impl std::fmt::Debug for OneGroup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OneGroup")
    }
}

impl Accumulator for OneGroup {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.touch(Some(values))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        // A window evaluates the same accumulator again and again, so what is taken is put back.
        let state = self.groups.state(EmitTo::All)?;
        if state.first().is_none_or(|state| state.is_empty()) {
            return self.empty();
        }
        self.groups.merge_batch(&state, &[0], 1)?;
        let value = self.groups.evaluate(EmitTo::All)?;
        self.groups.merge_batch(&state, &[0], 1)?;
        ScalarValue::try_from_array(&value, 0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let mut state = self.groups.state(EmitTo::All)?;
        if state.first().is_none_or(|state| state.is_empty()) {
            self.make_group(&state)?;
            state = self.groups.state(EmitTo::All)?;
        }
        self.groups.merge_batch(&state, &[0], 1)?;
        state.iter().map(|state| ScalarValue::try_from_array(state, 0)).collect()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.groups.merge_batch(states, &vec![0; states[0].len()], 1)
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.groups.size()
    }
}

impl OneGroup {
    /// Makes the group without a row.
    fn make_group(&mut self, empty_state: &[ArrayRef]) -> Result<()> {
        self.groups.merge_batch(empty_state, &[], 1)
    }

    fn empty(&mut self) -> Result<ScalarValue> {
        let state = self.groups.state(EmitTo::All)?;
        self.make_group(&state)?;
        let value = self.groups.evaluate(EmitTo::All)?;
        ScalarValue::try_from_array(&value, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_total_may_be_too_large_for_a_while() {
        let mut totals = ExactTotals::new(Kind::Sum, 0, DataType::Decimal128(38, 0));
        let large = 9 * 10i128.pow(37);
        let values: ArrayRef = Arc::new(
            Decimal128Array::from(vec![large, large, large, large, -large, -large, -large, 7])
                .with_data_type(DataType::Decimal128(38, 0)),
        );
        totals.update_batch(&[values], &[0; 8], None, 1).unwrap();
        let state = totals.state(EmitTo::All).unwrap();
        totals.merge_batch(&state, &[0], 1).unwrap();
        let sum = totals.evaluate(EmitTo::All).unwrap();
        assert_eq!(sum.as_primitive::<Decimal128Type>().value(0), large + 7);
    }

    #[test]
    fn a_total_that_stays_too_large_is_refused() {
        let mut totals = ExactTotals::new(Kind::Sum, 0, DataType::Decimal128(38, 0));
        let large = 9 * 10i128.pow(37);
        let values: ArrayRef = Arc::new(Decimal128Array::from(vec![large, large]));
        totals.update_batch(&[values], &[0; 2], None, 1).unwrap();
        assert!(totals.evaluate(EmitTo::All).is_err());
    }

    #[test]
    fn averages_are_rounded_half_away_from_zero() {
        let mut totals = ExactTotals::new(Kind::Average, 0, DataType::LargeBinary);
        let values: ArrayRef = Arc::new(Int64Array::from(vec![-1, -2, -2]));
        totals.update_batch(&[values], &[0; 3], None, 2).unwrap();
        let average = totals.evaluate(EmitTo::All).unwrap();
        let average = average.as_binary::<i64>();
        let value = Numeric::decode(average.value(0)).unwrap();
        assert_eq!(value.to_string(), "-1.6666666666666667");
        assert!(average.is_null(1));
    }

    #[test]
    fn one_group_without_rows_is_null() {
        let groups = ExactTotals::new(Kind::Sum, 0, DataType::Int64);
        let mut one = OneGroup::new(Box::new(groups));
        assert_eq!(one.evaluate().unwrap(), ScalarValue::Int64(None));
        assert_eq!(one.state().unwrap().len(), 3);
        let values: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        one.update_batch(&[values]).unwrap();
        assert_eq!(one.evaluate().unwrap(), ScalarValue::Int64(Some(3)));
        assert_eq!(one.evaluate().unwrap(), ScalarValue::Int64(Some(3)));
    }
}
