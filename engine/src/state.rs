//! What a host knows, and what it decides about each request.
//!
//! Pure: no thread, no socket, no dbsp. [`LocalHost`](crate::LocalHost) keeps one behind a lock
//! that is never held for long.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use stillframe_protocol::{
    Activation, Command, CommandNumber, Epoch, Filling, Generation, HostError, HostId, RelationId,
    Report, Retention, Step, Table, TransactionId,
};

use crate::frames::{Frame, Frames};
use crate::row::Codec;
use crate::sequence::{Admission, Sequence};
use crate::staging::{EncodedChanges, StagingArea};

/// A host's place in an epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Membership {
    pub(crate) epoch: Epoch,
    pub(crate) host: HostId,
    /// How many workers each host runs, by place.
    pub(crate) workers: Vec<u32>,
}

/// What a host is.
#[derive(Clone, Debug)]
enum Phase {
    /// Part of no epoch.
    Idle,
    /// Part of an epoch.
    Active(Membership),
    /// Good for nothing, for this reason.
    Failed(String),
}

/// How rows of a table are staged.
#[derive(Clone, Debug)]
pub(crate) struct TableFormat {
    pub(crate) codec: Arc<Codec>,
    /// How many leading columns are the primary key; 0 for a bag.
    pub(crate) key_columns: usize,
}

impl TableFormat {
    /// How rows of a table are staged that no circuit has yet.
    pub(crate) fn of(table: &Table) -> Result<Self, HostError> {
        let codec = Codec::new(Arc::clone(&table.schema))
            .map_err(|error| HostError::Unsupported(error.to_string()))?;
        Ok(Self { codec: Arc::new(codec), key_columns: table.key_columns })
    }
}

/// What a command has made.
pub(crate) struct Done {
    /// The frame of its step, if it made one.
    pub(crate) frame: Option<Frame>,
    /// The tables from this step on, if the circuit was replaced.
    pub(crate) tables: Option<HashMap<RelationId, TableFormat>>,
    pub(crate) took_us: u64,
    pub(crate) exchange: (Generation, SocketAddr),
    /// How far what is new in the circuit is filled.
    pub(crate) filling: Option<Filling>,
    /// When the clock alone changes something.
    pub(crate) due_us: Option<i64>,
}

/// Everything a host knows.
#[derive(Debug)]
pub(crate) struct State {
    phase: Phase,
    sequence: Sequence,
    /// The last command that was refused, and why.
    refusal: Option<(CommandNumber, String)>,
    done: Option<CommandNumber>,
    took_us: u64,
    exchange: (Generation, SocketAddr),
    filling: Option<Filling>,
    due_us: Option<i64>,
    /// The circuit that makes the steps.
    circuit: Option<Generation>,
    /// A host that can't take part in its steps any more.
    lost: Option<HostId>,
    staging: StagingArea,
    frames: Frames,
    tables: HashMap<RelationId, TableFormat>,
}

/// Frames that nobody needs any more, to be freed without a lock.
#[must_use]
pub(crate) struct Dropped(Vec<Arc<Frame>>);

impl Dropped {
    /// Whether there is nothing to free.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl State {
    /// A host that is part of no epoch yet.
    pub(crate) fn new(exchange: (Generation, SocketAddr)) -> Self {
        Self {
            phase: Phase::Idle,
            sequence: Sequence::default(),
            refusal: None,
            done: None,
            took_us: 0,
            exchange,
            filling: None,
            due_us: None,
            circuit: None,
            lost: None,
            staging: StagingArea::default(),
            frames: Frames::default(),
            tables: HashMap::new(),
        }
    }

    /// Joins an epoch.
    pub(crate) fn activate(&mut self, activation: Activation) -> Result<Report, HostError> {
        let Activation { epoch, host, workers, .. } = activation;
        let asked = Membership { epoch, host, workers };
        let member = asked.workers.get(host.0 as usize).is_some();
        if !member || asked.workers.contains(&0) {
            return Err(HostError::Invalid(format!("host {host} has no workers in this epoch")));
        }
        match &self.phase {
            Phase::Failed(reason) => return Err(HostError::Failed(reason.clone())),
            Phase::Active(current) if current.epoch > epoch => {
                let current = Some(current.epoch);
                return Err(HostError::WrongEpoch { asked: epoch, current });
            }
            Phase::Active(current) if current.epoch == epoch && *current != asked => {
                return Err(HostError::Invalid(format!("epoch {epoch} has another layout")));
            }
            Phase::Active(current) if current.epoch == epoch => {}
            Phase::Active(_) if self.sequence.has_begun() => {
                let message = "a new epoch needs a new process".to_owned();
                return Err(HostError::Failed(message));
            }
            Phase::Active(_) | Phase::Idle => {
                *self = Self { phase: Phase::Active(asked.clone()), ..Self::new(self.exchange) };
            }
        }
        Ok(self.report(&asked))
    }

    /// The host's membership of this epoch.
    pub(crate) fn membership(&self, asked: Epoch) -> Result<&Membership, HostError> {
        match &self.phase {
            Phase::Active(membership) if membership.epoch == asked => Ok(membership),
            Phase::Active(membership) => {
                Err(HostError::WrongEpoch { asked, current: Some(membership.epoch) })
            }
            Phase::Idle => Err(HostError::WrongEpoch { asked, current: None }),
            Phase::Failed(reason) => Err(HostError::Failed(reason.clone())),
        }
    }

    /// Decides about a command that has arrived, and learns its retention.
    pub(crate) fn admit(
        &mut self,
        command: &Arc<Command>,
    ) -> Result<(Admission, Membership, Dropped), HostError> {
        let membership = self.membership(command.epoch)?.clone();
        let admission =
            self.sequence.admit(command).map_err(|error| HostError::Invalid(error.to_string()))?;
        if admission == Admission::Start {
            if let Some(host) = self.lost {
                return Err(self.fail(format!("host {host} has left the circuit")));
            }
            self.refusal = None;
        }
        let dropped = Dropped(self.frames.retain(&command.retention));
        Ok((admission, membership, dropped))
    }

    /// What has become of a command that was admitted; none while it is running.
    pub(crate) fn outcome(&self, command: &Command) -> Option<Result<Report, HostError>> {
        let membership = match self.membership(command.epoch) {
            Ok(membership) => membership,
            Err(error) => return Some(Err(error)),
        };
        if self.done.is_some_and(|done| done >= command.number) {
            return Some(Ok(self.report(membership)));
        }
        match &self.refusal {
            Some((number, reason)) if *number == command.number => {
                Some(Err(HostError::Invalid(reason.clone())))
            }
            _ => None,
        }
    }

    /// The running command is done.
    pub(crate) fn complete(&mut self, command: &Command, done: Done) {
        self.sequence.done();
        self.done = Some(command.number);
        self.took_us = done.took_us;
        self.exchange = done.exchange;
        self.filling = done.filling;
        self.due_us = done.due_us;
        if let Some(frame) = done.frame {
            self.frames.publish(frame);
        }
        if let Some(tables) = done.tables {
            self.tables = tables;
        }
    }

    /// The running command can't be executed, and nothing has changed for it.
    pub(crate) fn refuse(
        &mut self,
        command: &Command,
        reason: String,
        exchange: (Generation, SocketAddr),
    ) {
        self.sequence.refused();
        self.refusal = Some((command.number, reason));
        self.exchange = exchange;
    }

    /// Nothing works any more. The first reason is the one that is told.
    pub(crate) fn fail(&mut self, reason: String) -> HostError {
        if let Phase::Failed(first) = &self.phase {
            return HostError::Failed(first.clone());
        }
        self.phase = Phase::Failed(reason.clone());
        HostError::Failed(reason)
    }

    /// Whether nothing works any more.
    pub(crate) fn has_failed(&self) -> bool {
        matches!(self.phase, Phase::Failed(_))
    }

    /// From now on this circuit makes the steps.
    pub(crate) fn enter_circuit(&mut self, generation: Generation) {
        self.circuit = Some(generation);
        self.lost = None;
    }

    /// A host can't take part in the steps of a circuit any more.
    pub(crate) fn lose(&mut self, generation: Generation, host: HostId) {
        // Hosts leave a circuit that was replaced each in its own time.
        if self.circuit != Some(generation) {
            return;
        }
        self.lost = Some(host);
        if self.sequence.is_running() {
            self.fail(format!("host {host} has left the circuit"));
        }
    }

    /// Learns what must be kept.
    pub(crate) fn retain(
        &mut self,
        epoch: Epoch,
        retention: &Retention,
    ) -> Result<Dropped, HostError> {
        self.membership(epoch)?;
        Ok(Dropped(self.frames.retain(retention)))
    }

    /// The frame of a step.
    pub(crate) fn frame(&self, epoch: Epoch, step: Step) -> Result<Arc<Frame>, HostError> {
        self.membership(epoch)?;
        self.frames.get(step).ok_or(HostError::FrameGone(step))
    }

    /// The frame of the last step.
    pub(crate) fn newest(&self) -> Option<Arc<Frame>> {
        self.frames.newest().cloned()
    }

    /// The steps whose frames are kept, ascending.
    pub(crate) fn steps(&self) -> Vec<Step> {
        self.frames.steps()
    }

    /// How rows of a table are staged, as of the last step.
    pub(crate) fn table(&self, relation: RelationId) -> Result<TableFormat, HostError> {
        self.tables.get(&relation).cloned().ok_or(HostError::UnknownRelation(relation))
    }

    /// Whether a staging is new; false if it has been seen.
    pub(crate) fn is_new(
        &self,
        epoch: Epoch,
        transaction: TransactionId,
        sequence: u64,
    ) -> Result<bool, HostError> {
        self.membership(epoch)?;
        self.staging.is_new(transaction, sequence).map_err(invalid)
    }

    /// Holds changes until their transaction enters a step.
    pub(crate) fn stage(
        &mut self,
        epoch: Epoch,
        transaction: TransactionId,
        sequence: u64,
        changes: Vec<EncodedChanges>,
    ) -> Result<(), HostError> {
        self.membership(epoch)?;
        self.staging.stage(transaction, sequence, changes).map_err(invalid)
    }

    /// Forgets what a transaction has staged.
    pub(crate) fn unstage(
        &mut self,
        epoch: Epoch,
        transaction: TransactionId,
    ) -> Result<(), HostError> {
        self.membership(epoch)?;
        self.staging.unstage(transaction);
        Ok(())
    }

    /// Takes what transactions have staged: they enter the step that is being made.
    pub(crate) fn enter(&mut self, transactions: &[TransactionId]) -> Vec<Vec<EncodedChanges>> {
        self.staging.take(transactions)
    }

    fn report(&self, membership: &Membership) -> Report {
        Report {
            host: membership.host,
            epoch: membership.epoch,
            done: self.done,
            step: self.frames.newest().map(|frame| frame.step),
            exchange: self.exchange,
            took_us: self.took_us,
            filling: self.filling,
            due_us: self.due_us,
        }
    }
}

fn invalid(error: impl std::fmt::Display) -> HostError {
    HostError::Invalid(error.to_string())
}
