//! Statements that are kept under a name, by PREPARE or by a message of the wire.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::sql::sqlparser::ast;
use futures::TryStreamExt;

use super::Session;
use super::answer::{Parameter, Prepared, Response};
use crate::parser::{self, Statement, Tree};
use crate::text::TextColumn;
use crate::{Error, SqlState, Type, facts};

/// The statements of a session that have a name. `None` is text without a statement.
#[derive(Default)]
pub(super) struct Kept(BTreeMap<String, Option<Arc<Prepared>>>);

impl Kept {
    fn get(&self, name: &str) -> Result<&Arc<Prepared>, Error> {
        self.0.get(name).and_then(Option::as_ref).ok_or_else(|| missing(name))
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

fn missing(name: &str) -> Error {
    let message = format!("prepared statement \"{name}\" does not exist");
    Error::new(SqlState::INVALID_SQL_STATEMENT_NAME, message)
}

impl Session {
    /// Keeps a statement under a name for as long as the session lives, or until it is
    /// [forgotten](Session::forget): 42P05 if the name is taken. Without a statement it is one that
    /// does nothing.
    pub fn keep(&mut self, name: &str, prepared: Option<Arc<Prepared>>) -> Result<(), Error> {
        if self.kept.0.contains_key(name) {
            let message = format!("prepared statement \"{name}\" already exists");
            return Err(Error::new(SqlState::DUPLICATE_PREPARED_STATEMENT, message));
        }
        if let Some(prepared) = &prepared {
            self.show_statement(name, prepared, false);
        }
        self.kept.0.insert(name.to_owned(), prepared);
        Ok(())
    }

    /// The statement of a name: 26000 if there is none.
    pub fn kept(&self, name: &str) -> Result<Option<Arc<Prepared>>, Error> {
        self.kept.0.get(name).cloned().ok_or_else(|| missing(name))
    }

    /// Forgets the statement of a name; `false` if there is none.
    pub fn forget(&mut self, name: &str) -> bool {
        self.settings.facts().forget_statement(name);
        self.kept.0.remove(name).is_some()
    }

    /// Forgets all of them.
    pub(super) fn forget_all(&mut self) {
        self.settings.facts().forget_statements();
        self.kept.clear();
    }

    /// Lets `pg_prepared_statements` show a statement.
    fn show_statement(&self, name: &str, prepared: &Prepared, is_from_sql: bool) {
        let statement = facts::Statement {
            text: prepared.statement.source.text().to_owned(),
            types: prepared.parameters.clone(),
            is_from_sql,
            since_us: chrono::Utc::now().timestamp_micros(),
        };
        self.settings.facts().keep_statement(name, statement);
    }

    /// PREPARE.
    pub(super) async fn prepare_as(
        &mut self,
        name: &str,
        types: &[ast::DataType],
        statement: &Statement,
    ) -> Result<(), Error> {
        let declared = types.iter().map(|kind| Type::of_syntax(kind).map(Some));
        let declared = declared.collect::<Result<Vec<_>, _>>()?;
        let prepared = Box::pin(self.describe(statement.clone(), &declared)).await?;
        let prepared = Arc::new(prepared);
        self.keep(name, Some(Arc::clone(&prepared)))?;
        self.show_statement(name, &prepared, true);
        Ok(())
    }

    /// The columns of what EXECUTE runs.
    pub(super) fn kept_columns(
        &self,
        name: &str,
    ) -> Result<Option<Vec<super::OutputColumn>>, Error> {
        Ok(self.kept.get(name)?.columns.clone())
    }

    /// EXECUTE.
    pub(super) async fn execute_kept(
        &mut self,
        name: &str,
        arguments: &[ast::Expr],
    ) -> Result<Response, Error> {
        let prepared = Arc::clone(self.kept.get(name)?);
        let (expected, got) = (prepared.parameters.len(), arguments.len());
        if expected != got {
            let message = format!("wrong number of parameters for prepared statement \"{name}\"");
            let detail = format!("Expected {expected} parameters but got {got}.");
            return Err(Error::new(SqlState::SYNTAX_ERROR, message).with_detail(detail));
        }
        let parameters = self.evaluate(arguments, &prepared.parameters).await?;
        Box::pin(self.dispatch(&prepared, &parameters)).await
    }

    /// The values of expressions, as parameters of these types.
    async fn evaluate(
        &mut self,
        expressions: &[ast::Expr],
        types: &[Type],
    ) -> Result<Vec<Parameter>, Error> {
        if expressions.is_empty() {
            return Ok(vec![]);
        }
        let values = expressions.iter().zip(types).map(|(expression, kind)| match kind {
            Type::Unknown => format!("({expression})"),
            kind => format!("CAST(({expression}) AS {kind})"),
        });
        let text = format!("SELECT {}", values.collect::<Vec<_>>().join(", "));
        let statement = parser::parse(&text)?.pop().ok_or_else(|| Error::internal(&text))?;
        let Tree::Sql(tree) = &statement.tree else { return Err(Error::internal(&text)) };
        let ast::Statement::Query(query) = tree.as_ref() else {
            return Err(Error::internal(&text));
        };
        let context = self.context().await?;
        let planned = context.plan(query, &[])?;
        if !planned.parameters.is_empty() {
            let message = "there is no parameter $1";
            return Err(Error::new(SqlState::UNDEFINED_PARAMETER, message));
        }
        let batches: Vec<_> = context.run(&planned.plan).await?.try_collect().await?;
        let row = batches.iter().find(|batch| batch.num_rows() > 0);
        let row = row.ok_or_else(|| Error::internal("an expression has no value"))?;
        let format = self.settings.text_format();
        let values = row.columns().iter().zip(&planned.columns).map(|(array, column)| {
            let mut text = vec![];
            let encoder = TextColumn::new(&column.kind, array, &format)?;
            if !encoder.write(0, &mut text) {
                return Ok(Parameter::Null);
            }
            let text =
                String::from_utf8(text).map_err(|error| Error::internal(error.to_string()))?;
            Ok(Parameter::Text(text))
        });
        values.collect()
    }
}
