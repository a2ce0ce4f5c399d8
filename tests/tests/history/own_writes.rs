//! Random transactions that read what they have written, through a table, a view, a view on views
//! and a join of both, with savepoints and rollbacks. What they must see is computed by hand
//! ([`Model`]), and by PostgreSQL if there is one.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use stillframe_tests::{Client, Layout, Server};

use crate::postgresql;

const SEEDS: u64 = 12;
const TRANSACTIONS: usize = 4;
const TIME_MAX: Duration = Duration::from_secs(15);
/// What is read after each statement.
const READS: [&str; 4] = [
    "select id, g, v from own order by id",
    "select g, n, s from own_groups order by g",
    "select groups, total, most from own_total",
    "select o.id, w.s from own o join own_groups w on w.g = o.g where o.v > 3 order by o.id",
];

#[tokio::test(flavor = "multi_thread")]
async fn own_writes_are_read_through_views_of_views() {
    let server = Server::start_layout(Layout::processes(3, 1));
    let stillframe = server.connect().await;
    let other = server.connect().await;
    let postgresql = postgresql(1).await.map(|mut clients| clients.remove(0));
    if let Some(postgresql) = &postgresql {
        for sql in [
            "drop schema if exists own_writes cascade",
            "create schema own_writes",
            "set search_path to own_writes",
        ] {
            postgresql.query(sql).await;
        }
    }
    for sql in [
        "create table own (id int primary key, g int not null, v int not null)",
        "create materialized view own_groups as
             select g, count(*) as n, sum(v) as s from own group by g",
        "create materialized view own_total as
             select count(*) as groups, sum(s) as total, max(n) as most from own_groups",
    ] {
        stillframe.query(sql).await;
        if let Some(postgresql) = &postgresql {
            postgresql.query(&sql.replace("materialized view", "view")).await;
        }
    }
    let began = Instant::now();
    let mut committed = Model::default();
    let mut seeds = 0;
    for seed in 0..SEEDS {
        if began.elapsed() > TIME_MAX {
            break;
        }
        seeds += 1;
        let mut random = StdRng::seed_from_u64(seed);
        for number in 0..TRANSACTIONS {
            let place = format!("seed {seed}, transaction {number}");
            let mut play = Play {
                stillframe: &stillframe,
                postgresql: postgresql.as_ref(),
                place,
                statements: Vec::new(),
            };
            committed = play.transaction(&mut random, committed).await;
            // Others see what is committed, and nothing else.
            play.compare(&other, &committed).await;
        }
    }
    assert!(seeds >= SEEDS / 4, "only {seeds} of {SEEDS} in {TIME_MAX:?}");
    server.stop().unwrap_or_else(|error| panic!("{error}"));
}

/// The rows of the table: by key, a group and a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Model(BTreeMap<i64, (i64, i64)>);

impl Model {
    /// What the reads must give.
    fn reads(&self) -> [Vec<String>; 4] {
        let mut groups: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
        for (g, v) in self.0.values() {
            let group = groups.entry(*g).or_default();
            *group = (group.0 + 1, group.1 + v);
        }
        let total: i64 = groups.values().map(|(_, s)| s).sum();
        let most = groups.values().map(|(n, _)| *n).max();
        let or_null =
            |value: Option<i64>| value.map_or("NULL".to_owned(), |value| value.to_string());
        let total = or_null((!groups.is_empty()).then_some(total));
        [
            self.0.iter().map(|(id, (g, v))| format!("{id} {g} {v}")).collect(),
            groups.iter().map(|(g, (n, s))| format!("{g} {n} {s}")).collect(),
            vec![format!("{} {total} {}", groups.len(), or_null(most))],
            self.0
                .iter()
                .filter(|(_, (_, v))| *v > 3)
                .map(|(id, (g, _))| format!("{id} {}", groups[g].1))
                .collect(),
        ]
    }

    /// A random change: what does it in SQL, done.
    fn change(&mut self, random: &mut StdRng) -> String {
        let (id, g) = (random.random_range(0..20), random.random_range(0..4));
        let v = random.random_range(0..9);
        match random.random_range(0..7) {
            0 | 1 => {
                self.0.entry(id).or_insert((g, v));
                format!("insert into own values ({id}, {g}, {v}) on conflict do nothing")
            }
            2 => {
                self.0.entry(id).and_modify(|row| row.1 += v).or_insert((g, v));
                format!(
                    "insert into own values ({id}, {g}, {v})
                     on conflict (id) do update set v = own.v + excluded.v"
                )
            }
            3 => {
                for row in self.0.values_mut().filter(|row| row.0 == g) {
                    row.1 += v;
                }
                format!("update own set v = v + {v} where g = {g}")
            }
            4 => {
                // Reads a view that the same transaction has changed.
                let mut sums: BTreeMap<i64, i64> = BTreeMap::new();
                for (g, v) in self.0.values() {
                    *sums.entry(*g).or_default() += v;
                }
                for row in self.0.values_mut().filter(|row| sums[&row.0] > 20) {
                    row.0 = (row.0 + 1) % 4;
                }
                "update own set g = (g + 1) % 4
                 where g in (select g from own_groups where s > 20)"
                    .to_owned()
            }
            5 => {
                self.0.remove(&id);
                format!("delete from own where id = {id}")
            }
            _ => {
                self.0.retain(|_, row| row.0 != g || row.1 < 5);
                format!("delete from own where g = {g} and v >= 5")
            }
        }
    }
}

struct Play<'a> {
    stillframe: &'a Client,
    postgresql: Option<&'a Client>,
    place: String,
    statements: Vec<String>,
}

impl Play<'_> {
    /// A transaction; what is committed when it is over.
    async fn transaction(&mut self, random: &mut StdRng, committed: Model) -> Model {
        let level = ["read committed", "repeatable read"][random.random_range(0..2)];
        self.run(&format!("begin isolation level {level}")).await;
        let mut now = committed.clone();
        let mut savepoints: Vec<Model> = Vec::new();
        for _ in 0..random.random_range(1..6) {
            let depth = savepoints.len();
            match random.random_range(0..8) {
                0 => {
                    savepoints.push(now.clone());
                    self.run(&format!("savepoint s{depth}")).await;
                }
                1 if depth > 0 => {
                    // It stays where it is, and those after it go.
                    let back = random.random_range(0..depth);
                    savepoints.truncate(back + 1);
                    now = savepoints[back].clone();
                    self.run(&format!("rollback to s{back}")).await;
                }
                2 if depth > 0 => {
                    let back = random.random_range(0..depth);
                    savepoints.truncate(back);
                    self.run(&format!("release s{back}")).await;
                }
                _ => {
                    let sql = now.change(random);
                    self.run(&sql).await;
                }
            }
            self.compare(self.stillframe, &now).await;
        }
        if random.random_bool(0.25) {
            self.run("rollback").await;
            return committed;
        }
        self.run("commit").await;
        now
    }

    async fn run(&mut self, sql: &str) {
        self.statements.push(sql.to_owned());
        self.stillframe.query(sql).await;
        if let Some(postgresql) = self.postgresql {
            postgresql.query(sql).await;
        }
    }

    async fn compare(&self, client: &Client, model: &Model) {
        for (sql, expected) in READS.iter().zip(model.reads()) {
            let place = || format!("{}: {sql}\nafter {:#?}", self.place, self.statements);
            if let Some(postgresql) = self.postgresql {
                assert_eq!(postgresql.rows(sql).await, expected, "PostgreSQL, {}", place());
            }
            assert_eq!(client.rows(sql).await, expected, "{}", place());
        }
    }
}
