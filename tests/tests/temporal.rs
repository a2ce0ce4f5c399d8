//! Rows of views that come and go by the clock, while nobody writes.

use stillframe_tests::deadline::eventually;
use stillframe_tests::{Client, Server};

#[tokio::test]
async fn on_one_host() {
    rows_come_and_go(1, 1).await;
}

#[tokio::test]
async fn on_three_hosts_with_two_workers() {
    rows_come_and_go(3, 2).await;
}

async fn ids(client: &Client, view: &str) -> Vec<String> {
    let answer = client.query(&format!("select id from {view} order by id")).await;
    answer.rows.iter().map(|row| row.join(" ")).collect()
}

async fn until_it_has(client: &Client, view: &str, expected: &[&str]) {
    eventually(view, || async {
        let found = ids(client, view).await;
        if found == expected { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
}

async fn rows_come_and_go(hosts: u32, workers: u32) {
    let server = Server::start(hosts, workers);
    let client = server.connect().await;
    for sql in [
        "create table t (id int primary key, ts timestamptz)",
        "create materialized view recent as select id from t where ts > now() - interval '6 s'",
        "create materialized view past as select id from t where ts <= now()",
        "create materialized view span as
            select id from t where now() between ts and ts + interval '1 s'",
        "create materialized view above as select max(id) as id from past",
        "insert into t values (1, now()), (2, now() + interval '2 s'), (3, 'infinity'),
            (4, now() - interval '1 day')",
    ] {
        client.query(sql).await;
    }
    assert_eq!(ids(&client, "recent").await, ["1", "2", "3"]);
    let other = server.connect().await;
    other.query("create materialized view late as select id from t where ts <= now()").await;
    until_it_has(&client, "past", &["1", "2", "4"]).await;
    assert_eq!(ids(&client, "late").await, ["1", "2", "4"]);
    until_it_has(&client, "recent", &["3"]).await;
    until_it_has(&client, "span", &[]).await;
    assert_eq!(ids(&client, "above").await, ["4"]);
    // What is infinite never comes, and makes no steps.
    let step = client.query("show stillframe.step").await.rows;
    for _ in 0..20 {
        assert_eq!(ids(&client, "recent").await, ["3"]);
    }
    assert_eq!(client.query("show stillframe.step").await.rows, step);
    client.query("update t set ts = now() where id = 4").await;
    assert_eq!(ids(&client, "recent").await, ["3", "4"]);
    client.query("delete from t").await;
    assert!(ids(&client, "recent").await.is_empty());
    server.stop().unwrap_or_else(|error| panic!("{error}"));
}
