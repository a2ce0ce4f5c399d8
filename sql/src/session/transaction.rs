//! A session's transaction block: which frame its statements see, and what its end undoes.

use std::sync::Arc;

use crate::parser::{IsolationLevel, TransactionModes, Tree, Utility};
use crate::settings::Settings;
use crate::{Error, Frame, SqlState, TransactionStatus};

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
    isolation: IsolationLevel,
    read_only: bool,
    /// What all statements see in REPEATABLE READ, once one has read.
    frame: Option<Arc<Frame>>,
    has_read: bool,
    /// The settings as they are again after a rollback.
    before: Settings,
    /// The settings as they are after a commit: all but what SET LOCAL has set.
    after: Settings,
}

impl Transaction {
    pub(super) fn status(&self) -> TransactionStatus {
        match self {
            Self::Idle => TransactionStatus::Idle,
            Self::Open(_) => TransactionStatus::Open,
            Self::Failed(_) => TransactionStatus::Failed,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        matches!(self, Self::Idle)
    }

    /// Whether the statement may run at all now: in a failed block only its end may.
    pub(super) fn admit(&self, tree: &Tree) -> Result<(), Error> {
        let ends = matches!(
            tree,
            Tree::Utility(
                Utility::Commit { .. } | Utility::Rollback { .. } | Utility::Savepoint { .. }
            )
        );
        if matches!(self, Self::Failed(_)) && !ends {
            let message =
                "current transaction is aborted, commands ignored until end of transaction block";
            return Err(Error::new(SqlState::IN_FAILED_SQL_TRANSACTION, message));
        }
        Ok(())
    }

    /// A statement of the block has failed. The frame isn't needed any more.
    pub(super) fn fail(&mut self) {
        *self = match std::mem::replace(self, Self::Idle) {
            Self::Idle => Self::Idle,
            Self::Open(block) | Self::Failed(block) => Self::Failed(Block { frame: None, ..block }),
        };
    }

    /// The frame that the block has settled on.
    pub(super) fn frame(&self) -> Option<Arc<Frame>> {
        match self {
            Self::Open(block) => block.frame.clone(),
            Self::Idle | Self::Failed(_) => None,
        }
    }

    /// Settles on a frame if the isolation level asks for one.
    pub(super) fn keep(&mut self, frame: &Arc<Frame>) {
        if let Self::Open(block) = self {
            block.has_read = true;
            if block.isolation == IsolationLevel::RepeatableRead {
                block.frame = Some(Arc::clone(frame));
            }
        }
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
    pub(super) fn admit_write(&self, command: &str) -> Result<(), Error> {
        match self {
            Self::Open(block) if block.read_only => {
                let message = format!("cannot execute {command} in a read-only transaction");
                Err(Error::new(SqlState::READ_ONLY_SQL_TRANSACTION, message))
            }
            Self::Open(_) | Self::Failed(_) => {
                Err(Error::unsupported(format!("{command} inside a transaction block")))
            }
            Self::Idle => Ok(()),
        }
    }
}

impl Block {
    pub(super) fn new(settings: &mut Settings, modes: TransactionModes) -> Self {
        let default = settings.get("default_transaction_isolation").unwrap_or_default();
        let isolation = modes.isolation.unwrap_or_else(|| {
            IsolationLevel::from_name(default).unwrap_or(IsolationLevel::ReadCommitted)
        });
        let read_only =
            modes.read_only.unwrap_or_else(|| settings.is_on("default_transaction_read_only"));
        let block = Self {
            isolation,
            read_only,
            frame: None,
            has_read: false,
            before: settings.clone(),
            after: settings.clone(),
        };
        block.show(settings);
        block
    }

    /// A block like this one, for AND CHAIN.
    pub(super) fn again(&self, settings: &mut Settings) -> Self {
        let modes =
            TransactionModes { isolation: Some(self.isolation), read_only: Some(self.read_only) };
        Self::new(settings, modes)
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
