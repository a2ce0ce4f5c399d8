//! Queries that lock what they read.

use std::sync::Arc;

use datafusion::sql::sqlparser::ast;
use futures::StreamExt;

use super::answer::{Parameter, Prepared, Response, Rows};
use super::transaction::Transaction as Block;
use super::{Session, same_types};
use crate::dml::{Arguments, Locked, Locking};
use crate::write::Transaction;
use crate::{Error, SqlState};

impl Session {
    /// Runs a SELECT ... FOR UPDATE or FOR SHARE.
    pub(super) async fn query_and_lock(
        &mut self,
        query: &ast::Query,
        prepared: &Prepared,
        parameters: &[Parameter],
    ) -> Result<Response, Error> {
        self.transaction.admit_write("SELECT FOR UPDATE", &self.settings)?;
        let locking = Locking {
            query,
            settings: &self.settings,
            arguments: Arguments { values: parameters, types: prepared.parameters() },
            source: Arc::clone(&prepared.statement.source),
        };
        let lock_timeout = self.settings.lock_timeout();
        let locked = match &mut self.transaction {
            Block::Open(block) => {
                let transaction = block.writes()?;
                transaction.wait_at_most(lock_timeout);
                locking.run(transaction).await?
            }
            // What it locks is free again when it has its rows.
            _ => locking.run(&mut Transaction::new(&self.database, lock_timeout)).await?,
        };
        let Locked { columns, batch, step } = locked;
        if prepared.columns().is_some_and(|found| !same_types(found, &columns)) {
            let message = "cached plan must not change result type";
            return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        self.settings.put("stillframe.step", step.to_string());
        Ok(Response::Rows(Rows {
            columns,
            step: Some(step),
            batches: futures::stream::iter([Ok(batch)]).boxed(),
            tag: "SELECT",
            affected: None,
        }))
    }
}
