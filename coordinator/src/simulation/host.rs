//! A simulated host. It is as forgetful as it may be: what it needn't keep is gone at once.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use stillframe_protocol::{
    Action, Activation, Command, CommandNumber, Epoch, Generation, HostId, Report, Retention, Step,
    TransactionId,
};

use super::bank::{Contents, Write, owner};

/// A host's state.
pub(super) struct SimulatedHost {
    id: HostId,
    epoch: Option<Epoch>,
    contents: Contents,
    generation: Generation,
    done: Option<Arc<Command>>,
    executing: Option<Arc<Command>>,
    retention: Retention,
    frames: BTreeMap<Step, Contents>,
    staged: BTreeMap<TransactionId, Vec<Write>>,
}

/// What becomes of a command that a host hears of.
pub(super) enum Heard {
    /// It begins to execute it.
    Begins,
    /// It executes it already.
    Executes,
    /// It has executed it; this is its report.
    Done(Report),
}

impl SimulatedHost {
    pub(super) fn new(id: HostId, hosts: u32, accounts: u64) -> Self {
        Self {
            id,
            epoch: None,
            contents: Contents::initial(accounts, |key| owner(key, hosts) == id),
            generation: Generation(0),
            done: None,
            executing: None,
            retention: Retention::default(),
            frames: BTreeMap::new(),
            staged: BTreeMap::new(),
        }
    }

    pub(super) fn activate(&mut self, activation: &Activation) -> Report {
        self.epoch = Some(activation.epoch);
        self.report()
    }

    /// Hears of a command; an error says how the coordinator broke the protocol.
    pub(super) fn execute(&mut self, command: &Arc<Command>) -> Result<Heard, String> {
        if self.epoch != Some(command.epoch) {
            return Err(format!("host {} isn't part of epoch {}", self.id, command.epoch));
        }
        self.retain(&command.retention);
        if let Some(executing) = &self.executing
            && executing.number == command.number
        {
            return Ok(Heard::Executes);
        }
        let done = self.done.as_ref().map(|done| done.number);
        if Some(command.number) <= done {
            return Ok(Heard::Done(self.report()));
        }
        let next = done.map_or(CommandNumber(0), CommandNumber::next);
        if self.executing.is_some() || command.number != next {
            return Err(format!(
                "host {} is sent command {} where {next} is next",
                self.id, command.number
            ));
        }
        self.executing = Some(Arc::clone(command));
        Ok(Heard::Begins)
    }

    /// Finishes what it executes.
    pub(super) fn finish(&mut self) -> Result<Report, String> {
        let Some(command) = self.executing.take() else { return Ok(self.report()) };
        match &command.action {
            Action::Advance { transactions, .. } => {
                for transaction in transactions {
                    for write in self.staged.remove(transaction).unwrap_or_default() {
                        self.contents
                            .apply(&write)
                            .map_err(|error| format!("transaction {transaction}: {error}"))?;
                    }
                }
            }
            Action::Replace { generation, exchange, .. } => {
                if *generation != self.generation.next()
                    || exchange.get(self.id.0 as usize) != Some(&self.address())
                {
                    return Err(format!("host {} can't build {:?}", self.id, command.action));
                }
                self.generation = *generation;
            }
        }
        self.frames.insert(command.action.step(), self.contents.clone());
        self.done = Some(command);
        self.forget();
        Ok(self.report())
    }

    pub(super) fn retain(&mut self, retention: &Retention) {
        if retention.sequence > self.retention.sequence {
            self.retention = retention.clone();
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.frames.retain(|step, _| self.retention.keeps(*step));
    }

    pub(super) fn stage(&mut self, transaction: TransactionId, writes: Vec<Write>) {
        self.staged.insert(transaction, writes);
    }

    pub(super) fn unstage(&mut self, transaction: TransactionId) {
        self.staged.remove(&transaction);
    }

    /// Its part of a frame, if it has it.
    pub(super) fn scan(&self, step: Step) -> Option<&Contents> {
        self.frames.get(&step)
    }

    /// The frames it has.
    pub(super) fn frames(&self) -> Vec<Step> {
        self.frames.keys().copied().collect()
    }

    /// The newest step it has made.
    pub(super) fn made(&self) -> Option<Step> {
        self.done.as_ref().map(|done| done.action.step())
    }

    fn report(&self) -> Report {
        Report {
            host: self.id,
            epoch: self.epoch.unwrap_or_default(),
            done: self.done.as_ref().map(|done| done.number),
            step: self.made(),
            exchange: (self.generation.next(), self.address()),
            took_us: 0,
        }
    }

    /// Where its next circuit is reached: another port for each.
    fn address(&self) -> SocketAddr {
        let port = 1000 * (self.id.0 as u16 + 1) + self.generation.0 as u16;
        SocketAddr::from((Ipv4Addr::LOCALHOST, port))
    }
}
