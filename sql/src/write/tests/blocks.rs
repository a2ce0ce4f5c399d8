//! Blocks that write, and meet.

use super::*;
use crate::TransactionStatus;

const TABLE: &str =
    "create table t (id int primary key, v int); insert into t values (1, 0), (2, 0)";

async fn ok(session: &mut Session, text: &str) -> Vec<String> {
    run(session, text).await.unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

async fn state(session: &mut Session, text: &str) -> String {
    run(session, text).await.expect_err(text).state.code().to_owned()
}

#[tokio::test]
async fn nothing_is_sent_before_the_commit() {
    let cluster = Cluster::new(TABLE).await;
    let step = cluster.fake.step();
    let mut session = cluster.session();
    ok(&mut session, "begin; insert into t values (3, 3); update t set v = 9 where id = 1").await;
    let calls = cluster.fake.take_calls();
    assert_eq!((calls.stagings, calls.commits), (0, 0));
    assert_eq!(cluster.rows("select * from t").await, ["1|0", "2|0"]);
    ok(&mut session, "commit").await;
    let calls = cluster.fake.take_calls();
    assert_eq!((calls.stagings, calls.commits), (1, 1), "one table, one message");
    assert_eq!(cluster.fake.step(), step.next());
    assert_eq!(cluster.rows("select * from t").await, ["1|9", "2|0", "3|3"]);
    cluster.until(Fake::is_idle).await;
}

#[tokio::test]
async fn several_tables_are_one_step() {
    let cluster = Cluster::new("create table a (x int); create table b (x int)").await;
    let step = cluster.fake.step();
    let mut session = cluster.session();
    ok(&mut session, "begin; insert into a values (1); insert into b values (1); commit").await;
    assert_eq!(cluster.fake.step(), step.next());
    assert_eq!(cluster.rows("select * from a, b").await, ["1|1"]);
}

#[tokio::test]
async fn a_rollback_gives_everything_back() {
    let cluster = Cluster::new(TABLE).await;
    let step = cluster.fake.step();
    let mut session = cluster.session();
    ok(&mut session, "begin; delete from t; truncate t; insert into t values (1, 7)").await;
    assert_eq!(ok(&mut session, "select * from t").await, ["1|7"]);
    assert!(!cluster.fake.is_idle());
    ok(&mut session, "rollback").await;
    cluster.until(Fake::is_idle).await;
    assert_eq!(cluster.fake.step(), step);
    assert_eq!(cluster.rows("select * from t").await, ["1|0", "2|0"]);
}

#[tokio::test]
async fn a_client_that_goes_gives_everything_back() {
    let cluster = Cluster::new(TABLE).await;
    let mut session = cluster.session();
    ok(&mut session, "begin; update t set v = 1").await;
    let waiting = cluster.start("update t set v = v + 10");
    cluster.until(|fake| fake.waiting() == 1).await;
    drop(session);
    assert_eq!(cluster.end(waiting).await, "UPDATE 2");
    assert_eq!(cluster.rows("select * from t").await, ["1|10", "2|10"]);
}

#[tokio::test]
async fn what_others_wrote_is_looked_at_again() {
    let cluster = Cluster::new(TABLE).await;
    let mut session = cluster.session();
    ok(&mut session, "begin; update t set v = v + 1 where id = 1").await;
    let other = cluster.start("update t set v = v + 10");
    cluster.until(|fake| fake.waiting() == 1).await;
    ok(&mut session, "update t set v = v + 1; commit").await;
    assert_eq!(cluster.end(other).await, "UPDATE 2");
    assert_eq!(cluster.rows("select * from t").await, ["1|12", "2|11"]);
}

#[tokio::test]
async fn read_committed_sees_what_was_committed_meanwhile() {
    let cluster = Cluster::new(TABLE).await;
    let mut session = cluster.session();
    ok(&mut session, "begin; update t set v = 5 where id = 1").await;
    ok(&mut cluster.session(), "update t set v = 6 where id = 2").await;
    assert_eq!(ok(&mut session, "select sum(v) from t").await, ["11"]);
    ok(&mut session, "update t set v = v * 2; commit").await;
    assert_eq!(cluster.rows("select * from t").await, ["1|10", "2|12"]);
}

#[tokio::test]
async fn repeatable_read_sees_one_step_and_its_own_changes() {
    let cluster = Cluster::new(TABLE).await;
    let mut session = cluster.session();
    ok(&mut session, "begin isolation level repeatable read; update t set v = 5 where id = 1")
        .await;
    ok(&mut cluster.session(), "update t set v = 6 where id = 2; insert into t values (3, 3)")
        .await;
    assert_eq!(ok(&mut session, "select sum(v), count(*) from t").await, ["5|2"]);
    assert_eq!(state(&mut session, "insert into t values (3, 4)").await, "23505");
    ok(&mut session, "rollback").await;
    ok(&mut session, "begin isolation level repeatable read; select * from t").await;
    ok(&mut cluster.session(), "update t set v = 7 where id = 2").await;
    assert_eq!(state(&mut session, "update t set v = v + 1 where id = 2").await, "40001");
    assert_eq!(session.transaction_status(), TransactionStatus::Failed);
    cluster.until(Fake::is_idle).await;
    assert_eq!(ok(&mut session, "commit").await, ["ROLLBACK"]);
    assert_eq!(cluster.rows("select * from t").await, ["1|0", "2|7", "3|3"]);
}

#[tokio::test]
async fn a_key_goes_and_comes_in_one_block() {
    let cluster = Cluster::new(TABLE).await;
    let mut session = cluster.session();
    ok(&mut session, "begin; delete from t where id = 1; insert into t values (1, 6)").await;
    assert_eq!(state(&mut session, "insert into t values (1, 7)").await, "23505");
    ok(&mut session, "rollback").await;
    ok(&mut session, "begin; update t set id = id + 10; insert into t values (1, 6); commit").await;
    assert_eq!(cluster.rows("select * from t").await, ["11|0", "12|0", "1|6"]);
}

#[tokio::test]
async fn savepoints() {
    let cluster = Cluster::new(TABLE).await;
    let mut session = cluster.session();
    assert_eq!(state(&mut session, "savepoint s").await, "25P01");
    ok(&mut session, "begin; insert into t values (3, 3); savepoint s").await;
    ok(&mut session, "set timezone = 'Europe/Paris'; insert into t values (4, 4)").await;
    assert_eq!(state(&mut session, "insert into t values (4, 5)").await, "23505");
    assert_eq!(state(&mut session, "savepoint u").await, "25P02");
    ok(&mut session, "rollback to savepoint s").await;
    assert_eq!(session.transaction_status(), TransactionStatus::Open);
    assert_eq!(ok(&mut session, "show timezone").await, ["UTC"]);
    ok(&mut session, "insert into t values (5, 5); savepoint s; delete from t").await;
    assert_eq!(ok(&mut session, "select count(*) from t").await, ["0"]);
    ok(&mut session, "rollback to s; release s; rollback to s").await;
    assert_eq!(ok(&mut session, "select count(*) from t").await, ["3"]);
    ok(&mut session, "release savepoint s; commit").await;
    assert_eq!(cluster.rows("select * from t").await, ["1|0", "2|0", "3|3"]);
    ok(&mut session, "begin").await;
    assert_eq!(state(&mut session, "release s").await, "3B001");
    ok(&mut session, "rollback").await;
    cluster.until(Fake::is_idle).await;
}

#[tokio::test]
async fn the_statements_of_a_request_are_one_transaction() {
    let cluster = Cluster::new(TABLE).await;
    let step = cluster.fake.step();
    let mut session = cluster.session();
    session.begin_request(crate::Request::Query);
    ok(&mut session, "insert into t values (3, 3); insert into t values (4, 4)").await;
    assert_eq!(session.transaction_status(), TransactionStatus::Idle);
    assert_eq!(cluster.fake.step(), step);
    session.finish_request().await.unwrap();
    assert_eq!(cluster.fake.step(), step.next());

    session.begin_request(crate::Request::Query);
    ok(&mut session, "set timezone = 'Europe/Paris'; insert into t values (5, 5)").await;
    assert_eq!(state(&mut session, "insert into t values (5, 5)").await, "23505");
    session.fail();
    session.finish_request().await.unwrap();
    assert_eq!(session.transaction_status(), TransactionStatus::Idle);
    assert_eq!(ok(&mut session, "show timezone").await, ["UTC"]);
    assert_eq!(cluster.rows("select count(*) from t").await, ["4"]);

    // BEGIN goes on with it, COMMIT ends it.
    session.begin_request(crate::Request::Query);
    ok(&mut session, "insert into t values (5, 5); begin; insert into t values (6, 6)").await;
    session.finish_request().await.unwrap();
    assert_eq!(session.transaction_status(), TransactionStatus::Open);
    ok(&mut session, "rollback").await;
    session.begin_request(crate::Request::Query);
    ok(&mut session, "insert into t values (7, 7); commit; insert into t values (8, 8)").await;
    assert_eq!(session.take_notices().len(), 1);
    assert_eq!(state(&mut session, "select 1 / 0").await, "22012");
    session.finish_request().await.unwrap();
    assert_eq!(cluster.rows("select id from t where id > 4").await, ["7"]);
    cluster.until(Fake::is_idle).await;
}

#[tokio::test]
async fn a_copy_is_part_of_its_block() {
    let cluster = Cluster::new(TABLE).await;
    let mut session = cluster.session();
    ok(&mut session, "begin; delete from t where id = 1; savepoint s").await;
    for (data, end) in [("1\t5\n3\t5\n", "COPY 2"), ("3\t6\n", "23505"), ("4\tx\n", "22P02")] {
        let statement = session.parse("copy t from stdin").unwrap().remove(0);
        let prepared = session.prepare(statement, &[]).await.unwrap();
        let Response::CopyIn(mut copy) = session.execute(&prepared, vec![]).await.unwrap() else {
            panic!("not a COPY")
        };
        let ended = match copy.write(data.as_bytes()).await {
            Ok(()) => copy.finish().await,
            Err(error) => {
                drop(copy);
                Err(error)
            }
        };
        match ended {
            Ok(tag) => {
                assert_eq!(tag, end);
                ok(&mut session, "savepoint s").await;
            }
            Err(error) => {
                session.fail();
                assert_eq!(error.state.code(), end);
                ok(&mut session, "rollback to s").await;
            }
        }
    }
    assert_eq!(cluster.rows("select * from t").await, ["1|0", "2|0"]);
    ok(&mut session, "commit").await;
    assert_eq!(cluster.rows("select * from t").await, ["1|5", "2|0", "3|5"]);
    cluster.until(Fake::is_idle).await;
}

#[tokio::test]
async fn views_over_changed_tables_are_computed() {
    let cluster = Cluster::new(TABLE).await;
    let mut session = cluster.session();
    ok(
        &mut session,
        "create view p as select * from t where v > 0; \
         create materialized view m as select count(*) as n, sum(v) as s from t; \
         create materialized view mm as select n + 1 as n from m",
    )
    .await;
    ok(&mut session, "begin; insert into t values (3, 3)").await;
    assert_eq!(ok(&mut session, "select * from p").await, ["3|3"]);
    assert_eq!(ok(&mut session, "select * from m").await, ["3|3"]);
    assert_eq!(ok(&mut session, "select n from mm where n = 4").await, ["4"]);
    ok(&mut session, "rollback").await;
}

#[tokio::test]
async fn where_only_reading_is_allowed() {
    let cluster = Cluster::new(TABLE).await;
    let mut session = cluster.session();
    for text in [
        "insert into t values (3, 3)",
        "update t set v = 1",
        "delete from t",
        "truncate t",
        "copy t from stdin",
        "create table u (x int)",
        "drop table t",
    ] {
        ok(&mut session, "begin read only").await;
        assert_eq!(state(&mut session, text).await, "25006", "{text}");
        ok(&mut session, "rollback; set default_transaction_read_only = on").await;
        assert_eq!(state(&mut session, text).await, "25006", "{text}");
        ok(&mut session, "set default_transaction_read_only = off").await;
    }
}

#[tokio::test]
async fn definitions_are_part_of_their_block() {
    let cluster = Cluster::new(TABLE).await;
    let mut session = cluster.session();
    let step = cluster.fake.step();
    ok(&mut session, "begin; create table u (x int); insert into u values (1), (2)").await;
    assert_eq!(ok(&mut session, "select count(*) from u").await, ["2"]);
    ok(&mut session, "rollback").await;
    assert_eq!(state(&mut session, "select * from u").await, "42P01");
    assert_eq!(cluster.fake.step(), step);
    ok(&mut session, "begin; create table u (x int primary key); insert into u values (1)").await;
    ok(&mut session, "insert into t values (9, 9); commit").await;
    assert_eq!(cluster.fake.step(), step.next());
    assert_eq!(cluster.rows("select x from u").await, ["1"]);
    assert_eq!(cluster.rows("select v from t where id = 9").await, ["9"]);
    cluster.until(Fake::is_idle).await;
}
