//! `min` and `max`: DataFusion's, but for floats, of which NaN is the greatest.

use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray};
use arrow::datatypes::{DataType, FieldRef, Float32Type, Float64Type};
use datafusion::common::Result;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF,
    SetMonotonicity, Signature,
};

use super::total::{Groups, OneGroup, passes};

pub(in crate::functions) fn minimum() -> Arc<AggregateUDF> {
    Extreme::udaf(min_udaf(), End::Lowest)
}

pub(super) fn maximum() -> Arc<AggregateUDF> {
    Extreme::udaf(max_udaf(), End::Highest)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum End {
    Lowest,
    Highest,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Extreme {
    end: End,
    standard: Arc<AggregateUDF>,
}

impl Extreme {
    fn udaf(standard: Arc<AggregateUDF>, end: End) -> Arc<AggregateUDF> {
        Arc::new(AggregateUDF::new_from_impl(Self { end, standard }))
    }

    fn floats(&self, data_type: &DataType) -> Option<Groups> {
        match data_type {
            DataType::Float32 => Some(Box::new(Floats::<Float32Type>::new(self.end))),
            DataType::Float64 => Some(Box::new(Floats::<Float64Type>::new(self.end))),
            _ => None,
        }
    }
}

impl AggregateUDFImpl for Extreme {
    fn name(&self) -> &str {
        self.standard.name()
    }

    fn signature(&self) -> &Signature {
        self.standard.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.standard.return_type(arguments)
    }

    fn return_field(&self, arguments: &[FieldRef]) -> Result<FieldRef> {
        let field = self.standard.return_field(arguments)?;
        // The SQL type travels in the field's metadata.
        Ok(match arguments {
            [argument] if argument.data_type() == field.data_type() => {
                let metadata = argument.metadata().clone();
                Arc::new(field.as_ref().clone().with_metadata(metadata))
            }
            _ => field,
        })
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.standard.coerce_types(arguments)
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.standard.state_fields(arguments)
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        match self.floats(arguments.return_field.data_type()) {
            Some(groups) => Ok(Box::new(OneGroup::new(groups))),
            None => self.standard.accumulator(arguments),
        }
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs<'_>) -> bool {
        self.floats(arguments.return_field.data_type()).is_some()
            || self.standard.groups_accumulator_supported(arguments)
    }

    fn create_groups_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        match self.floats(arguments.return_field.data_type()) {
            Some(groups) => Ok(groups),
            None => self.standard.create_groups_accumulator(arguments),
        }
    }

    // Over a moving frame DataFusion compares floats by their total order, which is ours.
    fn create_sliding_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        self.standard.create_sliding_accumulator(arguments)
    }

    fn is_descending(&self) -> Option<bool> {
        self.standard.is_descending()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.standard.order_sensitivity()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.standard.inner().set_monotonicity(data_type)
    }
}

/// The extremes of groups of floats. NaN and zero have one form each here, so the total order of
/// their bits is PostgreSQL's.
struct Floats<T: ArrowPrimitiveType> {
    end: End,
    extremes: Vec<Option<T::Native>>,
}

impl<T: ArrowPrimitiveType> Floats<T>
where
    T::Native: TotalOrder,
{
    fn new(end: End) -> Self {
        Self { end, extremes: vec![] }
    }
}

trait TotalOrder: Copy {
    fn exceeds(self, other: Self) -> bool;
}

impl TotalOrder for f32 {
    fn exceeds(self, other: Self) -> bool {
        self.total_cmp(&other).is_gt()
    }
}

impl TotalOrder for f64 {
    fn exceeds(self, other: Self) -> bool {
        self.total_cmp(&other).is_gt()
    }
}

impl<T: ArrowPrimitiveType> GroupsAccumulator for Floats<T>
where
    T::Native: TotalOrder,
{
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.extremes.resize(total_num_groups, None);
        for (place, value) in values[0].as_primitive::<T>().iter().enumerate() {
            let Some(value) = value.filter(|_| passes(opt_filter, place)) else { continue };
            let extreme = &mut self.extremes[group_indices[place]];
            let replaces = match (*extreme, self.end) {
                (None, _) => true,
                (Some(extreme), End::Highest) => value.exceeds(extreme),
                (Some(extreme), End::Lowest) => extreme.exceeds(value),
            };
            if replaces {
                *extreme = Some(value);
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let extremes = emit_to.take_needed(&mut self.extremes);
        Ok(Arc::new(PrimitiveArray::<T>::from_iter(extremes)))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(emit_to)?])
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.update_batch(values, group_indices, None, total_num_groups)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        match opt_filter {
            None => Ok(vec![Arc::clone(&values[0])]),
            Some(filter) => {
                let excluded = arrow::compute::not(&arrow::compute::prep_null_mask_filter(filter))?;
                Ok(vec![arrow::compute::nullif(&values[0], &excluded)?])
            }
        }
    }

    fn size(&self) -> usize {
        self.extremes.capacity() * size_of::<Option<T::Native>>()
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, Float64Array};

    use super::*;

    #[test]
    fn nan_is_the_greatest_and_infinity_no_limit() {
        let values: ArrayRef =
            Arc::new(Float64Array::from(vec![1.0, f64::NAN, 5.0, f64::NEG_INFINITY]));
        let extremes = |end| {
            let mut groups = Floats::<Float64Type>::new(end);
            groups.update_batch(&[Arc::clone(&values)], &[0, 0, 0, 1], None, 3).unwrap();
            let array = groups.evaluate(EmitTo::All).unwrap();
            let array = array.as_primitive::<Float64Type>().clone();
            assert!(array.is_null(2));
            (array.value(0), array.value(1))
        };
        let (highest, alone) = extremes(End::Highest);
        assert!(highest.is_nan());
        assert_eq!(alone, f64::NEG_INFINITY);
        assert_eq!(extremes(End::Lowest).0, 1.0);
    }
}
