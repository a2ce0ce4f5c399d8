//! Requests that come twice, too late, too early or from elsewhere.

use std::sync::Arc;

use stillframe_protocol::{
    Action, Activation, Command, CommandNumber, Epoch, Host as _, HostError, HostId, Incarnation,
    Program, RelationId, Retention, ScanRequest, Staging, Step, TransactionId,
};

use super::world::*;
use crate::LocalHost;
use crate::cluster::EPOCH;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_comes_again_is_reported_again() {
    let mut cluster = cluster(1, 1).await;
    let host = Arc::clone(&cluster.hosts()[0]);
    let command = cluster.command(Action::Advance {
        step: Step(1),
        clock_us: 0,
        transactions: vec![TransactionId(9)],
    });
    let staging = Staging {
        epoch: EPOCH,
        transaction: TransactionId(9),
        sequence: 0,
        changes: vec![log(&[(1, "once", 1)])],
        tables: vec![],
    };
    host.stage(staging.clone()).await.unwrap();
    host.stage(staging.clone()).await.unwrap();
    // The first sender goes away; the command is executed all the same.
    {
        let abandoned = host.execute(Arc::clone(&command));
        tokio::pin!(abandoned);
        assert!(futures::poll!(&mut abandoned).is_pending());
    }
    let both = tokio::join!(host.execute(Arc::clone(&command)), host.execute(command.clone()));
    assert_eq!(both.0.unwrap(), both.1.unwrap());
    cluster.execute(command.clone()).await.unwrap();
    host.stage(staging.clone()).await.unwrap();
    cluster.advance(vec![TransactionId(9)]).await.unwrap();
    assert_eq!(contents(&cluster, LOG, Step(2)).await, ["1 once"]);
    let report = host.execute(command).await.unwrap();
    assert_eq!(report.step, Some(Step(2)), "a report is always the newest");

    let late = Staging { sequence: 1, ..staging };
    assert!(matches!(host.stage(late).await, Err(HostError::Invalid(_))));
    cluster.shut_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gaps_and_changed_commands_are_refused() {
    let mut cluster = cluster(1, 1).await;
    let host = Arc::clone(&cluster.hosts()[0]);
    let advance = |number, step, clock_us| {
        Arc::new(Command {
            epoch: EPOCH,
            number: CommandNumber(number),
            retention: Retention::default(),
            action: Action::Advance { step: Step(step), clock_us, transactions: vec![] },
        })
    };
    for refused in [advance(2, 2, 0), advance(1, 2, 0), advance(0, 0, 0)] {
        assert!(matches!(host.execute(refused).await, Err(HostError::Invalid(_))));
    }
    cluster.execute(advance(1, 1, 5)).await.unwrap();
    assert!(matches!(host.execute(advance(1, 1, 6)).await, Err(HostError::Invalid(_))));
    cluster.advance(vec![]).await.unwrap();
    cluster.shut_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_epochs_are_refused() {
    let host = LocalHost::start(options()).unwrap();
    let activation = |epoch, workers| Activation {
        epoch: Epoch(epoch),
        host: HostId(0),
        incarnation: Incarnation(0),
        workers,
    };
    let statistics = host.statistics(Epoch(5), Step(0)).await;
    assert!(matches!(statistics, Err(HostError::WrongEpoch { current: None, .. })));

    let first = host.activate(activation(5, vec![1])).await.unwrap();
    assert_eq!(host.activate(activation(5, vec![1])).await.unwrap(), first);
    let refused = host.activate(activation(5, vec![2])).await;
    assert!(matches!(refused, Err(HostError::Invalid(_))));
    let older = host.activate(activation(4, vec![1])).await;
    assert!(matches!(older, Err(HostError::WrongEpoch { current: Some(Epoch(5)), .. })));
    for refused in [activation(6, vec![]), activation(6, vec![0])] {
        assert!(matches!(host.activate(refused).await, Err(HostError::Invalid(_))));
    }
    // Nothing has begun: a newer epoch is as good.
    let newer = host.activate(activation(6, vec![1])).await.unwrap();
    assert_eq!((newer.epoch, newer.done, newer.exchange), (Epoch(6), None, first.exchange));
    let retained = host.retain(Epoch(5), Retention::default()).await;
    assert!(matches!(retained, Err(HostError::WrongEpoch { .. })));
    host.shut_down().await;

    let cluster = cluster(1, 1).await;
    let host = &cluster.hosts()[0];
    let request = ScanRequest { epoch: Epoch(2), ..cluster.request(LOG, 2) };
    assert!(matches!(host.scan(request).await, Err(HostError::WrongEpoch { .. })));
    let restarted = host.activate(activation(2, vec![1])).await;
    assert!(matches!(restarted, Err(HostError::Failed(_))));
    cluster.shut_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_changes_are_refused_when_they_are_staged() {
    let cluster = cluster(1, 1).await;
    let host = &cluster.hosts()[0];
    let stage = |changes| {
        host.stage(Staging {
            epoch: EPOCH,
            transaction: TransactionId(1),
            sequence: 0,
            changes,
            tables: vec![],
        })
    };
    let mut wrong_columns = log(&[(1, "a", 1)]);
    wrong_columns.relation = ACCOUNTS;
    let mut too_few_weights = log(&[(1, "a", 1)]);
    too_few_weights.weights.clear();
    for wrong in [wrong_columns, too_few_weights, accounts(&[(1, "a", 0, 2)])] {
        assert!(matches!(stage(vec![wrong]).await, Err(HostError::Invalid(_))));
    }
    let mut unknown = log(&[(1, "a", 1)]);
    unknown.relation = RelationId(99);
    assert!(matches!(stage(vec![unknown]).await, Err(HostError::UnknownRelation(_))));
    cluster.shut_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_unstaged_does_not_enter() {
    let mut cluster = cluster(2, 1).await;
    let transaction = TransactionId(1);
    for host in cluster.hosts() {
        let changes = vec![log(&[(1, "a", 1)])];
        host.stage(Staging { epoch: EPOCH, transaction, sequence: 0, changes, tables: vec![] })
            .await
            .unwrap();
    }
    cluster.hosts()[0].unstage(EPOCH, transaction).await.unwrap();
    cluster.advance(vec![transaction]).await.unwrap();
    assert_eq!(contents(&cluster, LOG, Step(1)).await, ["1 a"]);
    cluster.shut_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_has_failed_says_so_at_once() {
    let mut cluster = cluster(1, 2).await;
    let host = Arc::clone(&cluster.hosts()[0]);
    // Two transactions that write one key: the coordinator must never let that happen.
    for number in [1, 2] {
        let changes = vec![accounts(&[(1, "ann", number, 1)])];
        let transaction = TransactionId(number as u128);
        host.stage(Staging { epoch: EPOCH, transaction, sequence: 0, changes, tables: vec![] })
            .await
            .unwrap();
    }
    let failed = cluster.advance(vec![TransactionId(1), TransactionId(2)]).await;
    let Err(HostError::Failed(reason)) = failed else { panic!("{failed:?}") };
    assert!(reason.contains("same key"), "{reason}");
    let request = cluster.request(LOG, 2);
    assert!(matches!(host.scan(request).await, Err(HostError::Failed(_))));
    assert!(matches!(cluster.advance(vec![]).await, Err(HostError::Failed(_))));
    assert!(matches!(cluster.replace(Program::default()).await, Err(HostError::Failed(_))));
    cluster.shut_down().await;
    assert!(matches!(host.statistics(EPOCH, Step(0)).await, Err(HostError::Failed(_))));
}
