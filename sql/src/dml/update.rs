//! UPDATE.

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt64Array};
use arrow::compute::take;
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, Expr, ObjectName, TableWithJoins, Update, UpdateTableFromKind,
};

use super::affected::Affected;
use super::assign::assign;
use super::constant::Constant;
use super::values::{Cell, ColumnValues};
use super::{Command, Statement, defaults, read};
use crate::query::QueryContext;
use crate::resolve::refuse_grouped;
use crate::write::{Proposal, Target};
use crate::{Error, Frame, SqlState, Type, names};

/// What an UPDATE would do under a frame.
pub(super) async fn propose(
    statement: &Statement<'_>,
    update: &Update,
    frame: &Arc<Frame>,
) -> Result<Proposal, Error> {
    let mut affected = affected(statement, update, frame)?;
    let assigned = assignments(update, &affected.target)?;
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
    for (place, cell) in assigned {
        match cell {
            Cell::Expr(expr)
                if Constant::of(expr, &columns[place].kind, &statement.arguments).is_none() =>
            {
                computed.push((place, expr));
            }
            cell => {
                let mut column = ColumnValues::new(statement, target, place)?;
                column.push(statement, cell)?;
                constants.push((place, column.constant()));
            }
        }
    }
    let context = QueryContext::new(Arc::clone(frame), statement.settings.clone());
    for (_, expr) in &computed {
        refuse_grouped(&context, expr, "UPDATE")?;
    }
    let expressions = computed.iter().map(|(_, expr)| (*expr).clone()).collect();
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
    for ((place, _), (kind, array)) in computed.iter().zip(found.computed) {
        values[*place] = Some(assign(&array, &kind, &columns[*place], &format)?);
    }
    Proposal::update(target, found.old, target.rows(values, rows)?)
}

/// The types of an UPDATE's parameters.
pub(super) fn parameters(
    statement: &Statement<'_>,
    update: &Update,
    frame: &Arc<Frame>,
    declared: &[Option<Type>],
) -> Result<Vec<Type>, Error> {
    let affected = affected(statement, update, frame)?;
    let mut found = read::Parameters::new(statement.settings, declared);
    let mut expressions = vec![];
    for (place, cell) in assignments(update, &affected.target)? {
        let kind = &affected.target.relation().columns[place].kind;
        if let Cell::Expr(expr) = cell
            && read::has_parameters(expr)
            && !found.assigned(expr, kind)
        {
            expressions.push(expr.clone());
        }
    }
    found.plan(frame, &affected.query(expressions)?)?;
    Ok(found.types())
}

fn affected<'a>(
    statement: &Statement<'_>,
    update: &'a Update,
    frame: &Frame,
) -> Result<Affected<'a>, Error> {
    let refused = [
        (update.returning.is_some(), "RETURNING"),
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

/// What each column is set to, by place in the definition.
fn assignments<'a>(update: &'a Update, target: &Target) -> Result<Vec<(usize, Cell<'a>)>, Error> {
    let mut assignments: Vec<(usize, Cell<'a>)> = vec![];
    for Assignment { target: assigned, value } in &update.assignments {
        let pairs: Vec<(&ObjectName, &Expr)> = match assigned {
            AssignmentTarget::ColumnName(name) => vec![(name, value)],
            AssignmentTarget::Tuple(names) => {
                let values = values_of_row(value)?;
                if values.len() != names.len() {
                    let message = "number of columns does not match number of values";
                    return Err(Error::new(SqlState::SYNTAX_ERROR, message));
                }
                names.iter().zip(values).collect()
            }
        };
        for (name, value) in pairs {
            let place = place(name, target)?;
            if assignments.iter().any(|(assigned, _)| *assigned == place) {
                let name = &target.relation().columns[place].name;
                let message = format!("multiple assignments to same column \"{name}\"");
                return Err(Error::new(SqlState::SYNTAX_ERROR, message));
            }
            assignments.push((place, Cell::new(value)));
        }
    }
    Ok(assignments)
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

/// The values of `(a, b)` or `ROW(a, b)`.
fn values_of_row(value: &Expr) -> Result<Vec<&Expr>, Error> {
    match value {
        Expr::Tuple(values) => Ok(values.iter().collect()),
        Expr::Nested(value) => Ok(vec![value]),
        _ => Err(Error::unsupported("a multi-column assignment from anything but a row")),
    }
}
