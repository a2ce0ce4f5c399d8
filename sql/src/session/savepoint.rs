//! Savepoints: what a block has changed up to a point, to go back to.

use super::Session;
use super::transaction::{Block, Transaction};
use crate::parser::SavepointAction;
use crate::settings::Settings;
use crate::write::Overlay;
use crate::{Error, SqlState};

/// A point of a block.
pub(super) struct Savepoint {
    name: String,
    overlay: Overlay,
    settings: Settings,
    after: Settings,
    /// How much was to be told at the commit.
    signals: usize,
}

impl Session {
    /// Runs SAVEPOINT, RELEASE or ROLLBACK TO; returns the tag.
    pub(super) fn savepoint(
        &mut self,
        action: SavepointAction,
        name: &str,
    ) -> Result<&'static str, Error> {
        let is_failed = matches!(self.transaction, Transaction::Failed(_));
        let block = match &mut self.transaction {
            Transaction::Open(block) | Transaction::Failed(block) if !block.is_implicit() => block,
            _ => {
                let message = format!("{} can only be used in transaction blocks", action.name());
                return Err(Error::new(SqlState::NO_ACTIVE_SQL_TRANSACTION, message));
            }
        };
        match action {
            SavepointAction::Set => {
                let savepoint = Savepoint {
                    name: name.to_owned(),
                    overlay: block.writes()?.overlay().clone(),
                    settings: self.settings.clone(),
                    after: block.after.clone(),
                    signals: self.settings.facts().with_outbox(|outbox| outbox.len()),
                };
                block.savepoints.push(savepoint);
                Ok("SAVEPOINT")
            }
            SavepointAction::Release => {
                let place = block.find(name)?;
                block.savepoints.truncate(place);
                self.cursors.release(place);
                Ok("RELEASE")
            }
            SavepointAction::RollbackTo => {
                let place = block.find(name)?;
                block.savepoints.truncate(place + 1);
                let Savepoint { overlay, settings, after, signals, .. } = &block.savepoints[place];
                self.settings.facts().with_outbox(|outbox| outbox.truncate(*signals));
                let step = self.settings.get("stillframe.step").unwrap_or_default().to_owned();
                let (overlay, settings, after) = (overlay.clone(), settings.clone(), after.clone());
                block.writes()?.restore(overlay);
                block.after = after;
                self.settings = settings;
                self.settings.put("stillframe.step", step);
                self.cursors.roll_back(place);
                self.show_cursors();
                if is_failed {
                    self.transaction.recover();
                }
                Ok("ROLLBACK")
            }
        }
    }
}

impl Block {
    /// The newest savepoint of a name.
    fn find(&self, name: &str) -> Result<usize, Error> {
        self.savepoints.iter().rposition(|savepoint| savepoint.name == name).ok_or_else(|| {
            let message = format!("savepoint \"{name}\" does not exist");
            Error::new(SqlState::INVALID_SAVEPOINT_SPECIFICATION, message)
        })
    }
}
