//! Which positions of a weight hold what.

use std::collections::BTreeMap;

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType};
use stillframe_protocol::numeric::DigitSum;
use stillframe_protocol::{Aggregate, AggregateFunction};

use crate::EngineError;
use crate::circuit::relation::Relation;
use crate::weight::{Accumulator, FLOAT_POSITIONS};

/// Decimals of at most so many digits can be added 2^63 times without a carry out of 127 bits.
const NARROW_PRECISION: u8 = 19;

/// Position 0 counts the group's rows.
pub(super) const COUNT: usize = 0;

/// What each row adds to its group's weight, and how results are read from it.
#[derive(Debug)]
pub(super) struct Layout {
    positions: usize,
    arguments: Vec<Argument>,
    results: Vec<ResultOf>,
    /// Where a group that exists without rows has a one.
    presence: Option<usize>,
}

/// A register that is aggregated.
#[derive(Debug)]
pub(super) struct Argument {
    /// The register.
    pub(super) register: usize,
    /// Counts the rows where it isn't NULL.
    pub(super) count: usize,
    /// Where its sum is, if one is wanted.
    pub(super) sum: Option<(SumKind, usize)>,
    /// Digits after the point of a decimal.
    pub(super) scale: u32,
}

/// How a sum is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SumKind {
    /// In one position, of integers of so many bytes.
    Integer(usize),
    /// Of decimals, in one position.
    Decimal,
    /// Of decimals with many digits: the lower 64 bits and the rest are added up apart.
    WideDecimal,
    /// Of numerics with scales of their own.
    Numeric,
    /// Of floats of 4 or 8 bytes.
    Float(usize),
}

/// How a result is read.
#[derive(Debug)]
pub(super) enum ResultOf {
    /// Of all rows.
    CountAll,
    /// Of the rows where an argument isn't NULL.
    Count(usize),
    /// The sum of an argument, in a type.
    Sum(usize, DataType),
    /// The sum of an argument by its count, in a type.
    Average(usize, DataType),
}

impl Layout {
    /// A layout for some aggregates with their results' types. If `always_present`, groups exist
    /// without rows.
    pub(super) fn new<'a>(
        input: &Relation,
        aggregates: impl Iterator<Item = (&'a Aggregate, &'a DataType)>,
        always_present: bool,
    ) -> Result<Self, EngineError> {
        let mut layout =
            Self { positions: COUNT + 1, arguments: vec![], results: vec![], presence: None };
        let mut known = BTreeMap::new();
        for (aggregate, returns) in aggregates {
            let result = match (aggregate.function, aggregate.argument) {
                (AggregateFunction::Count, None) if *returns == DataType::Int64 => {
                    ResultOf::CountAll
                }
                (function, _) => {
                    let (_, register) = argument(input, aggregate)?;
                    let place = *known
                        .entry(register)
                        .or_insert_with(|| layout.add_argument(register, &input.types[register]));
                    let argument_type = &input.types[register];
                    if function != AggregateFunction::Count {
                        layout.add_sum(place, argument_type)?;
                    }
                    result(function, place, argument_type, returns)?
                }
            };
            layout.results.push(result);
        }
        if always_present {
            layout.presence = Some(layout.take(1));
        }
        Ok(layout)
    }

    pub(super) fn positions(&self) -> usize {
        self.positions
    }

    pub(super) fn arguments(&self) -> &[Argument] {
        &self.arguments
    }

    pub(super) fn results(&self) -> &[ResultOf] {
        &self.results
    }

    /// Gives a weight to a group that is there without rows.
    pub(super) fn mark_present(&self, weight: &mut impl Accumulator) {
        weight.add(self.presence.expect("only a group that is always there is marked"), 1);
    }

    /// Whether a result may not fit its type.
    pub(super) fn can_fail(&self) -> bool {
        self.results.iter().any(|result| match result {
            ResultOf::CountAll | ResultOf::Count(_) => false,
            ResultOf::Sum(argument, _) => match self.sum(*argument).0 {
                SumKind::Integer(size) => size < size_of::<i64>(),
                SumKind::Decimal => false,
                SumKind::WideDecimal | SumKind::Numeric | SumKind::Float(_) => true,
            },
            ResultOf::Average(argument, ..) => {
                !matches!(self.sum(*argument).0, SumKind::Integer(_))
            }
        })
    }

    /// How and where the sum of an argument is held.
    pub(super) fn sum(&self, argument: usize) -> (SumKind, usize) {
        self.arguments[argument].sum.expect("the layout has the sums its results read")
    }

    fn take(&mut self, positions: usize) -> usize {
        self.positions += positions;
        self.positions - positions
    }

    fn add_argument(&mut self, register: usize, data_type: &DataType) -> usize {
        let count = self.take(1);
        let scale = match data_type {
            DataType::Decimal128(_, scale) => (*scale).max(0).unsigned_abs().into(),
            _ => 0,
        };
        self.arguments.push(Argument { register, count, sum: None, scale });
        self.arguments.len() - 1
    }

    fn add_sum(&mut self, argument: usize, data_type: &DataType) -> Result<(), EngineError> {
        if self.arguments[argument].sum.is_some() {
            return Ok(());
        }
        let (kind, positions) = match data_type {
            DataType::Int16 => (SumKind::Integer(2), 1),
            DataType::Int32 => (SumKind::Integer(4), 1),
            DataType::Int64 => (SumKind::Integer(8), 1),
            DataType::Decimal128(precision, _) if *precision <= NARROW_PRECISION => {
                (SumKind::Decimal, 1)
            }
            DataType::Decimal128(..) => (SumKind::WideDecimal, 2),
            DataType::LargeBinary => (SumKind::Numeric, DigitSum::POSITIONS),
            DataType::Float32 => (SumKind::Float(4), FLOAT_POSITIONS),
            DataType::Float64 => (SumKind::Float(8), FLOAT_POSITIONS),
            other => return Err(EngineError::InvalidPlan(format!("no sum of {other}"))),
        };
        self.arguments[argument].sum = Some((kind, self.take(positions)));
        Ok(())
    }
}

/// The column and the register that an aggregate reads.
pub(super) fn argument(
    input: &Relation,
    aggregate: &Aggregate,
) -> Result<(usize, usize), EngineError> {
    match aggregate.argument {
        Some(column) => Ok((column, input.column(column)?)),
        None => {
            let message = format!("{:?} has no argument", aggregate.function);
            Err(EngineError::InvalidPlan(message))
        }
    }
}

fn result(
    function: AggregateFunction,
    argument: usize,
    from: &DataType,
    returns: &DataType,
) -> Result<ResultOf, EngineError> {
    use DataType::{Decimal128, Float32, Float64, Int16, Int32, Int64, LargeBinary};
    let wide = DECIMAL128_MAX_PRECISION;
    let result = match (function, from, returns) {
        (AggregateFunction::Count, _, Int64) => Some(ResultOf::Count(argument)),
        (AggregateFunction::Sum, Int16 | Int32, Int64)
        | (AggregateFunction::Sum, Float32, Float32)
        | (AggregateFunction::Sum, Float64, Float64) => {
            Some(ResultOf::Sum(argument, returns.clone()))
        }
        (AggregateFunction::Sum, Int64, Decimal128(precision, 0)) if *precision == wide => {
            Some(ResultOf::Sum(argument, returns.clone()))
        }
        (AggregateFunction::Sum, Decimal128(_, from), Decimal128(precision, to))
            if *precision == wide && from == to =>
        {
            Some(ResultOf::Sum(argument, returns.clone()))
        }
        (AggregateFunction::Sum, Decimal128(..) | LargeBinary, LargeBinary) => {
            Some(ResultOf::Sum(argument, LargeBinary))
        }
        (
            AggregateFunction::Avg,
            Int16 | Int32 | Int64 | Decimal128(..) | LargeBinary,
            LargeBinary,
        ) => Some(ResultOf::Average(argument, LargeBinary)),
        (AggregateFunction::Avg, Float32 | Float64, Float64) => {
            Some(ResultOf::Average(argument, returns.clone()))
        }
        _ => None,
    };
    result.ok_or_else(|| {
        EngineError::InvalidPlan(format!("{function:?} of {from} does not give {returns}"))
    })
}
