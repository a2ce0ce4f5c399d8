//! A host that is another process.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::try_unfold;
use stillframe_protocol::{
    Activation, Command, Epoch, Host, HostError, Incarnation, RelationId, Report, Retention,
    RowError, ScanPart, ScanRequest, ScanStream, Staging, Statistics, Step, TransactionId,
};

use crate::batches;
use crate::message::{Answer, Greeting, Identity, Request, ScanHead, StagingHead};
use crate::wire::{Connection, WireError};

/// So many connections are kept for later.
const IDLE_MAX: usize = 16;

/// A host that is another process, reached when it is asked.
///
/// There is no limit to how long an answer may take: a process that stands still is waited for. A
/// connection that breaks is [`HostError::Unreachable`], in the middle of a scan too.
#[derive(Debug)]
pub struct RemoteHost {
    way: Arc<Way>,
}

/// How a process is reached. Each request has a connection to itself for as long as it takes.
#[derive(Debug)]
struct Way {
    address: SocketAddr,
    identity: Identity,
    idle: Mutex<Vec<Connection>>,
}

impl RemoteHost {
    /// The process with this identity, at this address.
    pub fn new(address: SocketAddr, identity: Identity) -> Self {
        Self { way: Arc::new(Way { address, identity, idle: Mutex::default() }) }
    }

    /// Where it is reached.
    pub fn address(&self) -> SocketAddr {
        self.way.address
    }

    async fn call(&self, request: Request, pieces: Vec<Bytes>) -> Result<Answer, HostError> {
        let mut connection = self.way.connection().await?;
        let answer = self.way.ask(&mut connection, &request, pieces).await?;
        self.way.keep(connection);
        Ok(answer)
    }

    async fn done(&self, request: Request, pieces: Vec<Bytes>) -> Result<(), HostError> {
        match self.call(request, pieces).await? {
            Answer::Done => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    async fn report(&self, request: Request) -> Result<Report, HostError> {
        match self.call(request, vec![]).await? {
            Answer::Report(report) => Ok(report),
            other => Err(unexpected(&other)),
        }
    }
}

impl Way {
    async fn connection(&self) -> Result<Connection, HostError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match idle {
            Some(connection) => Ok(connection),
            None => self.connect().await,
        }
    }

    async fn connect(&self) -> Result<Connection, HostError> {
        let lost = |error| self.lost(error);
        let mut connection = Connection::open(self.address).await.map_err(lost)?;
        connection.send(&self.identity, vec![]).await.map_err(lost)?;
        match connection.receive::<Greeting>().await.map_err(lost)?.0 {
            Greeting::Welcome => Ok(connection),
            Greeting::Another(_) => {
                let message = format!("another process is at {} now", self.address);
                Err(HostError::Unreachable(message))
            }
        }
    }

    fn keep(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push(connection);
        }
    }

    async fn ask(
        &self,
        connection: &mut Connection,
        request: &Request,
        pieces: Vec<Bytes>,
    ) -> Result<Answer, HostError> {
        connection.send(request, pieces).await.map_err(|error| self.lost(error))?;
        Ok(self.answer(connection).await?.0)
    }

    async fn answer(&self, connection: &mut Connection) -> Result<(Answer, Vec<Bytes>), HostError> {
        match connection.receive().await.map_err(|error| self.lost(error))? {
            (Answer::Failed(error), _) => Err(error),
            answer => Ok(answer),
        }
    }

    fn lost(&self, error: WireError) -> HostError {
        match error {
            WireError::Formless(reason) => HostError::Invalid(reason),
            error => HostError::Unreachable(format!("{}: {error}", self.address)),
        }
    }
}

/// A scan under way.
struct Scan {
    way: Arc<Way>,
    connection: Connection,
    rows: u64,
}

impl Scan {
    /// The next part, and what is left after it.
    async fn next(mut self) -> Result<(ScanPart, Option<Self>), HostError> {
        match self.way.answer(&mut self.connection).await? {
            (Answer::Batch, pieces) => {
                let [piece] = pieces.as_slice() else {
                    return Err(HostError::Unreachable("a batch is missing".into()));
                };
                let batch = batches::decode(piece)
                    .map_err(|error| HostError::Unreachable(error.to_string()))?;
                self.rows += batch.num_rows() as u64;
                Ok((ScanPart::Batch(batch), Some(self)))
            }
            (Answer::End { rows }, _) if rows == self.rows => {
                self.way.keep(self.connection);
                Ok((ScanPart::End { rows }, None))
            }
            (Answer::End { rows }, _) => {
                let message = format!("{} rows of {rows} have come", self.rows);
                Err(HostError::Unreachable(message))
            }
            (other, _) => Err(unexpected(&other)),
        }
    }
}

fn unexpected(answer: &Answer) -> HostError {
    HostError::Invalid(format!("host answered something else: {answer:?}"))
}

#[async_trait]
impl Host for RemoteHost {
    async fn activate(&self, activation: Activation) -> Result<Report, HostError> {
        self.report(Request::Activate(activation)).await
    }

    async fn execute(&self, command: Arc<Command>) -> Result<Report, HostError> {
        self.report(Request::Execute(command)).await
    }

    async fn retire(&self, incarnation: Incarnation, reason: String) -> Result<(), HostError> {
        self.done(Request::Retire { incarnation, reason }, vec![]).await
    }

    async fn retain(&self, epoch: Epoch, retention: Retention) -> Result<(), HostError> {
        self.done(Request::Retain { epoch, retention }, vec![]).await
    }

    async fn stage(&self, staging: Staging) -> Result<(), HostError> {
        let (head, rows) = StagingHead::split(staging)?;
        self.done(Request::Stage(head), rows).await
    }

    async fn unstage(&self, epoch: Epoch, transaction: TransactionId) -> Result<(), HostError> {
        self.done(Request::Unstage { epoch, transaction }, vec![]).await
    }

    async fn scan(&self, request: ScanRequest) -> Result<ScanStream, HostError> {
        let (head, keys) = ScanHead::split(request)?;
        let mut connection = self.way.connection().await?;
        match self.way.ask(&mut connection, &Request::Scan(head), keys).await? {
            Answer::Done => {}
            other => return Err(unexpected(&other)),
        }
        let scan = Scan { way: Arc::clone(&self.way), connection, rows: 0 };
        let parts = try_unfold(Some(scan), async |scan| match scan {
            Some(scan) => scan.next().await.map(Some),
            None => Ok(None),
        });
        Ok(parts.boxed())
    }

    async fn view_errors(
        &self,
        epoch: Epoch,
        step: Step,
        view: RelationId,
    ) -> Result<Vec<RowError>, HostError> {
        match self.call(Request::ViewErrors { epoch, step, view }, vec![]).await? {
            Answer::RowErrors(errors) => Ok(errors),
            other => Err(unexpected(&other)),
        }
    }

    async fn statistics(&self, epoch: Epoch, step: Step) -> Result<Statistics, HostError> {
        match self.call(Request::Statistics { epoch, step }, vec![]).await? {
            Answer::Statistics(statistics) => Ok(statistics),
            other => Err(unexpected(&other)),
        }
    }
}
