//! Statements that change the catalog.
//!
//! Each is planned against the newest catalog and sent as a change made from that version; if
//! somebody else was faster, it is planned again.

mod alter;
mod check_rows;
mod comment;
mod constraint;
mod default;
mod drop;
mod index;
mod rename;
mod schema;
mod sequence;
mod table;
mod view;

use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{self, ObjectName};
use stillframe_protocol::{
    Change, Coordinator, CoordinatorError, Entry, Lockable, Mode, RelationId, TransactionId,
};
use uuid::Uuid;

use crate::query::QueryContext;
use crate::session::Notice;
use crate::settings::Settings;
use crate::{Catalog, Database, Error, Frame, Progress, SqlState, names, system};
use check_rows::RowCheck;

/// What a statement that changes the catalog is run with.
pub(crate) struct Definition<'a> {
    pub(crate) database: &'a Arc<Database>,
    pub(crate) settings: &'a Settings,
    pub(crate) notices: &'a mut Vec<Notice>,
    pub(crate) progress: &'a Progress,
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
        /// What must be true of the rows that are there.
        checks: Vec<RowCheck>,
    },
}

impl Edit {
    fn changed(catalog: Catalog) -> Self {
        Self::Changed { catalog, locked: vec![], notices: vec![], checks: vec![] }
    }
}

/// Makes an edit of the newest catalog.
type Plan<'a> = Box<dyn Fn(&QueryContext) -> Result<Edit, Error> + Send + Sync + 'a>;

impl Definition<'_> {
    /// Runs a statement of the parser library; returns its tag.
    pub(crate) async fn run(&mut self, statement: &ast::Statement) -> Result<String, Error> {
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
        self.change(&plan).await?;
        Ok(tag.to_owned())
    }

    /// CREATE MATERIALIZED VIEW.
    pub(crate) async fn create_materialized_view(
        &mut self,
        create: &ast::CreateView,
    ) -> Result<(), Error> {
        let plan: Plan<'_> = Box::new(move |context| view::create_materialized(context, create));
        self.change(&plan).await
    }

    /// Applies an edit to the newest catalog until nobody else is faster.
    async fn change(&mut self, plan: &Plan<'_>) -> Result<(), Error> {
        let coordinator = Arc::clone(&self.database.coordinator);
        let frame = Frame::take(self.database).await?;
        let transaction = OpenTransaction::new(&coordinator);
        loop {
            let head = self.database.catalog(&coordinator.catalog_head().await?)?;
            let context =
                QueryContext::of_catalog(Arc::clone(&frame), Arc::clone(&head), self.settings);
            let (catalog, locked, notices, checks) = match plan(&context)? {
                Edit::Nothing(notice) => {
                    self.notices.push(notice);
                    return Ok(());
                }
                Edit::Changed { catalog, locked, notices, checks } => {
                    (catalog, locked, notices, checks)
                }
            };
            let program = catalog.program();
            self.database.check(program.clone()).await?;
            if !locked.is_empty() {
                let entries = locked.into_iter().map(|relation| Entry {
                    lockable: Lockable::Relation(relation),
                    mode: Mode::Exclusive,
                });
                let timeout = self.settings.lock_timeout();
                coordinator.reserve(transaction.id, None, entries.collect(), timeout).await?;
            }
            if !checks.is_empty() {
                // Nobody writes the tables any more, and this frame shows who has.
                let frame = Frame::take(self.database).await?;
                let context = QueryContext::new(frame, self.settings.clone());
                for check in &checks {
                    check.run(&context).await?;
                }
            }
            let change = Change {
                transaction: transaction.id,
                base: head.version,
                bytes: catalog.encode(),
                program,
            };
            let committing = self.progress.commit();
            let result = coordinator.change(change).await;
            drop(committing);
            match result {
                Ok(_) => {
                    transaction.ended();
                    self.notices.extend(notices);
                    return Ok(());
                }
                Err(CoordinatorError::CatalogChanged) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// A transaction at the coordinator, aborted if nothing else ends it.
struct OpenTransaction {
    id: TransactionId,
    coordinator: Option<Arc<dyn Coordinator>>,
}

impl OpenTransaction {
    fn new(coordinator: &Arc<dyn Coordinator>) -> Self {
        let id = TransactionId(Uuid::new_v4().as_u128());
        Self { id, coordinator: Some(Arc::clone(coordinator)) }
    }

    fn ended(mut self) {
        self.coordinator = None;
    }
}

impl Drop for OpenTransaction {
    fn drop(&mut self) {
        if let Some(coordinator) = self.coordinator.take() {
            let id = self.id;
            tokio::spawn(async move { coordinator.abort(id).await });
        }
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
