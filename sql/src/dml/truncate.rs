//! TRUNCATE: every row of a table goes, and nobody else writes it meanwhile.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{
    CascadeOption, ObjectName, Truncate as Tree, TruncateIdentityOption, TruncateTableTarget,
};

use super::{Command, target};
use crate::query::Given;
use crate::session::Notice;
use crate::settings::Settings;
use crate::write::{Proposal, Returned, Target, Write};
use crate::{Error, Frame, SqlState, names};

/// The emptying of one table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Truncate<'a> {
    settings: &'a Settings,
    table: &'a ObjectName,
    /// All tables that the statement names.
    tree: &'a Tree,
}

impl<'a> Truncate<'a> {
    /// One for each table that the statement names.
    pub(crate) fn all(settings: &'a Settings, tree: &'a Tree) -> Result<Vec<Self>, Error> {
        if tree.partitions.is_some() || tree.on_cluster.is_some() || tree.if_exists {
            return Err(Error::unsupported(tree));
        }
        Ok(tree
            .table_names
            .iter()
            .map(|table| Self { settings, table: &table.name, tree })
            .collect())
    }
}

/// The statement with the tables that refer to those that it names, if it says CASCADE; and what the
/// client is told of them.
pub(crate) fn cascading(
    frame: &Frame,
    settings: &Settings,
    tree: &Tree,
) -> Result<(Tree, Vec<Notice>), Error> {
    let mut tree = tree.clone();
    let mut notices = vec![];
    if tree.cascade != Some(CascadeOption::Cascade) {
        return Ok((tree, notices));
    }
    let mut seen = BTreeSet::new();
    let mut place = 0;
    for table in &tree.table_names {
        seen.insert(target(frame, settings, &table.name, Command::Truncate)?.relation().id);
    }
    while let Some(table) = tree.table_names.get(place).cloned() {
        place += 1;
        let parent = target(frame, settings, &table.name, Command::Truncate)?.relation().id;
        for (child, _) in frame.catalog().children(parent) {
            if seen.insert(child.id) {
                let message = format!("truncate cascades to table \"{}\"", child.name);
                notices.push(Notice::of(Error::new(SqlState::SUCCESSFUL_COMPLETION, message)));
                let name = vec![names::exact(&child.schema), names::exact(&child.name)];
                let name = ObjectName::from(name);
                tree.table_names.push(TruncateTableTarget { name, ..table.clone() });
            }
        }
    }
    Ok((tree, notices))
}

/// Lets the sequences of the tables begin again, if the statement says so. As everything about
/// sequences that isn't undone by a rollback.
pub(crate) fn restart_identity(
    frame: &Frame,
    settings: &Settings,
    tree: &Tree,
) -> Result<(), Error> {
    if tree.identity != Some(TruncateIdentityOption::Restart) {
        return Ok(());
    }
    for table in &tree.table_names {
        let id = target(frame, settings, &table.name, Command::Truncate)?.relation().id;
        for (oid, sequence) in &frame.catalog().sequences {
            if sequence.owner.is_some_and(|(owner, _)| owner == id) {
                frame.database().sequences.restart(frame.epoch(), *oid);
            }
        }
    }
    Ok(())
}

impl Truncate<'_> {
    /// Rows of a table that stays may not refer to what goes, even if there are none.
    fn check_references(&self, frame: &Frame, target: &Target) -> Result<(), Error> {
        let named = self.tree.table_names.iter();
        let named = named.map(|table| {
            Ok(super::target(frame, self.settings, &table.name, Command::Truncate)?.relation().id)
        });
        let named = named.collect::<Result<Vec<_>, Error>>()?;
        let mut children = frame.catalog().children(target.relation().id);
        let Some((child, _)) = children.find(|(child, _)| !named.contains(&child.id)) else {
            return Ok(());
        };
        let (table, child) = (&target.relation().name, &child.name);
        let message = "cannot truncate a table referenced in a foreign key constraint";
        Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message)
            .with_detail(format!("Table \"{child}\" references \"{table}\"."))
            .with_hint(format!(
                "Truncate table \"{child}\" at the same time, or use TRUNCATE ... CASCADE."
            )))
    }
}

impl Write for Truncate<'_> {
    async fn propose(&self, frame: &Arc<Frame>) -> Result<Proposal, Error> {
        let target = target(frame, self.settings, self.table, Command::Truncate)?;
        self.check_references(frame, &target)?;
        let rows = crate::write::all_rows(frame, &target).await?;
        Ok(Proposal::truncate(&target, rows))
    }

    fn settings(&self) -> &Settings {
        self.settings
    }

    async fn answer(&self, _: &Arc<Frame>, _: Vec<Given>) -> Result<Option<Returned>, Error> {
        Ok(None)
    }
}
