//! GROUP BY and aggregates.
//!
//! The protocol's aggregates read columns, pass over NULLs and know neither FILTER nor DISTINCT.
//! FILTER becomes a CASE around the argument. With DISTINCT arguments the aggregate reads a union:
//! the rows themselves for the plain aggregates, and for each DISTINCT argument its distinct values
//! by group, each part with NULL in the columns of the others.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::logical_expr::expr::AggregateFunction as Call;
use datafusion::logical_expr::{Aggregate as Grouping, Expr, ExprSchemable};
use stillframe_protocol::{Aggregate, AggregateFunction, Expression, Literal, Plan};

use super::equal::same;
use super::{Compiler, Rows, build, refused};
use crate::Error;

/// An aggregate whose argument is a column of the input that is being built.
struct Wanted {
    function: AggregateFunction,
    argument: Option<usize>,
    distinct: bool,
}

/// The columns that groups and arguments need, each once.
#[derive(Default)]
struct Columns {
    columns: Vec<(Expression, DataType)>,
}

impl Columns {
    fn place(&mut self, expression: Expression, data_type: DataType) -> usize {
        let column = (expression, data_type);
        match self.columns.iter().position(|known| *known == column) {
            Some(place) => place,
            None => {
                self.columns.push(column);
                self.columns.len() - 1
            }
        }
    }
}

impl Compiler<'_> {
    /// Compiles a GROUP BY.
    pub(super) fn aggregate(&self, grouping: &Grouping) -> Result<Rows, Error> {
        let mut input = self.rows(&grouping.input)?;
        let mut exprs = grouping.group_expr.iter().chain(&grouping.aggr_expr);
        if exprs.any(|expr| self.around.is_read_by(expr)) {
            input = self.depending(input)?;
        }
        let below = grouping.input.schema();
        let mut columns = Columns::default();
        let mut groups = vec![];
        for group in distinct_groups(grouping) {
            let expression = self.convert(group, below, &input)?;
            let found = group.get_type(below).map_err(crate::query::classify)?;
            let stored = build::stored_type(&found)?;
            groups.push(columns.place(build::cast(expression, &found, &stored), stored));
        }
        let own_groups = groups.len();
        // Rows of other values from around are of another group.
        let values = if input.depends { self.around.columns.len() } else { 0 };
        for place in input.width..input.width + values {
            let data_type = input.plan.schema().field(place).data_type().clone();
            groups.push(columns.place(Expression::Column(place), data_type));
        }
        let calls = grouping.aggr_expr.iter();
        let wanted = calls.map(|call| self.wanted(call, below, &input, &mut columns));
        let wanted = wanted.collect::<Result<Vec<_>, Error>>()?;

        if columns.columns.is_empty() {
            // count(*) alone reads nothing, but a row has a column.
            let null = Expression::Literal(Literal::Null(DataType::Boolean));
            columns.place(null, DataType::Boolean);
        }
        let once: Vec<_> = groups.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
        let projected = columns
            .columns
            .into_iter()
            .map(|(expression, data_type)| build::Column::new("c", expression, data_type));
        let projected = build::project(input.plan, projected.collect());
        build::keys(&projected, groups.iter().copied(), "GROUP BY")?;
        let Source { input: source, groups: read, arguments } = source(projected, &once, &wanted)?;

        let below = source.schema();
        let mut types: Vec<_> =
            read.iter().map(|place| below.field(*place).data_type().clone()).collect();
        let mut aggregates = vec![];
        for (wanted, argument) in wanted.iter().zip(arguments) {
            let data_type = argument.map(|place| below.field(place).data_type());
            types.push(result_type(wanted.function, data_type)?);
            aggregates.push(Aggregate { function: wanted.function, argument });
        }
        let schema = build::schema(types.iter().map(|data_type| ("c", data_type.clone())));
        let result = Arc::new(Plan::Aggregate { input: source, groups: read, aggregates, schema });

        // Back to the columns of the logical plan.
        let place = |group: &usize| {
            once.iter().position(|known| known == group).expect("made of the groups")
        };
        let places = groups[..own_groups].iter().map(place).chain(once.len()..types.len());
        let columns = places.zip(grouping.schema.fields()).map(|(place, field)| {
            let planned = build::stored_type(field.data_type())?;
            let column = build::cast(Expression::Column(place), &types[place], &planned);
            Ok(build::Column::new(field.name(), column, planned))
        });
        let mut columns = columns.collect::<Result<Vec<_>, Error>>()?;
        let width = columns.len();
        columns.extend(groups[own_groups..].iter().map(|group| {
            let place = place(group);
            build::Column::new("around", Expression::Column(place), types[place].clone())
        }));
        let plan = build::project(result, columns);
        let rows = Rows { plan, width, depends: input.depends };
        match own_groups == 0 && rows.depends {
            true => self.with_missing_groups(rows, &wanted),
            false => Ok(rows),
        }
    }

    /// Aggregates over nothing for the values from around that have no row.
    fn with_missing_groups(&self, rows: Rows, wanted: &[Wanted]) -> Result<Rows, Error> {
        let Some(domain) = &self.around.domain else { return Ok(rows) };
        let values = self.around.columns.len();
        let missing = Arc::new(Plan::Semijoin {
            left: Arc::clone(domain),
            right: Arc::clone(&rows.plan),
            on: same(0..values, rows.width..rows.width + values),
            negated: true,
        });
        let schema = rows.plan.schema();
        let columns = schema.fields().iter().enumerate().map(|(place, field)| {
            let data_type = field.data_type();
            let expression = match wanted.get(place) {
                Some(wanted) => over_nothing(wanted.function, data_type),
                None => Expression::Column(place - rows.width),
            };
            build::Column::new(field.name(), expression, data_type.clone())
        });
        let padded = build::project(missing, columns.collect());
        let inputs = vec![Arc::clone(&rows.plan), padded];
        Ok(Rows { plan: Arc::new(Plan::UnionAll { inputs, schema }), ..rows })
    }

    /// Reads one aggregate call.
    fn wanted(
        &self,
        call: &Expr,
        below: &DFSchema,
        input: &Rows,
        columns: &mut Columns,
    ) -> Result<Wanted, Error> {
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
        let filter =
            params.filter.as_ref().map(|filter| self.convert(filter, below, input)).transpose()?;
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
        let expression = build::cast(self.convert(argument, below, input)?, &found, &stored);
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
}

/// What there is a column of for each group: an expression that is written twice has one.
fn distinct_groups(grouping: &Grouping) -> Vec<&Expr> {
    let wanted = grouping.schema.fields().len() - grouping.aggr_expr.len();
    if grouping.group_expr.len() == wanted {
        return grouping.group_expr.iter().collect();
    }
    let mut groups: Vec<&Expr> = vec![];
    for group in &grouping.group_expr {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups
}

/// What an aggregate is of no rows at all.
fn over_nothing(function: AggregateFunction, data_type: &DataType) -> Expression {
    match function {
        AggregateFunction::Count => {
            build::cast(Expression::Literal(Literal::Int64(0)), &DataType::Int64, data_type)
        }
        AggregateFunction::Sum
        | AggregateFunction::Avg
        | AggregateFunction::Min
        | AggregateFunction::Max => Expression::Literal(Literal::Null(data_type.clone())),
    }
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
