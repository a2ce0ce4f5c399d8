//! A host behind a socket is the host.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Int32Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream;
use stillframe_protocol::{
    Activation, Changes, Command, Epoch, Expression, Generation, Host, HostError, HostId,
    Incarnation, RelationId, Report, Retention, RowError, ScanPart, ScanRequest, ScanStream,
    Staging, Statistics, Step, TransactionId, UnaryOperator,
};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::*;

/// Answers so that what arrived shows in what it answers.
#[derive(Debug)]
struct Echo;

fn rows(values: &[i32]) -> RecordBatch {
    let schema = Schema::new(vec![Field::new("a", DataType::Int32, true)]);
    let values = Arc::new(Int32Array::from(values.to_vec()));
    RecordBatch::try_new(Arc::new(schema), vec![values]).unwrap()
}

fn report(epoch: Epoch) -> Report {
    Report {
        host: HostId(1),
        epoch,
        done: None,
        step: Some(Step(7)),
        exchange: (Generation(2), SocketAddr::from(([127, 0, 0, 1], 9))),
        took_us: 3,
        filling: None,
    }
}

#[async_trait]
impl Host for Echo {
    async fn activate(&self, activation: Activation) -> Result<Report, HostError> {
        Ok(report(activation.epoch))
    }

    async fn execute(&self, command: Arc<Command>) -> Result<Report, HostError> {
        Ok(report(command.epoch))
    }

    async fn retain(&self, asked: Epoch, _: Retention) -> Result<(), HostError> {
        Err(HostError::WrongEpoch { asked, current: Some(Epoch(1)) })
    }

    async fn stage(&self, staging: Staging) -> Result<(), HostError> {
        let Changes { relation, rows, weights } = &staging.changes[0];
        Err(HostError::Invalid(format!("{relation} {} {weights:?}", rows.num_rows())))
    }

    async fn unstage(&self, _: Epoch, _: TransactionId) -> Result<(), HostError> {
        panic!("whoever asks is told");
    }

    /// The worker says how it ends.
    async fn scan(&self, request: ScanRequest) -> Result<ScanStream, HostError> {
        let keys = request.keys.unwrap_or_else(|| rows(&[]));
        let batch = || Ok(ScanPart::Batch(rows(&[1, 2, 3])));
        Ok(match request.worker {
            0 => stream::iter([batch(), Ok(ScanPart::End { rows: 3 })]).boxed(),
            1 => stream::iter([batch()]).boxed(),
            2 => stream::iter([batch(), Err(HostError::FrameGone(request.step))]).boxed(),
            3 => stream::iter([batch(), Ok(ScanPart::End { rows: 4 })]).boxed(),
            4 => {
                let end = ScanPart::End { rows: keys.num_rows() as u64 };
                stream::iter([Ok(ScanPart::Batch(keys)), Ok(end)]).boxed()
            }
            5 => stream::iter([batch()]).chain(stream::pending()).boxed(),
            _ => return Err(HostError::UnknownRelation(request.relation)),
        })
    }

    async fn view_errors(
        &self,
        _: Epoch,
        _: Step,
        _: RelationId,
    ) -> Result<Vec<RowError>, HostError> {
        Ok(vec![RowError { sqlstate: "22012".into(), message: "division by zero".into() }])
    }

    async fn statistics(&self, _: Epoch, step: Step) -> Result<Statistics, HostError> {
        Ok(Statistics { relations: vec![], frames: vec![step] })
    }
}

const ME: Incarnation = Incarnation(u128::MAX - 5);

fn identity(incarnation: Incarnation) -> Identity {
    Identity { cluster: "c".into(), build: "b".into(), incarnation }
}

async fn serving() -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let host = Member::new(ME, Arc::new(Echo));
    (address, tokio::spawn(serve(listener, identity(ME), host)))
}

fn scan(worker: u32) -> ScanRequest {
    ScanRequest {
        epoch: Epoch(1),
        step: Step(2),
        relation: RelationId(3),
        worker,
        keys: None,
        filters: vec![],
        limit: Some(4),
        projection: vec![0],
        batch_rows: 5,
    }
}

/// The numbers of rows that came, and how it ended.
async fn parts(host: &RemoteHost, request: ScanRequest) -> (Vec<usize>, Result<u64, HostError>) {
    let mut parts = host.scan(request).await.unwrap();
    let mut counts = vec![];
    loop {
        match parts.next().await.expect("no scan just stops") {
            Ok(ScanPart::Batch(batch)) => counts.push(batch.num_rows()),
            Ok(ScanPart::End { rows }) => return (counts, Ok(rows)),
            Err(error) => return (counts, Err(error)),
        }
    }
}

#[tokio::test]
async fn answers_and_errors_arrive() {
    let (address, _server) = serving().await;
    let host = RemoteHost::new(address, identity(ME));
    let mut activation =
        Activation { epoch: Epoch(9), host: HostId(1), incarnation: ME, workers: vec![2, 2] };
    assert_eq!(host.activate(activation.clone()).await.unwrap(), report(Epoch(9)));
    activation.incarnation = Incarnation(3);
    let refused = host.activate(activation).await.unwrap_err();
    assert!(matches!(refused, HostError::Invalid(_)), "{refused}");

    let error = host.retain(Epoch(2), Retention::default()).await.unwrap_err();
    assert!(matches!(error, HostError::WrongEpoch { asked: Epoch(2), current: Some(Epoch(1)) }));
    let changes =
        vec![Changes { relation: RelationId(4), rows: rows(&[1, 2]), weights: vec![1, -1] }];
    let staging = Staging { epoch: Epoch(1), transaction: TransactionId(5), sequence: 0, changes };
    assert_eq!(host.stage(staging).await.unwrap_err().to_string(), "4 2 [1, -1]");
    let error = host.unstage(Epoch(1), TransactionId(5)).await.unwrap_err();
    assert!(matches!(error, HostError::Failed(_)), "{error}");
    let errors = host.view_errors(Epoch(1), Step(1), RelationId(1)).await.unwrap();
    assert_eq!(errors[0].sqlstate, "22012");
    assert_eq!(host.statistics(Epoch(1), Step(6)).await.unwrap().frames, [Step(6)]);
}

#[tokio::test]
async fn scans_end_explicitly_or_fail() {
    let (address, _server) = serving().await;
    let host = RemoteHost::new(address, identity(ME));
    assert!(matches!(parts(&host, scan(0)).await, (counts, Ok(3)) if counts == [3]));
    let (_, stopped) = parts(&host, scan(1)).await;
    assert!(matches!(stopped, Err(HostError::Failed(_))), "{stopped:?}");
    let (_, failed) = parts(&host, scan(2)).await;
    assert!(matches!(failed, Err(HostError::FrameGone(Step(2)))), "{failed:?}");
    let (_, short) = parts(&host, scan(3)).await;
    assert!(matches!(short, Err(HostError::Unreachable(_))), "{short:?}");
    let keyed = ScanRequest { keys: Some(rows(&[5, 6])), ..scan(4) };
    assert!(matches!(parts(&host, keyed).await, (counts, Ok(2)) if counts == [2]));
    let refused = host.scan(scan(6)).await.map(drop).unwrap_err();
    assert!(matches!(refused, HostError::UnknownRelation(RelationId(3))), "{refused}");
}

#[tokio::test]
async fn a_process_that_dies_in_the_middle_of_a_scan_is_an_error() {
    let (address, server) = serving().await;
    let host = RemoteHost::new(address, identity(ME));
    let mut parts = host.scan(scan(5)).await.unwrap();
    assert!(matches!(parts.next().await, Some(Ok(ScanPart::Batch(_)))));
    server.abort();
    let lost = tokio::time::timeout(Duration::from_secs(20), parts.next()).await.unwrap();
    assert!(matches!(lost, Some(Err(HostError::Unreachable(_)))), "{lost:?}");
    let gone = host.statistics(Epoch(1), Step(1)).await.unwrap_err();
    assert!(matches!(gone, HostError::Unreachable(_)), "{gone}");
}

#[tokio::test]
async fn another_process_at_the_address_is_not_asked() {
    let (address, _server) = serving().await;
    let host = RemoteHost::new(address, identity(Incarnation(1)));
    let error = host.statistics(Epoch(1), Step(1)).await.unwrap_err();
    assert!(matches!(error, HostError::Unreachable(_)), "{error}");
}

/// On a thread with as deep a stack as the server's have.
#[test]
fn deep_plans_arrive() {
    const DEPTH: usize = 5000;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_stack_size(64 << 20)
        .enable_all()
        .build()
        .unwrap();
    let scanned = runtime.spawn(async {
        let mut filter = Expression::Column(0);
        for _ in 0..DEPTH {
            filter = Expression::Unary { operator: UnaryOperator::Not, operand: Box::new(filter) };
        }
        let (address, _server) = serving().await;
        let host = RemoteHost::new(address, identity(ME));
        let request = ScanRequest { filters: vec![filter], ..scan(0) };
        parts(&host, request).await.1
    });
    assert!(matches!(runtime.block_on(scanned).unwrap(), Ok(3)));
}
