//! A host in memory that does as it is told, or as the test wants.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use stillframe_protocol::{
    Action, Activation, Command, Epoch, Filling, Generation, Host, HostError, HostId, Incarnation,
    RelationId, Report, Retention, RowError, ScanRequest, ScanStream, Staging, Statistics, Step,
    TransactionId,
};
use tokio::sync::watch;

/// A host that only keeps books.
#[derive(Debug)]
pub(super) struct FakeHost {
    state: Mutex<State>,
    /// Whether commands are executed; while they aren't, they are under way.
    runs: watch::Sender<bool>,
}

/// A fake host's books.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) id: HostId,
    pub(super) generation: Generation,
    pub(super) commands: Vec<Arc<Command>>,
    pub(super) retention: Retention,
    pub(super) frames: BTreeSet<Step>,
    pub(super) unstaged: Vec<TransactionId>,
    /// What it has still to fill, in slices.
    pub(super) to_fill: Option<u32>,
    pub(super) retired: Option<Incarnation>,
    /// So many calls more don't reach it.
    pub(super) unreachable: u32,
    /// What it answers every command with.
    pub(super) fault: Option<HostError>,
}

impl FakeHost {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), runs: watch::Sender::new(true) })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Lets commands be executed, or has them wait.
    pub(super) fn run(&self, runs: bool) {
        self.runs.send_replace(runs);
    }

    fn reach(&self) -> Result<(), HostError> {
        let mut state = self.state();
        if state.unreachable > 0 {
            state.unreachable -= 1;
            return Err(HostError::Unreachable("no route".into()));
        }
        Ok(())
    }
}

impl State {
    fn report(&self, epoch: Epoch) -> Report {
        let port = 1000 + self.generation.0 as u16;
        Report {
            due_us: None,
            host: self.id,
            epoch,
            done: self.commands.last().map(|command| command.number),
            step: self.commands.last().map(|command| command.action.step()),
            exchange: (self.generation.next(), SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
            took_us: 1,
            filling: self.to_fill.map(|slices| match slices {
                0 => Filling::Done { recorded: 0 },
                _ => Filling::Goes { recorded: 0 },
            }),
        }
    }

    fn execute(&mut self, command: &Arc<Command>) {
        if self.commands.last().is_some_and(|last| last.number >= command.number) {
            return;
        }
        match &command.action {
            Action::Advance { .. } => {}
            Action::Replace { generation, .. } => self.generation = *generation,
            Action::ReplaceOnline { generation, .. } => {
                (self.generation, self.to_fill) = (*generation, Some(3));
            }
            Action::Pump { slices, .. } => {
                self.to_fill = self.to_fill.map(|left| left.saturating_sub(*slices));
            }
            Action::Cutover { .. } => self.to_fill = None,
        }
        self.frames.insert(command.action.step());
        self.commands.push(Arc::clone(command));
        self.keep(&command.retention);
    }

    fn keep(&mut self, retention: &Retention) {
        if retention.sequence > self.retention.sequence {
            self.retention = retention.clone();
            self.frames.retain(|step| retention.keeps(*step));
        }
    }
}

#[async_trait]
impl Host for FakeHost {
    async fn activate(&self, activation: Activation) -> Result<Report, HostError> {
        self.reach()?;
        let mut state = self.state();
        state.id = activation.host;
        Ok(state.report(activation.epoch))
    }

    async fn execute(&self, command: Arc<Command>) -> Result<Report, HostError> {
        self.reach()?;
        let mut runs = self.runs.subscribe();
        runs.wait_for(|runs| *runs).await.unwrap();
        let mut state = self.state();
        if let Some(fault) = &state.fault {
            return Err(fault.clone());
        }
        state.execute(&command);
        Ok(state.report(command.epoch))
    }

    async fn retire(&self, incarnation: Incarnation, _: String) -> Result<(), HostError> {
        self.reach()?;
        self.state().retired = Some(incarnation);
        Ok(())
    }

    async fn retain(&self, _: Epoch, retention: Retention) -> Result<(), HostError> {
        self.reach()?;
        self.state().keep(&retention);
        Ok(())
    }

    async fn stage(&self, _: Staging) -> Result<(), HostError> {
        Ok(())
    }

    async fn unstage(&self, _: Epoch, transaction: TransactionId) -> Result<(), HostError> {
        self.reach()?;
        self.state().unstaged.push(transaction);
        Ok(())
    }

    async fn scan(&self, request: ScanRequest) -> Result<ScanStream, HostError> {
        Err(HostError::FrameGone(request.step))
    }

    async fn view_errors(
        &self,
        _: Epoch,
        _: Step,
        _: RelationId,
    ) -> Result<Vec<RowError>, HostError> {
        Ok(vec![])
    }

    async fn statistics(&self, _: Epoch, _: Step) -> Result<Statistics, HostError> {
        let frames = self.state().frames.iter().copied().collect();
        Ok(Statistics { relations: vec![], frames })
    }
}

/// Waits until a condition holds.
pub(super) async fn eventually(what: &str, condition: impl Fn() -> bool) {
    let patience = Duration::from_secs(10);
    let poll = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(patience, poll).await.unwrap_or_else(|_| panic!("never happened: {what}"));
}
