//! Several hosts in this process, driven in lock step without a coordinator: for tests and
//! measurements.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use futures::StreamExt as _;
use futures::future::join_all;
use stillframe_protocol::{
    Action, Activation, Changes, Command, CommandNumber, Epoch, Filling, Generation, Host,
    HostError, HostId, Incarnation, Program, RelationId, Report, Retention, ScanPart, ScanRequest,
    Staging, Step, TransactionId,
};

use crate::{EngineError, HostOptions, LocalHost};

/// The only epoch of such a cluster.
pub const EPOCH: Epoch = Epoch(1);

/// Several hosts in this process.
#[derive(Debug)]
pub struct Cluster {
    hosts: Vec<Arc<LocalHost>>,
    workers: u32,
    next_number: CommandNumber,
    /// Where each host's next circuit is reached.
    exchange: Vec<(Generation, SocketAddr)>,
    filling: Vec<Option<Filling>>,
    step: Option<Step>,
    retention: Retention,
    next_transaction: u128,
}

impl Cluster {
    /// Starts hosts with so many workers each. They have no circuit yet.
    ///
    /// # Errors
    ///
    /// If a host can't be started.
    pub async fn start(
        hosts: usize,
        workers: u32,
        options: &HostOptions,
    ) -> Result<Self, EngineError> {
        let hosts =
            (0..hosts).map(|_| LocalHost::start(options.clone())).collect::<Result<Vec<_>, _>>()?;
        let mut cluster = Self {
            workers,
            next_number: CommandNumber(0),
            exchange: Vec::new(),
            filling: Vec::new(),
            step: None,
            retention: Retention::default(),
            next_transaction: 0,
            hosts,
        };
        for (place, host) in (0..).map(HostId).zip(&cluster.hosts) {
            let activation = Activation {
                epoch: EPOCH,
                host: place,
                incarnation: Incarnation(0),
                workers: vec![workers; cluster.hosts.len()],
            };
            let report = host.activate(activation).await.expect("a new host joins any epoch");
            cluster.exchange.push(report.exchange);
        }
        Ok(cluster)
    }

    /// The hosts.
    pub fn hosts(&self) -> &[Arc<LocalHost>] {
        &self.hosts
    }

    /// The last step.
    pub fn step(&self) -> Step {
        self.step.expect("the cluster has a circuit")
    }

    /// Keeps nothing but these steps and the last one from the next command on.
    pub fn pin(&mut self, pinned: BTreeSet<Step>) {
        self.retention.sequence += 1;
        self.retention.common = self.step;
        self.retention.pinned = pinned;
    }

    /// What the next command tells the hosts to keep.
    pub fn retention(&self) -> &Retention {
        &self.retention
    }

    /// The next command with this action.
    pub fn command(&self, action: Action) -> Arc<Command> {
        Arc::new(Command {
            epoch: EPOCH,
            number: self.next_number,
            retention: self.retention.clone(),
            action,
        })
    }

    /// The replacement that would be the next command.
    pub fn replacement(&self, program: Program) -> Arc<Command> {
        self.command(Action::Replace {
            step: self.next_step(),
            clock_us: 0,
            generation: self.exchange[0].0,
            program: Arc::new(program),
            exchange: self.exchange.iter().map(|(_, address)| *address).collect(),
            is_hidden: false,
        })
    }

    /// The same, with steps that go on while what is new is filled.
    pub fn replacement_online(&self, program: Program) -> Action {
        Action::ReplaceOnline {
            step: self.next_step(),
            clock_us: 0,
            generation: self.exchange[0].0,
            program: Arc::new(program),
            exchange: self.exchange.iter().map(|(_, address)| *address).collect(),
        }
    }

    /// Lets what was filled be part of frames.
    ///
    /// # Errors
    ///
    /// A host's.
    pub async fn cut_over(&mut self) -> Result<Step, HostError> {
        self.execute(self.command(Action::Cutover { step: self.next_step(), clock_us: 0 })).await
    }

    /// How far each host has come with what is new, as of the last command.
    pub fn filling(&self) -> &[Option<Filling>] {
        &self.filling
    }

    /// Replaces the circuit on all hosts.
    ///
    /// # Errors
    ///
    /// A host's.
    pub async fn replace(&mut self, program: Program) -> Result<Step, HostError> {
        self.execute(self.replacement(program)).await
    }

    /// Replaces the circuit on all hosts, by one that takes in what these transactions have staged.
    ///
    /// # Errors
    ///
    /// A host's.
    pub async fn replace_with(
        &mut self,
        program: Program,
        entering: Vec<TransactionId>,
    ) -> Result<Step, HostError> {
        let mut command = Command::clone(&self.replacement(program));
        if let Action::Replace { is_hidden, .. } = &mut command.action {
            *is_hidden = true;
        }
        self.execute(Arc::new(command)).await?;
        self.advance(entering).await
    }

    /// Makes a step of what these transactions have staged.
    ///
    /// # Errors
    ///
    /// A host's.
    pub async fn advance(&mut self, transactions: Vec<TransactionId>) -> Result<Step, HostError> {
        let step = self.next_step();
        self.execute(self.command(Action::Advance { step, clock_us: 0, transactions })).await
    }

    /// Executes the next command on all hosts.
    ///
    /// # Errors
    ///
    /// A host's.
    pub async fn execute(&mut self, command: Arc<Command>) -> Result<Step, HostError> {
        let executed = self.hosts.iter().map(|host| host.execute(Arc::clone(&command)));
        // All are waited for, also when one has failed.
        let reports: Vec<Report> =
            join_all(executed).await.into_iter().collect::<Result<_, _>>()?;
        let step = command.action.step();
        for report in &reports {
            assert_eq!(report.done, Some(command.number), "a report says what was done");
            assert_eq!(report.step, Some(step), "a command makes its step");
        }
        self.exchange = reports.iter().map(|report| report.exchange).collect();
        self.filling = reports.iter().map(|report| report.filling).collect();
        self.next_number = command.number.next();
        self.step = Some(step);
        Ok(step)
    }

    /// A transaction number that was not used before.
    pub fn transaction(&mut self) -> TransactionId {
        self.next_transaction += 1;
        TransactionId(self.next_transaction)
    }

    /// Stages changes on one host and makes a step of them. Each call takes the next host.
    ///
    /// # Errors
    ///
    /// A host's.
    pub async fn write(&mut self, changes: Vec<Changes>) -> Result<Step, HostError> {
        let transaction = self.transaction();
        let host = (transaction.0 % self.hosts.len() as u128) as usize;
        let staging = Staging { epoch: EPOCH, transaction, sequence: 0, changes, tables: vec![] };
        self.hosts[host].stage(staging).await?;
        self.advance(vec![transaction]).await
    }

    /// A request for a whole shard, to be adapted.
    pub fn request(&self, relation: RelationId, columns: usize) -> ScanRequest {
        ScanRequest {
            epoch: EPOCH,
            step: self.step(),
            relation,
            worker: 0,
            keys: None,
            filters: vec![],
            limit: None,
            projection: (0..columns).collect(),
            batch_rows: 1024,
        }
    }

    /// What a request finds on all workers of all hosts, batch by batch.
    ///
    /// # Errors
    ///
    /// A host's.
    pub async fn scan(&self, request: &ScanRequest) -> Result<Vec<RecordBatch>, HostError> {
        let mut batches = Vec::new();
        for host in &self.hosts {
            for worker in 0..self.workers {
                let stream = host.scan(ScanRequest { worker, ..request.clone() }).await?;
                batches.extend(read(stream).await?);
            }
        }
        Ok(batches)
    }

    /// Ends all hosts and waits until they have left nothing behind.
    pub async fn shut_down(self) {
        for host in &self.hosts {
            host.shut_down().await;
        }
    }

    fn next_step(&self) -> Step {
        self.step.map_or(Step(0), Step::next)
    }
}

/// Reads a scan to its end.
///
/// # Panics
///
/// If it doesn't end as it should.
async fn read(mut stream: stillframe_protocol::ScanStream) -> Result<Vec<RecordBatch>, HostError> {
    let mut batches = Vec::new();
    let mut sent = 0;
    while let Some(part) = stream.next().await {
        match part? {
            ScanPart::Batch(batch) => {
                sent += batch.num_rows() as u64;
                batches.push(batch);
            }
            ScanPart::End { rows } => {
                assert_eq!(rows, sent, "the end of a scan tells how many rows it has sent");
                assert!(stream.next().await.is_none(), "nothing follows the end of a scan");
                return Ok(batches);
            }
        }
    }
    panic!("a scan ends with an end or an error");
}
