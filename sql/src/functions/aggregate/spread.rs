//! `variance` and `stddev`: exact of exact numbers, and DataFusion's of floats.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Int64Array};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use arrow::error::ArrowError;
use datafusion::common::Result;
use datafusion::functions_aggregate::stddev::{stddev_pop_udaf, stddev_udaf};
use datafusion::functions_aggregate::variance::{var_pop_udaf, var_samp_udaf};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility,
};
use stillframe_protocol::numeric::{Numeric, Spread};

use super::numeric::Total;
use super::total::{Groups, OneGroup, passes};
use crate::functions::numeric::{CARRIER, collect, exact_values, raised};
use crate::functions::resolve::{Rank, rank};
use crate::functions::scalar::no_function;

/// All of them.
pub(super) fn functions() -> Vec<Arc<AggregateUDF>> {
    let spread =
        |standard: Arc<AggregateUDF>, of_sample, is_deviation, aliases: &'static [&'static str]| {
            let spread = Spread { of_sample, is_deviation };
            let signature = Signature::user_defined(Volatility::Immutable);
            let function = AggregateUDF::new_from_impl(Spreads { spread, standard, signature });
            Arc::new(function.with_aliases(aliases.iter().copied()))
        };
    vec![
        spread(var_samp_udaf(), true, false, &["var_samp", "variance"]),
        spread(var_pop_udaf(), false, false, &[]),
        spread(stddev_udaf(), true, true, &["stddev_samp"]),
        spread(stddev_pop_udaf(), false, true, &[]),
    ]
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Spreads {
    spread: Spread,
    standard: Arc<AggregateUDF>,
    signature: Signature,
}

fn is_exact(fields: &[FieldRef]) -> bool {
    fields.first().and_then(|field| rank(field.data_type())) <= Some(Rank::Numeric)
        && fields.first().is_some_and(|field| rank(field.data_type()).is_some())
}

impl AggregateUDFImpl for Spreads {
    fn name(&self) -> &str {
        self.standard.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let [argument] = arguments else { return Err(no_function(self.name(), arguments).into()) };
        match rank(argument) {
            Some(Rank::Real | Rank::Double) => Ok(DataType::Float64),
            Some(_) => Ok(CARRIER),
            None if argument.is_null() => Ok(DataType::Float64),
            None => Err(no_function(self.name(), arguments).into()),
        }
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let inexact = |argument: &DataType| {
            argument.is_null() || matches!(rank(argument), Some(Rank::Real | Rank::Double))
        };
        let coerced = arguments.iter().map(|argument| match inexact(argument) {
            true => DataType::Float64,
            false => argument.clone(),
        });
        Ok(coerced.collect())
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        if !is_exact(arguments.input_fields) {
            return self.standard.state_fields(arguments);
        }
        let field = |name: &str, data_type| -> FieldRef {
            Arc::new(Field::new(format_state_name(arguments.name, name), data_type, true))
        };
        Ok(vec![
            field("sum", DataType::Binary),
            field("squares", DataType::Binary),
            field("count", DataType::Int64),
        ])
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if !is_exact(arguments.expr_fields) {
            return self.standard.accumulator(arguments);
        }
        let groups: Groups = Box::new(SpreadTotals::new(self.spread));
        let one = OneGroup::new(groups);
        if arguments.is_distinct {
            let argument = arguments.expr_fields[0].data_type().clone();
            return Ok(Box::new(super::distinct::Distinct::new(argument, Box::new(one))));
        }
        Ok(Box::new(one))
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs<'_>) -> bool {
        match is_exact(arguments.expr_fields) {
            true => !arguments.is_distinct,
            false => self.standard.groups_accumulator_supported(arguments),
        }
    }

    fn create_groups_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        match is_exact(arguments.expr_fields) {
            true => Ok(Box::new(SpreadTotals::new(self.spread))),
            false => self.standard.create_groups_accumulator(arguments),
        }
    }
}

/// Sums and sums of squares of groups.
struct SpreadTotals {
    spread: Spread,
    totals: Vec<(Total, Total)>,
}

impl SpreadTotals {
    fn new(spread: Spread) -> Self {
        Self { spread, totals: vec![] }
    }

    fn add(&mut self, group: usize, value: &Numeric) -> std::result::Result<(), ArrowError> {
        let (sum, squares) = &mut self.totals[group];
        sum.add(value, 1);
        squares.add(&value.multiply(value).map_err(raised)?, 1);
        Ok(())
    }

    fn result(&self, (sum, squares): &(Total, Total)) -> Row<Option<Numeric>> {
        let (count, sum, squares) = (sum.count(), sum.sum()?, squares.sum()?);
        self.spread.of(count, &sum, &squares).map_err(raised)
    }
}

type Row<T> = std::result::Result<T, ArrowError>;

fn state_arrays(totals: &[(Total, Total)]) -> Vec<ArrayRef> {
    let sums: BinaryArray = totals.iter().map(|(sum, _)| Some(sum.bytes())).collect();
    let squares: BinaryArray = totals.iter().map(|(_, squares)| Some(squares.bytes())).collect();
    let counts: Int64Array = totals.iter().map(|(sum, _)| Some(sum.count())).collect();
    vec![Arc::new(sums), Arc::new(squares), Arc::new(counts)]
}

impl GroupsAccumulator for SpreadTotals {
    fn update_batch(
        &mut self,
        arrays: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.totals.resize(total_num_groups, Default::default());
        for (place, value) in exact_values(&arrays[0])?.into_iter().enumerate() {
            if let Some(value) = value.filter(|_| passes(opt_filter, place)) {
                self.add(group_indices[place], &value)?;
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let totals = emit_to.take_needed(&mut self.totals);
        Ok(collect(totals.iter().map(|total| self.result(total)))?)
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
        self.totals.resize(total_num_groups, Default::default());
        let (sums, squares) = (arrays[0].as_binary::<i32>(), arrays[1].as_binary::<i32>());
        let counts = arrays[2].as_primitive::<Int64Type>();
        for (place, group) in group_indices.iter().enumerate() {
            let (sum, square) = &mut self.totals[*group];
            sum.add_bytes(sums.value(place), counts.value(place));
            square.add_bytes(squares.value(place), counts.value(place));
        }
        Ok(())
    }

    fn convert_to_state(
        &self,
        arrays: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let mut rows = Self { spread: self.spread, totals: vec![] };
        rows.totals.resize(arrays[0].len(), Default::default());
        for (place, value) in exact_values(&arrays[0])?.into_iter().enumerate() {
            if let Some(value) = value.filter(|_| passes(opt_filter, place)) {
                rows.add(place, &value)?;
            }
        }
        Ok(state_arrays(&rows.totals))
    }

    fn size(&self) -> usize {
        self.totals.iter().map(|(sum, squares)| sum.size() + squares.size()).sum()
    }
}
