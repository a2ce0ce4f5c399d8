//! Writers that meet, wait and give up, over a cluster in memory.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::fake::{Calls, Fake, run};
use crate::{Database, Error, Response, Session};

const DEADLINE: Duration = Duration::from_secs(20);

mod blocks;

struct Cluster {
    fake: Arc<Fake>,
    database: Arc<Database>,
}

impl Cluster {
    /// A cluster of 2 hosts of 2 workers, with some statements run.
    async fn new(setup: &str) -> Self {
        let (fake, database) = Fake::start(2, 2);
        let cluster = Self { fake, database };
        run(&mut cluster.session(), setup).await.unwrap();
        cluster.until(Fake::is_idle).await;
        cluster.fake.take_calls();
        cluster
    }

    fn session(&self) -> Session {
        Session::new(Arc::clone(&self.database), "alice")
    }

    /// Runs a statement beside the test.
    fn start(&self, text: &'static str) -> JoinHandle<Result<Vec<String>, Error>> {
        let mut session = self.session();
        tokio::spawn(async move { run(&mut session, text).await })
    }

    async fn rows(&self, query: &str) -> Vec<String> {
        let mut rows = run(&mut self.session(), query).await.unwrap();
        rows.sort();
        rows
    }

    /// Waits until something is true of the cluster.
    async fn until(&self, is_true: impl Fn(&Fake) -> bool) {
        timeout(DEADLINE, async {
            while !is_true(&self.fake) {
                tokio::task::yield_now().await;
            }
        })
        .await
        .expect("the cluster gets there");
    }

    /// Waits for the end of a statement.
    async fn end(&self, statement: JoinHandle<Result<Vec<String>, Error>>) -> String {
        match timeout(DEADLINE, statement).await.expect("the statement ends").unwrap() {
            Ok(answer) => answer.concat(),
            Err(error) => error.state.code().to_owned(),
        }
    }
}

#[tokio::test]
async fn a_single_row_costs_one_of_everything() {
    let cluster = Cluster::new("create table t (id int primary key, v int)").await;
    let mut session = cluster.session();
    let insert = session.parse("insert into t values (1, 2)").unwrap().remove(0);
    let prepared = session.prepare(insert, &[]).await.unwrap();
    cluster.fake.take_calls();
    cluster.fake.take_scans();
    session.execute(&prepared, vec![]).await.unwrap();
    let shards = 4;
    assert_eq!(
        cluster.fake.take_calls(),
        Calls { leases: 1, scans: shards, reservations: 1, stagings: 1, commits: 1 }
    );
    for scan in cluster.fake.take_scans() {
        assert_eq!(scan.keys.unwrap().num_rows(), 1);
        assert_eq!(scan.projection, [0]);
    }
}

#[tokio::test]
async fn a_row_without_a_key_needs_no_look() {
    let cluster = Cluster::new("create table b (v int)").await;
    cluster.fake.take_calls();
    run(&mut cluster.session(), "insert into b values (1)").await.unwrap();
    assert_eq!(cluster.fake.take_calls().scans, 0);
}

#[tokio::test]
async fn a_writer_waits_for_another_and_looks_again() {
    let cluster =
        Cluster::new("create table t (id int primary key, v int); insert into t values (1, 0)")
            .await;
    let held = cluster.fake.hold_commits().await;
    let first = cluster.start("update t set v = v + 1 where id = 1");
    cluster.until(|fake| fake.take_calls().commits == 1).await;
    let second = cluster.start("update t set v = v + 10 where id = 1");
    let third = cluster.start("delete from t where v = 0");
    cluster.until(|fake| fake.waiting() == 2).await;
    drop(held);
    assert_eq!(cluster.end(first).await, "UPDATE 1");
    assert_eq!(cluster.end(second).await, "UPDATE 1");
    assert_eq!(cluster.end(third).await, "DELETE 0");
    assert_eq!(cluster.rows("select * from t").await, ["1|11"]);
    cluster.until(Fake::is_idle).await;
}

#[tokio::test]
async fn a_key_that_somebody_is_inserting_is_waited_for() {
    let cluster = Cluster::new("create table t (id int primary key, v int)").await;
    let held = cluster.fake.hold_commits().await;
    let first = cluster.start("insert into t values (1, 1)");
    cluster.until(|fake| fake.take_calls().commits == 1).await;
    let second = cluster.start("insert into t values (2, 2), (1, 2)");
    cluster.until(|fake| fake.waiting() == 1).await;
    // Another key is nobody's business.
    let third = cluster.start("insert into t values (3, 3)");
    cluster.until(|fake| fake.take_calls().commits == 1).await;
    drop(held);
    assert_eq!(cluster.end(first).await, "INSERT 0 1");
    assert_eq!(cluster.end(second).await, "23505");
    assert_eq!(cluster.end(third).await, "INSERT 0 1");
    assert_eq!(cluster.rows("select * from t").await, ["1|1", "3|3"]);
    cluster.until(Fake::is_idle).await;
}

#[tokio::test]
async fn a_key_that_somebody_is_deleting_is_free_afterwards() {
    let cluster =
        Cluster::new("create table t (id int primary key, v int); insert into t values (1, 0)")
            .await;
    let held = cluster.fake.hold_commits().await;
    let first = cluster.start("delete from t");
    cluster.until(|fake| fake.take_calls().commits == 1).await;
    let second = cluster.start("insert into t values (1, 2)");
    cluster.until(|fake| fake.waiting() == 1).await;
    drop(held);
    assert_eq!(cluster.end(first).await, "DELETE 1");
    assert_eq!(cluster.end(second).await, "INSERT 0 1");
    assert_eq!(cluster.rows("select * from t").await, ["1|2"]);
}

#[tokio::test]
async fn equal_rows_of_a_bag_are_deleted_once() {
    let cluster = Cluster::new("create table b (v int); insert into b values (1), (1), (2)").await;
    let held = cluster.fake.hold_commits().await;
    let first = cluster.start("delete from b where v = 1");
    cluster.until(|fake| fake.take_calls().commits == 1).await;
    let second = cluster.start("update b set v = v + 10");
    let third = cluster.start("insert into b values (1)");
    cluster.until(|fake| fake.waiting() == 1 && fake.take_calls().commits == 1).await;
    drop(held);
    assert_eq!(cluster.end(first).await, "DELETE 2");
    assert_eq!(cluster.end(third).await, "INSERT 0 1");
    // What came while it waited is changed too: it has looked again.
    let changed = cluster.end(second).await;
    let rows = cluster.rows("select * from b").await;
    match changed.as_str() {
        "UPDATE 1" => assert_eq!(rows, ["1", "12"]),
        "UPDATE 2" => assert_eq!(rows, ["11", "12"]),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn who_waits_too_long_gives_up() {
    let cluster =
        Cluster::new("create table t (id int primary key, v int); insert into t values (1, 0)")
            .await;
    let held = cluster.fake.hold_commits().await;
    let first = cluster.start("update t set v = 1");
    cluster.until(|fake| fake.take_calls().commits == 1).await;
    let second = cluster.start("set lock_timeout = '10ms'; update t set v = 2");
    assert_eq!(cluster.end(second).await, "55P03");
    drop(held);
    assert_eq!(cluster.end(first).await, "UPDATE 1");
    cluster.until(Fake::is_idle).await;
    assert_eq!(cluster.rows("select * from t").await, ["1|1"]);
}

#[tokio::test]
async fn who_goes_while_waiting_leaves_nothing() {
    let cluster =
        Cluster::new("create table t (id int primary key, v int); insert into t values (1, 0)")
            .await;
    let held = cluster.fake.hold_commits().await;
    let first = cluster.start("update t set v = 1");
    cluster.until(|fake| fake.take_calls().commits == 1).await;
    let second = cluster.start("update t set v = 2");
    cluster.until(|fake| fake.waiting() == 1).await;
    second.abort();
    drop(held);
    assert_eq!(cluster.end(first).await, "UPDATE 1");
    cluster.until(Fake::is_idle).await;
    assert_eq!(cluster.rows("select * from t").await, ["1|1"]);
}

#[tokio::test]
async fn a_commit_that_was_sent_is_left_to_finish() {
    let cluster =
        Cluster::new("create table t (id int primary key, v int); insert into t values (1, 0)")
            .await;
    let held = cluster.fake.hold_commits().await;
    let mut session = cluster.session();
    let progress = session.progress();
    let update = tokio::spawn(async move { run(&mut session, "update t set v = 1").await });
    cluster.until(|fake| fake.take_calls().commits == 1).await;
    assert!(progress.is_committing());
    update.abort();
    assert!(update.await.unwrap_err().is_cancelled());
    drop(held);
    cluster.until(Fake::is_idle).await;
    assert_eq!(cluster.rows("select * from t").await, ["1|1"]);
}

#[tokio::test]
async fn a_copy_that_is_dropped_leaves_nothing() {
    let cluster = Cluster::new("create table b (v text)").await;
    let step = cluster.fake.step();
    let mut session = cluster.session();
    let statement = session.parse("copy b from stdin").unwrap().remove(0);
    let prepared = session.prepare(statement, &[]).await.unwrap();
    let Response::CopyIn(mut copy) = session.execute(&prepared, vec![]).await.unwrap() else {
        panic!("not a COPY")
    };
    let line = b"some text\n".repeat(10_000);
    copy.write(&line).await.unwrap();
    assert!(!cluster.fake.is_idle(), "a full batch is staged while the data comes");
    drop(copy);
    cluster.until(Fake::is_idle).await;
    assert_eq!(cluster.fake.step(), step);
}

#[tokio::test]
async fn a_table_that_is_dropped_meanwhile_is_missed() {
    let cluster =
        Cluster::new("create table t (id int primary key, v int); insert into t values (1, 0)")
            .await;
    let held = cluster.fake.hold_commits().await;
    let first = cluster.start("update t set v = 1");
    cluster.until(|fake| fake.take_calls().commits == 1).await;
    let drop_table = cluster.start("drop table t");
    cluster.until(|fake| fake.waiting() == 1).await;
    let second = cluster.start("update t set v = 2");
    cluster.until(|fake| fake.waiting() == 2).await;
    drop(held);
    assert_eq!(cluster.end(first).await, "UPDATE 1");
    assert_eq!(cluster.end(drop_table).await, "DROP TABLE");
    assert!(["42P01", "UPDATE 1"].contains(&cluster.end(second).await.as_str()));
    cluster.until(Fake::is_idle).await;
}

#[tokio::test]
async fn what_changes_nothing_makes_no_step() {
    let cluster =
        Cluster::new("create table t (id int primary key, v int); insert into t values (1, 0)")
            .await;
    let step = cluster.fake.step();
    for (text, tag) in [
        ("update t set v = v", "UPDATE 1"),
        ("update t set v = 1 where false", "UPDATE 0"),
        ("delete from t where id = 2", "DELETE 0"),
        ("insert into t select * from t where false", "INSERT 0 0"),
    ] {
        assert_eq!(run(&mut cluster.session(), text).await.unwrap(), [tag]);
    }
    assert_eq!(cluster.fake.step(), step);
    cluster.until(Fake::is_idle).await;
}

#[tokio::test]
async fn a_querys_rows_go_to_the_hosts_as_they_come() {
    let cluster = Cluster::new("create table t (a int primary key, b int)").await;
    let mut session = cluster.session();
    let insert = "insert into t select x, x from generate_series(1, 50000) as g(x)";
    assert_eq!(run(&mut session, insert).await.unwrap(), ["INSERT 0 50000"]);
    let calls = cluster.fake.take_calls();
    assert!(calls.stagings > 5, "{calls:?}");
    assert_eq!(calls.commits, 1, "and are one step");
    assert_eq!(cluster.rows("select count(*), sum(b) from t").await, ["50000|1250025000"]);
    // One key of each is there twice: rows come in any order.
    for (insert, detail) in [
        (
            "insert into t select x % 69999 + 100000, 0 from generate_series(1, 70000) as g(x)",
            "100001",
        ),
        ("insert into t select 49999 + x, 0 from generate_series(1, 20000) as g(x)", "50000"),
    ] {
        let error = run(&mut session, insert).await.unwrap_err();
        assert_eq!(error.state.code(), "23505", "{insert}");
        assert_eq!(error.detail, Some(format!("Key (a)=({detail}) already exists.")), "{insert}");
        cluster.until(Fake::is_idle).await;
    }
    let error = run(&mut session, "insert into t (b) select 1").await.unwrap_err();
    assert_eq!(error.state.code(), "23502");
    assert_eq!(cluster.rows("select count(*) from t").await, ["50000"]);
    // It reads what was there before it.
    let insert = "insert into t select a + 50000, b from t where a > 10";
    assert_eq!(run(&mut session, insert).await.unwrap(), ["INSERT 0 49990"]);
}
