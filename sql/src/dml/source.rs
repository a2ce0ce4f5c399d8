//! The query of an INSERT ... SELECT.

use std::sync::Arc;

use arrow::array::ArrayRef;
use datafusion::sql::sqlparser::ast::{Expr, Query, SelectItem, SetExpr, Value};

use super::Statement;
use super::assign::assign;
use super::insert::Given;
use super::read::answer;
use crate::write::Target;
use crate::{Error, Frame, Type};

/// The rows of the query, as the columns take them.
pub(super) async fn columns(
    statement: &Statement<'_>,
    frame: &Arc<Frame>,
    target: &Target,
    given: &Given,
    query: &Query,
) -> Result<(Vec<ArrayRef>, usize), Error> {
    let answer = answer(statement, frame, query).await?;
    given.check(answer.columns.len(), None)?;
    let format = statement.settings.text_format();
    let untyped = untyped(query, answer.columns.len());
    let columns = answer.columns.iter().zip(untyped).zip(&given.places);
    let columns = columns.map(|(((kind, array), is_untyped), place)| {
        let kind = if is_untyped { &Type::Unknown } else { kind };
        assign(array, kind, &target.relation().columns[*place], &format)
    });
    Ok((columns.collect::<Result<_, Error>>()?, answer.rows))
}

/// The expressions of the first columns.
pub(super) fn items(query: &Query) -> Vec<&Expr> {
    let SetExpr::Select(select) = query.body.as_ref() else { return vec![] };
    fn expr(item: &SelectItem) -> Option<&Expr> {
        match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
            _ => None,
        }
    }
    select.projection.iter().map_while(expr).collect()
}

/// Which columns are literals without a type: they are read as whatever column they go to.
pub(super) fn untyped(query: &Query, columns: usize) -> Vec<bool> {
    let mut untyped = vec![false; columns];
    let SetExpr::Select(select) = query.body.as_ref() else { return untyped };
    let is_untyped = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            Some(is_untyped(expr))
        }
        // It stands for any number of columns.
        _ => None,
    };
    // Columns before the first such item are counted from the left, those after the last one
    // from the right.
    let from_left = select.projection.iter().map_while(is_untyped);
    let from_right = select.projection.iter().rev().map_while(is_untyped);
    untyped.iter_mut().zip(from_left).for_each(|(column, literal)| *column = literal);
    untyped.iter_mut().rev().zip(from_right).for_each(|(column, literal)| *column = literal);
    untyped
}

pub(super) fn is_untyped(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(expr) => is_untyped(expr),
        Expr::Value(value) => matches!(
            value.value,
            Value::Null
                | Value::SingleQuotedString(_)
                | Value::EscapedStringLiteral(_)
                | Value::UnicodeStringLiteral(_)
                | Value::DollarQuotedString(_)
        ),
        _ => false,
    }
}
