//! DELETE.

use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{Delete, FromTable};

use super::affected::Affected;
use super::{Command, Statement, read};
use crate::write::Proposal;
use crate::{Error, Frame, Type};

/// What a DELETE would do under a frame.
pub(super) async fn propose(
    statement: &Statement<'_>,
    delete: &Delete,
    frame: &Arc<Frame>,
) -> Result<Proposal, Error> {
    let affected = affected(statement, delete, frame)?;
    let found = affected.find(statement, frame, vec![]).await?;
    Proposal::delete(&affected.target, found.old)
}

/// The types of a DELETE's parameters.
pub(super) fn parameters(
    statement: &Statement<'_>,
    delete: &Delete,
    frame: &Arc<Frame>,
    declared: &[Option<Type>],
) -> Result<Vec<Type>, Error> {
    let affected = affected(statement, delete, frame)?;
    let mut found = read::Parameters::new(statement.settings, declared);
    found.plan(frame, &affected.query(vec![])?)?;
    Ok(found.types())
}

fn affected<'a>(
    statement: &Statement<'_>,
    delete: &'a Delete,
    frame: &Frame,
) -> Result<Affected<'a>, Error> {
    let refused = [
        (delete.returning.is_some(), "RETURNING"),
        (!delete.tables.is_empty(), "DELETE from several tables"),
        (!delete.order_by.is_empty(), "ORDER BY in DELETE"),
        (delete.limit.is_some(), "LIMIT in DELETE"),
    ];
    if let Some((_, what)) = refused.iter().find(|(is_there, _)| *is_there) {
        return Err(Error::unsupported(what));
    }
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
    let [table] = from.as_slice() else {
        return Err(Error::unsupported("DELETE from several tables"));
    };
    let others = delete.using.as_deref().unwrap_or_default();
    let selection = delete.selection.as_ref();
    Affected::new(statement, frame, Command::Delete, table, others, selection)
}
