//! UPDATE.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{ArrayRef, UInt64Array};
use arrow::compute::take;
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, Expr, FunctionArg, FunctionArgExpr, FunctionArguments,
    ObjectName, Query, SelectItem, SetExpr, TableWithJoins, Update, UpdateTableFromKind,
};

use super::affected::Affected;
use super::assign::assign;
use super::complete::complete;
use super::constant::Constant;
use super::defaults::{fill_each, volatile};
use super::returning::Beside;
use super::values::{Cell, ColumnValues};
use super::{Command, Statement, defaults, read};
use crate::resolve::refuse_grouped;
use crate::write::{Proposal, Target};
use crate::{Column, Error, Frame, Generated, SqlState, names};

/// What an UPDATE would do under a frame.
pub(super) async fn propose(
    statement: &Statement<'_>,
    update: &Update,
    frame: &Arc<Frame>,
) -> Result<Proposal, Error> {
    let mut affected = affected(statement, update, frame)?;
    let pairs = pairs(&update.assignments)?;
    let assigned = assignments(&pairs, &affected.target)?;
    let is_asked = |place: &usize| {
        assigned.iter().any(|(assigned, cell)| assigned == place && matches!(cell, Cell::Default))
    };
    let columns = affected.target.relation().columns.iter().enumerate();
    let columns = columns.filter(|(place, _)| is_asked(place));
    let defaults = defaults(frame, statement.settings, columns).await?;
    affected.target = affected.target.with_defaults(defaults);
    let target = &affected.target;
    let columns = &target.relation().columns;
    let mut constants = vec![];
    let mut computed = vec![];
    let mut each = vec![];
    let context = statement.context(frame);
    for (place, cell) in assigned {
        match cell {
            Cell::Default if volatile(&context, &columns[place])?.is_some() => each.push(place),
            Cell::Expr(expr)
                if Constant::of(expr, &columns[place].kind, &statement.arguments).is_none() =>
            {
                computed.push((place, expr));
            }
            cell => {
                let mut column = ColumnValues::new(statement, &context, target, place)?;
                column.push(statement, cell)?;
                constants.push((place, column.constant()));
            }
        }
    }
    for (_, expr) in &computed {
        refuse_grouped(&context, expr, "UPDATE")?;
    }
    let beside = affected.beside(statement, frame)?;
    let expressions = computed.iter().map(|(_, expr)| (*expr).clone());
    let expressions = expressions.chain(beside.iter().flat_map(Beside::expressions)).collect();
    let found = affected.find(statement, frame, expressions).await?;
    let rows = found.old.num_rows();
    let format = statement.settings.text_format();
    let mut values: Vec<Option<ArrayRef>> = vec![None; columns.len()];
    for (place, array) in target.order().iter().zip(found.old.columns()) {
        values[*place] = Some(Arc::clone(array));
    }
    for (place, constant) in constants {
        let repeated = take(&constant, &UInt64Array::from(vec![0; rows]), None);
        values[place] = Some(repeated.map_err(|error| Error::internal(error.to_string()))?);
    }
    for place in each {
        values[place] = None;
    }
    fill_each(frame, statement.settings, target, &mut values, rows).await?;
    let mut found_values = found.computed.into_iter();
    for ((place, _), (kind, array)) in computed.iter().zip(found_values.by_ref()) {
        values[*place] = Some(assign(&array, &kind, &columns[*place], &format)?);
    }
    let new = complete(frame, statement.settings, target, values, rows).await?;
    let given = affected.given(statement, &new, &beside, found_values.collect())?;
    Ok(Proposal::update(target, found.old, new)?.giving(given))
}

/// The types of an UPDATE's parameters.
pub(super) fn parameters(
    statement: &Statement<'_>,
    update: &Update,
    frame: &Arc<Frame>,
    found: &mut read::Parameters<'_>,
) -> Result<(), Error> {
    let affected = affected(statement, update, frame)?;
    let pairs = pairs(&update.assignments)?;
    let mut expressions = vec![];
    for (place, cell) in assignments(&pairs, &affected.target)? {
        let kind = &affected.target.relation().columns[place].kind;
        if let Cell::Expr(expr) = cell
            && read::has_parameters(expr)
            && !found.assigned(expr, kind)
        {
            expressions.push(expr.clone());
        }
    }
    found.plan(frame, &statement.with(affected.query(expressions)?))?;
    Ok(())
}

pub(super) fn affected<'a>(
    statement: &Statement<'_>,
    update: &'a Update,
    frame: &Frame,
) -> Result<Affected<'a>, Error> {
    let refused = [
        (update.or.is_some(), "UPDATE OR"),
        (!update.order_by.is_empty(), "ORDER BY in UPDATE"),
        (update.limit.is_some(), "LIMIT in UPDATE"),
    ];
    if let Some((_, what)) = refused.iter().find(|(is_there, _)| *is_there) {
        return Err(Error::unsupported(what));
    }
    let others: &[TableWithJoins] = match &update.from {
        None => &[],
        Some(UpdateTableFromKind::BeforeSet(tables) | UpdateTableFromKind::AfterSet(tables)) => {
            tables
        }
    };
    let selection = update.selection.as_ref();
    Affected::new(statement, frame, Command::Update, &update.table, others, selection)
}

/// The columns that assignments name, each with its own expression.
pub(super) fn pairs(
    assignments: &[Assignment],
) -> Result<Vec<(&ObjectName, Cow<'_, Expr>)>, Error> {
    let mut pairs = vec![];
    for Assignment { target: assigned, value } in assignments {
        match assigned {
            AssignmentTarget::ColumnName(name) => pairs.push((name, Cow::Borrowed(value))),
            AssignmentTarget::Tuple(names) => {
                let values = values_of_row(value, names.len())?;
                if values.len() != names.len() {
                    let message = "number of columns does not match number of values";
                    return Err(Error::new(SqlState::SYNTAX_ERROR, message));
                }
                pairs.extend(names.iter().zip(values));
            }
        }
    }
    Ok(pairs)
}

/// What each column is set to, by place in the definition.
pub(super) fn assignments<'a>(
    pairs: &'a [(&ObjectName, Cow<'a, Expr>)],
    target: &Target,
) -> Result<Vec<(usize, Cell<'a>)>, Error> {
    let mut assignments: Vec<(usize, Cell<'a>)> = vec![];
    for (name, value) in pairs {
        let place = place(name, target)?;
        let column = &target.relation().columns[place];
        if assignments.iter().any(|(assigned, _)| *assigned == place) {
            let message = format!("multiple assignments to same column \"{}\"", column.name);
            return Err(Error::new(SqlState::SYNTAX_ERROR, message));
        }
        let cell = Cell::new(value);
        refuse_generated(column, matches!(cell, Cell::Default))?;
        assignments.push((place, cell));
    }
    Ok(assignments)
}

/// Columns whose values nobody gives can only be set to DEFAULT.
fn refuse_generated(column: &Column, is_default: bool) -> Result<(), Error> {
    let name = &column.name;
    let detail = match &column.generated {
        _ if is_default => return Ok(()),
        Some(Generated::Stored { .. }) => format!("Column \"{name}\" is a generated column."),
        Some(Generated::Identity { always: true, .. }) => {
            format!("Column \"{name}\" is an identity column defined as GENERATED ALWAYS.")
        }
        _ => return Ok(()),
    };
    let message = format!("column \"{name}\" can only be updated to DEFAULT");
    Err(Error::new(SqlState::GENERATED_ALWAYS, message).with_detail(detail))
}

fn place(name: &ObjectName, target: &Target) -> Result<usize, Error> {
    // A qualified name would be a field of a composite column, and there is none.
    let first = name.0.first().and_then(|part| part.as_ident());
    let Some(first) = first else { return Err(Error::unsupported(name)) };
    let place = target.column(&names::fold(first))?;
    if name.0.len() > 1 {
        return Err(Error::unsupported(format!("assigning to \"{name}\"")));
    }
    Ok(place)
}

/// The values of `(a, b)`, `ROW(a, b)` or a subquery that has as many columns.
fn values_of_row(value: &Expr, columns: usize) -> Result<Vec<Cow<'_, Expr>>, Error> {
    match value {
        Expr::Tuple(values) => Ok(values.iter().map(Cow::Borrowed).collect()),
        Expr::Nested(value) => Ok(vec![Cow::Borrowed(value)]),
        Expr::Subquery(query) => columns_of(query, columns),
        Expr::Function(function) if names::function(&function.name) == "row" => {
            let FunctionArguments::List(list) = &function.args else {
                return Err(Error::unsupported(value));
            };
            let values = list.args.iter().map(|argument| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Ok(Cow::Borrowed(expr)),
                _ => Err(Error::unsupported(value)),
            });
            values.collect()
        }
        _ => Err(Error::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression",
        )),
    }
}

/// The columns of a subquery, each as a subquery of its own.
fn columns_of(query: &Query, columns: usize) -> Result<Vec<Cow<'_, Expr>>, Error> {
    let SetExpr::Select(select) = query.body.as_ref() else {
        return Err(Error::unsupported("a multi-column assignment from a set operation"));
    };
    let is_plain = |item: &SelectItem| {
        matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. })
    };
    if select.distinct.is_some() || !select.projection.iter().all(is_plain) {
        return Err(Error::unsupported(
            "a multi-column assignment from a subquery with DISTINCT or *",
        ));
    }
    if select.projection.len() != columns {
        let message = "number of columns does not match number of values";
        return Err(Error::new(SqlState::SYNTAX_ERROR, message));
    }
    let single = |item: &SelectItem| {
        let mut query = query.clone();
        if let SetExpr::Select(select) = query.body.as_mut() {
            select.projection = vec![item.clone()];
        }
        Cow::Owned(Expr::Subquery(Box::new(query)))
    };
    Ok(select.projection.iter().map(single).collect())
}
