//! RETURNING: what a statement answers of the rows that it has written.

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, OrderBy, OrderByExpr, OrderByKind, OrderByOptions, Query,
    SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableFactor, TableWithJoins,
};

use super::read::{self, Answer};
use super::{Statement, read::answer_in};
use crate::carrier::carried;
use crate::query::{Given, QueryContext};
use crate::resolve::refuse_grouped;
use crate::write::{Returned, Target};
use crate::{Error, Frame, OutputColumn, SqlState, Type, names};

/// What a RETURNING answers of given rows.
pub(super) async fn returned(
    statement: &Statement<'_>,
    frame: &Arc<Frame>,
    items: &[SelectItem],
    given: Vec<Given>,
) -> Result<Returned, Error> {
    let query = query(items, &given)?;
    let context = statement.context(frame).with_given(given);
    check(&context, items)?;
    let (columns, answer) = answer_in(statement, &context, &query).await?;
    let batch = batch(&columns, answer)?;
    Ok(Returned { columns, batch })
}

/// An answer as one batch.
pub(super) fn batch(columns: &[OutputColumn], answer: Answer) -> Result<RecordBatch, Error> {
    let fields = columns.iter().map(|column| column.kind.field(&column.name, true));
    let schema = arrow::datatypes::Schema::new(fields.collect::<Vec<_>>());
    let options = arrow::record_batch::RecordBatchOptions::new().with_row_count(Some(answer.rows));
    let arrays = columns.iter().zip(answer.columns);
    let arrays = arrays.map(|(column, (_, array))| carried(&column.kind, &array));
    let arrays = arrays.collect::<Result<_, _>>()?;
    RecordBatch::try_new_with_options(Arc::new(schema), arrays, &options)
        .map_err(|error| Error::internal(error.to_string()))
}

/// The columns of a RETURNING, and what its parameters are.
pub(super) fn describe(
    statement: &Statement<'_>,
    frame: &Arc<Frame>,
    items: &[SelectItem],
    given: Vec<Given>,
    parameters: &mut read::Parameters<'_>,
) -> Result<Vec<OutputColumn>, Error> {
    let query = query(items, &given)?;
    let context = statement.context(frame).with_given(given);
    check(&context, items)?;
    parameters.plan_in(&context, &statement.with(query))
}

/// The rows of a table that RETURNING is about, as `name`. `rows` are as stored.
pub(super) fn of_table(name: &Ident, target: &Target, rows: &RecordBatch) -> Result<Given, Error> {
    let columns = &target.relation().columns;
    let columns = columns.iter().map(|column| (column.name.clone(), column.kind.clone()));
    let arrays = target.in_definition(rows);
    let name = names::fold(name);
    Given::new(name, Some(target.relation().id), columns.collect(), arrays, rows.num_rows())
}

/// The relations of FROM or USING, by the names that qualify their columns.
pub(super) fn leaves(tables: &[TableWithJoins]) -> Result<Vec<Ident>, Error> {
    fn leaf(factor: &TableFactor, found: &mut Vec<Ident>) -> Result<(), Error> {
        match factor {
            TableFactor::Table { alias: Some(alias), .. }
            | TableFactor::Derived { alias: Some(alias), .. }
            | TableFactor::Function { alias: Some(alias), .. }
            | TableFactor::UNNEST { alias: Some(alias), .. } => found.push(alias.name.clone()),
            TableFactor::Table { name, .. } | TableFactor::Function { name, .. } => {
                let (_, name) = names::relation(name)?;
                found.push(names::exact(&name));
            }
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                tree(table_with_joins, found)?;
            }
            other => return Err(Error::unsupported(format!("RETURNING beside {other}"))),
        }
        Ok(())
    }
    fn tree(tree: &TableWithJoins, found: &mut Vec<Ident>) -> Result<(), Error> {
        leaf(&tree.relation, found)?;
        tree.joins.iter().try_for_each(|join| leaf(&join.relation, found))
    }
    let mut found = vec![];
    for table in tables {
        tree(table, &mut found)?;
    }
    Ok(found)
}

/// A relation that is joined with a written table: its name and columns.
#[derive(Clone, Debug)]
pub(super) struct Beside {
    pub(super) name: Ident,
    pub(super) columns: Vec<(String, Type)>,
}

impl Beside {
    /// All relations of FROM or USING.
    pub(super) fn all(
        statement: &Statement<'_>,
        frame: &Arc<Frame>,
        tables: &[TableWithJoins],
    ) -> Result<Vec<Self>, Error> {
        let context = statement.context(frame);
        let leaves = leaves(tables)?.into_iter().map(|name| {
            let query = read::parse(&format!("SELECT {name}.*"))?;
            let query = with_from(*query, tables.to_vec());
            let columns = context.plan(&statement.with(query), &statement.declared())?.columns;
            let columns = columns.into_iter().map(|column| (column.name, column.kind));
            Ok(Self { name, columns: columns.collect() })
        });
        leaves.collect()
    }

    /// Its columns as expressions.
    pub(super) fn expressions(&self) -> impl Iterator<Item = Expr> + '_ {
        let name = self.name.clone();
        self.columns.iter().map(move |(column, _)| {
            Expr::CompoundIdentifier(vec![name.clone(), names::exact(column)])
        })
    }

    /// Rows of it, of which `arrays` has the columns in front.
    pub(super) fn given(
        &self,
        arrays: &mut impl Iterator<Item = (Type, arrow::array::ArrayRef)>,
        rows: usize,
    ) -> Result<Given, Error> {
        let (kinds, arrays): (Vec<_>, Vec<_>) = arrays.take(self.columns.len()).unzip();
        let columns = self.columns.iter().zip(kinds).map(|((name, _), kind)| (name.clone(), kind));
        Given::new(names::fold(&self.name), None, columns.collect(), arrays, rows)
    }

    /// No rows of it.
    pub(super) fn empty(&self) -> Result<Given, Error> {
        let none = |kind: &Type| arrow::array::new_empty_array(&kind.arrow());
        let mut arrays = self.columns.iter().map(|(_, kind)| (kind.clone(), none(kind)));
        self.given(&mut arrays, 0)
    }
}

/// SELECT the items FROM given rows, side by side, in their order.
pub(super) fn query(items: &[SelectItem], given: &[Given]) -> Result<Query, Error> {
    let Some(first) = given.first() else { return Err(Error::internal("no rows are given")) };
    let mut query = *read::parse("SELECT 1")?;
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Err(Error::internal("SELECT is not a SELECT"));
    };
    select.projection = expanded(items, given)?;
    select.from = given.iter().map(Given::table).collect();
    select.selection = given[1..].iter().map(|other| equal(first.row(), other.row())).reduce(and);
    let order = OrderByExpr {
        expr: first.row(),
        options: OrderByOptions { asc: None, nulls_first: None },
        with_fill: None,
    };
    query.order_by =
        Some(OrderBy { kind: OrderByKind::Expressions(vec![order]), interpolate: None });
    Ok(query)
}

fn equal(left: Expr, right: Expr) -> Expr {
    let (left, right) = (Box::new(left), Box::new(right));
    Expr::BinaryOp { left, op: BinaryOperator::Eq, right }
}

fn and(left: Expr, right: Expr) -> Expr {
    let (left, right) = (Box::new(left), Box::new(right));
    Expr::BinaryOp { left, op: BinaryOperator::And, right }
}

fn with_from(mut query: Query, from: Vec<TableWithJoins>) -> Query {
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.from = from;
    }
    query
}

/// The items, `*` spelled out: given rows have a column that it doesn't stand for.
fn expanded(items: &[SelectItem], given: &[Given]) -> Result<Vec<SelectItem>, Error> {
    let all = |given: &Given| {
        let columns = given.columns().iter();
        let columns = columns.map(|(name, _)| SelectItem::UnnamedExpr(given.column(name)));
        columns.collect::<Vec<_>>()
    };
    let mut expanded = vec![];
    for item in items {
        match item {
            SelectItem::Wildcard(_) => expanded.extend(given.iter().flat_map(all)),
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                let (_, relation) = names::relation(name)?;
                let found = given.iter().find(|given| given.name() == relation);
                let found = found.ok_or_else(|| {
                    let message = format!("missing FROM-clause entry for table \"{relation}\"");
                    Error::new(SqlState::UNDEFINED_TABLE, message)
                })?;
                expanded.extend(all(found));
            }
            item => expanded.push(item.clone()),
        }
    }
    Ok(expanded)
}

fn check(context: &QueryContext, items: &[SelectItem]) -> Result<(), Error> {
    for item in items {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            refuse_grouped(context, expr, "RETURNING")?;
        }
    }
    Ok(())
}
