//! That steps and pumps take turns, and that writers are slowed when they must be.

use std::collections::BTreeMap;

use stillframe_protocol::{Action, Filling as Reported, HostId, TransactionId};

use super::super::world::BACKLOG_MAX;

/// More pumps than this aren't made while a transaction waits.
const PUMPS_MAX: u32 = 6;
/// So many are made at least before a step while a host is behind.
const PUMPS_SLOW: u32 = 4;

/// What was sent since what.
#[derive(Default)]
pub(super) struct Filling {
    fills: bool,
    /// Since the last step of transactions, or since the job has begun.
    pumps: u32,
    advances: u32,
    recorded: BTreeMap<HostId, u64>,
    done: BTreeMap<HostId, bool>,
    /// The transactions that wait for a step, with the pumps since they have asked.
    waiting: BTreeMap<TransactionId, u32>,
}

impl Filling {
    pub(super) fn asked(&mut self, transaction: TransactionId) {
        self.waiting.entry(transaction).or_default();
    }

    pub(super) fn refused(&mut self, transaction: TransactionId) {
        self.waiting.remove(&transaction);
    }

    pub(super) fn reported(&mut self, host: HostId, filling: Option<Reported>) {
        let (recorded, done) = match filling {
            Some(Reported::Goes { recorded }) => (recorded, false),
            Some(Reported::Done { recorded }) => (recorded, true),
            None | Some(Reported::Refused) => (0, false),
        };
        self.recorded.insert(host, recorded);
        self.done.insert(host, done);
    }

    pub(super) fn sent(&mut self, action: &Action) -> Result<(), String> {
        match action {
            Action::Advance { transactions, .. } => {
                for transaction in transactions {
                    self.waiting.remove(transaction);
                }
                self.advanced()?;
            }
            Action::Replace { .. } => self.fills = false,
            Action::ReplaceOnline { .. } => {
                (self.fills, self.pumps, self.advances) = (true, 0, 0);
                self.recorded.clear();
                self.done.clear();
            }
            Action::Cutover { .. } => {
                if let Some((host, _)) = self.done.iter().find(|(_, done)| !**done) {
                    return Err(format!("a cutover is sent where host {host} hasn't filled all"));
                }
                self.fills = false;
            }
            Action::Pump { .. } => {
                (self.pumps, self.advances) = (self.pumps + 1, 0);
                for (transaction, pumps) in &mut self.waiting {
                    *pumps += 1;
                    if *pumps > PUMPS_MAX {
                        return Err(format!("{transaction} waits for {pumps} pumps"));
                    }
                }
            }
        }
        Ok(())
    }

    fn advanced(&mut self) -> Result<(), String> {
        let behind = self.recorded.values().any(|recorded| *recorded > BACKLOG_MAX);
        let refuses = self.done.is_empty();
        if self.fills && !refuses {
            if behind && self.pumps < PUMPS_SLOW {
                return Err(format!(
                    "a step is sent after {} pumps where {:?} is behind",
                    self.pumps, self.recorded
                ));
            }
            self.advances += 1;
            if self.advances > 1 {
                return Err("steps don't let pumps have their turn".into());
            }
        }
        self.pumps = 0;
        Ok(())
    }
}
