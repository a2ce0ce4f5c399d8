//! INSERT, UPDATE, DELETE, MERGE and TRUNCATE: what they would do, as queries under a frame.
//!
//! Each plans a SELECT of the rows it is about and turns the answer into exact changes; how those
//! get into a step is the write path's matter.

mod affected;
mod assign;
mod bulk;
mod complete;
mod compound;
mod conflict;
mod constant;
mod defaults;
mod delete;
mod insert;
mod locking;
mod merge;
#[cfg(test)]
mod model;
mod read;
mod returning;
mod source;
#[cfg(test)]
mod tests;
mod truncate;
mod update;
mod values;

use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{self, ObjectName};

pub(crate) use assign::{assign, check_assignable};
pub(crate) use bulk::Bulk;
pub(crate) use complete::{complete, rewritten, select_from};
pub(crate) use compound::Compound;
pub(crate) use defaults::{check_default, defaults, fill_each, later, select_one};
pub(crate) use locking::{Locked, Locking, without_locks};
pub(crate) use read::Arguments;
pub(crate) use truncate::{Truncate, cascading, restart_identity};

use crate::parser::Overriding;
use crate::query::{Given, Plans, QueryContext};
use crate::settings::Settings;
use crate::write::{Proposal, Returned, Target, Write};
use crate::{Error, Frame, OutputColumn, Relation, RelationKind, SqlState, Type, names, system};

/// A statement that writes rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Statement<'a> {
    tree: Tree<'a>,
    /// What stands before it.
    with: Option<&'a ast::With>,
    settings: &'a Settings,
    arguments: Arguments<'a>,
    /// What is done with values for identity columns.
    overriding: Option<Overriding>,
    /// What queries of a WITH before it have written and returned.
    beside: &'a [Given],
    /// What it has planned before.
    plans: Option<&'a Plans>,
}

#[derive(Clone, Copy, Debug)]
enum Tree<'a> {
    Insert(&'a ast::Insert),
    Update(&'a ast::Update),
    Delete(&'a ast::Delete),
    Merge(&'a ast::Merge),
    /// A query that only reads.
    Select,
}

impl<'a> Statement<'a> {
    /// The statement, if the tree is one of these.
    pub(crate) fn new(
        tree: &'a ast::Statement,
        settings: &'a Settings,
        arguments: Arguments<'a>,
    ) -> Option<Self> {
        let (with, tree) = match tree {
            // The parser library has what stands behind WITH as a query.
            ast::Statement::Query(query) => match query.body.as_ref() {
                ast::SetExpr::Insert(tree)
                | ast::SetExpr::Update(tree)
                | ast::SetExpr::Delete(tree)
                | ast::SetExpr::Merge(tree) => (query.with.as_ref(), tree),
                _ => return None,
            },
            tree => (None, tree),
        };
        let tree = match tree {
            ast::Statement::Insert(insert) => Tree::Insert(insert),
            ast::Statement::Update(update) => Tree::Update(update),
            ast::Statement::Delete(delete) => Tree::Delete(delete),
            ast::Statement::Merge(merge) => Tree::Merge(merge),
            _ => return None,
        };
        Some(Self { tree, with, settings, arguments, overriding: None, beside: &[], plans: None })
    }

    /// A query that only reads, in the place of one.
    fn reading(settings: &'a Settings, arguments: Arguments<'a>) -> Self {
        let (tree, with) = (Tree::Select, None);
        Self { tree, with, settings, arguments, overriding: None, beside: &[], plans: None }
    }

    /// The same, where what queries of a WITH have returned can be named.
    fn beside(self, beside: &'a [Given]) -> Self {
        Self { beside, ..self }
    }

    /// The same, run again.
    pub(crate) fn keeping(self, plans: &'a Plans) -> Self {
        Self { plans: Some(plans), ..self }
    }

    /// The same, with what is done with values for identity columns.
    pub(crate) fn overriding(self, overriding: Option<Overriding>) -> Self {
        Self { overriding, ..self }
    }

    /// The command tag without the number of rows, of one that returns them.
    pub(crate) fn tag_of_rows(&self) -> &'static str {
        match self.tree {
            Tree::Insert(_) => "INSERT 0",
            Tree::Update(_) => "UPDATE",
            Tree::Delete(_) => "DELETE",
            Tree::Merge(_) => "MERGE",
            Tree::Select => "SELECT",
        }
    }

    /// Whether it returns rows.
    pub(crate) fn returns(&self) -> bool {
        self.returning().is_some()
    }

    fn returning(&self) -> Option<&'a [ast::SelectItem]> {
        match self.tree {
            Tree::Insert(insert) => insert.returning.as_deref(),
            Tree::Update(update) => update.returning.as_deref(),
            Tree::Delete(delete) => delete.returning.as_deref(),
            Tree::Merge(_) | Tree::Select => None,
        }
    }

    fn context(&self, frame: &Arc<Frame>) -> QueryContext {
        let context = QueryContext::new(Arc::clone(frame), self.settings.clone());
        let context = context.with_given(self.beside.to_vec());
        match self.plans {
            Some(plans) => context.keeping(plans),
            None => context,
        }
    }

    /// The types of its parameters as the client has declared them.
    fn declared(&self) -> Vec<Option<Type>> {
        self.arguments.declared()
    }

    /// A query of the statement, in which the queries of its WITH can be named.
    fn with(&self, mut query: ast::Query) -> ast::Query {
        if let Some(with) = self.with {
            let own = query.with.take();
            let mut all = with.clone();
            if let Some(own) = own {
                all.recursive |= own.recursive;
                all.cte_tables.extend(own.cte_tables);
            }
            query.with = Some(all);
        }
        query
    }

    /// The name of its kind, as in messages.
    pub(crate) fn command(&self) -> &'static str {
        match self.tree {
            Tree::Insert(_) => "INSERT",
            Tree::Update(_) => "UPDATE",
            Tree::Delete(_) => "DELETE",
            Tree::Merge(_) => "MERGE",
            Tree::Select => "SELECT",
        }
    }

    /// The command tag of so many rows.
    pub(crate) fn tag(&self, rows: u64) -> String {
        match self.tree {
            Tree::Insert(_) => format!("INSERT 0 {rows}"),
            Tree::Update(_) => format!("UPDATE {rows}"),
            Tree::Delete(_) => format!("DELETE {rows}"),
            Tree::Merge(_) => format!("MERGE {rows}"),
            Tree::Select => format!("SELECT {rows}"),
        }
    }

    /// The types of its parameters, and the columns that it returns if it does.
    pub(crate) fn describe(
        &self,
        frame: &Arc<Frame>,
        declared: &[Option<Type>],
    ) -> Result<(Vec<Type>, Option<Vec<OutputColumn>>), Error> {
        let mut found = read::Parameters::new(self.settings, declared).beside(self.beside);
        self.parameters(frame, &mut found)?;
        let columns = match self.returning() {
            None => None,
            Some(items) => {
                let given = self.nothing_given(frame)?;
                Some(returning::describe(self, frame, items, given, &mut found)?)
            }
        };
        Ok((found.types(), columns))
    }

    /// The rows that RETURNING is about, without any.
    fn nothing_given(&self, frame: &Arc<Frame>) -> Result<Vec<Given>, Error> {
        match self.tree {
            Tree::Insert(insert) => insert::nothing_given(self, insert, frame),
            Tree::Update(update) => {
                update::affected(self, update, frame)?.nothing_given(self, frame)
            }
            Tree::Delete(delete) => {
                delete::affected(self, delete, frame)?.nothing_given(self, frame)
            }
            Tree::Merge(_) | Tree::Select => Ok(vec![]),
        }
    }

    fn parameters(
        &self,
        frame: &Arc<Frame>,
        found: &mut read::Parameters<'_>,
    ) -> Result<(), Error> {
        match self.tree {
            Tree::Insert(insert) => insert::parameters(self, insert, frame, found),
            Tree::Update(update) => update::parameters(self, update, frame, found),
            Tree::Delete(delete) => delete::parameters(self, delete, frame, found),
            Tree::Merge(merge) => merge::parameters(self, merge, frame, found),
            Tree::Select => Ok(()),
        }
    }
}

impl Write for Statement<'_> {
    async fn propose(&self, frame: &Arc<Frame>) -> Result<Proposal, Error> {
        match self.tree {
            Tree::Insert(insert) => insert::propose(self, insert, frame).await,
            Tree::Update(update) => update::propose(self, update, frame).await,
            Tree::Delete(delete) => delete::propose(self, delete, frame).await,
            Tree::Merge(merge) => merge::propose(self, merge, frame).await,
            Tree::Select => Ok(Proposal::nothing()),
        }
    }

    fn settings(&self) -> &Settings {
        self.settings
    }

    async fn answer(
        &self,
        frame: &Arc<Frame>,
        given: Vec<Given>,
    ) -> Result<Option<Returned>, Error> {
        let Some(items) = self.returning() else { return Ok(None) };
        let given = if given.is_empty() { self.nothing_given(frame)? } else { given };
        returning::returned(self, frame, items, given).await.map(Some)
    }
}

/// What is done to a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Insert,
    Update,
    Delete,
    Merge,
    Truncate,
    Copy,
}

/// The table with a name.
///
/// # Errors
///
/// 42P01 if there is no such relation, and what PostgreSQL says if it isn't a table.
pub(crate) fn target(
    frame: &Frame,
    settings: &Settings,
    name: &ObjectName,
    command: Command,
) -> Result<Target, Error> {
    let (schema, relation) = names::relation(name)?;
    let schemas = match schema {
        Some(schema) => vec![schema],
        None => settings.search_path(),
    };
    let catalog = frame.catalog();
    for schema in &schemas {
        if let Some(relation) = catalog.find(schema, &relation) {
            return Target::new(catalog, relation).ok_or_else(|| no_table(relation, command));
        }
        if system::SCHEMAS.contains(&schema.as_str()) && schemas.len() == 1 {
            let message = format!("permission denied for table {relation}");
            return Err(Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
        }
    }
    if let ([schema], Command::Copy | Command::Truncate) = (schemas.as_slice(), command)
        && !catalog.schemas.contains_key(schema)
    {
        let message = format!("schema \"{schema}\" does not exist");
        return Err(Error::new(SqlState::INVALID_SCHEMA_NAME, message));
    }
    let message = format!("relation \"{}\" does not exist", names::unquoted(name));
    Err(Error::new(SqlState::UNDEFINED_TABLE, message))
}

fn no_table(relation: &Relation, command: Command) -> Error {
    let name = &relation.name;
    let is_materialized = matches!(relation.kind, RelationKind::MaterializedView { .. });
    let (doing, done) = match command {
        Command::Truncate => {
            let message = format!("\"{name}\" is not a table");
            return Error::new(SqlState::WRONG_OBJECT_TYPE, message);
        }
        Command::Merge => {
            let message = format!("cannot execute MERGE on relation \"{name}\"");
            let kind = if is_materialized { "materialized views" } else { "views" };
            return Error::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                .with_detail(format!("This operation is not supported for {kind}."));
        }
        Command::Copy if is_materialized => {
            let message = format!("cannot copy to materialized view \"{name}\"");
            return Error::new(SqlState::WRONG_OBJECT_TYPE, message);
        }
        Command::Copy => {
            let message = format!("cannot copy to view \"{name}\"");
            return Error::new(SqlState::WRONG_OBJECT_TYPE, message);
        }
        _ if is_materialized => {
            let message = format!("cannot change materialized view \"{name}\"");
            return Error::new(SqlState::WRONG_OBJECT_TYPE, message);
        }
        Command::Insert => ("insert into", "inserted into"),
        Command::Update => ("update", "updated"),
        Command::Delete => ("delete from", "deleted from"),
    };
    Error::new(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("cannot {doing} view \"{name}\""),
    )
    .with_detail("Views are not automatically updatable.")
    .with_hint(format!("Only tables can be {done}."))
}
