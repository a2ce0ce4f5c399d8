//! A simulated host process. It is as forgetful as it may be: what it needn't keep is gone at once.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use stillframe_protocol::{
    Action, Activation, Command, CommandNumber, Epoch, Filling, FrameId, Generation, HostId,
    Incarnation, Report, Retention, Step, TransactionId,
};

use super::bank::{Contents, Write, must_stop, owner, views};
use super::wires::{NotThere, Scanned};

/// A host's state.
pub(super) struct SimulatedHost {
    pub(super) incarnation: Incarnation,
    pub(super) id: HostId,
    accounts: u64,
    pub(super) epoch: Option<Epoch>,
    contents: Contents,
    generation: Generation,
    done: Option<Arc<Command>>,
    executing: Option<Arc<Command>>,
    /// The views that can be read.
    views: BTreeSet<u32>,
    new: Option<New>,
    /// The last command was one that it had to refuse.
    refused: bool,
    retention: Retention,
    frames: BTreeMap<Step, Contents>,
    staged: BTreeMap<TransactionId, Vec<Write>>,
}

/// What is new in its circuit, and is being filled.
struct New {
    views: BTreeSet<u32>,
    /// What there was when the circuit was replaced.
    value: i64,
    /// How that has changed since.
    recorded: i64,
    changes: u64,
    /// So many pumps fill all.
    pumps: u32,
}

/// What becomes of an activation.
pub(super) enum Joined {
    /// The host is part of the epoch.
    Reports(Report),
    /// It isn't for the host, or of an older epoch.
    Passes,
    /// The host has worked for an older epoch: its engine can't be part of another.
    Fails,
}

/// What becomes of a command that a host hears of.
pub(super) enum Heard {
    /// It begins to execute it.
    Begins,
    /// It executes it already.
    Executes,
    /// It is part of a newer epoch.
    TooLate,
    /// It has executed it; this is its report.
    Done(Report),
}

impl SimulatedHost {
    pub(super) fn new(incarnation: Incarnation, accounts: u64) -> Self {
        Self {
            incarnation,
            id: HostId(0),
            accounts,
            epoch: None,
            contents: Contents::default(),
            generation: Generation(0),
            done: None,
            executing: None,
            views: BTreeSet::new(),
            new: None,
            refused: false,
            retention: Retention::default(),
            frames: BTreeMap::new(),
            staged: BTreeMap::new(),
        }
    }

    /// Joins an epoch.
    pub(super) fn activate(&mut self, activation: &Activation) -> Joined {
        let Activation { epoch, host, incarnation, workers } = activation;
        if *incarnation != self.incarnation || self.epoch > Some(*epoch) {
            return Joined::Passes;
        }
        if self.epoch < Some(*epoch) {
            if self.done.is_some() || self.executing.is_some() {
                return Joined::Fails;
            }
            let hosts = workers.len() as u32;
            self.contents = Contents::initial(self.accounts, |key| owner(key, hosts) == *host);
            (self.epoch, self.id) = (Some(*epoch), *host);
            self.retention = Retention::default();
            self.staged.clear();
        }
        Joined::Reports(self.report())
    }

    /// Hears of a command; an error says how the coordinator broke the protocol.
    pub(super) fn execute(&mut self, command: &Arc<Command>) -> Result<Heard, String> {
        if self.epoch > Some(command.epoch) {
            return Ok(Heard::TooLate);
        }
        if self.epoch != Some(command.epoch) {
            return Err(format!("host {} isn't part of epoch {}", self.id, command.epoch));
        }
        self.retain(command.epoch, &command.retention);
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
        self.perform(&command.action)?;
        self.contents.show(&self.views);
        self.frames.insert(command.action.step(), self.contents.clone());
        self.done = Some(command);
        self.forget();
        Ok(self.report())
    }

    fn perform(&mut self, action: &Action) -> Result<(), String> {
        self.refused = false;
        match action {
            Action::Advance { transactions, .. } => self.advance(transactions)?,
            Action::Replace { generation, exchange, program, .. } => {
                self.build(*generation, exchange, action)?;
                self.generation = *generation;
                self.views = views(program);
            }
            Action::ReplaceOnline { generation, exchange, program, .. } => {
                self.build(*generation, exchange, action)?;
                self.refused = must_stop(&self.views, program);
                if self.refused {
                    return Ok(());
                }
                self.generation = *generation;
                let views = views(program);
                if let Some(gone) = self.views.difference(&views).next() {
                    return Err(format!("view {gone} is taken away while others are filled"));
                }
                let seed = views.iter().sum::<u32>() + self.id.0;
                let value = self.contents.view();
                self.new =
                    Some(New { views, value, recorded: 0, changes: 0, pumps: seed * 7 % 16 });
            }
            Action::Pump { .. } => match &mut self.new {
                Some(new) => new.pumps = new.pumps.saturating_sub(1),
                None => return Err(format!("host {} has nothing to fill", self.id)),
            },
            Action::Cutover { .. } => {
                let Some(new) = self.new.take() else {
                    return Err(format!("host {} has nothing to cut over to", self.id));
                };
                let Self { id, contents, .. } = self;
                if new.pumps > 0 {
                    return Err(format!("host {id} cuts over and hasn't filled all"));
                }
                if new.value + new.recorded != contents.view() {
                    return Err(format!("host {id} has lost changes while it filled"));
                }
                self.views = new.views;
            }
        }
        Ok(())
    }

    fn advance(&mut self, transactions: &[TransactionId]) -> Result<(), String> {
        let before = self.contents.view();
        let mut changes = 0;
        for transaction in transactions {
            for write in self.staged.remove(transaction).unwrap_or_default() {
                self.contents
                    .apply(&write)
                    .map_err(|error| format!("transaction {transaction}: {error}"))?;
                changes += 1;
            }
        }
        if let Some(new) = &mut self.new {
            new.recorded += self.contents.view() - before;
            new.changes += changes;
        }
        Ok(())
    }

    /// Whether it can build the next circuit.
    fn build(
        &self,
        generation: Generation,
        exchange: &[SocketAddr],
        action: &Action,
    ) -> Result<(), String> {
        if self.new.is_some() {
            return Err(format!("host {} is filling, and is sent {action:?}", self.id));
        }
        if generation != self.generation.next()
            || exchange.get(self.id.0 as usize) != Some(&self.address())
        {
            return Err(format!("host {} can't build {action:?}", self.id));
        }
        Ok(())
    }

    /// How far it is with what is new.
    pub(super) fn filling(&self) -> Option<Filling> {
        match &self.new {
            None => self.refused.then_some(Filling::Refused),
            Some(New { pumps: 0, changes, .. }) => Some(Filling::Done { recorded: *changes }),
            Some(New { changes, .. }) => Some(Filling::Goes { recorded: *changes }),
        }
    }

    /// The last command that it has executed.
    pub(super) fn done(&self) -> Option<CommandNumber> {
        self.done.as_ref().map(|done| done.number)
    }

    pub(super) fn retain(&mut self, epoch: Epoch, retention: &Retention) {
        if self.epoch == Some(epoch) && retention.sequence > self.retention.sequence {
            self.retention = retention.clone();
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.frames.retain(|step, _| self.retention.keeps(*step));
    }

    /// Holds what a transaction writes; false if it is of another epoch.
    pub(super) fn stage(
        &mut self,
        epoch: Epoch,
        transaction: TransactionId,
        writes: Vec<Write>,
    ) -> bool {
        let of_this_epoch = self.epoch == Some(epoch);
        if of_this_epoch {
            self.staged.insert(transaction, writes);
        }
        of_this_epoch
    }

    pub(super) fn unstage(&mut self, epoch: Epoch, transaction: TransactionId) {
        if self.epoch == Some(epoch) {
            self.staged.remove(&transaction);
        }
    }

    /// Its part of a frame, if it has it.
    pub(super) fn scan(&self, frame: FrameId) -> Scanned {
        if self.epoch != Some(frame.epoch) {
            return Err(NotThere);
        }
        Ok(self.frames.get(&frame.step).cloned())
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
            due_us: None,
            host: self.id,
            epoch: self.epoch.unwrap_or_default(),
            done: self.done.as_ref().map(|done| done.number),
            step: self.made(),
            exchange: (self.generation.next(), self.address()),
            took_us: 0,
            filling: self.filling(),
        }
    }

    /// Where its next circuit is reached: another port for each.
    fn address(&self) -> SocketAddr {
        let port = 1000 * (self.id.0 as u16 + 1) + self.generation.0 as u16;
        SocketAddr::from((Ipv4Addr::LOCALHOST, port))
    }
}
