//! `sum`, `avg`, `min` and `max` as PostgreSQL has them, under DataFusion's names.

mod collected;
mod distinct;
mod extreme;
mod float;
mod numeric;
mod only;
mod spread;
mod total;

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature,
    Volatility,
};

use crate::Type;
use crate::functions::numeric::is_carried;
use crate::functions::resolve::{Rank, rank};
use crate::functions::scalar::no_function;
use crate::text::MAX_PRECISION;
pub(super) use extreme::minimum;
use float::{FloatTotals, WindowedFloats};
use numeric::{NumericTotals, SlidingNumeric};
pub(crate) use only::ONLY_ROW_OF;
pub(super) use only::{first_two, only_row, only_row_of};
use total::{ExactTotals, Groups, IntervalTotals};

/// A sum of 2^63 decimals of so many digits has 38 at most.
pub(crate) const NARROW_PRECISION: u8 = 19;

/// All of them.
pub(super) fn functions() -> Vec<Arc<AggregateUDF>> {
    let mut functions = vec![
        Total::udaf(Kind::Sum),
        Total::udaf(Kind::Average),
        minimum(),
        extreme::maximum(),
        collected::array_agg(),
    ];
    functions.extend(spread::functions());
    functions
}

/// `sum`
pub(super) fn sum() -> Arc<AggregateUDF> {
    Total::udaf(Kind::Sum)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Sum,
    Average,
}

/// `sum` or `avg`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Total {
    kind: Kind,
    signature: Signature,
}

impl Total {
    fn udaf(kind: Kind) -> Arc<AggregateUDF> {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(AggregateUDF::new_from_impl(Self { kind, signature }))
    }
}

/// The type that comes out; none if there is no such aggregate.
fn result(kind: Kind, argument: &DataType) -> Option<Type> {
    if matches!(argument, DataType::Interval(IntervalUnit::MonthDayNano)) {
        return Some(Type::Interval);
    }
    Some(match (kind, rank(argument)?) {
        (Kind::Sum, Rank::SmallInt | Rank::Integer) => Type::BigInt,
        (Kind::Sum, Rank::BigInt) => Type::Numeric(Some((MAX_PRECISION, 0))),
        (Kind::Sum, Rank::Numeric) => match argument {
            DataType::Decimal128(..=NARROW_PRECISION, scale) => {
                Type::Numeric(Some((MAX_PRECISION, *scale)))
            }
            _ => Type::Numeric(None),
        },
        (Kind::Sum, Rank::Real) => Type::Real,
        (Kind::Average, Rank::SmallInt | Rank::Integer | Rank::BigInt | Rank::Numeric) => {
            Type::Numeric(None)
        }
        (Kind::Sum, Rank::Double) | (Kind::Average, Rank::Real | Rank::Double) => Type::Double,
    })
}

fn scale(data_type: &DataType) -> i8 {
    match data_type {
        DataType::Decimal128(_, scale) => *scale,
        _ => 0,
    }
}

fn is_float(data_type: &DataType) -> bool {
    rank(data_type) >= Some(Rank::Real)
}

impl Total {
    fn argument<'a>(&self, fields: &'a [FieldRef]) -> Result<&'a DataType> {
        match fields {
            [field] => Ok(field.data_type()),
            _ => Err(no_function(self.name(), &[]).into()),
        }
    }

    fn groups(&self, arguments: &AccumulatorArgs<'_>) -> Result<Groups> {
        let argument = self.argument(arguments.expr_fields)?;
        let output = arguments.return_field.data_type().clone();
        Ok(if is_float(argument) {
            Box::new(FloatTotals::new(self.kind, output))
        } else if matches!(argument, DataType::Interval(_)) {
            Box::new(IntervalTotals::new(self.kind))
        } else if is_carried(argument) {
            Box::new(NumericTotals::new(self.kind))
        } else {
            Box::new(ExactTotals::new(self.kind, scale(argument), output))
        })
    }
}

impl AggregateUDFImpl for Total {
    fn name(&self) -> &str {
        match self.kind {
            Kind::Sum => "sum",
            Kind::Average => "avg",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let none = || no_function(self.name(), arguments);
        let [argument] = arguments else { return Err(none().into()) };
        if argument.is_null() {
            return Ok(Type::Double.arrow());
        }
        Ok(result(self.kind, argument).ok_or_else(none)?.arrow())
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        Ok(arguments
            .iter()
            .map(|argument| match rank(argument) {
                None if argument.is_null() => DataType::Float64,
                None => argument.clone(),
                Some(Rank::SmallInt) => DataType::Int16,
                Some(Rank::Integer) => DataType::Int32,
                Some(Rank::BigInt) => DataType::Int64,
                Some(Rank::Real) => DataType::Float32,
                Some(Rank::Double) => DataType::Float64,
                Some(Rank::Numeric) => argument.clone(),
            })
            .collect())
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let field = |name: &str, data_type| -> FieldRef {
            Arc::new(Field::new(format_state_name(arguments.name, name), data_type, true))
        };
        let argument = self.argument(arguments.input_fields)?;
        if arguments.is_distinct {
            return Ok(vec![field("distinct", DataType::new_list(argument.clone(), true))]);
        }
        let states = if is_float(argument) {
            vec![("sum", DataType::Float64), ("count", DataType::Int64)]
        } else if matches!(argument, DataType::Interval(_)) {
            vec![("sum", argument.clone()), ("count", DataType::Int64)]
        } else if is_carried(argument) {
            vec![("parts", DataType::Binary), ("count", DataType::Int64)]
        } else {
            vec![
                ("low", DataType::Decimal128(MAX_PRECISION, 0)),
                ("high", DataType::Int64),
                ("count", DataType::Int64),
            ]
        };
        Ok(states.into_iter().map(|(name, data_type)| field(name, data_type)).collect())
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let groups = self.groups(&arguments)?;
        let one = total::OneGroup::new(groups);
        if arguments.is_distinct {
            let argument = self.argument(arguments.expr_fields)?.clone();
            return Ok(Box::new(distinct::Distinct::new(argument, Box::new(one))));
        }
        Ok(Box::new(one))
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs<'_>) -> bool {
        !arguments.is_distinct
    }

    fn create_groups_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(self.groups(&arguments)?)
    }

    fn create_sliding_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        let argument = self.argument(arguments.expr_fields)?;
        let output = arguments.return_field.data_type().clone();
        if arguments.is_distinct {
            let message = "DISTINCT is not implemented for window functions";
            return Err(DataFusionError::NotImplemented(message.to_owned()));
        }
        if is_float(argument) {
            return Ok(Box::new(WindowedFloats::new(self.kind, output)));
        }
        if matches!(argument, DataType::Interval(_)) {
            return Ok(Box::new(total::OneGroup::new(self.groups(&arguments)?)));
        }
        if is_carried(argument) {
            return Ok(Box::new(SlidingNumeric::new(self.kind)));
        }
        Ok(Box::new(total::SlidingExact::new(self.kind, scale(argument), output)))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }
}
