//! Circuits that are replaced.

use std::fs;
use std::time::{Duration, Instant};

use stillframe_protocol::{
    Action, Filling, Host, HostError, Program, RelationId, ScanRequest, Staging, Step, Table,
};

use super::views::{TOTALS, program, totals, view};
use super::world::*;
use crate::cluster::EPOCH;

fn extra_table(number: u32) -> Table {
    Table { id: RelationId(100 + number), schema: log_schema(), key_columns: 0 }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_keep_their_rows_while_others_come_and_go() {
    for (hosts, workers) in [(1, 1), (1, 2), (2, 2), (3, 1)] {
        let mut cluster = cluster(hosts, workers).await;
        cluster.write(vec![new_accounts(0, 100), log(&[(1, "a", 2)])]).await.unwrap();
        let before = contents(&cluster, ACCOUNTS, Step(1)).await;

        let more = [tables(), vec![extra_table(1)]].concat();
        cluster.replace(Program { tables: more, views: vec![] }).await.unwrap();
        assert_eq!(contents(&cluster, ACCOUNTS, Step(2)).await, before);
        assert_eq!(contents(&cluster, LOG, Step(2)).await, ["1 a", "1 a"]);
        assert!(contents(&cluster, RelationId(101), Step(2)).await.is_empty());

        let mut extra = log(&[(7, "new", 1)]);
        extra.relation = RelationId(101);
        let change = accounts(&[(5, "somebody", 5, -1)]);
        cluster.write(vec![extra, change, log(&[(1, "a", -1)])]).await.unwrap();
        assert_eq!(contents(&cluster, RelationId(101), Step(3)).await, ["7 new"]);
        assert_eq!(contents(&cluster, ACCOUNTS, Step(3)).await.len(), 99);
        assert_eq!(contents(&cluster, LOG, Step(3)).await, ["1 a"]);

        // The old circuit's frames are still there, and the dropped table is in none after it.
        cluster.replace(Program { tables: tables(), views: vec![] }).await.unwrap();
        assert_eq!(contents(&cluster, ACCOUNTS, Step(1)).await, before);
        assert_eq!(contents(&cluster, ACCOUNTS, Step(4)).await.len(), 99);
        let gone = cluster.scan(&cluster.request(RelationId(101), 2)).await;
        assert!(matches!(gone, Err(HostError::UnknownRelation(_))));
        cluster.write(vec![new_accounts(200, 201)]).await.unwrap();
        assert_eq!(contents(&cluster, ACCOUNTS, Step(5)).await.len(), 100);
        cluster.shut_down().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_staged_enters_with_the_circuit_that_knows_its_tables() {
    for (hosts, workers) in [(1, 1), (1, 2), (2, 2)] {
        let mut cluster = cluster(hosts, workers).await;
        cluster.write(vec![accounts(&[(1, "a", 5, 1), (2, "b", 7, 1)])]).await.unwrap();
        // A new table with a row, a view, and a change of a table that stays: in one step.
        let transaction = cluster.transaction();
        let mut row = log(&[(7, "new", 1)]);
        row.relation = RelationId(101);
        let changes = vec![row, accounts(&[(2, "b", 7, -1), (3, "a", 4, 1)])];
        let tables = vec![extra_table(1)];
        let staging = Staging { epoch: EPOCH, transaction, sequence: 0, changes, tables };
        cluster.hosts()[0].stage(staging).await.unwrap();
        let mut next = program(&[totals(TOTALS, 0)]);
        next.tables.push(extra_table(1));
        let step = cluster.replace_with(next.clone(), vec![transaction]).await.unwrap();
        assert_eq!(step, Step(3));
        // The step between is what was before.
        let unknown =
            cluster.scan(&ScanRequest { step: Step(2), ..cluster.request(TOTALS, 3) }).await;
        assert!(matches!(unknown, Err(HostError::UnknownRelation(_))));
        assert_eq!(contents(&cluster, ACCOUNTS, Step(2)).await, ["1 a 5", "2 b 7"]);
        assert_eq!(contents(&cluster, RelationId(101), step).await, ["7 new"]);
        assert_eq!(contents(&cluster, ACCOUNTS, step).await, ["1 a 5", "3 a 4"]);
        let before = view(&cluster, TOTALS, 3).await;
        assert_eq!(before.len(), 1);
        // The same again, by a circuit that has everything from a checkpoint.
        cluster.replace(next).await.unwrap();
        assert_eq!(view(&cluster, TOTALS, 3).await, before);
        cluster.write(vec![accounts(&[(1, "a", 5, -1), (1, "a", 6, 1)])]).await.unwrap();
        assert_ne!(view(&cluster, TOTALS, 3).await, before);
        cluster.shut_down().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_cannot_be_built_changes_nothing() {
    let mut cluster = cluster(2, 1).await;
    cluster.write(vec![new_accounts(0, 10)]).await.unwrap();
    let twice = [tables(), tables()].concat();
    let refused = cluster.replace(Program { tables: twice, views: vec![] }).await;
    assert!(matches!(refused, Err(HostError::Invalid(_))), "{refused:?}");
    cluster.write(vec![new_accounts(10, 20)]).await.unwrap();
    assert_eq!(contents(&cluster, ACCOUNTS, Step(2)).await.len(), 20);
    cluster.shut_down().await;
}

/// How many descriptors and threads this process has.
fn held() -> (usize, usize) {
    let count = |directory| fs::read_dir(directory).unwrap().count();
    (count("/proc/self/fd"), count("/proc/self/task"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_replacements_leave_nothing_behind() {
    const ROUNDS: u32 = 100;
    /// What a test that runs beside this one may add. One of anything that each replacement leaves
    /// behind on each host would be more.
    const SLACK: usize = 120;
    let mut cluster = cluster(2, 1).await;
    cluster.write(vec![new_accounts(0, 10)]).await.unwrap();
    let before = held();
    for round in 0..ROUNDS {
        let mut some = tables();
        match round % 4 {
            0 => some.push(extra_table(round)),
            2 => {
                let mut next = cluster.replacement_online(program(&[totals(TOTALS, 0)]));
                loop {
                    cluster.execute(cluster.command(next)).await.unwrap();
                    if matches!(cluster.filling()[0], Some(Filling::Done { .. })) {
                        break;
                    }
                    next = Action::Pump { step: cluster.step(), number: 0, slices: 1 };
                }
                cluster.cut_over().await.unwrap();
                continue;
            }
            _ => {}
        }
        cluster.replace(Program { tables: some, views: vec![] }).await.unwrap();
        cluster.pin([].into());
    }
    // Tests that run beside this one hold some for a while.
    let flat = || {
        let now = held();
        now.0 < before.0 + SLACK && now.1 < before.1 + SLACK
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while !flat() && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(flat(), "{:?} descriptors and threads, {before:?} before", held());
    assert_eq!(contents(&cluster, ACCOUNTS, cluster.step()).await.len(), 10);
    cluster.shut_down().await;
}
