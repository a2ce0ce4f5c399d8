//! Sessions over a cluster in memory.

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
