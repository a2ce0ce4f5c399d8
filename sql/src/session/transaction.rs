//! A session's transaction block: what its statements see and change, and what its end undoes.

use std::sync::Arc;

use super::savepoint::Savepoint;
use crate::parser::{IsolationLevel, SavepointAction, TransactionModes, Tree, Utility};
use crate::settings::Settings;
use crate::write::{self, Loan};
use crate::{Database, Error, Frame, SqlState, TransactionStatus};

/// The session's transaction.
pub(super) enum Transaction {
    /// Each statement is a transaction of its own.
    Idle,
    /// Between BEGIN and its end.
    Open(Block),
    /// A statement of the block has failed: only its end is accepted.
    Failed(Block),
}

/// What a block has.
pub(super) struct Block {
    database: Arc<Database>,
    /// Made by a request of several statements, not by BEGIN.
    is_implicit: bool,
    isolation: IsolationLevel,
    read_only: bool,
    has_read: bool,
    /// What it has changed and reserved; none while a COPY has it.
    pub(super) writes: Option<write::Transaction>,
    /// Where a COPY leaves it.
    pub(super) loan: Loan,
    /// The settings as they are again after a rollback.
    before: Settings,
    /// The settings as they are after a commit: all but what SET LOCAL has set.
    pub(super) after: Settings,
    /// The oldest first.
    pub(super) savepoints: Vec<Savepoint>,
}

impl Transaction {
    pub(super) fn status(&self) -> TransactionStatus {
        match self {
            Self::Idle => TransactionStatus::Idle,
            Self::Open(block) if block.is_implicit => TransactionStatus::Idle,
            Self::Open(_) => TransactionStatus::Open,
            Self::Failed(_) => TransactionStatus::Failed,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        matches!(self, Self::Idle)
    }

    pub(super) fn is_implicit(&self) -> bool {
        matches!(self, Self::Open(block) if block.is_implicit)
    }

    /// How many savepoints there are.
    pub(super) fn savepoints(&self) -> usize {
        match self {
            Self::Idle => 0,
            Self::Open(block) | Self::Failed(block) => block.savepoints.len(),
        }
    }

    /// Whether the statement may run at all now: in a failed block only its end may.
    pub(super) fn admit(&self, tree: &Tree) -> Result<(), Error> {
        let ends = matches!(
            tree,
            Tree::Utility(
                Utility::Commit { .. }
                    | Utility::Rollback { .. }
                    | Utility::Savepoint { action: SavepointAction::RollbackTo, .. }
            )
        );
        if matches!(self, Self::Failed(_)) && !ends {
            let message =
                "current transaction is aborted, commands ignored until end of transaction block";
            return Err(Error::new(SqlState::IN_FAILED_SQL_TRANSACTION, message));
        }
        Ok(())
    }

    /// A statement of the block has failed. What it has changed and reserved isn't needed any more,
    /// unless there is a savepoint to go back to.
    pub(super) fn fail(&mut self, settings: &mut Settings) {
        *self = match std::mem::replace(self, Self::Idle) {
            Self::Idle => Self::Idle,
            Self::Open(block) if block.is_implicit => {
                block.end(settings, false);
                Self::Idle
            }
            Self::Open(mut block) | Self::Failed(mut block) => {
                if block.savepoints.is_empty() {
                    block.loan.take();
                    block.writes = None;
                }
                Self::Failed(block)
            }
        };
    }

    /// The block has gone back to a savepoint: it isn't failed any more.
    pub(super) fn recover(&mut self) {
        *self = match std::mem::replace(self, Self::Idle) {
            Self::Failed(block) => Self::Open(block),
            other => other,
        };
    }

    /// Changes the block's modes; `false` if there is no block.
    pub(super) fn set_modes(
        &mut self,
        settings: &mut Settings,
        modes: TransactionModes,
    ) -> Result<bool, Error> {
        let Self::Open(block) = self else { return Ok(false) };
        if let Some(isolation) = modes.isolation {
            if block.has_read && isolation != block.isolation {
                let message = "SET TRANSACTION ISOLATION LEVEL must be called before any query";
                return Err(Error::new(SqlState::ACTIVE_SQL_TRANSACTION, message));
            }
            block.isolation = isolation;
        }
        if let Some(read_only) = modes.read_only {
            if block.has_read && block.read_only && !read_only {
                let message = "transaction read-write mode must be set before any query";
                return Err(Error::new(SqlState::ACTIVE_SQL_TRANSACTION, message));
            }
            block.read_only = read_only;
        }
        block.show(settings);
        Ok(true)
    }

    /// Makes an implicit block one that only COMMIT or ROLLBACK ends.
    pub(super) fn become_explicit(
        &mut self,
        settings: &mut Settings,
        modes: TransactionModes,
    ) -> Result<(), Error> {
        self.set_modes(settings, modes)?;
        if let Self::Open(block) = self {
            block.is_implicit = false;
        }
        Ok(())
    }

    /// A setting was set: remembers what the block's end makes of it.
    pub(super) fn assigned(&mut self, local: bool, name: &str, settings: &Settings) {
        if let Self::Open(block) = self
            && !local
        {
            // What was just accepted is accepted again.
            let value = settings.get(name).ok().map(str::to_owned);
            let _ = block.after.set(name, value.as_deref());
        }
    }

    /// Refuses what writes where only reading is allowed.
    pub(super) fn admit_write(&self, command: &str, settings: &Settings) -> Result<(), Error> {
        let is_read_only = match self {
            Self::Open(block) | Self::Failed(block) => block.read_only,
            Self::Idle => settings.is_on("default_transaction_read_only"),
        };
        if is_read_only {
            let message = format!("cannot execute {command} in a read-only transaction");
            return Err(Error::new(SqlState::READ_ONLY_SQL_TRANSACTION, message));
        }
        Ok(())
    }
}

impl Block {
    pub(super) fn new(
        database: &Arc<Database>,
        settings: &mut Settings,
        modes: TransactionModes,
    ) -> Self {
        let default = settings.get("default_transaction_isolation").unwrap_or_default();
        let isolation = modes.isolation.unwrap_or_else(|| {
            IsolationLevel::from_name(default).unwrap_or(IsolationLevel::ReadCommitted)
        });
        let read_only =
            modes.read_only.unwrap_or_else(|| settings.is_on("default_transaction_read_only"));
        let block = Self {
            database: Arc::clone(database),
            is_implicit: false,
            isolation,
            read_only,
            has_read: false,
            writes: Some(write::Transaction::new(database, None)),
            loan: Loan::default(),
            before: settings.clone(),
            after: settings.clone(),
            savepoints: vec![],
        };
        block.show(settings);
        block
    }

    /// A block that the request ends which has made it.
    pub(super) fn implicit(database: &Arc<Database>, settings: &mut Settings) -> Self {
        let block = Self::new(database, settings, TransactionModes::default());
        Self { is_implicit: true, ..block }
    }

    pub(super) fn is_implicit(&self) -> bool {
        self.is_implicit
    }

    /// A block like this one, for AND CHAIN.
    pub(super) fn again(&self, settings: &mut Settings) -> Self {
        let modes =
            TransactionModes { isolation: Some(self.isolation), read_only: Some(self.read_only) };
        Self::new(&self.database, settings, modes)
    }

    /// What its next statement reads and writes in.
    pub(super) fn writes(&mut self) -> Result<&mut write::Transaction, Error> {
        self.has_read = true;
        if let Some(writes) = self.loan.take() {
            self.writes = Some(writes);
        }
        let Some(writes) = &mut self.writes else {
            return Err(Error::internal("the block's changes are gone"));
        };
        writes.be_repeatable(self.isolation == IsolationLevel::RepeatableRead);
        Ok(writes)
    }

    /// The frame that its next statement sees, its own changes over it.
    pub(super) async fn frame(&mut self) -> Result<Arc<Frame>, Error> {
        self.writes()?.frame(stillframe_protocol::Step(0)).await
    }

    /// Makes the settings what they are after the block.
    pub(super) fn end(&self, settings: &mut Settings, commit: bool) {
        let step = settings.get("stillframe.step").unwrap_or_default().to_owned();
        *settings = if commit { self.after.clone() } else { self.before.clone() };
        settings.put("stillframe.step", step);
    }

    /// Lets SHOW tell the modes.
    fn show(&self, settings: &mut Settings) {
        settings.put("transaction_isolation", self.isolation.name());
        settings.put("transaction_read_only", if self.read_only { "on" } else { "off" });
    }
}
