//! Sessions over a cluster in memory.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, Int32Array};
use arrow::record_batch::RecordBatch;
use stillframe_protocol::{RelationId, RowError};

use crate::fake::{Fake, run};
use crate::{Error, Session, SqlState, TransactionStatus};

/// A session on 2 hosts of 2 workers.
fn session() -> Session {
    Session::new(Fake::start(2, 2).1, "alice")
}

async fn state(session: &mut Session, text: &str) -> SqlState {
    error(session, text).await.state
}

async fn error(session: &mut Session, text: &str) -> Error {
    run(session, text).await.expect_err(text)
}

#[tokio::test]
async fn creates_reads_and_drops_a_table() {
    let mut session = session();
    assert_eq!(
        run(&mut session, "create table t (a int primary key, b text)").await.unwrap(),
        ["CREATE TABLE"]
    );
    assert!(run(&mut session, "select b, a from t").await.unwrap().is_empty());
    assert_eq!(run(&mut session, "select count(*) from public.t").await.unwrap(), ["0"]);
    assert_eq!(state(&mut session, "create table t (a int)").await, SqlState::DUPLICATE_TABLE);
    assert_eq!(run(&mut session, "drop table t").await.unwrap(), ["DROP TABLE"]);
    assert_eq!(state(&mut session, "select * from t").await, SqlState::UNDEFINED_TABLE);
}

#[tokio::test]
async fn a_failed_block_refuses_everything_until_its_end() {
    let mut session = session();
    run(&mut session, "begin").await.unwrap();
    assert_eq!(state(&mut session, "select * from nothing").await, SqlState::UNDEFINED_TABLE);
    assert_eq!(session.transaction_status(), TransactionStatus::Failed);
    assert_eq!(state(&mut session, "select 1").await, SqlState::IN_FAILED_SQL_TRANSACTION);
    assert_eq!(run(&mut session, "commit").await.unwrap(), ["ROLLBACK"]);
    assert_eq!(run(&mut session, "select 1").await.unwrap(), ["1"]);
}

/// Waits until the leases that were let go are released.
async fn released(fake: &Fake) {
    let released = async {
        while fake.leases() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), released).await.expect("leases are released");
}

#[tokio::test]
async fn a_block_keeps_one_lease() {
    let (fake, database) = Fake::start(2, 2);
    let mut session = Session::new(database, "alice");
    run(&mut session, "create table t (a int)").await.unwrap();
    released(&fake).await;
    let before = fake.granted();
    run(&mut session, "begin isolation level repeatable read").await.unwrap();
    run(&mut session, "select * from t; select * from t").await.unwrap();
    assert_eq!(fake.granted(), before + 1, "all statements of the block share a lease");
    assert_eq!(fake.leases(), 1);
    run(&mut session, "commit").await.unwrap();
    released(&fake).await;
}

#[tokio::test]
async fn a_block_reads_one_step_while_rows_change() {
    let (fake, database) = Fake::start(2, 2);
    let mut session = Session::new(database, "alice");
    run(&mut session, "create table t (a int)").await.unwrap();
    run(&mut session, "begin isolation level repeatable read").await.unwrap();
    assert_eq!(run(&mut session, "select count(*) from t").await.unwrap(), ["0"]);
    let rows = Arc::new(Int32Array::from(vec![1, 2])) as ArrayRef;
    fake.put(RelationId(16384), RecordBatch::try_from_iter([("a", rows)]).unwrap());
    assert_eq!(run(&mut session, "select count(*) from t").await.unwrap(), ["0"]);
    run(&mut session, "commit").await.unwrap();
    assert_eq!(run(&mut session, "select count(*) from t").await.unwrap(), ["2"]);
}

#[tokio::test]
async fn a_scan_that_stops_without_its_end_is_an_error() {
    let (fake, database) = Fake::start(2, 2);
    let mut session = Session::new(database, "alice");
    run(&mut session, "create table t (a int)").await.unwrap();
    fake.truncate_scans();
    assert_eq!(state(&mut session, "select * from t").await, SqlState::CANNOT_CONNECT_NOW);
}

#[tokio::test]
async fn a_view_in_error_raises_it_whatever_is_read() {
    let (fake, database) = Fake::start(2, 2);
    let mut session = Session::new(database, "alice");
    run(&mut session, "create table t (a int)").await.unwrap();
    run(&mut session, "create materialized view v as select 1 / a as b from t").await.unwrap();
    let error = RowError { sqlstate: "22012".to_owned(), message: "division by zero".to_owned() };
    fake.fail_view(RelationId(16385), vec![error]);
    for query in ["select * from v", "select count(*) from v", "select b from v limit 1"] {
        assert_eq!(state(&mut session, query).await, SqlState::DIVISION_BY_ZERO, "{query}");
    }
    assert!(run(&mut session, "select * from t").await.unwrap().is_empty());
}

#[tokio::test]
async fn a_definition_that_came_second_is_made_again() {
    let (fake, database) = Fake::start(1, 1);
    let mut session = Session::new(database, "alice");
    fake.race_catalog(2);
    run(&mut session, "create table t (a int)").await.unwrap();
    assert!(run(&mut session, "select * from t").await.unwrap().is_empty());
}

#[tokio::test]
async fn now_is_the_transactions() {
    let mut session = session();
    let pause = Duration::from_millis(2);
    run(&mut session, "begin").await.unwrap();
    let began = run(&mut session, "select now(), current_timestamp").await.unwrap();
    tokio::time::sleep(pause).await;
    run(&mut session, "create table t (a timestamptz default now())").await.unwrap();
    run(&mut session, "insert into t values (default), (now())").await.unwrap();
    let found = run(&mut session, "select distinct a, transaction_timestamp() from t").await;
    assert_eq!(found.unwrap(), began, "all that the block says");
    run(&mut session, "commit").await.unwrap();
    let later = run(&mut session, "select now(), current_timestamp").await.unwrap();
    assert_ne!(later, began);
    let first = run(&mut session, "begin; select now()").await.unwrap();
    let second = run(&mut session, "commit and chain; select now()").await.unwrap();
    assert_ne!(first, second, "a block that is chained begins anew");
}
