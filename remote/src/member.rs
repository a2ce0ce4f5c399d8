//! The host of a process: checks that it is the one that is meant, and remembers what the process has
//! to know about it.

use std::sync::Arc;

use async_trait::async_trait;
use stillframe_protocol::{
    Activation, Command, Epoch, Host, HostError, Incarnation, RelationId, Report, Retention,
    RowError, ScanRequest, ScanStream, Staging, Statistics, Step, TransactionId,
};
use tokio::sync::watch;

/// A host that is the only one of its process.
#[derive(Debug)]
pub struct Member {
    incarnation: Incarnation,
    host: Arc<dyn Host>,
    epoch: watch::Sender<Option<Epoch>>,
    retired: watch::Sender<Option<String>>,
}

impl Member {
    /// A process that is part of no epoch yet.
    pub fn new(incarnation: Incarnation, host: Arc<dyn Host>) -> Arc<Self> {
        let (epoch, retired) = (watch::Sender::new(None), watch::Sender::new(None));
        Arc::new(Self { incarnation, host, epoch, retired })
    }

    /// This life of the process.
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// The newest epoch that it was made part of.
    pub fn epoch(&self) -> Option<Epoch> {
        *self.epoch.borrow()
    }

    /// Ends when the process has to replace itself, and tells why.
    pub async fn retired(&self) -> String {
        let mut retired = self.retired.subscribe();
        let reason = retired.wait_for(Option::is_some).await;
        reason.ok().and_then(|reason| reason.clone()).unwrap_or_default()
    }
}

#[async_trait]
impl Host for Member {
    async fn activate(&self, activation: Activation) -> Result<Report, HostError> {
        let Activation { incarnation, epoch, .. } = activation;
        if incarnation != self.incarnation {
            let ours = self.incarnation;
            let message = format!("process {ours} was activated as process {incarnation}");
            return Err(HostError::Invalid(message));
        }
        // Whatever becomes of it: the process isn't fresh any more.
        self.epoch.send_modify(|newest| *newest = (*newest).max(Some(epoch)));
        self.host.activate(activation).await
    }

    async fn execute(&self, command: Arc<Command>) -> Result<Report, HostError> {
        self.host.execute(command).await
    }

    async fn retire(&self, incarnation: Incarnation, reason: String) -> Result<(), HostError> {
        if incarnation == self.incarnation {
            self.retired.send_replace(Some(reason));
        }
        Ok(())
    }

    async fn retain(&self, epoch: Epoch, retention: Retention) -> Result<(), HostError> {
        self.host.retain(epoch, retention).await
    }

    async fn stage(&self, staging: Staging) -> Result<(), HostError> {
        self.host.stage(staging).await
    }

    async fn unstage(&self, epoch: Epoch, transaction: TransactionId) -> Result<(), HostError> {
        self.host.unstage(epoch, transaction).await
    }

    async fn scan(&self, request: ScanRequest) -> Result<ScanStream, HostError> {
        self.host.scan(request).await
    }

    async fn view_errors(
        &self,
        epoch: Epoch,
        step: Step,
        view: RelationId,
    ) -> Result<Vec<RowError>, HostError> {
        self.host.view_errors(epoch, step, view).await
    }

    async fn statistics(&self, epoch: Epoch, step: Step) -> Result<Statistics, HostError> {
        self.host.statistics(epoch, step).await
    }
}
