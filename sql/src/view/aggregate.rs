//! GROUP BY and aggregates.
//!
//! The protocol's aggregates read columns, pass over NULLs and know neither FILTER nor DISTINCT.
//! FILTER becomes a CASE around the argument. With DISTINCT arguments the aggregate reads a union
//! ([`distinct`]): the rows themselves for the plain aggregates, and for each DISTINCT argument its
//! distinct values by group, each part with NULL in the columns of the others. What the protocol's
//! aggregates can't say is computed of the whole group ([`whole`]), and grouping sets are groupings put
//! together ([`sets`]).

mod distinct;
mod sets;
mod whole;

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::logical_expr::expr::AggregateFunction as Call;
use datafusion::logical_expr::{Aggregate as Grouping, Expr, ExprSchemable};
use stillframe_protocol::{Aggregate, AggregateFunction, Expression, Literal, Plan};

use super::around::Below;
use super::equal::{joined, same};
use super::operand::Columns;
use super::{Compiler, Rows, build, refused};
use crate::Error;
use crate::functions::NARROW_PRECISION;
use distinct::Source;

/// An aggregate whose argument is a column of the input that is being built.
struct Wanted {
    function: AggregateFunction,
    argument: Option<usize>,
    distinct: bool,
    /// A column that isn't NULL where FILTER is true, for a DISTINCT argument that is itself a column.
    condition: Option<usize>,
}

impl Compiler<'_> {
    /// Compiles a GROUP BY.
    pub(super) fn aggregate(&self, grouping: &Grouping) -> Result<Rows, Error> {
        let mut input = self.rows(&grouping.input)?;
        let mut exprs = grouping.group_expr.iter().chain(&grouping.aggr_expr);
        if exprs.any(|expr| self.around.is_read_by(expr)) {
            input = self.depending(input)?;
        }
        let below = self.below(grouping.input.schema(), &input);
        let width = grouping.schema.fields().len();
        if matches!(grouping.group_expr.as_slice(), [Expr::GroupingSet(_)]) {
            if input.depends {
                return Err(refused("GROUPING SETS in a correlated subquery"));
            }
            let plan = sets::aggregate(grouping, &input.plan, &below)?;
            return Ok(Rows { plan, width, depends: false });
        }
        let output = Output { fields: grouping.schema.fields() };
        let groups = distinct_groups(grouping);
        let (plan, calls) = (Arc::clone(&input.plan), &grouping.aggr_expr);
        let plan = grouped(plan, &below, &groups, calls, &output)?;
        let rows = Rows { plan, width, depends: input.depends };
        if !groups.is_empty() || !rows.depends {
            return Ok(rows);
        }
        // What there is of no rows at all.
        let nothing = Plan::Values { schema: input.plan.schema(), rows: vec![] };
        let nothing = grouped(Arc::new(nothing), &below.alone(), &[], calls, &output)?;
        self.with_missing_groups(rows, calls, nothing)
    }

    /// Aggregates over nothing for the values from around that have no row.
    fn with_missing_groups(
        &self,
        rows: Rows,
        calls: &[Expr],
        nothing: Arc<Plan>,
    ) -> Result<Rows, Error> {
        let Some(domain) = &self.around.domain else { return Ok(rows) };
        let values = self.around.columns.len();
        let missing = Arc::new(Plan::Semijoin {
            left: Arc::clone(domain),
            right: Arc::clone(&rows.plan),
            on: same(0..values, rows.width..rows.width + values),
            negated: true,
        });
        let schema = rows.plan.schema();
        let fields = schema.fields();
        let known: Option<Vec<_>> =
            calls.iter().zip(fields).map(|(call, f)| over_nothing(call, f.data_type())).collect();
        let (beside, results) = match known {
            Some(results) => (missing, results),
            None => {
                let columns = (values..values + rows.width).map(Expression::Column).collect();
                let joined = Plan::Join {
                    on: vec![],
                    residual: None,
                    schema: joined(&missing, &nothing),
                    left: missing,
                    right: nothing,
                };
                (Arc::new(joined), columns)
            }
        };
        let expressions = results.into_iter().chain((0..values).map(Expression::Column));
        let columns = expressions.zip(fields).map(|(expression, field)| {
            build::Column::new(field.name(), expression, field.data_type().clone())
        });
        let padded = build::project(beside, columns.collect());
        let inputs = vec![Arc::clone(&rows.plan), padded];
        Ok(Rows { plan: Arc::new(Plan::UnionAll { inputs, schema }), ..rows })
    }
}

/// What there is a column of for each group: an expression that is written twice has one.
fn distinct_groups(grouping: &Grouping) -> Vec<Expr> {
    let wanted = grouping.schema.fields().len() - grouping.aggr_expr.len();
    if grouping.group_expr.len() == wanted {
        return grouping.group_expr.clone();
    }
    let mut groups: Vec<Expr> = vec![];
    for group in &grouping.group_expr {
        if !groups.contains(group) {
            groups.push(group.clone());
        }
    }
    groups
}

/// What an aggregate is of no rows, if that is known without computing it.
fn over_nothing(call: &Expr, data_type: &DataType) -> Option<Expression> {
    let mut call = call;
    while let Expr::Alias(alias) = call {
        call = &alias.expr;
    }
    let Expr::AggregateFunction(Call { func, .. }) = call else { return None };
    match func.name() {
        "count" => {
            let zero = Expression::Literal(Literal::Int64(0));
            Some(build::cast(zero, &DataType::Int64, data_type))
        }
        "sum" | "avg" | "min" | "max" => {
            Some(Expression::Literal(Literal::Null(data_type.clone())))
        }
        _ => None,
    }
}

/// Groups rows by expressions, and by the values from around, which stand last in the result.
fn grouped(
    input: Arc<Plan>,
    below: &Below<'_>,
    groups: &[Expr],
    calls: &[Expr],
    output: &Output<'_>,
) -> Result<Arc<Plan>, Error> {
    let mut columns = Columns::default();
    let places = group_places(&input, below, groups, &mut columns)?;
    let wanted = calls.iter().map(|call| wanted(call, below, &mut columns));
    let Ok(wanted) = wanted.collect::<Result<Vec<_>, Error>>() else {
        return whole::aggregate(input, below, groups, calls, output);
    };
    // count(*) alone reads nothing, but a row has a column.
    let projected = columns.over(input);
    let once: Vec<_> = places.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    build::keys(&projected, places.iter().copied(), "GROUP BY")?;
    let Source { input, groups: read, arguments } = distinct::source(projected, &once, &wanted)?;

    let schema = input.schema();
    let mut types: Vec<_> =
        read.iter().map(|place| schema.field(*place).data_type().clone()).collect();
    let mut aggregates = vec![];
    for (wanted, argument) in wanted.iter().zip(arguments) {
        let data_type = argument.map(|place| schema.field(place).data_type());
        types.push(result_type(wanted.function, data_type)?);
        aggregates.push(Aggregate { function: wanted.function, argument });
    }
    let schema = build::schema(types.iter().map(|data_type| ("c", data_type.clone())));
    let result = Arc::new(Plan::Aggregate { input, groups: read, aggregates, schema });
    output.columns(result, &places, groups.len(), &once)
}

/// Where the groups are, and after them the values from around.
fn group_places(
    input: &Plan,
    below: &Below<'_>,
    groups: &[Expr],
    columns: &mut Columns,
) -> Result<Vec<usize>, Error> {
    let places = groups.iter().map(|group| Ok(columns.value(group, below)?.0));
    let mut places: Vec<usize> = places.collect::<Result<_, Error>>()?;
    let schema = input.schema();
    for value in below.values() {
        let data_type = schema.field(value).data_type().clone();
        places.push(columns.place(Expression::Column(value), data_type));
    }
    Ok(places)
}

/// The columns of the logical plan: the groups, then the aggregates.
struct Output<'a> {
    fields: &'a [FieldRef],
}

impl Output<'_> {
    /// Makes them of a plan that has each group once: `groups` are those that are wanted, `once`
    /// those that are there. All after the first `own` groups are values from around, and go last.
    fn columns(
        &self,
        result: Arc<Plan>,
        groups: &[usize],
        own: usize,
        once: &[usize],
    ) -> Result<Arc<Plan>, Error> {
        let schema = result.schema();
        let place = |group: &usize| {
            once.iter().position(|known| known == group).expect("made of the groups")
        };
        let places = groups[..own].iter().map(place).chain(once.len()..schema.fields().len());
        let columns = places.zip(self.fields).map(|(place, field)| {
            let planned = build::stored_type(field.data_type())?;
            let found = schema.field(place).data_type();
            let column = build::cast(Expression::Column(place), found, &planned);
            Ok(build::Column::new(field.name(), column, planned))
        });
        let mut columns = columns.collect::<Result<Vec<_>, Error>>()?;
        columns.extend(groups[own..].iter().map(|group| {
            let place = place(group);
            let data_type = schema.field(place).data_type().clone();
            build::Column::new("around", Expression::Column(place), data_type)
        }));
        Ok(build::project(result, columns))
    }
}

/// Reads one aggregate call.
fn wanted(call: &Expr, below: &Below<'_>, columns: &mut Columns) -> Result<Wanted, Error> {
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
    let filter = params.filter.as_ref().map(|filter| below.convert(filter)).transpose()?;
    let counts_rows = function == AggregateFunction::Count
        && matches!(argument, Expr::Literal(value, _) if !value.is_null());
    if counts_rows && !params.distinct {
        let argument = filter.map(|filter| columns.place(flag(filter), DataType::Int64));
        return Ok(Wanted { function, argument, distinct: false, condition: None });
    }
    let found = argument.get_type(below.schema).map_err(crate::query::classify)?;
    let stored = build::stored_type(&found)?;
    let expression = build::cast(below.convert(argument)?, &found, &stored);
    if matches!(stored, DataType::Interval(_)) && function != AggregateFunction::Count {
        return Err(refused(format!("{} of a value of type interval", func.name())));
    }
    // The least and the greatest are the same of distinct values.
    let distinct =
        params.distinct && !matches!(function, AggregateFunction::Min | AggregateFunction::Max);
    let (expression, condition) = match filter {
        Some(filter) if distinct && matches!(expression, Expression::Column(_)) => {
            (expression, Some(columns.place(flag(filter), DataType::Int64)))
        }
        Some(filter) => (guarded(filter, expression), None),
        None => (expression, None),
    };
    let argument = Some(columns.place(expression, stored));
    Ok(Wanted { function, argument, distinct, condition })
}

/// One where the condition is true, else NULL.
fn flag(condition: Expression) -> Expression {
    guarded(condition, Expression::Literal(Literal::Int64(1)))
}

/// The value where the condition is true, else NULL.
fn guarded(condition: Expression, value: Expression) -> Expression {
    Expression::Case { operand: None, branches: vec![(condition, value)], otherwise: None }
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
        (AggregateFunction::Sum, Some(DataType::Decimal128(..=NARROW_PRECISION, scale))) => {
            DataType::Decimal128(38, *scale)
        }
        (AggregateFunction::Sum, Some(DataType::Decimal128(..) | DataType::LargeBinary)) => {
            DataType::LargeBinary
        }
        (AggregateFunction::Sum, Some(kind @ (DataType::Float32 | DataType::Float64))) => {
            kind.clone()
        }
        (
            AggregateFunction::Avg,
            Some(
                DataType::Int16
                | DataType::Int32
                | DataType::Int64
                | DataType::Decimal128(..)
                | DataType::LargeBinary,
            ),
        ) => DataType::LargeBinary,
        (AggregateFunction::Avg, Some(DataType::Float32 | DataType::Float64)) => DataType::Float64,
        (_, Some(kind)) => return Err(refused(format!("{what} of a value of type {kind}"))),
        (_, None) => return Err(refused(format!("{what} without an argument"))),
    })
}
