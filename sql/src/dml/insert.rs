//! INSERT.

use std::sync::Arc;

use arrow::array::ArrayRef;
use datafusion::sql::sqlparser::ast::{Expr, Insert, ObjectName, Query, SetExpr, TableObject};

use super::values::{Cell, ColumnValues, finish};
use super::{Command, Statement, defaults, read, source, target};
use crate::write::{Proposal, Target};
use crate::{Error, Frame, SqlState, Type, names};

/// What an INSERT would do under a frame.
pub(super) async fn propose(
    statement: &Statement<'_>,
    insert: &Insert,
    frame: &Arc<Frame>,
) -> Result<Proposal, Error> {
    let target = target(frame, statement.settings, table(insert)?, Command::Insert)?;
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
    for (place, array) in given.places.iter().zip(columns) {
        values[*place] = Some(array);
    }
    Proposal::insert(&target, target.rows(values, rows)?)
}

/// The target with what its columns have where the rows give nothing, or say DEFAULT.
async fn with_defaults(
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
    declared: &[Option<Type>],
) -> Result<Vec<Type>, Error> {
    let target = target(frame, statement.settings, table(insert)?, Command::Insert)?;
    let given = Given::new(insert, &target)?;
    let mut found = read::Parameters::new(statement.settings, declared);
    let Some(query) = insert.source.as_deref() else { return Ok(found.types()) };
    let Some(rows) = rows_of_values(query) else {
        for (expr, place) in source::items(query).into_iter().zip(&given.places) {
            found.assigned(expr, &target.relation().columns[*place].kind);
        }
        let planned = found.plan(frame, query)?;
        given.check(planned, None)?;
        return Ok(found.types());
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
        found.plan(frame, &read::select(expressions, vec![], None)?)?;
    }
    Ok(found.types())
}

fn table(insert: &Insert) -> Result<&ObjectName, Error> {
    let refused = [
        (insert.on.is_some(), "ON CONFLICT"),
        (insert.returning.is_some(), "RETURNING"),
        (insert.table_alias.is_some(), "an alias of the table of INSERT"),
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
    fn new(insert: &Insert, target: &Target) -> Result<Self, Error> {
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
fn rows_of_values(query: &Query) -> Option<Vec<&[Expr]>> {
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
    let columns =
        given.places.iter().take(width).map(|place| ColumnValues::new(statement, target, *place));
    let mut columns = columns.collect::<Result<Vec<_>, _>>()?;
    for row in rows {
        for (expr, column) in row.iter().zip(&mut columns) {
            column.push(statement, Cell::new(expr))?;
        }
    }
    finish(statement, frame, columns).await
}
