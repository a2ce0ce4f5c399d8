//! Queries that lock what they read, and LOCK TABLE.

use std::sync::Arc;

use datafusion::sql::sqlparser::ast;
use futures::StreamExt;
use stillframe_protocol::{Entry, Lockable, Mode, RelationId, Step};

use super::answer::{Parameter, Prepared, Response, Rows};
use super::transaction::Transaction as Block;
use super::{Session, same_types};
use crate::dml::{Arguments, Locked, Locking};
use crate::query::QueryContext;
use crate::write::Transaction;
use crate::{Error, RelationKind, SqlState};

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

    /// Reserves whole tables until the block ends.
    pub(super) async fn lock_tables(&mut self, lock: &ast::Lock) -> Result<(), Error> {
        let lock_timeout = self.settings.lock_timeout();
        let Block::Open(block) = &mut self.transaction else {
            let message = "LOCK TABLE can only be used in transaction blocks";
            return Err(Error::new(SqlState::NO_ACTIVE_SQL_TRANSACTION, message));
        };
        let transaction = block.writes()?;
        transaction.wait_at_most(lock_timeout);
        for ast::LockTableTarget { name, .. } in &lock.tables {
            // As in PostgreSQL, what the transaction sees is settled by what it reads.
            let frame = transaction.newer_frame(Step(0)).await?;
            let context = QueryContext::new(Arc::clone(&frame), self.settings.clone());
            let relation = context.relation(name)?;
            match relation.kind {
                RelationKind::Table { .. } => {}
                RelationKind::View { .. } => {
                    return Err(Error::unsupported("LOCK TABLE of a view"));
                }
                RelationKind::MaterializedView { .. } => {
                    let message = format!("cannot lock relation \"{}\"", relation.name);
                    return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message)
                        .with_detail("This operation is not supported for materialized views."));
                }
            }
            let entries = entries_of(relation.stored_id(), lock.lock_mode.as_ref());
            if !lock.nowait {
                transaction.reserve(&frame, entries).await?;
            } else if transaction.try_reserve(&frame, entries).await?.is_none() {
                let message = format!("could not obtain lock on relation \"{}\"", relation.name);
                return Err(Error::new(SqlState::LOCK_NOT_AVAILABLE, message));
            }
        }
        Ok(())
    }
}

/// What a mode of LOCK TABLE keeps others from: who writes a table shares it, and who is to keep
/// writers out has it alone.
fn entries_of(relation: RelationId, mode: Option<&ast::LockTableMode>) -> Vec<Entry> {
    use ast::LockTableMode::{AccessShare, RowExclusive, RowShare, ShareUpdateExclusive};
    let whole = |mode| Entry { lockable: Lockable::Relation(relation), mode };
    match mode {
        Some(AccessShare | RowShare | RowExclusive) => vec![whole(Mode::Shared)],
        Some(ShareUpdateExclusive) => {
            // Alone among its like, beside writers: a key that no row has.
            let lockable = Lockable::Key { relation, constraint: u32::MAX, hash: 0 };
            vec![whole(Mode::Shared), Entry { lockable, mode: Mode::Exclusive }]
        }
        _ => vec![whole(Mode::Exclusive)],
    }
}
