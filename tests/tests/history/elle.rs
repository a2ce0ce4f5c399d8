//! Clients append to lists at the same time and read them, and what they saw is judged.
//!
//! After Kingsbury and Alvaro, "Elle: Inferring Isolation Anomalies from Experimental Observations"
//! (2020): a list tells who wrote it and in which order, so that what depends on what can be told
//! from reads alone. [`checker`] does that; [`planted`] shows that it would notice.

mod checker;
mod history;
mod planted;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use stillframe_tests::{Client, Failure, Layout, Server};

use checker::check;
use history::{Act, Key, Level, Outcome, Transaction, Value};

const CLIENTS: u64 = 6;
const KEYS: Key = 8;
/// How many transactions each client tries at most, and how long.
const TRANSACTIONS: usize = 60;
const TIME_MAX: Duration = Duration::from_secs(8);
/// Fewer commits show nothing.
const COMMITS_MIN: usize = 30;
/// Where lists are read. The last is a view on a view.
const SOURCES: [&str; 3] = ["lists", "lists_seen", "lists_counted"];

#[tokio::test(flavor = "multi_thread")]
async fn repeatable_read_is_snapshot_isolation() {
    run(Level::RepeatableRead).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn read_committed_reads_what_is_committed() {
    run(Level::ReadCommitted).await;
}

/// What clients share.
struct World {
    level: Level,
    /// Orders what clients do: what one ends before another begins was before it.
    clock: AtomicU64,
    values: AtomicU32,
    deadline: Instant,
}

impl World {
    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }
}

async fn run(level: Level) {
    let server = Server::start_layout(Layout::processes(3, 1));
    let client = server.connect().await;
    for sql in [
        "create table lists (k int primary key, list text not null)",
        "create materialized view lists_seen as select k, list, length(list) as size from lists",
        "create materialized view lists_counted as
             select k, max(list) as list, sum(size) as sizes from lists_seen group by k",
    ] {
        client.execute(sql).await;
    }
    let insert =
        format!("insert into lists select k, '' from generate_series(0, {}) g(k)", KEYS - 1);
    client.execute(&insert).await;

    let world = Arc::new(World {
        level,
        clock: AtomicU64::new(0),
        values: AtomicU32::new(1),
        deadline: Instant::now() + TIME_MAX,
    });
    let mut clients = Vec::new();
    for seed in 0..CLIENTS {
        let (client, world) = (server.connect().await, Arc::clone(&world));
        clients.push(tokio::spawn(async move { append_and_read(&client, &world, seed).await }));
    }
    let mut history = Vec::new();
    for client in clients {
        history.extend(client.await.expect("a client does not panic"));
    }
    // What has become of the lists, wherever they are looked at.
    for source in SOURCES {
        let reads = read(&client, source, &(0..KEYS).collect::<Vec<_>>()).await.expect("lists");
        let begun = world.tick();
        let outcome = Outcome::Committed;
        history.push(Transaction {
            begun,
            ended: world.tick(),
            outcome,
            acts: vec![Act::Read(begun, reads)],
        });
    }
    let committed = history.iter().filter(|one| one.outcome == Outcome::Committed).count();
    assert!(committed >= COMMITS_MIN, "{committed} of {} have committed", history.len());
    let anomalies = check(&history, level);
    assert!(anomalies.is_empty(), "{} anomalies: {anomalies:#?}", anomalies.len());
    println!("{level:?}: {committed} of {} committed", history.len());
    server.stop().unwrap_or_else(|error| panic!("{error}"));
}

async fn append_and_read(client: &Client, world: &World, seed: u64) -> Vec<Transaction> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut history = Vec::new();
    while history.len() < TRANSACTIONS && Instant::now() < world.deadline {
        let begun = world.tick();
        let mut acts = Vec::new();
        let outcome = match transaction(client, world, &mut random, &mut acts).await {
            Ok(outcome) => outcome,
            Err(Failure::Refused { sqlstate, .. })
                if ["40001", "40P01"].contains(&sqlstate.as_str()) =>
            {
                client.query("rollback").await;
                Outcome::Aborted
            }
            Err(failure) => panic!("{failure}"),
        };
        history.push(Transaction { begun, ended: world.tick(), outcome, acts });
    }
    history
}

async fn transaction(
    client: &Client,
    world: &World,
    random: &mut StdRng,
    acts: &mut Vec<Act>,
) -> Result<Outcome, Failure> {
    client.try_query(&format!("begin isolation level {}", world.level.sql())).await?;
    for _ in 0..random.random_range(1..=5) {
        let key = random.random_range(0..KEYS);
        if random.random_bool(0.5) {
            let value = world.values.fetch_add(1, Ordering::Relaxed);
            // Of what a client computes itself nothing is lost only if it has a frame to be held to.
            if world.level == Level::RepeatableRead && random.random_bool(0.4) {
                let reads = read(client, "lists", &[key]).await?;
                let mut list = reads[0].1.clone();
                acts.push(Act::Read(world.tick(), reads));
                list.push(value);
                acts.push(Act::Append(key, value));
                let list: Vec<_> = list.iter().map(Value::to_string).collect();
                let list = list.join(" ");
                let sql = format!("update lists set list = '{list}' where k = {key}");
                client.try_query(&sql).await?;
            } else {
                acts.push(Act::Append(key, value));
                let sql =
                    format!("update lists set list = ltrim(list || ' {value}') where k = {key}");
                client.try_query(&sql).await?;
            }
        } else {
            let source = SOURCES[random.random_range(0..SOURCES.len())];
            let keys: Vec<_> = (0..KEYS).filter(|_| random.random_bool(0.4)).collect();
            let begun = world.tick();
            acts.push(Act::Read(begun, read(client, source, &keys).await?));
        }
    }
    let (end, outcome) = match random.random_bool(0.1) {
        true => ("rollback", Outcome::Aborted),
        false => ("commit", Outcome::Committed),
    };
    client.try_query(end).await?;
    Ok(outcome)
}

/// Some lists, in one statement.
async fn read(
    client: &Client,
    source: &str,
    keys: &[Key],
) -> Result<Vec<(Key, Vec<Value>)>, Failure> {
    let mut wanted = String::from("-1");
    for key in keys {
        wanted.push_str(&format!(", {key}"));
    }
    let sql = format!("select k, list from {source} where k in ({wanted}) order by k");
    let answer = client.try_query(&sql).await?;
    assert_eq!(answer.rows.len(), keys.len(), "{sql}");
    let list = |text: &str| match text {
        "(empty)" => Vec::new(),
        text => text.split(' ').map(|value| value.parse().expect("a value")).collect(),
    };
    Ok(answer.rows.iter().map(|row| (row[0].parse().expect("a key"), list(&row[1]))).collect())
}
