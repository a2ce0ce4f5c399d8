//! Statements that change the catalog.
//!
//! Each is planned against the catalog as its transaction has it, and takes effect with that: with
//! the very step in which what it has written enters.

mod alter;
mod check_rows;
mod comment;
mod constraint;
mod default;
mod drop;
mod index;
mod rename;
mod rewrite;
mod role;
mod schema;
mod sequence;
mod storage;
mod table;
mod table_as;
mod view;

use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{self, ObjectName};
use stillframe_protocol::{Entry, Lockable, Mode, RelationId, Step};

use crate::parser::{AlterSequence, RoleStatement};
use crate::query::QueryContext;
use crate::session::Notice;
use crate::settings::Settings;
use crate::write::Transaction;
use crate::{Catalog, Error, Relation, SqlState, names, system};
use check_rows::RowCheck;
pub(crate) use constraint::find_index;
use rewrite::Rewrite;
pub(crate) use role::is_superuser;

/// What changes the catalog.
#[derive(Clone, Copy)]
pub(crate) enum Definition<'a> {
    /// A statement of the parser library.
    Statement(&'a ast::Statement),
    /// CREATE MATERIALIZED VIEW.
    MaterializedView(&'a ast::CreateView),
    /// ALTER SEQUENCE.
    AlterSequence(&'a AlterSequence),
    /// CREATE, ALTER or DROP ROLE.
    Role(&'a RoleStatement),
    /// CREATE TABLE AS.
    TableAs { create: &'a ast::CreateTable, with_data: bool },
}

/// What a statement that changes the catalog is run with.
pub(crate) struct Definer<'a> {
    pub(crate) settings: &'a Settings,
    /// What it is part of.
    pub(crate) transaction: &'a mut Transaction,
    /// How it reserves the catalog.
    pub(crate) mode: Mode,
}

/// What a statement makes of a catalog.
pub(super) enum Edit {
    /// Nothing, for the reason that a notice tells.
    Nothing(Notice),
    /// A new version.
    Changed {
        catalog: Catalog,
        /// The relations that go, or whose rows get new rules: who writes them must have finished.
        locked: Vec<RelationId>,
        notices: Vec<Notice>,
        /// The tables whose rows are all written anew.
        rewrites: Vec<Rewrite>,
        /// What must be true of the rows then.
        checks: Vec<RowCheck>,
    },
}

impl Edit {
    fn changed(catalog: Catalog) -> Self {
        Self::Changed { catalog, locked: vec![], notices: vec![], rewrites: vec![], checks: vec![] }
    }
}

/// Makes an edit of the newest catalog.
type Plan<'a> = Box<dyn Fn(&QueryContext) -> Result<Edit, Error> + Send + Sync + 'a>;

impl Definer<'_> {
    /// Changes the transaction's catalog; returns the tag, and what the client is to be told if the
    /// transaction commits.
    pub(crate) async fn run(
        &mut self,
        definition: Definition<'_>,
    ) -> Result<(String, Vec<Notice>), Error> {
        let statement = match definition {
            Definition::AlterSequence(alter) => {
                let plan: Plan<'_> = Box::new(move |context| sequence::alter(context, alter));
                let notices = self.change(&plan).await?;
                let frame = self.transaction.frame(Step(0)).await?;
                sequence::restart(&frame, self.settings, alter)?;
                return Ok(("ALTER SEQUENCE".to_owned(), notices));
            }
            Definition::Role(statement) => {
                let plan: Plan<'_> = Box::new(move |context| role::run(context, statement));
                let notices = self.change(&plan).await?;
                return Ok((statement.tag().to_owned(), notices));
            }
            Definition::TableAs { create, with_data } => {
                let query = create.query.as_deref();
                let query = query.ok_or_else(|| Error::internal("CREATE TABLE AS nothing"))?;
                return self.create_table_as(create, query, with_data).await;
            }
            Definition::Statement(ast::Statement::CreateTable(create))
                if create.query.is_some() =>
            {
                let definition = Definition::TableAs { create, with_data: true };
                return Box::pin(self.run(definition)).await;
            }
            Definition::Statement(statement) => statement,
            Definition::MaterializedView(create) => {
                let plan: Plan<'_> =
                    Box::new(move |context| view::create_materialized(context, create));
                let notices = self.change(&plan).await?;
                return Ok(("CREATE MATERIALIZED VIEW".to_owned(), notices));
            }
        };
        let (tag, plan): (&str, Plan<'_>) = match statement {
            ast::Statement::CreateTable(create) => {
                ("CREATE TABLE", Box::new(move |context| table::create(context, create)))
            }
            ast::Statement::CreateView(create) => {
                ("CREATE VIEW", Box::new(move |context| view::create(context, create)))
            }
            ast::Statement::CreateSchema { .. } => {
                ("CREATE SCHEMA", Box::new(move |context| schema::create(context, statement)))
            }
            ast::Statement::Comment { .. } => {
                ("COMMENT", Box::new(move |context| comment::comment(context, statement)))
            }
            ast::Statement::AlterTable(alter) => {
                ("ALTER TABLE", Box::new(move |context| alter::table(context, alter)))
            }
            ast::Statement::CreateIndex(create) => {
                ("CREATE INDEX", Box::new(move |context| index::create(context, create)))
            }
            ast::Statement::CreateSequence { .. } => {
                ("CREATE SEQUENCE", Box::new(move |context| sequence::create(context, statement)))
            }
            ast::Statement::Drop { object_type: ast::ObjectType::Sequence, .. } => {
                ("DROP SEQUENCE", Box::new(move |context| sequence::drop(context, statement)))
            }
            ast::Statement::Drop { object_type: ast::ObjectType::Index, .. } => {
                ("DROP INDEX", Box::new(move |context| index::drop(context, statement)))
            }
            ast::Statement::Drop { .. } => {
                let drop = drop::Drop::read(statement)?;
                (drop.tag(), Box::new(move |context| drop.apply(context)))
            }
            other => return Err(Error::unsupported(other)),
        };
        let notices = self.change(&plan).await?;
        Ok((tag.to_owned(), notices))
    }

    /// Applies an edit to the catalog as the transaction has it.
    async fn change(&mut self, plan: &Plan<'_>) -> Result<Vec<Notice>, Error> {
        let mut frame = self.transaction.draft(self.mode).await?;
        let catalog = Arc::clone(frame.catalog());
        let edit = plan(&QueryContext::of_catalog(Arc::clone(&frame), catalog, self.settings))?;
        let (mut catalog, locked, notices, rewrites, checks) = match edit {
            Edit::Nothing(notice) => return Ok(vec![notice]),
            Edit::Changed { catalog, locked, notices, rewrites, checks } => {
                (catalog, locked, notices, rewrites, checks)
            }
        };
        let locked = locked.iter().filter_map(|id| frame.catalog().relations.get(id));
        let locked = locked.map(Relation::stored_id);
        let locked: Vec<Entry> = locked
            .map(|id| Entry { lockable: Lockable::Relation(id), mode: Mode::Exclusive })
            .collect();
        if !locked.is_empty() {
            // Nobody writes the tables any more, and this frame shows who has.
            frame = self.transaction.reserve_all(locked).await?;
        }
        if checks.iter().any(|check| check.is_before) {
            let context = QueryContext::new(Arc::clone(&frame), self.settings.clone());
            for check in checks.iter().filter(|check| check.is_before) {
                check.run(&context).await?;
            }
        }
        if !rewrites.is_empty() {
            rewrite::renumber_readers(&mut catalog, &rewrites);
            let mut overlay = self.transaction.overlay().clone();
            overlay.define(catalog.clone());
            let context = QueryContext::new(frame.under(&overlay), self.settings.clone());
            rewrite::compile_readers(&context, &mut catalog, &rewrites)?;
        }
        let database = Arc::clone(frame.database());
        database.oids.next_at_least(catalog.next_oid);
        database.check(catalog.program()).await?;
        let mut overlay = self.transaction.overlay().clone();
        overlay.define(catalog);
        for rewrite in &rewrites {
            rewrite.run(&frame, self.settings, &mut overlay).await?;
        }
        let context = QueryContext::new(frame.under(&overlay), self.settings.clone());
        for check in checks.iter().filter(|check| !check.is_before) {
            check.run(&context).await?;
        }
        self.transaction.restore(overlay);
        Ok(notices)
    }
}

/// Where a new relation goes: the named schema, or the first of the search path that exists.
fn target(
    catalog: &Catalog,
    settings: &Settings,
    name: &ObjectName,
) -> Result<(String, String), Error> {
    let (schema, name) = names::relation(name)?;
    let schema = match schema {
        Some(schema) => schema,
        None => current_schema(catalog, settings).ok_or_else(|| {
            let message = "no schema has been selected to create in";
            Error::new(SqlState::INVALID_SCHEMA_NAME, message)
        })?,
    };
    if system::SCHEMAS.contains(&schema.as_str()) {
        let message = format!("permission denied to create \"{schema}.{name}\"");
        return Err(Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
            .with_detail("System catalog modifications are currently disallowed."));
    }
    if !catalog.schemas.contains_key(&schema) {
        let message = format!("schema \"{schema}\" does not exist");
        return Err(Error::new(SqlState::INVALID_SCHEMA_NAME, message));
    }
    Ok((schema, name))
}

/// The schema that new relations go to.
pub(crate) fn current_schema(catalog: &Catalog, settings: &Settings) -> Option<String> {
    let mut path = settings.search_path().into_iter();
    path.find(|schema| catalog.schemas.contains_key(schema))
}

/// What PostgreSQL says of a name that is taken.
fn already_exists(name: &str) -> Error {
    Error::new(SqlState::DUPLICATE_TABLE, format!("relation \"{name}\" already exists"))
}

/// The notice that IF NOT EXISTS leaves.
fn skipped(name: &str) -> Notice {
    let message = format!("relation \"{name}\" already exists, skipping");
    Notice::of(Error::new(SqlState::DUPLICATE_TABLE, message))
}
