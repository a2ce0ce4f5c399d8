//! Steps and the frames they leave.

use std::collections::BTreeSet;

use stillframe_protocol::{Host as _, HostError, ScanRequest, Step};

use super::world::*;
use crate::cluster::{Cluster, EPOCH};

const LAYOUTS: [(usize, u32); 4] = [(1, 1), (1, 2), (2, 2), (3, 1)];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_written_is_read_on_every_layout() {
    for (hosts, workers) in LAYOUTS {
        let mut cluster = cluster(hosts, workers).await;
        assert!(contents(&cluster, ACCOUNTS, Step(0)).await.is_empty());

        cluster.write(vec![accounts(&[(1, "ann", 10, 1), (2, "bob", 20, 1)])]).await.unwrap();
        let change = accounts(&[(1, "ann", 10, -1), (1, "ann", 15, 1), (2, "bob", 20, -1)]);
        cluster.write(vec![change, log(&[(1, "twice", 2), (2, "once", 1)])]).await.unwrap();
        // Another host takes away what the one before has put in.
        cluster.write(vec![log(&[(1, "twice", -1), (2, "once", -1)])]).await.unwrap();

        assert_eq!(contents(&cluster, ACCOUNTS, Step(1)).await, ["1 ann 10", "2 bob 20"]);
        assert_eq!(contents(&cluster, ACCOUNTS, Step(3)).await, ["1 ann 15"]);
        assert_eq!(contents(&cluster, LOG, Step(2)).await, ["1 twice", "1 twice", "2 once"]);
        assert_eq!(contents(&cluster, LOG, Step(3)).await, ["1 twice"]);
        cluster.shut_down().await;
    }
}

/// Rewrites every account in one step.
async fn rewrite(cluster: &mut Cluster, count: i32, round: i64) {
    let mut rows = Vec::new();
    for id in 0..count {
        let balance = i64::from(id) + round;
        if round > 0 {
            rows.push((id, "somebody", balance - 1, -1));
        }
        rows.push((id, "somebody", balance, 1));
    }
    cluster.write(vec![accounts(&rows)]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pinned_frames_stay_what_they_are_and_others_go() {
    let mut cluster = cluster(2, 1).await;
    for round in 0..20 {
        rewrite(&mut cluster, 200, round).await;
    }
    let pinned: BTreeSet<Step> = [Step(3), Step(11)].into();
    let before =
        [contents(&cluster, ACCOUNTS, Step(3)).await, contents(&cluster, ACCOUNTS, Step(11)).await];
    assert_eq!(before[0].len(), 200);
    assert_ne!(before[0], before[1]);

    for round in 20..320 {
        cluster.pin(pinned.clone());
        rewrite(&mut cluster, 200, round).await;
        if round % 50 == 0 {
            assert_eq!(contents(&cluster, ACCOUNTS, Step(3)).await, before[0]);
        }
    }
    assert_eq!(contents(&cluster, ACCOUNTS, Step(3)).await, before[0]);
    assert_eq!(contents(&cluster, ACCOUNTS, Step(11)).await, before[1]);

    let last = cluster.step();
    for host in cluster.hosts() {
        let kept = host.statistics(EPOCH, last).await.unwrap().frames;
        // The last retention came with the last command: the step before was the common one.
        assert_eq!(kept, [Step(3), Step(11), Step(last.0 - 1), last]);
        let request = ScanRequest { step: Step(4), ..cluster.request(ACCOUNTS, 3) };
        assert!(matches!(host.scan(request).await, Err(HostError::FrameGone(Step(4)))));
    }
    cluster.shut_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stale_retention_is_passed_over() {
    let mut cluster = cluster(1, 1).await;
    for _ in 0..3 {
        cluster.advance(vec![]).await.unwrap();
    }
    cluster.pin([Step(1)].into());
    let newer = cluster.retention().clone();
    cluster.pin([Step(2)].into());
    let newest = cluster.retention().clone();
    let host = &cluster.hosts()[0];
    host.retain(EPOCH, newest).await.unwrap();
    host.retain(EPOCH, newer).await.unwrap();
    let kept = host.statistics(EPOCH, Step(3)).await.unwrap().frames;
    assert_eq!(kept, [Step(2), Step(3)]);
    cluster.shut_down().await;
}
