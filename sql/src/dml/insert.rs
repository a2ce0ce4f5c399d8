//! INSERT.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::record_batch::RecordBatch;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Insert, ObjectName, Query, SetExpr, TableObject,
};

use super::complete::complete;
use super::conflict::Conflict;
use super::defaults::fill_each;
use super::returning::of_table;
use super::values::{Cell, ColumnValues, finish};
use super::{Command, Statement, defaults, read, source, target};
use crate::Generated;
use crate::parser::Overriding;
use crate::write::{Proposal, Target};
use crate::{Error, Frame, SqlState, names};

/// What an INSERT would do under a frame.
pub(super) async fn propose(
    statement: &Statement<'_>,
    insert: &Insert,
    frame: &Arc<Frame>,
) -> Result<Proposal, Error> {
    let target = target(frame, statement.settings, table(insert)?, Command::Insert)?;
    let name = alias(insert, &target);
    let conflict = Conflict::of(insert, &target, &name)?;
    let given = Given::new(insert, &target)?;
    let target = with_defaults(statement, insert, frame, target, &given).await?;
    let mut values: Vec<Option<ArrayRef>> = vec![None; target.relation().columns.len()];
    let (columns, rows) = match insert.source.as_deref() {
        None => (vec![], 1),
        Some(query) => match rows_of_values(query) {
            Some(rows) => {
                let columns = columns_of_values(statement, frame, &target, &given, &rows).await?;
                (columns, rows.len())
            }
            None => source::columns(statement, frame, &target, &given, query).await?,
        },
    };
    given.refuse_generated(statement, insert, &target, columns.len())?;
    for (place, array) in given.places.iter().zip(columns) {
        if !is_passed_over(statement, &target, *place) {
            values[*place] = Some(array);
        }
    }
    fill_each(frame, statement.settings, &target, &mut values, rows).await?;
    let new = complete(frame, statement.settings, &target, values, rows).await?;
    if let Some(conflict) = conflict {
        return conflict.propose(statement, frame, &target, new).await;
    }
    let returned = match statement.returns() {
        true => vec![of_table(&name, &target, &new)?],
        false => vec![],
    };
    Ok(Proposal::insert(&target, new)?.giving(returned))
}

/// Whether OVERRIDING USER VALUE says that what is given for a column doesn't count.
fn is_passed_over(statement: &Statement<'_>, target: &Target, place: usize) -> bool {
    statement.overriding == Some(Overriding::User)
        && matches!(target.relation().columns[place].generated, Some(Generated::Identity { .. }))
}

/// The rows that RETURNING is about, without any.
pub(super) fn nothing_given(
    statement: &Statement<'_>,
    insert: &Insert,
    frame: &Arc<Frame>,
) -> Result<Vec<crate::query::Given>, Error> {
    let target = target(frame, statement.settings, table(insert)?, Command::Insert)?;
    let rows = RecordBatch::new_empty(Arc::clone(target.schema()));
    Ok(vec![of_table(&alias(insert, &target), &target, &rows)?])
}

/// The name under which the statement knows the table.
fn alias(insert: &Insert, target: &Target) -> Ident {
    match &insert.table_alias {
        Some(alias) => alias.alias.clone(),
        None => names::exact(&target.relation().name),
    }
}

/// The target with what its columns have where the rows give nothing, or say DEFAULT.
pub(super) async fn with_defaults(
    statement: &Statement<'_>,
    insert: &Insert,
    frame: &Arc<Frame>,
    target: Target,
    given: &Given,
) -> Result<Target, Error> {
    let rows = insert.source.as_deref().and_then(rows_of_values).unwrap_or_default();
    let width = match insert.source.as_deref() {
        None => 0,
        Some(query) => rows_of_values(query)
            .map_or(given.places.len(), |rows| rows.first().map_or(0, |row| row.len())),
    };
    let is_asked = |place: &usize| {
        let position = given.places.iter().take(width).position(|given| given == place);
        position.is_none_or(|position| {
            let mut cells = rows.iter().filter_map(|row| row.get(position));
            cells.any(|expr| matches!(Cell::new(expr), Cell::Default))
        })
    };
    let columns = target.relation().columns.iter().enumerate();
    let columns = columns.filter(|(place, _)| is_asked(place));
    let defaults = defaults(frame, statement.settings, columns).await?;
    Ok(target.with_defaults(defaults))
}

/// The types of an INSERT's parameters.
pub(super) fn parameters(
    statement: &Statement<'_>,
    insert: &Insert,
    frame: &Arc<Frame>,
    found: &mut read::Parameters<'_>,
) -> Result<(), Error> {
    let target = target(frame, statement.settings, table(insert)?, Command::Insert)?;
    let given = Given::new(insert, &target)?;
    parameters_of_rows(statement, insert, frame, &target, &given, found)?;
    match Conflict::of(insert, &target, &alias(insert, &target))? {
        Some(conflict) => conflict.parameters(statement, frame, &target, found),
        None => Ok(()),
    }
}

fn parameters_of_rows(
    statement: &Statement<'_>,
    insert: &Insert,
    frame: &Arc<Frame>,
    target: &Target,
    given: &Given,
    found: &mut read::Parameters<'_>,
) -> Result<(), Error> {
    let Some(query) = insert.source.as_deref() else { return Ok(()) };
    let Some(rows) = rows_of_values(query) else {
        for (expr, place) in source::items(query).into_iter().zip(&given.places) {
            found.assigned(expr, &target.relation().columns[*place].kind);
        }
        let planned = found.plan(frame, &statement.with(query.clone()))?;
        return given.check(planned, None);
    };
    let mut expressions = vec![];
    let width = rows.first().map(|row| row.len());
    for row in rows {
        given.check(row.len(), width)?;
        for (expr, place) in row.iter().zip(&given.places) {
            let kind = &target.relation().columns[*place].kind;
            if read::has_parameters(expr) && !found.assigned(expr, kind) {
                expressions.push(expr.clone());
            }
        }
    }
    if !expressions.is_empty() {
        found.plan(frame, &statement.with(read::select(expressions, vec![], None)?))?;
    }
    Ok(())
}

pub(super) fn table(insert: &Insert) -> Result<&ObjectName, Error> {
    let refused = [
        (insert.or.is_some() || insert.ignore || insert.replace_into, "INSERT OR"),
        (insert.overwrite || insert.partitioned.is_some(), "INSERT OVERWRITE"),
        (!insert.assignments.is_empty(), "INSERT SET"),
    ];
    if let Some((_, what)) = refused.iter().find(|(is_there, _)| *is_there) {
        return Err(Error::unsupported(what));
    }
    match &insert.table {
        TableObject::TableName(name) => Ok(name),
        other => Err(Error::unsupported(format!("INSERT INTO {other}"))),
    }
}

/// The columns that an INSERT gives values for.
#[derive(Debug)]
pub(super) struct Given {
    /// By place in the definition.
    pub(super) places: Vec<usize>,
    is_listed: bool,
}

impl Given {
    pub(super) fn new(insert: &Insert, target: &Target) -> Result<Self, Error> {
        if insert.columns.is_empty() {
            let places = (0..target.relation().columns.len()).collect();
            return Ok(Self { places, is_listed: false });
        }
        let names = insert.columns.iter().map(|name| match name.0.as_slice() {
            [part] => match part.as_ident() {
                Some(identifier) => Ok(names::fold(identifier)),
                None => Err(Error::unsupported(name)),
            },
            _ => Err(Error::unsupported(format!("assigning to \"{name}\""))),
        });
        let names = names.collect::<Result<Vec<_>, _>>()?;
        Ok(Self { places: target.columns(&names)?, is_listed: true })
    }

    /// Refuses values for columns whose values nobody gives.
    pub(super) fn refuse_generated(
        &self,
        statement: &Statement<'_>,
        insert: &Insert,
        target: &Target,
        columns: usize,
    ) -> Result<(), Error> {
        let rows = insert.source.as_deref().and_then(rows_of_values);
        for (position, place) in self.places.iter().take(columns).enumerate() {
            let column = &target.relation().columns[*place];
            let is_default = rows.as_ref().is_some_and(|rows| {
                let mut cells = rows.iter().filter_map(|row| row.get(position));
                cells.all(|expr| matches!(Cell::new(expr), Cell::Default))
            });
            let name = &column.name;
            let (detail, hint) = match &column.generated {
                _ if is_default => continue,
                Some(Generated::Stored { .. }) => {
                    (format!("Column \"{name}\" is a generated column."), None)
                }
                Some(Generated::Identity { always: true, .. })
                    if statement.overriding.is_none() =>
                {
                    let kind = "an identity column defined as GENERATED ALWAYS";
                    let hint = "Use OVERRIDING SYSTEM VALUE to override.";
                    (format!("Column \"{name}\" is {kind}."), Some(hint))
                }
                _ => continue,
            };
            let message = format!("cannot insert a non-DEFAULT value into column \"{name}\"");
            let error = Error::new(SqlState::GENERATED_ALWAYS, message).with_detail(detail);
            return Err(match hint {
                Some(hint) => error.with_hint(hint),
                None => error,
            });
        }
        Ok(())
    }

    /// Whether a row with so many values fits.
    pub(super) fn check(&self, values: usize, first: Option<usize>) -> Result<(), Error> {
        let message = if first.is_some_and(|first| first != values) {
            "VALUES lists must all be the same length"
        } else if values > self.places.len() {
            "INSERT has more expressions than target columns"
        } else if self.is_listed && values < self.places.len() {
            "INSERT has more target columns than expressions"
        } else {
            return Ok(());
        };
        Err(Error::new(SqlState::SYNTAX_ERROR, message))
    }
}

/// The rows of a plain VALUES.
pub(super) fn rows_of_values(query: &Query) -> Option<Vec<&[Expr]>> {
    let is_plain = query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && query.locks.is_empty();
    match query.body.as_ref() {
        SetExpr::Values(values) if is_plain => {
            Some(values.rows.iter().map(|row| row.as_slice()).collect())
        }
        _ => None,
    }
}

async fn columns_of_values(
    statement: &Statement<'_>,
    frame: &Arc<Frame>,
    target: &Target,
    given: &Given,
    rows: &[&[Expr]],
) -> Result<Vec<ArrayRef>, Error> {
    let width = rows.first().map_or(0, |row| row.len());
    for row in rows {
        given.check(row.len(), Some(width))?;
    }
    let context = statement.context(frame);
    let columns = given
        .places
        .iter()
        .take(width)
        .map(|place| ColumnValues::new(statement, &context, target, *place));
    let mut columns = columns.collect::<Result<Vec<_>, _>>()?;
    for row in rows {
        for (expr, column) in row.iter().zip(&mut columns) {
            column.push(statement, Cell::new(expr))?;
        }
    }
    finish(statement, frame, columns).await
}
