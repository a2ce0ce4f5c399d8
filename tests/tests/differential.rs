//! Random queries over random tables under random changes: after each change a materialized view
//! has the rows that the same query gives ad hoc, and those that PostgreSQL gives. A query that can't
//! be planned ad hoc shows nothing.
//!
//! The seeds are fixed. `STILLFRAME_SEEDS=100..200` takes others, and
//! `STILLFRAME_POSTGRESQL="host=... user=..."` asks a PostgreSQL server too, in a schema of its own.

#[path = "differential/queries.rs"]
mod queries;
#[path = "differential/tables.rs"]
mod tables;

use std::ops::Range;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use stillframe_tests::{Client, Failure, Server};

use queries::Queries;
use tables::Tables;

const VIEWS: usize = 9;
/// How many views besides are recursive queries.
const RECURSIONS: usize = 3;
const CHANGES: usize = 5;

#[tokio::test]
async fn on_one_host() {
    run(1, 1, 0..5).await;
}

#[tokio::test]
async fn on_three_hosts_with_two_workers() {
    run(3, 2, 5..9).await;
}

async fn run(hosts: u32, workers: u32, seeds: Range<u64>) {
    let seeds = std::env::var("STILLFRAME_SEEDS").ok().map_or(seeds, |text| {
        let (first, end) = text.split_once("..").expect("seeds are a range such as 100..200");
        first.parse().expect("a number")..end.parse().expect("a number")
    });
    let server = Server::start(hosts, workers);
    let mut world = World {
        stillframe: server.connect().await,
        postgresql: postgresql().await,
        schema: format!("differential_{hosts}x{workers}"),
        refused: 0,
        wrong: vec![],
    };
    let mut views = 0;
    for seed in seeds {
        views += VIEWS + RECURSIONS;
        world.trial(seed).await;
    }
    let World { refused, wrong, .. } = world;
    assert!(wrong.is_empty(), "{} wrong answers\n\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(refused * 10 <= views, "{refused} of {views} views are refused");
    server.stop().unwrap_or_else(|error| panic!("{error}"));
}

async fn postgresql() -> Option<Client> {
    let config = std::env::var("STILLFRAME_POSTGRESQL").ok()?;
    let config = config.parse().expect("a connection string");
    Some(Client::open(&config).await.expect("PostgreSQL takes the connection"))
}

/// The servers that are to agree.
struct World {
    stillframe: Client,
    postgresql: Option<Client>,
    /// A schema of this trial's own, on both.
    schema: String,
    /// How many views are refused with 0A000.
    refused: usize,
    wrong: Vec<String>,
}

impl World {
    /// Tables, views before and after the data, and changes.
    async fn trial(&mut self, seed: u64) {
        let mut random = StdRng::seed_from_u64(seed);
        let mut tables = Tables::new(&mut random);
        let schema = self.schema.clone();
        self.both(&format!("drop schema if exists {schema} cascade")).await;
        self.both(&format!("create schema {schema}")).await;
        self.both(&format!("set search_path to {schema}")).await;
        for sql in tables.definitions() {
            self.both(&sql).await;
        }
        let mut generator = Queries::new(&mut random, &tables);
        let mut queries: Vec<String> = (0..VIEWS).map(|_| generator.query()).collect();
        let mut others = StdRng::seed_from_u64(!seed);
        let mut generator = Queries::new(&mut others, &tables);
        queries.extend((0..RECURSIONS).map(|_| generator.recursive()));
        let mut views = vec![];
        for change in 0..CHANGES {
            let early = queries.iter().enumerate();
            for (number, query) in early.filter(|(number, _)| number % 3 == change.min(2)) {
                if change < 3 && self.create(number, query).await {
                    views.push((number, query.clone()));
                }
            }
            let changes = tables.changes(&mut random);
            if random.random_bool(0.5) {
                self.both(&format!("begin; {}; commit", changes.join("; "))).await;
            } else {
                for sql in &changes {
                    self.both(sql).await;
                }
            }
            for (number, query) in &views {
                self.compare(&format!("seed {seed}, change {change}"), *number, query).await;
            }
        }
        self.both(&format!("drop schema {schema} cascade")).await;
    }

    /// Runs a statement that must succeed.
    async fn both(&self, sql: &str) {
        self.stillframe.query(sql).await;
        if let Some(postgresql) = &self.postgresql {
            postgresql.query(sql).await;
        }
    }

    /// Creates a view; false if it is refused.
    async fn create(&mut self, number: usize, query: &str) -> bool {
        let sql = format!("create materialized view v{number} as {query}");
        match self.stillframe.try_query(&sql).await {
            Ok(_) => true,
            Err(Failure::Refused { sqlstate, .. }) if sqlstate == "0A000" => {
                self.refused += 1;
                if std::env::var_os("STILLFRAME_SHOW_REFUSED").is_some() {
                    let message = self.stillframe.try_query(&sql).await.expect_err("it is refused");
                    eprintln!("refused: {message}\n{query}\n");
                }
                false
            }
            Err(failure) => {
                self.wrong.push(format!("{failure}\n{sql}"));
                false
            }
        }
    }

    async fn compare(&mut self, place: &str, number: usize, query: &str) {
        let view = rows(&self.stillframe, &format!("select * from v{number}")).await;
        let adhoc = rows(&self.stillframe, query).await;
        let expected = match &self.postgresql {
            Some(postgresql) => rows(postgresql, query).await,
            None => adhoc.clone(),
        };
        // One wrong answer of a view is enough.
        let known = self.wrong.iter().any(|known| known.ends_with(query));
        let is_planned = adhoc.is_ok() || self.postgresql.is_some();
        let is_wrong = view != expected && is_planned || adhoc.is_ok() && adhoc != expected;
        if is_wrong && !known {
            self.wrong.push(format!(
                "{place}, v{number}\nview:     {view:?}\nad hoc:   {adhoc:?}\nexpected: {expected:?}\n{query}"
            ));
        }
    }
}

/// A query's rows in order, or how it fails.
async fn rows(client: &Client, sql: &str) -> Result<Vec<String>, String> {
    match client.try_query(sql).await {
        Ok(answer) => {
            let mut rows: Vec<_> = answer.rows.iter().map(|row| row.join(" ")).collect();
            rows.sort();
            Ok(rows)
        }
        Err(Failure::Refused { sqlstate, .. }) => Err(sqlstate),
        Err(failure) => Err(failure.to_string()),
    }
}
