//! Compiles a query into the plan that hosts maintain.
//!
//! DataFusion has resolved names, settled types and inserted casts; a few of its optimizer rules,
//! picked so that the result stays within the protocol's operators, turn comma joins into equi
//! joins, push filters down and cut columns. What the protocol can't say is 0A000 and named.

mod aggregate;
mod build;
mod display;
mod join;
mod limit;
mod operand;
mod optimize;
#[cfg(test)]
mod tests;
mod topk;
mod window;

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{
    Distinct, Expr, JoinType, LogicalPlan, Projection, TableScan, Union, Values,
};
use stillframe_protocol::{Expression, Literal, Plan};

pub(crate) use display::operators;

use crate::expression::{self, Inexpressible, convert};
use crate::query::{PlannedQuery, QueryContext, classify};
use crate::scan::StoredTable;
use crate::{Error, Type};

/// Compiles a query.
pub(crate) fn compile(context: &QueryContext, query: &PlannedQuery) -> Result<Arc<Plan>, Error> {
    let optimized = optimize::optimize(&context.state, &query.plan)?;
    let types: Vec<_> = query.columns.iter().map(|column| column.kind.clone()).collect();
    Ok(with_types(plan(&optimized)?, &types))
}

/// What a view can't have.
fn refused(what: impl std::fmt::Display) -> Error {
    Error::unsupported(format!("{what} in a materialized view"))
}

impl From<Inexpressible> for Error {
    fn from(Inexpressible(what): Inexpressible) -> Self {
        refused(what)
    }
}

/// The columns in the Arrow types that carry the SQL types.
fn with_types(plan: Arc<Plan>, types: &[Type]) -> Arc<Plan> {
    let schema = plan.schema();
    let columns = types.iter().zip(schema.fields()).enumerate().map(|(place, (kind, field))| {
        let column = Expression::Column(place);
        build::Column::new(
            field.name(),
            build::cast(column, field.data_type(), &kind.arrow()),
            kind.arrow(),
        )
    });
    build::project(plan, columns.collect())
}

/// One operator with its inputs. The columns are those of the logical plan, in order.
fn plan(query: &LogicalPlan) -> Result<Arc<Plan>, Error> {
    match query {
        LogicalPlan::TableScan(scan) => table_scan(scan),
        LogicalPlan::Projection(projection) => projected(projection, plan(&projection.input)?),
        LogicalPlan::Filter(filter) => {
            let input = plan(&filter.input)?;
            let predicate = convert(&filter.predicate, filter.input.schema())?;
            let input = topk::cut(input, &predicate);
            Ok(Arc::new(Plan::Filter { input, predicate }))
        }
        LogicalPlan::SubqueryAlias(alias) => plan(&alias.input),
        LogicalPlan::Join(join) => match join.join_type {
            JoinType::Inner => join::inner(join),
            JoinType::LeftSemi => join::semi(join),
            JoinType::Left => Err(refused("LEFT JOIN")),
            JoinType::Right => Err(refused("RIGHT JOIN")),
            JoinType::Full => Err(refused("FULL JOIN")),
            JoinType::LeftAnti | JoinType::RightAnti => {
                Err(refused("NOT IN, NOT EXISTS or EXCEPT"))
            }
            JoinType::RightSemi | JoinType::LeftMark | JoinType::RightMark => {
                Err(refused("EXISTS or IN with a subquery inside another expression"))
            }
        },
        LogicalPlan::Aggregate(aggregate) => aggregate::aggregate(aggregate),
        LogicalPlan::Distinct(Distinct::All(input)) => {
            let input = plan(input)?;
            build::keys(&input, 0..input.schema().fields().len(), "DISTINCT")?;
            Ok(Arc::new(Plan::Distinct { input }))
        }
        LogicalPlan::Distinct(Distinct::On(_)) => Err(refused("DISTINCT ON")),
        LogicalPlan::Union(union) => self::union(union),
        LogicalPlan::Values(values) => self::values(values),
        LogicalPlan::EmptyRelation(empty) => {
            let schema = build::logical_schema(&empty.schema)?;
            let row = schema.fields().iter().map(|f| Literal::Null(f.data_type().clone()));
            let rows = if empty.produce_one_row { vec![row.collect()] } else { vec![] };
            Ok(Arc::new(Plan::Values { schema, rows }))
        }
        // Without LIMIT the order of a relation's rows means nothing.
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => plan(&sort.input),
        LogicalPlan::Sort(_) => Err(refused("LIMIT or OFFSET")),
        LogicalPlan::Limit(limit) => limit::limit(limit),
        LogicalPlan::Window(window) => window::window(window),
        LogicalPlan::RecursiveQuery(_) => Err(refused("WITH RECURSIVE")),
        LogicalPlan::Unnest(_) => Err(refused("unnest")),
        other => Err(refused(other.display())),
    }
}

fn table_scan(scan: &TableScan) -> Result<Arc<Plan>, Error> {
    let provider = source_as_provider(&scan.source).map_err(classify)?;
    let Some(table) = (provider.as_ref() as &dyn std::any::Any).downcast_ref::<StoredTable>()
    else {
        return Err(refused(format!("the relation {}", scan.table_name)));
    };
    if scan.fetch.is_some() {
        return Err(refused("LIMIT or OFFSET"));
    }
    let relation = table.relation();
    let schema = relation.stored_schema();
    let stored = relation.stored_order();
    let mut result = Arc::new(Plan::Relation { id: relation.id, schema: Arc::clone(&schema) });
    let defined = |place: usize| {
        let at = stored.iter().position(|p| *p == place).expect("every column is stored");
        let column = &relation.columns[place];
        build::Column::new(&column.name, Expression::Column(at), column.kind.arrow())
    };
    let all = |input| build::project(input, (0..stored.len()).map(defined).collect());
    if !scan.filters.is_empty() {
        let names =
            datafusion::common::DFSchema::try_from(relation.defined_schema()).map_err(classify)?;
        result = all(result);
        for filter in &scan.filters {
            let predicate = convert(&unqualified(filter), &names)?;
            result = Arc::new(Plan::Filter { input: result, predicate });
        }
        let kept = scan.projection.clone().unwrap_or_else(|| (0..stored.len()).collect());
        return Ok(build::pick(result, &kept));
    }
    match &scan.projection {
        Some(kept) => Ok(build::project(result, kept.iter().map(|p| defined(*p)).collect())),
        None => Ok(all(result)),
    }
}

/// A filter of a scan, over the bare names of the relation's columns.
fn unqualified(filter: &Expr) -> Expr {
    datafusion::logical_expr::expr_rewriter::unnormalize_col(filter.clone())
}

/// The columns that a projection computes of its input.
fn projected(projection: &Projection, input: Arc<Plan>) -> Result<Arc<Plan>, Error> {
    let columns = projection.expr.iter().zip(projection.schema.fields()).map(|(expr, field)| {
        let expression = convert(expr, projection.input.schema())?;
        build::Column::checked(field.name(), expression, field.data_type())
    });
    let columns = columns.collect::<Result<_, Error>>()?;
    Ok(build::project(input, columns))
}

fn union(union: &Union) -> Result<Arc<Plan>, Error> {
    let schema = build::logical_schema(&union.schema)?;
    let width = union.schema.fields().len();
    let inputs = union.inputs.iter().map(|input| {
        let input = plan(input)?;
        let own = input.schema();
        let columns = own.fields().iter().zip(schema.fields()).enumerate().take(width);
        let columns = columns.map(|(place, (from, to))| {
            let column = build::cast(Expression::Column(place), from.data_type(), to.data_type());
            build::Column::new(to.name(), column, to.data_type().clone())
        });
        let mut columns: Vec<_> = columns.collect();
        if columns.is_empty() {
            columns.push(build::Column::nothing());
        }
        Ok(build::project(input, columns))
    });
    let inputs = inputs.collect::<Result<_, Error>>()?;
    Ok(Arc::new(Plan::UnionAll { inputs, schema }))
}

fn values(values: &Values) -> Result<Arc<Plan>, Error> {
    let schema = build::logical_schema(&values.schema)?;
    let rows = values.values.iter().map(|row| {
        let row = row.iter().zip(schema.fields());
        row.map(|(value, field)| constant(value, field.data_type())).collect()
    });
    let rows = rows.collect::<Result<_, Error>>()?;
    Ok(Arc::new(Plan::Values { schema, rows }))
}

/// A value of VALUES, which the optimizer has reduced to a constant.
fn constant(value: &Expr, kind: &DataType) -> Result<Literal, Error> {
    let mut value = value;
    while let Expr::Alias(alias) = value {
        value = &alias.expr;
    }
    let Expr::Literal(value, _) = value else {
        return Err(refused("an expression that isn't constant in VALUES"));
    };
    let value = value.cast_to(kind).map_err(classify)?;
    Ok(expression::literal(&value)?)
}
