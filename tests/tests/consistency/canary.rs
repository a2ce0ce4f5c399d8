//! A host that answers from its newest frame, whatever step it is asked for, must be caught.
//!
//! The cluster is assembled in this process from its parts, with such a host among three, and the
//! same bank opens in it. That the honest cluster passes is shown by `consistency`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use stillframe_coordinator as coordinator;
use stillframe_engine::{Functions, HostOptions, LocalHost};
use stillframe_protocol::{
    Activation, Command, Epoch, Host, HostError, RelationId, Report, Retention, RowError,
    ScanRequest, ScanStream, Staging, Statistics, Step, TransactionId,
};
use stillframe_tests::bank::{self, Hours};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

const HOSTS: usize = 3;

/// A host that never looks at the step of a scan.
#[derive(Debug)]
struct Hasty {
    host: Arc<LocalHost>,
    newest: AtomicU64,
}

#[async_trait]
impl Host for Hasty {
    async fn activate(&self, activation: Activation) -> Result<Report, HostError> {
        self.host.activate(activation).await
    }

    async fn execute(&self, command: Arc<Command>) -> Result<Report, HostError> {
        let report = self.host.execute(command).await?;
        if let Some(step) = report.step {
            self.newest.fetch_max(step.0, Ordering::SeqCst);
        }
        Ok(report)
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
        let step = Step(self.newest.load(Ordering::SeqCst));
        self.host.scan(ScanRequest { step, ..request }).await
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

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_answers_from_its_newest_frame_is_caught() {
    let options = HostOptions::new(Functions::new(stillframe_sql::functions()));
    let hosts: Vec<_> =
        (0..HOSTS).map(|_| LocalHost::start(options.clone()).expect("a host starts")).collect();
    let mut faces: Vec<Arc<dyn Host>> =
        hosts.iter().map(|host| Arc::clone(host) as Arc<dyn Host>).collect();
    faces[1] = Arc::new(Hasty { host: Arc::clone(&hosts[1]), newest: AtomicU64::new(0) });
    let options = coordinator::Options { workers: 1, ..coordinator::Options::default() };
    let coordinator = coordinator::start(options, faces.clone());
    let database = stillframe_sql::Database::new(coordinator, faces, 1);
    let listener =
        TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("a free port");
    let address = listener.local_addr().expect("a bound port");
    let (stop, stopped) = oneshot::channel::<()>();
    let serving =
        tokio::spawn(stillframe::serve(listener, database, stillframe::Access::trust(), async {
            let _ = stopped.await;
        }));

    let hours = Hours {
        time_min: Duration::from_secs(0),
        time_max: Duration::from_secs(120),
        steps_min: 1000,
        views_min: 0,
    };
    let report = bank::run(address, hours).await;
    println!("{report:#?}");
    // Caught by what was read, not by an error on the way.
    let caught = report.faults.iter().filter(|fault| !fault.contains("was stopped by"));
    assert!(caught.count() > 0, "{report:#?}");

    stop.send(()).expect("the server runs");
    serving.await.expect("the server ends");
    for host in &hosts {
        host.shut_down().await;
    }
}
