//! How transactions begin and end: by BEGIN and COMMIT, or with the request of several statements
//! that they were made by.

use datafusion::sql::sqlparser::ast;

use super::Session;
use super::answer::Request;
use super::transaction::{Block, Transaction};
use crate::parser::{TransactionModes, Tree, Utility};
use crate::{Error, SqlState};

impl Session {
    /// Lets the statements up to [`Session::finish_request`] be one transaction, but where BEGIN and
    /// COMMIT among them say otherwise.
    pub fn begin_request(&mut self, request: Request) {
        self.is_in_request = true;
        self.request = request;
    }

    /// Ends the transaction that statements since [`Session::begin_request`] were in, if they are
    /// still in it. As for [`Session::execute`], to drop the future undoes all of it unless it is
    /// committing.
    pub async fn finish_request(&mut self) -> Result<(), Error> {
        self.is_in_request = false;
        self.end_implicit().await
    }

    /// Opens the block that a statement of a request needs.
    pub(super) fn enter(&mut self, tree: &Tree) {
        if !self.is_in_request || !self.transaction.is_idle() {
            return;
        }
        let needs_block = match tree {
            Tree::Sql(tree) => match tree.as_ref() {
                ast::Statement::Query(query)
                    if super::is_write(query) || !query.locks.is_empty() =>
                {
                    true
                }
                ast::Statement::Query(_) => {
                    let level = self.settings.get("default_transaction_isolation");
                    level.is_ok_and(|level| level == "repeatable read")
                }
                ast::Statement::Insert(_)
                | ast::Statement::Update(_)
                | ast::Statement::Delete(_)
                | ast::Statement::Merge(_)
                | ast::Statement::Truncate(_)
                | ast::Statement::Lock(_) => true,
                // Alone it shares a replacement of the circuit with others that wait.
                tree => self.request == Request::Query && super::defines(tree),
            },
            Tree::Utility(
                Utility::Set { .. }
                | Utility::Reset { .. }
                | Utility::SetTransaction { .. }
                | Utility::Execute { .. }
                | Utility::Declare { .. }
                | Utility::Signal(_)
                | Utility::Copy(_),
            ) => true,
            Tree::Utility(
                Utility::CreateMaterializedView { .. }
                | Utility::AlterSequence(_)
                | Utility::Role(_)
                | Utility::CreateTableAs { .. },
            ) => self.request == Request::Query,
            Tree::Utility(_) => false,
        };
        if needs_block {
            self.transaction =
                Transaction::Open(Block::implicit(&self.database, &mut self.settings));
        }
    }

    /// Commits what a request of several statements has done so far, outside of a block.
    pub(super) async fn end_implicit(&mut self) -> Result<(), Error> {
        if self.transaction.is_implicit() {
            self.end(true, false).await?;
        }
        Ok(())
    }

    /// Begins a block.
    pub(super) fn begin(&mut self, modes: TransactionModes) -> Result<(), Error> {
        if self.transaction.is_idle() {
            let block = Block::new(&self.database, &mut self.settings, modes);
            self.transaction = Transaction::Open(block);
        } else if self.transaction.is_implicit() {
            self.transaction.become_explicit(&mut self.settings, modes)?;
        } else {
            self.warn(
                SqlState::ACTIVE_SQL_TRANSACTION,
                "there is already a transaction in progress",
            );
        }
        Ok(())
    }

    /// Runs COMMIT or ROLLBACK; returns the tag.
    pub(super) async fn end_block(
        &mut self,
        commit: bool,
        chain: bool,
    ) -> Result<&'static str, Error> {
        let has_block = !self.transaction.is_idle() && !self.transaction.is_implicit();
        if !has_block {
            if chain {
                let command = if commit { "COMMIT" } else { "ROLLBACK" };
                let message = format!("{command} AND CHAIN can only be used in transaction blocks");
                return Err(Error::new(SqlState::NO_ACTIVE_SQL_TRANSACTION, message));
            }
            self.warn(SqlState::NO_ACTIVE_SQL_TRANSACTION, "there is no transaction in progress");
        }
        self.end(commit, chain).await
    }

    /// Ends the block, if there is one; returns the tag.
    async fn end(&mut self, commit: bool, chain: bool) -> Result<&'static str, Error> {
        let (mut block, commit) = match std::mem::replace(&mut self.transaction, Transaction::Idle)
        {
            Transaction::Idle => return Ok(if commit { "COMMIT" } else { "ROLLBACK" }),
            Transaction::Open(block) => (block, commit),
            Transaction::Failed(block) => (block, false),
        };
        self.take_assignments();
        // So it is unless the commit succeeds.
        block.end(&mut self.settings, false);
        let held = self.cursors.end();
        self.show_cursors();
        if !commit {
            self.end_advisory();
        }
        let signals = if commit { self.check_signals() } else { Ok(()) };
        if !commit || signals.is_err() {
            self.drop_signals();
        }
        signals?;
        let writes = block.loan.take().or_else(|| block.writes.take());
        if commit {
            if let Some(writes) = writes {
                writes.commit(&self.progress).await?;
            }
            block.end(&mut self.settings, true);
            self.cursors.hold(held);
            self.show_cursors();
            self.send_signals();
            self.end_advisory();
        }
        if chain {
            self.settings.begin();
            self.transaction = Transaction::Open(block.again(&mut self.settings));
        }
        Ok(if commit { "COMMIT" } else { "ROLLBACK" })
    }
}
