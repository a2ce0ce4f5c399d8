//! GROUP BY and aggregates.
//!
//! The protocol's aggregates read columns, pass over NULLs and know neither FILTER nor DISTINCT.
//! FILTER becomes a CASE around the argument. With DISTINCT arguments the aggregate reads a union:
//! the rows themselves for the plain aggregates, and for each DISTINCT argument its distinct values
//! by group, each part with NULL in the columns of the others. What the protocol's aggregates can't
//! say is computed of the whole group ([`whole`]), and grouping sets are groupings put together
//! ([`sets`]).

mod sets;
mod whole;

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::DFSchema;
use datafusion::logical_expr::expr::AggregateFunction as Call;
use datafusion::logical_expr::{Aggregate as Grouping, Expr, ExprSchemable};
use stillframe_protocol::{Aggregate, AggregateFunction, Expression, Literal, Plan};

use super::operand::Columns;
use super::{build, plan, refused};
use crate::Error;
use crate::expression::convert;

/// An aggregate whose argument is a column of the input that is being built.
struct Wanted {
    function: AggregateFunction,
    argument: Option<usize>,
    distinct: bool,
}

/// Compiles a GROUP BY.
pub(super) fn aggregate(grouping: &Grouping) -> Result<Arc<Plan>, Error> {
    let input = plan(&grouping.input)?;
    if matches!(grouping.group_expr.as_slice(), [Expr::GroupingSet(_)]) {
        return sets::aggregate(grouping, &input);
    }
    let below = grouping.input.schema();
    let output = Output { fields: grouping.schema.fields() };
    grouped(input, below, &grouping.group_expr, &grouping.aggr_expr, &output)
}

/// Groups rows by expressions.
fn grouped(
    input: Arc<Plan>,
    below: &DFSchema,
    groups: &[Expr],
    calls: &[Expr],
    output: &Output<'_>,
) -> Result<Arc<Plan>, Error> {
    let mut columns = Columns::default();
    let places = groups.iter().map(|group| Ok(columns.value(group, below)?.0));
    let places: Vec<usize> = places.collect::<Result<_, Error>>()?;
    let wanted = calls.iter().map(|call| wanted(call, below, &mut columns));
    let Ok(wanted) = wanted.collect::<Result<Vec<_>, Error>>() else {
        return whole::aggregate(input, below, groups, calls, output);
    };
    // count(*) alone reads nothing, but a row has a column.
    let projected = columns.over(input);
    let once: Vec<_> = places.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    build::keys(&projected, places.iter().copied(), "GROUP BY")?;
    let Source { input, groups: read, arguments } = source(projected, &once, &wanted)?;

    let below = input.schema();
    let mut types: Vec<_> =
        read.iter().map(|place| below.field(*place).data_type().clone()).collect();
    let mut aggregates = vec![];
    for (wanted, argument) in wanted.iter().zip(arguments) {
        let data_type = argument.map(|place| below.field(place).data_type());
        types.push(result_type(wanted.function, data_type)?);
        aggregates.push(Aggregate { function: wanted.function, argument });
    }
    let schema = build::schema(types.iter().map(|data_type| ("c", data_type.clone())));
    let result = Arc::new(Plan::Aggregate { input, groups: read, aggregates, schema });
    output.columns(result, &places, &once)
}

/// The columns of the logical plan: the groups, then the aggregates.
struct Output<'a> {
    fields: &'a [FieldRef],
}

impl Output<'_> {
    /// Makes them of a plan that has each group once: `groups` are those that are wanted, `once`
    /// those that are there.
    fn columns(
        &self,
        result: Arc<Plan>,
        groups: &[usize],
        once: &[usize],
    ) -> Result<Arc<Plan>, Error> {
        let schema = result.schema();
        let places = groups
            .iter()
            .map(|group| once.iter().position(|known| known == group).expect("made of the groups"))
            .chain(once.len()..schema.fields().len());
        let columns = places.zip(self.fields).map(|(place, field)| {
            let planned = build::stored_type(field.data_type())?;
            let found = schema.field(place).data_type();
            let column = build::cast(Expression::Column(place), found, &planned);
            Ok(build::Column::new(field.name(), column, planned))
        });
        Ok(build::project(result, columns.collect::<Result<_, Error>>()?))
    }
}

/// Reads one aggregate call.
fn wanted(call: &Expr, below: &DFSchema, columns: &mut Columns) -> Result<Wanted, Error> {
    let mut call = call;
    while let Expr::Alias(alias) = call {
        call = &alias.expr;
    }
    let Expr::AggregateFunction(Call { func, params }) = call else {
        return Err(refused(format!("the aggregate {call}")));
    };
    let function = match func.name() {
        "count" => AggregateFunction::Count,
        "sum" => AggregateFunction::Sum,
        "avg" => AggregateFunction::Avg,
        "min" => AggregateFunction::Min,
        "max" => AggregateFunction::Max,
        other => return Err(refused(format!("the aggregate function {other}"))),
    };
    if !params.order_by.is_empty() {
        return Err(refused("ORDER BY in an aggregate"));
    }
    if params.null_treatment.is_some() {
        return Err(refused("IGNORE NULLS"));
    }
    let [argument] = params.args.as_slice() else {
        return Err(refused(format!("{} of several arguments", func.name())));
    };
    let filter = params.filter.as_ref().map(|filter| convert(filter, below)).transpose()?;
    let counts_rows = function == AggregateFunction::Count
        && matches!(argument, Expr::Literal(value, _) if !value.is_null());
    if counts_rows && !params.distinct {
        let argument = filter.map(|filter| {
            let one = Expression::Literal(Literal::Int64(1));
            columns.place(guarded(filter, one), DataType::Int64)
        });
        return Ok(Wanted { function, argument, distinct: false });
    }
    let found = argument.get_type(below).map_err(crate::query::classify)?;
    let stored = build::stored_type(&found)?;
    let expression = build::cast(convert(argument, below)?, &found, &stored);
    let expression = match filter {
        Some(filter) => guarded(filter, expression),
        None => expression,
    };
    if matches!(stored, DataType::Interval(_)) && function != AggregateFunction::Count {
        return Err(refused(format!("{} of a value of type interval", func.name())));
    }
    // The least and the greatest are the same of distinct values.
    let distinct =
        params.distinct && !matches!(function, AggregateFunction::Min | AggregateFunction::Max);
    let argument = Some(columns.place(expression, stored));
    Ok(Wanted { function, argument, distinct })
}

/// The value where the condition is true, else NULL.
fn guarded(condition: Expression, value: Expression) -> Expression {
    Expression::Case { operand: None, branches: vec![(condition, value)], otherwise: None }
}

/// What an aggregate reads: a plan, its group columns, and each aggregate's argument in it.
struct Source {
    input: Arc<Plan>,
    groups: Vec<usize>,
    arguments: Vec<Option<usize>>,
}

/// Takes care of the DISTINCT arguments.
///
/// The columns of the union are the groups, the arguments of the plain aggregates, the DISTINCT
/// arguments, and one that counts the rows themselves.
fn source(input: Arc<Plan>, groups: &[usize], wanted: &[Wanted]) -> Result<Source, Error> {
    let arguments = |distinct| {
        let of_kind = wanted.iter().filter(move |wanted| wanted.distinct == distinct);
        of_kind.filter_map(|wanted| wanted.argument).collect::<BTreeSet<_>>()
    };
    let (plain, distinct) = (arguments(false), arguments(true));
    if distinct.is_empty() {
        let arguments = wanted.iter().map(|wanted| wanted.argument).collect();
        return Ok(Source { input, groups: groups.to_vec(), arguments });
    }
    build::keys(&input, distinct.iter().copied(), "DISTINCT")?;
    let own = input.schema();
    let places: Vec<usize> = groups.iter().chain(&plain).chain(&distinct).copied().collect();
    let types = places.iter().map(|place| own.field(*place).data_type().clone());
    let types: Vec<_> = types.chain([DataType::Boolean]).collect();
    let schema = build::schema(types.iter().map(|data_type| ("c", data_type.clone())));
    let (first_plain, rows) = (groups.len(), places.len());
    let first_distinct = first_plain + plain.len();
    let part = |input: &Arc<Plan>, value: &dyn Fn(usize) -> Option<Expression>| {
        let columns = types.iter().enumerate().map(|(place, data_type)| {
            let null = || Expression::Literal(Literal::Null(data_type.clone()));
            build::Column::new("c", value(place).unwrap_or_else(null), data_type.clone())
        });
        build::project(Arc::clone(input), columns.collect())
    };

    let mut inputs = vec![];
    if wanted.iter().any(|wanted| !wanted.distinct) {
        inputs.push(part(&input, &|place| {
            if place == rows {
                Some(Expression::Literal(Literal::Boolean(true)))
            } else {
                (place < first_distinct).then(|| Expression::Column(places[place]))
            }
        }));
    }
    for (number, argument) in distinct.iter().enumerate() {
        let kept: Vec<_> = groups.iter().chain([argument]).copied().collect();
        let values = Arc::new(Plan::Distinct { input: build::pick(Arc::clone(&input), &kept) });
        inputs.push(part(&values, &|place| {
            if place == first_distinct + number {
                Some(Expression::Column(groups.len()))
            } else {
                (place < groups.len()).then_some(Expression::Column(place))
            }
        }));
    }
    let arguments = wanted.iter().map(|wanted| {
        let of_kind = if wanted.distinct { &distinct } else { &plain };
        let first = if wanted.distinct { first_distinct } else { first_plain };
        let number = |argument| of_kind.iter().position(|known| *known == argument);
        Some(wanted.argument.and_then(number).map_or(rows, |number| first + number))
    });
    let arguments = arguments.collect();
    let input = Arc::new(Plan::UnionAll { inputs, schema });
    Ok(Source { input, groups: (0..groups.len()).collect(), arguments })
}

/// What the protocol promises.
fn result_type(
    function: AggregateFunction,
    argument: Option<&DataType>,
) -> Result<DataType, Error> {
    let what = match function {
        AggregateFunction::Count => return Ok(DataType::Int64),
        AggregateFunction::Sum => "sum",
        AggregateFunction::Avg => "avg",
        AggregateFunction::Min => "min",
        AggregateFunction::Max => "max",
    };
    Ok(match (function, argument) {
        (AggregateFunction::Min | AggregateFunction::Max, Some(kind)) => kind.clone(),
        (AggregateFunction::Sum, Some(DataType::Int16 | DataType::Int32)) => DataType::Int64,
        (AggregateFunction::Sum, Some(DataType::Int64)) => DataType::Decimal128(38, 0),
        (AggregateFunction::Sum, Some(DataType::Decimal128(_, scale))) => {
            DataType::Decimal128(38, *scale)
        }
        (AggregateFunction::Sum, Some(kind @ (DataType::Float32 | DataType::Float64))) => {
            kind.clone()
        }
        (AggregateFunction::Avg, Some(DataType::Int16 | DataType::Int32 | DataType::Int64)) => {
            DataType::Decimal128(38, 16)
        }
        (AggregateFunction::Avg, Some(DataType::Decimal128(_, scale))) => {
            DataType::Decimal128(38, (*scale).max(16))
        }
        (AggregateFunction::Avg, Some(DataType::Float32 | DataType::Float64)) => DataType::Float64,
        (_, Some(kind)) => return Err(refused(format!("{what} of a value of type {kind}"))),
        (_, None) => return Err(refused(format!("{what} without an argument"))),
    })
}
