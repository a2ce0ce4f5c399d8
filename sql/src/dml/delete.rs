//! DELETE.

use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{Delete, FromTable};

use super::affected::Affected;
use super::returning::Beside;
use super::{Command, Statement, read};
use crate::write::Proposal;
use crate::{Error, Frame};

/// What a DELETE would do under a frame.
pub(super) async fn propose(
    statement: &Statement<'_>,
    delete: &Delete,
    frame: &Arc<Frame>,
) -> Result<Proposal, Error> {
    let affected = affected(statement, delete, frame)?;
    let beside = affected.beside(statement, frame)?;
    let others = beside.iter().flat_map(Beside::expressions).collect();
    let found = affected.find(statement, frame, others).await?;
    let given = affected.given(statement, &found.old, &beside, found.computed)?;
    Ok(Proposal::delete(&affected.target, found.old)?.giving(given))
}

/// The types of a DELETE's parameters.
pub(super) fn parameters(
    statement: &Statement<'_>,
    delete: &Delete,
    frame: &Arc<Frame>,
    found: &mut read::Parameters<'_>,
) -> Result<(), Error> {
    let affected = affected(statement, delete, frame)?;
    found.plan(frame, &statement.with(affected.query(vec![])?))?;
    Ok(())
}

pub(super) fn affected<'a>(
    statement: &Statement<'_>,
    delete: &'a Delete,
    frame: &Frame,
) -> Result<Affected<'a>, Error> {
    let refused = [
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
