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
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

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
        due_us: None,
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
        let told = staging.changes.iter().map(|Changes { relation, rows, weights }| {
            format!("{relation} {} {weights:?}", rows.num_rows())
        });
        Err(HostError::Invalid(told.collect::<Vec<_>>().join("; ")))
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
            // Longer than anybody's patience, but alive.
            6 => {
                tokio::time::sleep(PATIENCE * 2).await;
                stream::iter([Ok(ScanPart::End { rows: 0 })]).boxed()
            }
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

const PATIENCE: Duration = Duration::from_secs(1);
const ME: Incarnation = Incarnation(u128::MAX - 5);

fn identity(incarnation: Incarnation) -> Identity {
    Identity { cluster: "c".into(), build: "b".into(), incarnation }
}

/// A host in what stands for a process, which dies when this is dropped.
struct Process {
    runtime: Option<Runtime>,
    addresses: Addresses,
}

impl Process {
    fn start(security: &Security) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_stack_size(64 << 20)
            .enable_all()
            .build()
            .unwrap();
        let bind = || {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            listener.set_nonblocking(true).unwrap();
            listener
        };
        let (control, bulk) = (bind(), bind());
        let addresses =
            Addresses { control: control.local_addr().unwrap(), bulk: bulk.local_addr().unwrap() };
        let host: Arc<dyn Host> = Member::new(ME, Arc::new(Echo));
        let security = security.clone();
        runtime.spawn(async move {
            let listener = |listener| TcpListener::from_std(listener).unwrap();
            let (control, bulk) = (listener(control), listener(bulk));
            tokio::join!(
                serve_control(control, security.clone(), identity(ME), Arc::clone(&host)),
                serve_bulk(bulk, security, identity(ME), host),
            );
        });
        Self { runtime: Some(runtime), addresses }
    }

    fn host(&self, security: &Security) -> RemoteHost {
        RemoteHost::new(self.addresses, identity(ME), security, PATIENCE)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.runtime.take().unwrap().shutdown_background();
    }
}

/// Without certificates, and with.
fn securities() -> [Security; 2] {
    let folder = TempDir::new().unwrap();
    make_certificates(folder.path()).unwrap();
    [Security::none(), Security::mutual(folder.path()).unwrap()]
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
    for security in securities() {
        let process = Process::start(&security);
        let host = process.host(&security);
        let mut activation =
            Activation { epoch: Epoch(9), host: HostId(1), incarnation: ME, workers: vec![2, 2] };
        assert_eq!(host.activate(activation.clone()).await.unwrap(), report(Epoch(9)));
        activation.incarnation = Incarnation(3);
        let refused = host.activate(activation).await.unwrap_err();
        assert!(matches!(refused, HostError::Invalid(_)), "{refused}");

        let error = host.retain(Epoch(2), Retention::default()).await.unwrap_err();
        assert!(matches!(
            error,
            HostError::WrongEpoch { asked: Epoch(2), current: Some(Epoch(1)) }
        ));
        let error = host.unstage(Epoch(1), TransactionId(5)).await.unwrap_err();
        assert!(matches!(error, HostError::Failed(_)), "{error}");
        let errors = host.view_errors(Epoch(1), Step(1), RelationId(1)).await.unwrap();
        assert_eq!(errors[0].sqlstate, "22012");
        assert_eq!(host.statistics(Epoch(1), Step(6)).await.unwrap().frames, [Step(6)]);
    }
}

#[tokio::test]
async fn changes_of_several_relations_arrive_together() {
    let security = Security::none();
    let process = Process::start(&security);
    let host = process.host(&security);
    let (relation, other) = (RelationId(4), RelationId(5));
    let words = Schema::new(vec![Field::new("w", DataType::Utf8, false)]);
    let words = RecordBatch::try_new(
        Arc::new(words),
        vec![Arc::new(arrow::array::StringArray::from(vec!["x".repeat(5 << 20)]))],
    );
    let changes = vec![
        Changes { relation, rows: rows(&[1, 2]), weights: vec![1, -1] },
        Changes { relation, rows: rows(&[]), weights: vec![] },
        Changes { relation: other, rows: words.unwrap(), weights: vec![1] },
    ];
    let staging = Staging {
        epoch: Epoch(1),
        transaction: TransactionId(5),
        sequence: 0,
        changes,
        tables: vec![],
    };
    let told = host.stage(staging).await.unwrap_err().to_string();
    assert_eq!(told, "4 2 [1, -1]; 4 0 []; 5 1 [1]");
}

#[tokio::test]
async fn scans_end_explicitly_or_fail() {
    for security in securities() {
        let process = Process::start(&security);
        let host = process.host(&security);
        assert!(matches!(parts(&host, scan(0)).await, (counts, Ok(3)) if counts == [3]));
        let (_, stopped) = parts(&host, scan(1)).await;
        assert!(matches!(stopped, Err(HostError::Failed(_))), "{stopped:?}");
        let (_, failed) = parts(&host, scan(2)).await;
        assert!(matches!(failed, Err(HostError::FrameGone(Step(2)))), "{failed:?}");
        let (_, short) = parts(&host, scan(3)).await;
        assert!(matches!(short, Err(HostError::Unreachable(_))), "{short:?}");
        let keyed = ScanRequest { keys: Some(rows(&[5, 6])), ..scan(4) };
        assert!(matches!(parts(&host, keyed).await, (counts, Ok(2)) if counts == [2]));
        let refused = host.scan(scan(7)).await.map(drop).unwrap_err();
        assert!(matches!(refused, HostError::UnknownRelation(RelationId(3))), "{refused}");
    }
}

#[tokio::test]
async fn a_process_that_dies_in_the_middle_of_a_scan_is_an_error() {
    for security in securities() {
        let process = Process::start(&security);
        let host = process.host(&security);
        let mut parts = host.scan(scan(5)).await.unwrap();
        assert!(matches!(parts.next().await, Some(Ok(ScanPart::Batch(_)))));
        drop(process);
        let lost = tokio::time::timeout(Duration::from_secs(20), parts.next()).await.unwrap();
        assert!(matches!(lost, Some(Err(HostError::Unreachable(_)))), "{lost:?}");
        let gone = host.statistics(Epoch(1), Step(1)).await.unwrap_err();
        assert!(matches!(gone, HostError::Unreachable(_)), "{gone}");
        let gone = host.scan(scan(0)).await.map(drop).unwrap_err();
        assert!(matches!(gone, HostError::Unreachable(_)), "{gone}");
    }
}

#[tokio::test]
async fn who_is_slow_is_waited_for_and_who_gives_no_sign_of_life_is_not() {
    let security = Security::none();
    let process = Process::start(&security);
    let host = process.host(&security);
    assert!(matches!(parts(&host, scan(6)).await, (_, Ok(0))));

    // Somebody who accepts connections and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let bulk = silent.local_addr().unwrap();
    let addresses = Addresses { bulk, ..process.addresses };
    let host = RemoteHost::new(addresses, identity(ME), &security, PATIENCE);
    let given_up = tokio::time::timeout(PATIENCE * 10, host.scan(scan(0))).await.unwrap();
    let given_up = given_up.map(drop).unwrap_err();
    assert!(matches!(given_up, HostError::Unreachable(_)), "{given_up}");
}

#[tokio::test]
async fn another_process_at_the_address_is_not_asked() {
    let security = Security::none();
    let process = Process::start(&security);
    let host = RemoteHost::new(process.addresses, identity(Incarnation(1)), &security, PATIENCE);
    let error = host.statistics(Epoch(1), Step(1)).await.unwrap_err();
    assert!(matches!(error, HostError::Unreachable(_)), "{error}");
    let error = host.scan(scan(0)).await.map(drop).unwrap_err();
    assert!(matches!(error, HostError::Unreachable(_)), "{error}");
}

#[tokio::test]
async fn nobody_without_a_certificate_of_the_cluster_is_answered() {
    let [open, ours] = securities();
    let [_, theirs] = securities();
    for (serving, asking) in [(&ours, &open), (&ours, &theirs), (&open, &ours)] {
        let process = Process::start(serving);
        let host = process.host(asking);
        let error = host.statistics(Epoch(1), Step(1)).await.unwrap_err();
        assert!(matches!(error, HostError::Unreachable(_)), "{error}");
        let error = host.scan(scan(0)).await.map(drop).unwrap_err();
        assert!(matches!(error, HostError::Unreachable(_)), "{error}");
    }
}

#[test]
fn certificates_that_do_not_fit_are_refused() {
    let (one, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let missing = Security::mutual(one.path()).unwrap_err();
    assert!(matches!(missing, SecurityError::File { .. }), "{missing}");
    make_certificates(one.path()).unwrap();
    make_certificates(other.path()).unwrap();
    let again = make_certificates(one.path()).unwrap_err();
    assert!(matches!(again, CertificatesError::Exists(_)), "{again}");
    std::fs::copy(other.path().join(KEY_FILE), one.path().join(KEY_FILE)).unwrap();
    let mixed = Security::mutual(one.path()).unwrap_err();
    assert!(matches!(mixed, SecurityError::Mismatch { .. }), "{mixed}");
    std::fs::write(one.path().join(CERTIFICATE_FILE), "nothing").unwrap();
    let empty = Security::mutual(one.path()).unwrap_err();
    assert!(matches!(empty, SecurityError::File { .. }), "{empty}");
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
        let security = Security::none();
        let process = Process::start(&security);
        let request = ScanRequest { filters: vec![filter], ..scan(0) };
        parts(&process.host(&security), request).await.1
    });
    assert!(matches!(runtime.block_on(scanned).unwrap(), Ok(3)));
}
