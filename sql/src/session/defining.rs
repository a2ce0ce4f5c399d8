//! The statements of a session that change the catalog.

use stillframe_protocol::Mode;

use super::Session;
use super::transaction::Transaction as Block;
use crate::Error;
use crate::ddl::{Definer, Definition};
use crate::write::{Ended, Transaction};

impl Session {
    /// Changes the catalog; returns the tag. In a block nobody else does until it ends; alone it
    /// begins again if somebody else was faster.
    pub(super) async fn define(
        &mut self,
        command: &str,
        definition: Definition<'_>,
    ) -> Result<String, Error> {
        self.transaction.admit_write(command, &self.settings)?;
        let settings = &self.settings;
        let lock_timeout = settings.lock_timeout();
        if let Block::Open(block) = &mut self.transaction {
            let transaction = block.writes()?;
            transaction.wait_at_most(lock_timeout);
            let mut definer = Definer { settings, transaction, mode: Mode::Exclusive };
            let (tag, notices) = definer.run(definition).await?;
            self.notices.extend(notices);
            return Ok(tag);
        }
        loop {
            let mut transaction = Transaction::new(&self.database, lock_timeout);
            let mut definer =
                Definer { settings, transaction: &mut transaction, mode: Mode::Shared };
            match definer.run(definition).await {
                Ok((tag, notices)) => match transaction.commit_if_newest(&self.progress).await? {
                    Ended::Outdated => {}
                    Ended::Committed(_) => {
                        self.notices.extend(notices);
                        return Ok(tag);
                    }
                },
                Err(error) => {
                    if !transaction.is_outdated().await? {
                        return Err(error);
                    }
                }
            }
        }
    }
}
