//! One client's session: settings, the state of its transaction, and the dispatch of statements.

mod advisory;
mod answer;
mod cursor;
mod defining;
mod ending;
mod explain;
mod locking;
mod maintaining;
mod prepared;
mod savepoint;
mod signals;
#[cfg(test)]
mod tests;
mod transaction;
mod writing;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use datafusion::sql::sqlparser::ast;

pub use answer::{
    IdleLimit, Notice, OutputColumn, Parameter, Prepared, Request, Response, Rows,
    TransactionStatus,
};
use cursor::Cursors;
use prepared::Kept;
use transaction::Transaction;

use crate::activity::Shown;
use crate::copy::{CopyOut, Direction};
use crate::ddl::Definition;
use crate::dml::{Arguments, without_locks};
use crate::parser::{self, Discard, Signal, Source, Statement, Tree, Utility};
use crate::query::{Plans, QueryContext};
use crate::settings::Settings;
use crate::{
    Database, Error, Frame, Progress, RelationKind, SqlState, TextFormat, Type, facts, stack,
};

/// One client's session.
pub struct Session {
    database: Arc<Database>,
    settings: Settings,
    transaction: Transaction,
    /// Whether statements are part of a request that ends them together.
    is_in_request: bool,
    request: Request,
    kept: Kept,
    cursors: Cursors,
    notices: Vec<Notice>,
    progress: Progress,
    /// None for a session that no client has.
    shown: Option<Shown>,
}

impl Session {
    /// A new session.
    pub fn new(database: Arc<Database>, user: &str) -> Self {
        Self {
            database,
            settings: Settings::new(user),
            transaction: Transaction::Idle,
            is_in_request: false,
            request: Request::default(),
            kept: Kept::default(),
            cursors: Cursors::default(),
            notices: vec![],
            progress: Progress::default(),
            shown: None,
        }
    }

    /// The same for a user who isn't a superuser.
    #[must_use]
    pub fn restricted(mut self) -> Self {
        self.settings.put("is_superuser", "off");
        self
    }

    /// The same for the client whose process has this number.
    #[must_use]
    pub fn of_process(mut self, process: i32) -> Self {
        self.settings.facts().set_process(process);
        self.shown = Some(Shown::new(&self.database, process, self.settings.user()));
        self
    }

    /// The same for a client at this address, once its process has a number.
    #[must_use]
    pub fn of_client(self, address: SocketAddr) -> Self {
        if let Some(shown) = &self.shown {
            shown.client(address);
        }
        self
    }

    /// Splits text into statements.
    pub fn parse(&self, text: &str) -> Result<Vec<Statement>, Error> {
        stack::deep(|| parser::parse(text))
    }

    /// Finds the parameters and columns of a statement. `declared` are the types the client gives.
    pub async fn prepare(
        &mut self,
        statement: Statement,
        declared: &[Option<Type>],
    ) -> Result<Prepared, Error> {
        self.take_assignments();
        let prepared = stack::deep_future(self.describe(statement, declared)).await;
        self.note(prepared)
    }

    /// Sets a setting as a startup packet asks, for the whole session: 42704 if there is none of
    /// this name, 22023 if the value is none of its values.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        self.settings.set(name, Some(value))
    }

    /// The settings that a client is told at the start and whenever they change, in PostgreSQL's
    /// spelling (`client_encoding`, `DateStyle`, `TimeZone`, ...).
    pub fn reported_settings(&self) -> Vec<(&'static str, String)> {
        let reported = self.settings.reported().into_iter();
        reported.map(|(name, value)| (name, value.to_owned())).collect()
    }

    /// How long a statement may take; none is without end.
    pub fn statement_timeout(&self) -> Option<Duration> {
        self.settings.statement_timeout()
    }

    /// How long its client may be silent now; none is without end.
    pub fn idle_limit(&self) -> Option<IdleLimit> {
        let in_transaction = !self.transaction.is_idle();
        let time = self.settings.idle_timeout(in_transaction)?;
        let (state, message) = match in_transaction {
            true => (
                SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
                "terminating connection due to idle-in-transaction timeout",
            ),
            false => (
                SqlState::IDLE_SESSION_TIMEOUT,
                "terminating connection due to idle-session timeout",
            ),
        };
        Some(IdleLimit { time, error: Error::new(state, message) })
    }

    /// How the session wants its values written now.
    pub fn text_format(&self) -> TextFormat {
        self.settings.text_format()
    }

    /// Whether the statement under way can still be stopped, while [`Session::execute`] runs.
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Learns that a statement failed outside of `prepare` and `execute`: while its rows were sent
    /// or its COPY was fed, by a parameter that can't be read, or because it was stopped (its
    /// future was dropped). An open transaction block fails with it.
    pub fn fail(&mut self) {
        self.is_in_request = false;
        self.transaction.fail(&mut self.settings);
        self.settings.facts().forget_assignments();
        if self.transaction.is_idle() {
            self.end_advisory();
            self.drop_signals();
            self.cursors.end();
            self.show_cursors();
        }
    }

    /// Reads the values of a statement's parameters: 22P02 or its like for one that can't be read.
    pub fn check(&self, prepared: &Prepared, parameters: &[Parameter]) -> Result<(), Error> {
        let arguments = Arguments { values: parameters, types: prepared.parameters() };
        arguments.scalars(&self.settings.text_format()).map(|_| ())
    }

    /// Runs a statement. To drop the future stops it: unless it [is
    /// committing](Progress::is_committing) nothing of it remains.
    pub async fn execute(
        &mut self,
        prepared: &Prepared,
        parameters: Vec<Parameter>,
    ) -> Result<Response, Error> {
        self.take_assignments();
        if let Some(shown) = &self.shown {
            shown.begin(prepared.statement.source.text(), self.settings.application_name());
        }
        let response = stack::deep_future(self.dispatch(prepared, &parameters)).await;
        let response = self.note(response)?;
        if self.transaction.is_idle() && !matches!(response, Response::Rows(_)) {
            self.send_signals();
        }
        Ok(response)
    }

    /// Where the session stands, when it waits for its client.
    pub fn transaction_status(&self) -> TransactionStatus {
        let status = self.transaction.status();
        if let Some(shown) = &self.shown {
            shown.wait(status);
        }
        status
    }

    /// Takes what is to be told to the client.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Lets an error fail the open block.
    fn note<T>(&mut self, result: Result<T, Error>) -> Result<T, Error> {
        if result.is_err() {
            self.fail();
        }
        result
    }

    async fn describe(
        &mut self,
        statement: Statement,
        declared: &[Option<Type>],
    ) -> Result<Prepared, Error> {
        self.transaction.admit(&statement.tree)?;
        let plans = Plans::default();
        let (parameters, columns) = match &statement.tree {
            Tree::Utility(utility) => (vec![], self.utility_columns(utility)?),
            Tree::Sql(tree) => match tree.as_ref() {
                ast::Statement::Query(query) if !is_write(query) => {
                    let mut context = self.context().await?.keeping(&plans);
                    context.source = Some(Arc::clone(&statement.source));
                    let planned = &context.ready(&without_locks(query), declared)?.planned;
                    (planned.parameters.clone(), Some(planned.columns.clone()))
                }
                tree => {
                    let text = statement.source.text();
                    self.describe_write(tree, text, declared).await?
                }
            },
        };
        Ok(Prepared { statement, parameters, columns, plans })
    }

    /// Plans under the frame that the transaction allows.
    async fn context(&mut self) -> Result<QueryContext, Error> {
        let frame = self.frame().await?;
        Ok(QueryContext::new(frame, self.settings.clone()))
    }

    /// The frame that a statement reads, under what its block has changed.
    async fn frame(&mut self) -> Result<Arc<Frame>, Error> {
        match &mut self.transaction {
            Transaction::Open(block) => block.frame().await,
            Transaction::Idle | Transaction::Failed(_) => Frame::take(&self.database).await,
        }
    }

    async fn dispatch(
        &mut self,
        prepared: &Prepared,
        parameters: &[Parameter],
    ) -> Result<Response, Error> {
        let statement = &prepared.statement;
        self.transaction.admit(&statement.tree)?;
        if self.transaction.is_idle() {
            self.settings.begin();
        }
        self.enter(&statement.tree);
        self.notices.extend(statement.notices.iter().cloned());
        match &statement.tree {
            Tree::Utility(utility) => self.utility(utility, &statement.source).await,
            Tree::Sql(tree) => self.sql(tree, prepared, parameters).await,
        }
    }

    async fn sql(
        &mut self,
        tree: &ast::Statement,
        prepared: &Prepared,
        parameters: &[Parameter],
    ) -> Result<Response, Error> {
        match tree {
            ast::Statement::Query(query) if !is_write(query) => {
                self.query(query, prepared, parameters).await
            }
            tree if defines(tree) => {
                let tag = self.define(&command(tree), Definition::Statement(tree)).await?;
                Ok(Response::Complete { tag })
            }
            ast::Statement::Lock(lock) => {
                self.lock_tables(lock).await?;
                Ok(Response::Complete { tag: "LOCK TABLE".to_owned() })
            }
            other => match self.write(tree, prepared, parameters).await? {
                Some(response) => Ok(response),
                None => Err(refusal(other)),
            },
        }
    }

    async fn query(
        &mut self,
        query: &ast::Query,
        prepared: &Prepared,
        parameters: &[Parameter],
    ) -> Result<Response, Error> {
        if !query.locks.is_empty() {
            return self.query_and_lock(query, prepared, parameters).await;
        }
        let mut context = self.context().await?.keeping(&prepared.plans);
        context.source = Some(Arc::clone(&prepared.statement.source));
        let types: Vec<_> = prepared.parameters.iter().cloned().map(Some).collect();
        let ready = context.ready(query, &types)?;
        let planned = &ready.planned;
        if planned.parameters.len() > parameters.len() {
            let message = format!("there is no parameter ${}", parameters.len() + 1);
            return Err(Error::new(SqlState::UNDEFINED_PARAMETER, message));
        }
        if prepared.columns.as_deref().is_some_and(|columns| !same_types(columns, &planned.columns))
        {
            let message = "cached plan must not change result type";
            return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        let arguments = Arguments { values: parameters, types: &planned.parameters };
        let values = arguments.scalars(&self.settings.text_format())?;
        let batches = match advisory::is_named(&planned.text) {
            true => self.run_with_locks(&context, &ready, values).await?,
            false => context.run_ready(&ready, values).await?,
        };
        let step = context.frame.step();
        self.settings.put("stillframe.step", step.to_string());
        Ok(Response::Rows(Rows {
            columns: planned.columns.clone(),
            step: Some(step),
            batches,
            tag: "SELECT",
            affected: None,
        }))
    }

    async fn utility(
        &mut self,
        utility: &Utility,
        source: &Arc<Source>,
    ) -> Result<Response, Error> {
        let tag = match utility {
            Utility::Show { name } => {
                let value = self.settings.get(name)?.to_owned();
                let columns = vec![OutputColumn::new(Settings::canonical(name), Type::Text)];
                return Ok(Response::Rows(Rows::of_text(columns, vec![vec![value]], "SHOW")));
            }
            Utility::ShowAll => {
                let rows = self.settings.all().into_iter().map(|(name, value, description)| {
                    vec![name.to_owned(), value.to_owned(), description.to_owned()]
                });
                let rows = rows.collect();
                return Ok(Response::Rows(Rows::of_text(show_all_columns(), rows, "SHOW")));
            }
            Utility::Set { local, name, value } => {
                self.assign(*local, name, value.as_deref())?;
                "SET"
            }
            Utility::Reset { name } => {
                self.assign(false, name, None)?;
                "RESET"
            }
            Utility::ResetAll => {
                self.settings.reset();
                "RESET"
            }
            Utility::Discard(what) => {
                self.discard(*what)?;
                what.tag()
            }
            Utility::Prepare { name, types, statement } => {
                self.prepare_as(name, types, statement).await?;
                "PREPARE"
            }
            Utility::Execute { name, arguments } => {
                return self.execute_kept(name, arguments).await;
            }
            Utility::Deallocate { name: Some(name) } => {
                self.kept(name)?;
                self.forget(name);
                "DEALLOCATE"
            }
            Utility::Deallocate { name: None } => {
                self.forget_all();
                "DEALLOCATE ALL"
            }
            Utility::Declare { name, scroll, hold, query } => {
                self.declare_cursor(name, *scroll, *hold, query).await?;
                "DECLARE CURSOR"
            }
            Utility::Fetch { name, direction, moves: false } => {
                return Ok(Response::Rows(self.fetch(name, *direction).await?));
            }
            Utility::Fetch { name, direction, moves: true } => {
                let rows = self.move_cursor(name, *direction).await?;
                return Ok(Response::Complete { tag: format!("MOVE {rows}") });
            }
            Utility::Role(role) => {
                let tag = self.define(role.tag(), Definition::Role(role)).await?;
                return Ok(Response::Complete { tag });
            }
            Utility::Signal(signal) => {
                self.signal(signal)?;
                signal.tag()
            }
            Utility::CloseCursor { name: Some(name) } => {
                self.close_cursor(name)?;
                "CLOSE CURSOR"
            }
            Utility::CloseCursor { name: None } => {
                self.cursors.clear();
                self.show_cursors();
                "CLOSE CURSOR ALL"
            }
            Utility::Begin { modes, tag } => {
                self.begin(*modes)?;
                tag
            }
            Utility::SetTransaction { modes } => {
                if !self.transaction.set_modes(&mut self.settings, *modes)? {
                    self.warn(
                        SqlState::NO_ACTIVE_SQL_TRANSACTION,
                        "SET TRANSACTION can only be used in transaction blocks",
                    );
                }
                "SET"
            }
            Utility::SetConstraints { names, deferred } => {
                self.set_constraints(names.as_deref(), *deferred).await?;
                "SET CONSTRAINTS"
            }
            Utility::SetDefaultTransaction { modes } => {
                if let Some(isolation) = modes.isolation {
                    self.settings.put("default_transaction_isolation", isolation.name());
                }
                if let Some(read_only) = modes.read_only {
                    let value = if read_only { "on" } else { "off" };
                    self.settings.put("default_transaction_read_only", value);
                }
                "SET"
            }
            Utility::Commit { chain } => self.end_block(true, *chain).await?,
            Utility::Rollback { chain } => self.end_block(false, *chain).await?,
            Utility::Savepoint { action, name } => self.savepoint(*action, name)?,
            Utility::Copy(copy) if copy.direction == Direction::ToClient => {
                let frame = self.frame().await?;
                let copy = CopyOut::begin(frame, &self.settings, source, copy).await?;
                if let Some(step) = copy.step {
                    self.settings.put("stillframe.step", step.to_string());
                }
                return Ok(Response::CopyOut(copy));
            }
            Utility::Copy(copy) => return self.copy(copy).await,
            Utility::CreateMaterializedView { create, with_data } => {
                if !with_data {
                    return Err(Error::unsupported("WITH NO DATA")
                        .with_hint("A materialized view always has its rows."));
                }
                let command = "CREATE MATERIALIZED VIEW";
                self.define(command, Definition::MaterializedView(create)).await?;
                command
            }
            Utility::CreateTableAs { create, with_data } => {
                let definition = Definition::TableAs { create, with_data: *with_data };
                let tag = self.define("CREATE TABLE AS", definition).await?;
                return Ok(Response::Complete { tag });
            }
            Utility::AlterSequence(alter) => {
                self.define("ALTER SEQUENCE", Definition::AlterSequence(alter)).await?;
                "ALTER SEQUENCE"
            }
            Utility::Maintain(what) => self.maintain(what).await?,
            Utility::Explain(explain) => return self.explain(explain).await,
            Utility::Refresh { name, with_data } => {
                self.refresh(name, *with_data).await?;
                "REFRESH MATERIALIZED VIEW"
            }
        };
        Ok(Response::Complete { tag: tag.to_owned() })
    }

    fn utility_columns(&self, utility: &Utility) -> Result<Option<Vec<OutputColumn>>, Error> {
        Ok(match utility {
            Utility::Show { name } => {
                Some(vec![OutputColumn::new(Settings::canonical(name), Type::Text)])
            }
            Utility::ShowAll => Some(show_all_columns()),
            Utility::Explain(_) => Some(explain::columns()),
            Utility::Execute { name, .. } => self.kept_columns(name)?,
            Utility::Fetch { name, moves: false, .. } => Some(self.cursor_columns(name)?),
            _ => None,
        })
    }

    /// Forgets what DISCARD says.
    fn discard(&mut self, what: Discard) -> Result<(), Error> {
        if what == Discard::All {
            if !self.transaction.is_idle() {
                let message = "DISCARD ALL cannot run inside a transaction block";
                return Err(Error::new(SqlState::ACTIVE_SQL_TRANSACTION, message));
            }
            self.settings.reset();
            self.forget_all();
            self.cursors.clear();
            self.show_cursors();
            self.signal(&Signal::Unlisten(None))?;
            self.database.advisory.give_all_back(self.settings.facts().holder(), None);
        }
        if matches!(what, Discard::All | Discard::Sequences) {
            self.settings.sequences().forget();
        }
        Ok(())
    }

    /// There is nothing to refresh: the view is what its query gives, at every step.
    async fn refresh(&mut self, name: &ast::ObjectName, with_data: bool) -> Result<(), Error> {
        let context = self.context().await?;
        let relation = context.relation(name)?;
        if !matches!(relation.kind, RelationKind::MaterializedView { .. }) {
            let message = format!("\"{}\" is not a materialized view", relation.name);
            return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
        if !with_data {
            return Err(Error::unsupported("WITH NO DATA")
                .with_hint("A materialized view always has its rows."));
        }
        let message = format!("materialized view \"{}\" is always up to date", relation.name);
        let notice = Error::new(SqlState::SUCCESSFUL_COMPLETION, message);
        self.notices.push(Notice::of(notice));
        Ok(())
    }

    fn assign(&mut self, local: bool, name: &str, value: Option<&str>) -> Result<(), Error> {
        if local && self.transaction.is_idle() {
            self.warn(
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "SET LOCAL can only be used in transaction blocks",
            );
            return Ok(());
        }
        self.settings.set(name, value)?;
        self.transaction.assigned(local, name, &self.settings);
        Ok(())
    }

    /// Sets what `set_config` was asked to.
    fn take_assignments(&mut self) {
        for facts::Assignment { name, value, local } in self.settings.facts().take_assignments() {
            // Outside of a block it is over already; what it was asked to was looked at.
            if !(local && self.transaction.is_idle()) {
                let _ = self.assign(local, &name, value.as_deref());
            }
        }
    }

    fn warn(&mut self, state: SqlState, message: &str) {
        self.notices.push(Notice::warning(Error::new(state, message)));
    }
}

/// Whether a statement changes the catalog.
fn defines(tree: &ast::Statement) -> bool {
    matches!(
        tree,
        ast::Statement::CreateTable(_)
            | ast::Statement::CreateView(_)
            | ast::Statement::CreateSchema { .. }
            | ast::Statement::Comment { .. }
            | ast::Statement::AlterTable(_)
            | ast::Statement::CreateIndex(_)
            | ast::Statement::CreateSequence { .. }
            | ast::Statement::Drop { .. }
    )
}

/// Whether a query is a WITH before a statement that writes, or has one in it.
pub(crate) fn is_write(query: &ast::Query) -> bool {
    let with = query.with.iter().flat_map(|with| &with.cte_tables);
    with.into_iter().any(|cte| is_write(&cte.query))
        || matches!(
            query.body.as_ref(),
            ast::SetExpr::Insert(_)
                | ast::SetExpr::Update(_)
                | ast::SetExpr::Delete(_)
                | ast::SetExpr::Merge(_)
        )
}

/// Whether rows of one fit where rows of the other are expected.
fn same_types(expected: &[OutputColumn], found: &[OutputColumn]) -> bool {
    let types = |columns: &[OutputColumn]| -> Vec<_> {
        columns.iter().map(|column| (column.name.clone(), column.kind.clone())).collect()
    };
    types(expected) == types(found)
}

fn show_all_columns() -> Vec<OutputColumn> {
    let names = ["name", "setting", "description"];
    names.map(|name| OutputColumn::new(name, Type::Text)).into()
}

fn refusal(statement: &ast::Statement) -> Error {
    let error = Error::unsupported(command(statement));
    match statement {
        ast::Statement::Grant(_) | ast::Statement::Revoke(_) => {
            error.with_hint("Roles say who may connect; whoever is in may use everything.")
        }
        _ => error,
    }
}

/// The first words of a statement, for messages.
fn command(statement: &ast::Statement) -> String {
    let text = statement.to_string();
    let words = text.split_whitespace().take_while(|word| word.chars().all(char::is_uppercase));
    words.take(3).collect::<Vec<_>>().join(" ")
}
