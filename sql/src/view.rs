//! Compiles a query into the plan that hosts maintain.
//!
//! DataFusion has resolved names, settled types and inserted casts; a few of its optimizer rules,
//! picked so that the result stays within the protocol's operators, turn comma joins into equi
//! joins, push filters down and cut columns. What the protocol can't say is 0A000 and named.
//!
//! Subqueries are ours ([`subquery`]): DataFusion is not asked to turn them into joins.

mod aggregate;
mod around;
mod build;
mod display;
mod equal;
mod filter;
mod join;
mod limit;
mod operand;
mod optimize;
mod recursion;
mod scan;
mod set_operation;
mod subquery;
mod temporal;
#[cfg(test)]
mod tests;
mod topk;
mod unnest;
mod values;
mod window;

use std::sync::Arc;

use datafusion::common::DFSchema;
use datafusion::logical_expr::{Distinct, Expr, JoinType, LogicalPlan, Projection, Union};
use datafusion::sql::sqlparser::ast;
use stillframe_protocol::{Expression, Plan};

pub(crate) use display::operators;

use crate::expression::Inexpressible;
use crate::query::{Apply, PlannedQuery, QueryContext};
use crate::{Error, Relation, SqlState, Type};
use around::{Around, Below};
use recursion::Iterated;
use set_operation::SetOperation;

/// Plans a query for a materialized view, and compiles it.
pub(crate) fn compile(
    context: &QueryContext,
    query: &ast::Query,
) -> Result<(PlannedQuery, Arc<Plan>), Error> {
    let context = context.for_view();
    let planned = context.plan(query, &[])?;
    if !planned.parameters.is_empty() {
        let message = "materialized views may not be defined using bound parameters";
        return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    let types: Vec<_> = planned.columns.iter().map(|column| column.kind.clone()).collect();
    let plan = compiled(&context, &planned.plan, &types)?;
    Ok((planned, plan))
}

/// Compiles the query that a materialized view stores.
pub(crate) fn compile_stored(
    context: &QueryContext,
    view: &Relation,
    query: &str,
) -> Result<Arc<Plan>, Error> {
    let context = context.for_view();
    let types: Vec<_> = view.columns.iter().map(|column| column.kind.clone()).collect();
    compiled(&context, &context.plan_query_of(view, query)?, &types)
}

fn compiled(
    context: &QueryContext,
    plan: &LogicalPlan,
    types: &[Type],
) -> Result<Arc<Plan>, Error> {
    let optimized = optimize::optimize(context.state(), plan)?;
    let around = Around::nothing();
    let rows = Compiler { context, around: &around, iterated: None }.rows(&optimized)?;
    Ok(with_types(rows.plan, types))
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

/// Compiles a query, or a subquery for all rows around it at once.
struct Compiler<'a> {
    context: &'a QueryContext,
    /// What the query takes from outside.
    around: &'a Around,
    /// The recursive query whose recursive term this is a part of.
    iterated: Option<&'a Iterated>,
}

/// What a logical plan comes to.
#[derive(Clone)]
struct Rows {
    /// Its columns are those of the logical plan, in order; then, if rows depend on them, the values
    /// from around. A plan has a column even where the logical plan has none.
    plan: Arc<Plan>,
    /// How many columns the logical plan has.
    width: usize,
    /// Whether each row belongs to one list of values from around.
    depends: bool,
}

impl Compiler<'_> {
    /// One operator with its inputs.
    fn rows(&self, query: &LogicalPlan) -> Result<Rows, Error> {
        match query {
            LogicalPlan::TableScan(scan) => self.table_scan(scan),
            LogicalPlan::Projection(projection) => {
                self.projected(projection, self.rows(&projection.input)?)
            }
            LogicalPlan::Filter(filter) => self.filter(filter),
            LogicalPlan::SubqueryAlias(alias) => self.rows(&alias.input),
            // What stands in FROM and could read from its neighbours.
            LogicalPlan::Subquery(lateral) => self.rows(&lateral.subquery),
            LogicalPlan::Join(join) => match join.join_type {
                JoinType::RightSemi
                | JoinType::RightAnti
                | JoinType::LeftMark
                | JoinType::RightMark => Err(refused("such a semijoin")),
                _ => self.join(join),
            },
            LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate),
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let rows = self.rows(input)?;
                build::keys(&rows.plan, 0..rows.plan.schema().fields().len(), "DISTINCT")?;
                let plan = Arc::new(Plan::Distinct { input: Arc::clone(&rows.plan) });
                Ok(Rows { plan, ..rows })
            }
            LogicalPlan::Distinct(Distinct::On(_)) => Err(refused("DISTINCT ON")),
            LogicalPlan::Union(union) => self.union(union),
            LogicalPlan::Values(values) => self.values(values),
            LogicalPlan::EmptyRelation(empty) => values::empty(empty),
            // Without LIMIT the order of a relation's rows means nothing.
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => self.rows(&sort.input),
            LogicalPlan::Sort(_) => Err(refused("LIMIT or OFFSET")),
            LogicalPlan::Limit(limit) => self.limit(limit),
            LogicalPlan::Window(window) => self.window(window),
            LogicalPlan::RecursiveQuery(query) => self.recursive(query),
            LogicalPlan::Unnest(unnest) => self.unnest(unnest),
            LogicalPlan::Extension(extension) => {
                let node = extension.node.as_any();
                if let Some(apply) = node.downcast_ref::<Apply>() {
                    self.apply(apply)
                } else if let Some(operation) = node.downcast_ref::<SetOperation>() {
                    self.set_operation(operation)
                } else {
                    Err(refused(query.display()))
                }
            }
            other => Err(refused(other.display())),
        }
    }

    /// An expression over rows.
    fn convert(&self, expr: &Expr, schema: &DFSchema, rows: &Rows) -> Result<Expression, Error> {
        if temporal::reads_clock(expr) {
            return Err(temporal::misplaced("now"));
        }
        self.around.convert(expr, schema, &|place| rows.width + place)
    }

    /// What an expression over rows may read.
    fn below<'b>(&'b self, schema: &'b DFSchema, rows: &Rows) -> Below<'b> {
        Below {
            schema,
            around: self.around,
            width: rows.width,
            values: if rows.depends { self.around.columns.len() } else { 0 },
        }
    }

    /// The columns that a projection computes of its input.
    fn projected(&self, projection: &Projection, mut input: Rows) -> Result<Rows, Error> {
        if projection.expr.iter().any(|expr| self.around.is_read_by(expr)) {
            input = self.depending(input)?;
        }
        let columns =
            projection.expr.iter().zip(projection.schema.fields()).map(|(expr, field)| {
                let expression = self.convert(expr, projection.input.schema(), &input)?;
                // A column has its stored type already, whatever DataFusion counts it in.
                let found = match expression {
                    Expression::Column(place) => {
                        input.plan.schema().field(place).data_type().clone()
                    }
                    _ => field.data_type().clone(),
                };
                build::Column::checked(field.name(), expression, &found)
            });
        let mut columns = columns.collect::<Result<Vec<_>, Error>>()?;
        let width = columns.len();
        columns.extend(self.values_from_around(&input));
        Ok(Rows { plan: build::project(input.plan, columns), width, depends: input.depends })
    }

    fn union(&self, union: &Union) -> Result<Rows, Error> {
        let schema = build::logical_schema(&union.schema)?;
        let width = union.schema.fields().len();
        let inputs = union.inputs.iter().map(|input| self.rows(input));
        let mut inputs = inputs.collect::<Result<Vec<_>, Error>>()?;
        let depends = inputs.iter().any(|input| input.depends);
        if depends {
            let inputs_of_all = inputs.into_iter().map(|input| self.depending(input));
            inputs = inputs_of_all.collect::<Result<_, Error>>()?;
        }
        let inputs: Vec<_> = inputs
            .into_iter()
            .map(|input| {
                let mut columns = build::like(&input.plan, &schema, width);
                columns.extend(self.values_from_around(&input));
                build::project(input.plan, columns)
            })
            .collect();
        let Some(schema) = inputs.first().map(|input| input.schema()) else {
            return Err(Error::internal("a UNION of nothing"));
        };
        Ok(Rows { plan: Arc::new(Plan::UnionAll { inputs, schema }), width, depends })
    }
}
