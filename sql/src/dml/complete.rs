//! Rows as they come to a table: with what nobody has given them, and with nothing wrong about them
//! that they tell themselves.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::record_batch::RecordBatch;
use datafusion::sql::sqlparser::ast::{Expr, Query, SelectItem};
use futures::TryStreamExt;

use super::assign::assign;
use super::defaults::read;
use super::returning::query;
use crate::query::{Given, QueryContext};
use crate::settings::Settings;
use crate::write::{Target, check_violation};
use crate::{Column, Constraint, ConstraintKind, Error, Frame, Generated, SqlState, Subject, Type};

/// Rows of values by place in the definition; a column without values has its default.
///
/// # Errors
///
/// 23502 and 23514 for a row that must not be, and what a generated column's expression raises.
pub(crate) async fn complete(
    frame: &Arc<Frame>,
    settings: &Settings,
    target: &Target,
    values: Vec<Option<ArrayRef>>,
    rows: usize,
) -> Result<RecordBatch, Error> {
    let values = target.filled(values, rows)?;
    let values = generated(frame, settings, target, values, rows).await?;
    let batch = target.checked(values, rows)?;
    check(frame, settings, target, &batch).await?;
    Ok(batch)
}

/// The rows of a table that are written anew, as stored.
pub(crate) async fn rewritten(
    frame: &Arc<Frame>,
    settings: &Settings,
    target: &Target,
    values: Vec<Option<ArrayRef>>,
    rows: usize,
) -> Result<RecordBatch, Error> {
    let values = target.filled(values, rows)?;
    let values = generated(frame, settings, target, values, rows).await?;
    let relation = target.relation();
    let mut columns = relation.columns.iter().zip(&values);
    if let Some((column, _)) =
        columns.find(|(column, array)| column.not_null && array.null_count() > 0)
    {
        let (column, table) = (&column.name, &relation.name);
        let message = format!("column \"{column}\" of relation \"{table}\" contains null values");
        return Err(Error::new(SqlState::NOT_NULL_VIOLATION, message)
            .about(Subject::column(relation, column)));
    }
    target.checked(values, rows)
}

/// Computes the columns that are generated of others.
async fn generated(
    frame: &Arc<Frame>,
    settings: &Settings,
    target: &Target,
    mut values: Vec<ArrayRef>,
    rows: usize,
) -> Result<Vec<ArrayRef>, Error> {
    let columns = target.relation().columns.iter().enumerate();
    let computed = columns.filter_map(|(place, column)| match &column.generated {
        Some(Generated::Stored { expression }) => Some((place, column, expression)),
        _ => None,
    });
    let computed: Vec<_> = computed.collect();
    if computed.is_empty() || rows == 0 {
        return Ok(values);
    }
    let texts = computed.iter().map(|(.., expression)| expression.as_str());
    let found = evaluate(frame, settings, target, texts, values.clone(), rows).await?;
    for ((place, column, _), (kind, array)) in computed.into_iter().zip(found) {
        values[place] = assign(&array, &kind, column, &settings.text_format())?;
    }
    Ok(values)
}

/// Refuses rows of which a CHECK is false. They are as stored.
async fn check(
    frame: &Arc<Frame>,
    settings: &Settings,
    target: &Target,
    batch: &RecordBatch,
) -> Result<(), Error> {
    let mut checks = checks(target).collect::<Vec<_>>();
    if checks.is_empty() || batch.num_rows() == 0 {
        return Ok(());
    }
    // As in PostgreSQL.
    checks.sort_unstable_by_key(|(constraint, _)| &constraint.name);
    let values = target.in_definition(batch);
    let texts = checks.iter().map(|(_, expression)| expression.as_str());
    let found = evaluate(frame, settings, target, texts, values.clone(), batch.num_rows()).await?;
    let failing = found.iter().enumerate().filter_map(|(place, (_, array))| {
        let array = array.as_boolean_opt()?;
        let row = (0..array.len()).find(|row| array.is_valid(*row) && !array.value(*row))?;
        Some((row, place))
    });
    let Some((row, place)) = failing.min() else { return Ok(()) };
    let row: Vec<_> = values.iter().map(|array| array.slice(row, 1)).collect();
    Err(check_violation(target, &checks[place].0.name, &row))
}

fn checks(target: &Target) -> impl Iterator<Item = (&Constraint, &String)> {
    target.relation().constraints.iter().filter_map(|constraint| match &constraint.kind {
        ConstraintKind::Check { expression } => Some((constraint, expression)),
        _ => None,
    })
}

/// Computes expressions over rows of a table.
async fn evaluate<'a>(
    frame: &Arc<Frame>,
    settings: &Settings,
    target: &Target,
    texts: impl Iterator<Item = &'a str>,
    values: Vec<ArrayRef>,
    rows: usize,
) -> Result<Vec<(Type, ArrayRef)>, Error> {
    let items = texts.map(|text| read(text).map(SelectItem::UnnamedExpr));
    let items = items.collect::<Result<Vec<_>, Error>>()?;
    let given = of_columns(target, values, rows)?;
    over(frame, settings, &items, given, rows).await
}

/// Rows of a table under its name. `values` are in the order of the definition.
fn of_columns(target: &Target, values: Vec<ArrayRef>, rows: usize) -> Result<Given, Error> {
    let relation = target.relation();
    let columns = relation.columns.iter().map(|column| (column.name.clone(), column.kind.clone()));
    Given::new(relation.name.clone(), Some(relation.id), columns.collect(), values, rows)
}

/// SELECT an expression FROM given rows.
pub(crate) fn select_from(expr: &Expr, given: &Given) -> Result<Query, Error> {
    query(&[SelectItem::UnnamedExpr(expr.clone())], std::slice::from_ref(given))
}

/// Computes items over given rows, in their order.
pub(super) async fn over(
    frame: &Arc<Frame>,
    settings: &Settings,
    items: &[SelectItem],
    given: Given,
    rows: usize,
) -> Result<Vec<(Type, ArrayRef)>, Error> {
    let query = query(items, std::slice::from_ref(&given))?;
    let context = QueryContext::new(Arc::clone(frame), settings.clone()).with_given(vec![given]);
    let planned = context.plan(&query, &[])?;
    let batches: Vec<RecordBatch> = context.run(&planned.plan).await?.try_collect().await?;
    let found: usize = batches.iter().map(RecordBatch::num_rows).sum();
    if found != rows {
        return Err(Error::internal(format!("{found} values were computed of {rows} rows")));
    }
    let columns = planned.columns.into_iter().enumerate().map(|(place, column)| {
        let arrays: Vec<_> = batches.iter().map(|batch| batch.column(place).as_ref()).collect();
        let array = match arrays.is_empty() {
            true => arrow::array::new_empty_array(&column.kind.arrow()),
            false => arrow::compute::concat(&arrays)
                .map_err(|error| Error::internal(error.to_string()))?,
        };
        Ok((column.kind, array))
    });
    columns.collect()
}

/// The values of an expression that differ from row to row, for a column.
pub(super) async fn each(
    frame: &Arc<Frame>,
    settings: &Settings,
    column: &Column,
    expr: &Expr,
    rows: usize,
) -> Result<ArrayRef, Error> {
    let given = Given::new("rows", None, vec![], vec![], rows)?;
    let items = [SelectItem::UnnamedExpr(expr.clone())];
    let found = over(frame, settings, &items, given, rows).await?;
    match found.into_iter().next() {
        Some((kind, array)) => assign(&array, &kind, column, &settings.text_format()),
        None => Err(Error::internal("an expression that isn't one")),
    }
}
