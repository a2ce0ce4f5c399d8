//! TRUNCATE: every row of a table goes, and nobody else writes it meanwhile.

use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{ObjectName, Truncate as Tree, TruncateIdentityOption};

use super::{Command, target};
use crate::settings::Settings;
use crate::write::{Proposal, Write};
use crate::{Error, Frame};

/// The emptying of one table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Truncate<'a> {
    settings: &'a Settings,
    table: &'a ObjectName,
}

impl<'a> Truncate<'a> {
    /// One for each table that the statement names.
    pub(crate) fn all(settings: &'a Settings, tree: &'a Tree) -> Result<Vec<Self>, Error> {
        if tree.partitions.is_some() || tree.on_cluster.is_some() || tree.if_exists {
            return Err(Error::unsupported(tree));
        }
        if tree.identity == Some(TruncateIdentityOption::Restart) {
            return Err(Error::unsupported("TRUNCATE ... RESTART IDENTITY"));
        }
        Ok(tree.table_names.iter().map(|table| Self { settings, table: &table.name }).collect())
    }
}

impl Write for Truncate<'_> {
    async fn propose(&self, frame: &Arc<Frame>) -> Result<Proposal, Error> {
        let target = target(frame, self.settings, self.table, Command::Truncate)?;
        let rows = crate::write::all_rows(frame, &target).await?;
        Ok(Proposal::truncate(&target, rows))
    }
}
