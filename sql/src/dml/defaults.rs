//! What the columns of a new row have that it gives no value: their DEFAULTs, computed once for a
//! statement, or for each row if they are volatile.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::record_batch::RecordBatch;
use datafusion::sql::sqlparser::ast::{Expr, Query, SetExpr, Value, visit_expressions};
use futures::TryStreamExt;

use super::assign::{assign, check_assignable};
use super::complete::each;
use super::constant::Constant;
use super::read::{Arguments, select};
use crate::parser::{self, Tree};
use crate::query::QueryContext;
use crate::settings::Settings;
use crate::text::{Excess, TextDecoder};
use crate::write::Target;
use crate::{Column, Error, Frame, Generated, Type};

/// One value for each of the columns that have a DEFAULT which is the same for all rows, by place.
pub(crate) async fn defaults(
    frame: &Arc<Frame>,
    settings: &Settings,
    columns: impl Iterator<Item = (usize, &Column)>,
) -> Result<BTreeMap<usize, ArrayRef>, Error> {
    let context = QueryContext::new(Arc::clone(frame), settings.clone());
    let mut values = BTreeMap::new();
    let mut computed = vec![];
    for (place, column) in columns {
        let Some(text) = text(column) else { continue };
        let expr = read(&text)?;
        if is_volatile(&context, &expr) {
            continue;
        }
        match constant(settings, column, &expr)? {
            Some(value) => {
                values.insert(place, value);
            }
            None => computed.push((place, column, expr)),
        }
    }
    if computed.is_empty() {
        return Ok(values);
    }
    let query = select(computed.iter().map(|(.., expr)| expr.clone()), vec![], None)?;
    let planned = context.plan(&query, &[])?;
    let batches: Vec<RecordBatch> = context.run(&planned.plan).await?.try_collect().await?;
    let row = batches.iter().find(|batch| batch.num_rows() == 1);
    let row = row.ok_or_else(|| Error::unsupported("a DEFAULT that returns rows"))?;
    let answers = planned.columns.iter().zip(row.columns());
    for ((place, column, _), (kind, array)) in computed.iter().zip(answers) {
        values.insert(*place, assign(array, &kind.kind, column, &settings.text_format())?);
    }
    Ok(values)
}

/// What a column has that a row gives nothing.
fn text(column: &Column) -> Option<Cow<'_, str>> {
    match &column.generated {
        Some(Generated::Identity { sequence, .. }) => {
            Some(Cow::Owned(format!("nextval({sequence}::regclass)")))
        }
        _ => column.default.as_deref().map(Cow::Borrowed),
    }
}

/// The DEFAULT of a column, if it differs from row to row.
pub(super) fn volatile(context: &QueryContext, column: &Column) -> Result<Option<Expr>, Error> {
    let Some(text) = text(column) else { return Ok(None) };
    let expr = read(&text)?;
    Ok(is_volatile(context, &expr).then_some(expr))
}

/// The columns, but for some, that have a value of their own for each row.
pub(crate) fn later(
    frame: &Arc<Frame>,
    settings: &Settings,
    target: &Target,
    given: &[usize],
) -> Result<BTreeSet<usize>, Error> {
    let context = QueryContext::new(Arc::clone(frame), settings.clone());
    let mut later = BTreeSet::new();
    for (place, column) in target.relation().columns.iter().enumerate() {
        let is_stored = matches!(column.generated, Some(Generated::Stored { .. }));
        if !given.contains(&place) && (is_stored || volatile(&context, column)?.is_some()) {
            later.insert(place);
        }
    }
    Ok(later)
}

/// Gives columns without values a value of their own for each row where their DEFAULT is volatile.
pub(crate) async fn fill_each(
    frame: &Arc<Frame>,
    settings: &Settings,
    target: &Target,
    values: &mut [Option<ArrayRef>],
    rows: usize,
) -> Result<(), Error> {
    let columns = &target.relation().columns;
    if columns.iter().all(|column| text(column).is_none()) {
        return Ok(());
    }
    let context = QueryContext::new(Arc::clone(frame), settings.clone());
    for (column, values) in columns.iter().zip(values) {
        if values.is_none()
            && let Some(expr) = volatile(&context, column)?
        {
            *values = Some(each(frame, settings, column, &expr, rows).await?);
        }
    }
    Ok(())
}

/// Whether an expression may differ from row to row.
fn is_volatile(context: &QueryContext, expr: &Expr) -> bool {
    let found = visit_expressions(expr, |expr| match expr {
        Expr::Function(function)
            if context.is_volatile(&crate::names::function(&function.name)) =>
        {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

/// Refuses a DEFAULT that its column can't take.
pub(crate) fn check_default(context: &QueryContext, column: &Column) -> Result<(), Error> {
    let Some(text) = &column.default else { return Ok(()) };
    let expr = read(text)?;
    if constant(&context.settings, column, &expr)?.is_some() {
        return Ok(());
    }
    let planned = context.plan(&select_one(&expr)?, &[])?;
    match planned.columns.as_slice() {
        [found] => check_assignable(&found.kind, column, "default expression"),
        _ => Err(Error::internal("an expression that isn't one")),
    }
}

/// SELECT an expression.
pub(crate) fn select_one(expr: &Expr) -> Result<Query, Error> {
    select(vec![expr.clone()], vec![], None)
}

/// The value of a literal.
fn constant(settings: &Settings, column: &Column, expr: &Expr) -> Result<Option<ArrayRef>, Error> {
    // The cast says what type it is shown with; the column's type reads it all the same.
    let literal = match expr {
        Expr::Cast { expr: operand, .. } => match operand.as_ref() {
            Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_)) => operand,
            _ => expr,
        },
        expr => expr,
    };
    let arguments = Arguments { values: &[], types: &[] };
    let Some(constant) = Constant::of(literal, &column.kind, &arguments) else { return Ok(None) };
    let is_cast = !std::ptr::eq(literal, expr);
    if is_cast && !is_same_kind(expr, &column.kind) {
        return Ok(None);
    }
    let mut decoder = TextDecoder::new(&column.kind, &settings.text_format(), Excess::Refuse)?;
    constant.append(&column.kind, &mut decoder)?;
    Ok(Some(decoder.finish()))
}

fn is_same_kind(expr: &Expr, kind: &Type) -> bool {
    match expr {
        Expr::Cast { data_type, .. } => {
            Type::of_syntax(data_type).is_ok_and(|cast| cast.oid() == kind.oid())
        }
        _ => false,
    }
}

pub(super) fn read(text: &str) -> Result<Expr, Error> {
    let broken = || Error::internal(format!("the DEFAULT {text} is broken"));
    let mut statements = parser::parse(&format!("SELECT {text}")).map_err(|_| broken())?;
    let Some(parser::Statement { tree: Tree::Sql(tree), .. }) = statements.pop() else {
        return Err(broken());
    };
    use datafusion::sql::sqlparser::ast::{SelectItem, Statement};
    let Statement::Query(query) = *tree else { return Err(broken()) };
    let SetExpr::Select(mut select) = *query.body else { return Err(broken()) };
    match select.projection.pop() {
        Some(SelectItem::UnnamedExpr(expr)) => Ok(expr),
        _ => Err(broken()),
    }
}
