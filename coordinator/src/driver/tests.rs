//! The driver over fake hosts: that what the machine wants is done, whatever hosts and clients do.

mod host;
mod registering;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use arrow_schema::Schema;
use futures::future::join_all;
use futures::poll;
use stillframe_protocol::{
    Action, CatalogVersion, Change, Coordinator, CoordinatorError, Entry, Epoch, FrameId, Host,
    HostError, HostId, JobPhase, LeaseId, Lockable, Mode, Plan, Program, RelationId, Reservation,
    Step, TransactionId, View,
};
use tokio::time::timeout;

use self::host::{FakeHost, eventually};
use super::{Options, start};
use crate::machine::Online;

const LONG: Duration = Duration::from_secs(10);
const EPOCH: Epoch = Epoch(1);

fn frame(step: u64) -> Option<FrameId> {
    Some(FrameId { epoch: EPOCH, step: Step(step) })
}

fn cluster(hosts: usize) -> (Arc<dyn Coordinator>, Vec<Arc<FakeHost>>) {
    let hosts: Vec<_> = (0..hosts).map(|_| FakeHost::new()).collect();
    (start_over(&hosts, LONG), hosts)
}

fn options(patience: Duration) -> Options {
    Options {
        workers: 2,
        time_to_live_min: Duration::from_millis(50),
        tick: Duration::from_millis(2),
        patience,
        ..Options::default()
    }
}

fn start_over(hosts: &[Arc<FakeHost>], patience: Duration) -> Arc<dyn Coordinator> {
    start(options(patience), hosts.iter().map(|host| Arc::clone(host) as Arc<dyn Host>).collect())
}

fn key(hash: u64) -> Vec<Entry> {
    let relation = RelationId(1);
    let lockable = Lockable::Key { relation, constraint: 0, hash };
    vec![Entry { lockable, mode: Mode::Exclusive }]
}

fn everywhere() -> BTreeSet<HostId> {
    BTreeSet::from([HostId(0), HostId(1)])
}

async fn lease_step(coordinator: &Arc<dyn Coordinator>, lease: u128) -> Step {
    coordinator.lease(LeaseId(lease), LONG).await.unwrap().step
}

#[tokio::test]
async fn a_commit_is_answered_with_its_step_and_seen_by_the_next_lease() {
    let (coordinator, hosts) = cluster(2);
    assert_eq!(lease_step(&coordinator, 1).await, Step(0));
    let t = TransactionId(1);
    let reserved = coordinator.reserve(t, frame(0), key(1), None).await;
    assert_eq!(reserved, Ok(Reservation::Granted));
    let committed = coordinator.commit(t, EPOCH, everywhere()).await.unwrap();
    assert_eq!(committed.step, Step(1));
    assert_eq!(lease_step(&coordinator, 2).await, Step(1));
    for host in &hosts {
        let state = host.state();
        assert!(matches!(&state.commands[0].action, Action::Replace { exchange, .. }
            if exchange.len() == 2));
        assert!(matches!(&state.commands[1].action, Action::Advance { transactions, .. }
            if *transactions == [t]));
        assert_eq!(state.frames, BTreeSet::from([Step(0), Step(1)]));
    }
    let status = coordinator.status().await.unwrap();
    assert_eq!((status.common, status.leases.len(), status.steps.len()), (Some(Step(1)), 2, 2));
    assert_eq!(status.hosts.iter().map(|host| host.workers).collect::<Vec<_>>(), [2, 2]);
}

#[tokio::test]
async fn commits_that_come_while_a_step_is_under_way_share_the_next() {
    let (coordinator, hosts) = cluster(2);
    lease_step(&coordinator, 1).await;
    hosts[1].run(false);
    let mut commits: Vec<_> =
        (1..=4).map(|id| coordinator.commit(TransactionId(id), EPOCH, everywhere())).collect();
    assert!(poll!(commits[0].as_mut()).is_pending());
    eventually("step 1 is sent", || hosts[0].state().commands.len() == 2).await;
    for commit in &mut commits[1..] {
        assert!(poll!(commit.as_mut()).is_pending());
    }
    // A request that is answered after them tells that they have arrived.
    coordinator.status().await.unwrap();
    hosts[1].run(true);
    let steps: Vec<_> =
        join_all(commits).await.into_iter().map(|commit| commit.unwrap().step.0).collect();
    assert_eq!(steps, [1, 2, 2, 2]);
}

#[tokio::test]
async fn frames_go_when_their_leases_end_without_another_step() {
    let (coordinator, hosts) = cluster(2);
    lease_step(&coordinator, 1).await;
    coordinator.commit(TransactionId(1), EPOCH, everywhere()).await.unwrap();
    coordinator.lease(LeaseId(2), Duration::from_millis(50)).await.unwrap();
    coordinator.commit(TransactionId(2), EPOCH, everywhere()).await.unwrap();
    let frames = |expected: &[u64]| {
        let expected: BTreeSet<Step> = expected.iter().copied().map(Step).collect();
        hosts.iter().all(|host| host.state().frames == expected)
    };
    eventually("the second lease expires", || frames(&[0, 2])).await;
    coordinator.release(LeaseId(1)).await;
    eventually("the first lease is released", || frames(&[2])).await;
    assert_eq!(coordinator.renew(vec![(LeaseId(1), Step(0))]).await, Ok(vec![LeaseId(1)]));
}

#[tokio::test]
async fn a_lease_that_nobody_waits_for_any_more_is_given_back() {
    let (coordinator, hosts) = cluster(1);
    hosts[0].run(false);
    let waiting = coordinator.lease(LeaseId(1), LONG);
    assert!(timeout(Duration::from_millis(20), waiting).await.is_err());
    hosts[0].run(true);
    lease_step(&coordinator, 2).await;
    let status = coordinator.status().await.unwrap();
    assert_eq!(status.leases.iter().map(|lease| lease.lease).collect::<Vec<_>>(), [LeaseId(2)]);
}

#[tokio::test]
async fn whoever_stops_waiting_loses_his_place() {
    let (coordinator, _hosts) = cluster(1);
    let [holder, impatient, patient] = [1, 2, 3].map(TransactionId);
    coordinator.reserve(holder, None, key(1), None).await.unwrap();
    let waiting = coordinator.reserve(impatient, None, key(1), None);
    assert!(timeout(Duration::from_millis(20), waiting).await.is_err());
    let late = coordinator.reserve(patient, None, key(1), Some(Duration::from_millis(20))).await;
    assert_eq!(late, Err(CoordinatorError::LockTimeout));
    coordinator.abort(holder).await;
    let reserved = coordinator.reserve(patient, None, key(1), None).await;
    assert_eq!(reserved, Ok(Reservation::Granted));
}

#[tokio::test]
async fn to_stop_waiting_for_a_commit_does_not_undo_it() {
    let (coordinator, hosts) = cluster(2);
    lease_step(&coordinator, 1).await;
    hosts[0].run(false);
    let t = TransactionId(1);
    assert!(
        timeout(Duration::from_millis(20), coordinator.commit(t, EPOCH, everywhere()))
            .await
            .is_err()
    );
    hosts[0].run(true);
    assert_eq!(coordinator.commit(t, EPOCH, everywhere()).await.unwrap().step, Step(1));
}

#[tokio::test]
async fn aborted_transactions_are_unstaged_everywhere() {
    let (coordinator, hosts) = cluster(2);
    lease_step(&coordinator, 1).await;
    let t = TransactionId(1);
    coordinator.abort(t).await;
    eventually("unstaged", || hosts.iter().all(|host| host.state().unstaged == [t])).await;
    let refused = coordinator.commit(t, EPOCH, everywhere()).await;
    assert_eq!(refused, Err(CoordinatorError::UnknownTransaction));
}

#[tokio::test]
async fn changes_of_the_catalog_are_shown_by_leases_from_their_step_on() {
    let (coordinator, _hosts) = cluster(2);
    let head = coordinator.catalog_head().await.unwrap();
    assert_eq!(head.version, CatalogVersion(0));
    let change = |id, base| Change {
        transaction: TransactionId(id),
        base: CatalogVersion(base),
        bytes: Arc::from(*b"one table"),
        program: Program::default(),
        staged_on: BTreeSet::new(),
    };
    assert_eq!(coordinator.change(change(1, 0)).await.unwrap().step, Step(1));
    assert_eq!(coordinator.change(change(2, 0)).await, Err(CoordinatorError::CatalogChanged));
    let grant = coordinator.lease(LeaseId(1), LONG).await.unwrap();
    assert_eq!((grant.step, grant.catalog.version), (Step(1), CatalogVersion(1)));
    assert_eq!(&*grant.catalog.bytes, b"one table");
}

#[tokio::test]
async fn a_view_is_filled_while_steps_go_on() {
    let hosts = [FakeHost::new(), FakeHost::new()];
    let online = Online { slices_per_pump: 2, ..Online::default() };
    let options = Options { online: Some(online), ..options(LONG) };
    let coordinator =
        start(options, hosts.iter().map(|host| Arc::clone(host) as Arc<dyn Host>).collect());
    lease_step(&coordinator, 1).await;
    hosts[1].run(false);
    let plan = Plan::Values { schema: Arc::new(Schema::empty()), rows: vec![] };
    let change = coordinator.change(Change {
        transaction: TransactionId(1),
        base: CatalogVersion(0),
        bytes: Arc::from(*b"one view"),
        program: Program {
            views: vec![View { id: RelationId(10), plan: Arc::new(plan) }],
            ..Program::default()
        },
        staged_on: BTreeSet::new(),
    });
    let others = async {
        eventually("it begins", || hosts[0].state().commands.len() == 2).await;
        let jobs = coordinator.status().await.unwrap().jobs;
        assert_eq!(jobs[0].phase, JobPhase::Replaces);
        let commit = coordinator.commit(TransactionId(2), EPOCH, everywhere());
        hosts[1].run(true);
        commit.await
    };
    let (change, commit) = tokio::join!(change, others);
    // The new circuit, the commit and the cutover make a step each; two pumps make none.
    assert_eq!((commit.unwrap().step, change.unwrap().step), (Step(2), Step(3)));
    let pumps = |host: &Arc<FakeHost>| {
        let state = host.state();
        state.commands.iter().filter(|command| !command.action.makes_step()).count()
    };
    assert_eq!(hosts.iter().map(pumps).collect::<Vec<_>>(), [2, 2]);
    assert!(coordinator.status().await.unwrap().jobs.is_empty());
}

#[tokio::test]
async fn a_host_that_cannot_be_reached_is_waited_for() {
    let hosts = vec![FakeHost::new(), FakeHost::new()];
    hosts[1].state().unreachable = 2;
    let coordinator = start_over(&hosts, LONG);
    assert_eq!(lease_step(&coordinator, 1).await, Step(0));
    hosts[0].state().unreachable = 2;
    let committed = coordinator.commit(TransactionId(1), EPOCH, everywhere()).await;
    assert_eq!(committed.unwrap().step, Step(1));
}

#[tokio::test]
async fn a_cluster_that_does_not_get_ready_says_so() {
    let hosts = vec![FakeHost::new(), FakeHost::new()];
    hosts[0].run(false);
    let coordinator = start_over(&hosts, Duration::from_millis(50));
    let refused = coordinator.lease(LeaseId(1), LONG).await;
    assert!(matches!(refused, Err(CoordinatorError::NotReady(_))));
}

#[tokio::test]
async fn everybody_learns_that_a_host_has_failed() {
    let (coordinator, hosts) = cluster(2);
    lease_step(&coordinator, 1).await;
    let [holder, waiter] = [1, 2].map(TransactionId);
    coordinator.reserve(holder, None, key(1), None).await.unwrap();
    hosts[1].state().fault = Some(HostError::Failed("a worker panicked".into()));
    let (commit, reserve) = tokio::join!(
        coordinator.commit(TransactionId(3), EPOCH, everywhere()),
        coordinator.reserve(waiter, None, key(1), None),
    );
    assert!(matches!(commit, Err(CoordinatorError::Failed(why)) if why.contains("panicked")));
    assert!(matches!(reserve, Err(CoordinatorError::Failed(_))));
    let lease = coordinator.lease(LeaseId(2), LONG).await;
    assert!(matches!(lease, Err(CoordinatorError::Failed(_))));
    coordinator.status().await.unwrap();
}

#[tokio::test]
async fn the_driver_ends_with_its_last_client() {
    let (coordinator, hosts) = cluster(1);
    lease_step(&coordinator, 1).await;
    hosts[0].run(false);
    let commit = coordinator.commit(TransactionId(1), EPOCH, BTreeSet::from([HostId(0)]));
    assert!(timeout(Duration::from_millis(20), commit).await.is_err());
    drop(coordinator);
    // The driver and the call that is under way have let go of the host.
    eventually("the host is free", || Arc::strong_count(&hosts[0]) == 1).await;
}
