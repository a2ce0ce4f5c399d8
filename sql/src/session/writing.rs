//! The statements of a session that write rows.

use std::sync::Arc;

use datafusion::sql::sqlparser::ast;
use futures::StreamExt;

use super::answer::{OutputColumn, Parameter, Prepared, Response, Rows};
use super::transaction::Transaction as Block;
use super::{Session, same_types};
use crate::copy::{CopyIn, CopyStatement, Used};
use crate::dml::{Arguments, Bulk, Compound, Statement, Truncate, cascading, restart_identity};
use crate::write::{Outcome, Returned, Transaction, autocommit};
use crate::{Error, SqlState, Type};

impl Session {
    /// The types of a writing statement's parameters, and the columns that it returns; none if it is
    /// no INSERT, UPDATE or DELETE.
    pub(super) async fn describe_write(
        &mut self,
        tree: &ast::Statement,
        text: &str,
        declared: &[Option<Type>],
    ) -> Result<(Vec<Type>, Option<Vec<OutputColumn>>), Error> {
        let arguments = Arguments { values: &[], types: &[] };
        if let Some(compound) = Compound::new(tree, &self.settings, arguments) {
            drop(compound);
            let frame = self.frame().await?;
            return match Compound::new(tree, &self.settings, arguments) {
                Some(compound) => compound.describe(&frame, declared),
                None => Ok((vec![], None)),
            };
        }
        // Without parameters it is planned when it runs, and once is enough.
        let has_parameters = !declared.is_empty() || text.contains('$');
        match Statement::new(tree, &self.settings, arguments) {
            Some(statement) if has_parameters || statement.returns() => {}
            _ => return Ok((vec![], None)),
        }
        let frame = self.frame().await?;
        match Statement::new(tree, &self.settings, arguments) {
            Some(statement) => statement.describe(&frame, declared),
            None => Ok((vec![], None)),
        }
    }

    /// Runs an INSERT, UPDATE, DELETE or TRUNCATE; none if it is something else.
    pub(super) async fn write(
        &mut self,
        tree: &ast::Statement,
        prepared: &Prepared,
        parameters: &[Parameter],
    ) -> Result<Option<Response>, Error> {
        let arguments = Arguments { values: parameters, types: prepared.parameters() };
        if let Some(compound) = Compound::new(tree, &self.settings, arguments) {
            self.transaction.admit_write(compound.command(), &self.settings)?;
            let lock_timeout = self.settings.lock_timeout();
            let outcome = match &mut self.transaction {
                Block::Open(block) => {
                    let transaction = block.writes()?;
                    transaction.wait_at_most(lock_timeout);
                    transaction.run(&compound).await?
                }
                _ => autocommit(&self.database, lock_timeout, &self.progress, &compound).await?,
            };
            let tag = compound.tag_of_rows();
            let affected = (!compound.selects()).then_some(outcome.rows);
            let Some(Returned { columns, batch }) = outcome.returned else {
                return Ok(Some(Response::Complete { tag: format!("{tag} {}", outcome.rows) }));
            };
            return Ok(Some(Response::Rows(Rows {
                columns,
                step: None,
                batches: futures::stream::iter([Ok(batch)]).boxed(),
                tag,
                affected,
            })));
        }
        let statement = Statement::new(tree, &self.settings, arguments);
        let overriding = prepared.statement.overriding;
        let tag = if let Some(statement) =
            statement.map(|found| found.overriding(overriding).keeping(&prepared.plans))
        {
            self.transaction.admit_write(statement.command(), &self.settings)?;
            let lock_timeout = self.settings.lock_timeout();
            let outcome = match &mut self.transaction {
                Block::Open(block) => {
                    let transaction = block.writes()?;
                    transaction.wait_at_most(lock_timeout);
                    transaction.run(&statement).await?
                }
                _ => {
                    let (database, progress) = (&self.database, &self.progress);
                    let loaded = match Bulk::of(statement) {
                        Some(bulk) => bulk.run(database, lock_timeout, progress).await?,
                        None => None,
                    };
                    match loaded {
                        Some(rows) => Outcome { rows, returned: None },
                        None => autocommit(database, lock_timeout, progress, &statement).await?,
                    }
                }
            };
            if let Some(Returned { columns, batch }) = outcome.returned {
                if prepared.columns().is_some_and(|found| !same_types(found, &columns)) {
                    let message = "cached plan must not change result type";
                    return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
                }
                return Ok(Some(Response::Rows(Rows {
                    columns,
                    step: None,
                    batches: futures::stream::iter([Ok(batch)]).boxed(),
                    tag: statement.tag_of_rows(),
                    affected: Some(outcome.rows),
                })));
            }
            statement.tag(outcome.rows)
        } else if let ast::Statement::Truncate(truncate) = tree {
            self.transaction.admit_write("TRUNCATE TABLE", &self.settings)?;
            let frame = self.frame().await?;
            let (truncate, notices) = cascading(&frame, &self.settings, truncate)?;
            drop(frame);
            let tables = Truncate::all(&self.settings, &truncate)?;
            let lock_timeout = self.settings.lock_timeout();
            if let Block::Open(block) = &mut self.transaction {
                let transaction = block.writes()?;
                transaction.wait_at_most(lock_timeout);
                for table in tables {
                    transaction.run(&table).await?;
                }
            } else {
                let mut transaction = Transaction::new(&self.database, lock_timeout);
                for table in tables {
                    transaction.run(&table).await?;
                }
                transaction.commit(&self.progress).await?;
            }
            let frame = self.frame().await?;
            restart_identity(&frame, &self.settings, &truncate)?;
            self.notices.extend(notices);
            "TRUNCATE TABLE".to_owned()
        } else {
            return Ok(None);
        };
        Ok(Some(Response::Complete { tag }))
    }

    /// SET CONSTRAINTS: means nothing outside of a block.
    pub(super) async fn set_constraints(
        &mut self,
        names: Option<&[String]>,
        deferred: bool,
    ) -> Result<(), Error> {
        if !matches!(self.transaction, Block::Open(_)) {
            self.warn(
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "SET CONSTRAINTS can only be used in transaction blocks",
            );
            return Ok(());
        }
        let catalog = Arc::clone(self.frame().await?.catalog());
        let Block::Open(block) = &mut self.transaction else { return Ok(()) };
        block.writes()?.set_constraints(&catalog, names, deferred).await
    }

    /// Begins a COPY.
    pub(super) async fn copy(&mut self, statement: &CopyStatement) -> Result<Response, Error> {
        self.transaction.admit_write("COPY FROM", &self.settings)?;
        let lock_timeout = self.settings.lock_timeout();
        let used = match &mut self.transaction {
            Block::Open(block) => {
                block.writes()?.wait_at_most(lock_timeout);
                match block.writes.take() {
                    Some(transaction) => Used::lent(transaction, &block.loan),
                    None => return Err(Error::internal("the block's changes are gone")),
                }
            }
            _ => Used::own(Transaction::new(&self.database, lock_timeout), &self.progress),
        };
        let copy = CopyIn::begin(used, &self.settings, statement).await?;
        Ok(Response::CopyIn(copy))
    }
}
