//! Many clients with small statements: inserts, TPC-B's transactions, lookups by key.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Instant;

use futures::future::try_join_all;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Statement};

use crate::report::Report;
use crate::{Options, Result, Target};

const CLIENTS: [usize; 3] = [1, 16, 64];
/// As pgbench has it: so many branches, ten tellers and a hundred thousand accounts in each.
const BRANCHES: i32 = 4;
const TELLERS: i32 = BRANCHES * 10;
const ACCOUNTS: i32 = BRANCHES * 100_000;

/// What a client does again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Insert,
    TpcB,
    Lookup,
}

pub(crate) async fn measure(
    options: &Options,
    stillframe: &Target,
    postgresql: Option<&Target>,
    report: &mut Report,
) -> Result<()> {
    for target in [Some(stillframe), postgresql].into_iter().flatten() {
        prepare(target).await?;
    }
    for (act, what) in [
        (Act::Insert, "single-row INSERTs"),
        (Act::TpcB, "TPC-B transactions"),
        (Act::Lookup, "lookups by key"),
    ] {
        for clients in CLIENTS {
            let ours = rate(options, stillframe, act, clients).await?;
            let peer = match postgresql {
                Some(target) => Some(rate(options, target, act, clients).await?),
                None => None,
            };
            let plural = if clients == 1 { "" } else { "s" };
            report.rate(&format!("{what} per second, {clients} client{plural}"), ours, peer);
        }
    }
    Ok(())
}

async fn prepare(target: &Target) -> Result<()> {
    target
        .run(&[
            "drop table if exists bench_rows, bench_branches, bench_tellers, bench_accounts,
                 bench_history",
            "create table bench_rows (id bigint primary key, a int, b text)",
            "create table bench_branches (bid int primary key, bbalance int, filler text)",
            "create table bench_tellers (tid int primary key, bid int, tbalance int, filler text)",
            "create table bench_accounts (aid int primary key, bid int, abalance int, filler text)",
            "create table bench_history (tid int, bid int, aid int, delta int, mtime timestamp)",
            &format!(
                "insert into bench_branches select i, 0, '' from generate_series(1, {BRANCHES}) g(i)"
            ),
            &format!(
                "insert into bench_tellers
                 select i, (i - 1) / 10 + 1, 0, '' from generate_series(1, {TELLERS}) g(i)"
            ),
            &format!(
                "insert into bench_accounts
                 select i, (i - 1) / 100000 + 1, 0, '' from generate_series(1, {ACCOUNTS}) g(i)"
            ),
        ])
        .await
}

/// How often all clients together did it in a second.
async fn rate(options: &Options, target: &Target, act: Act, clients: usize) -> Result<f64> {
    static NEXT_ID: AtomicI64 = AtomicI64::new(1);
    let done = Arc::new(AtomicU64::new(0));
    let mut sessions = Vec::new();
    for seed in 0..clients {
        sessions.push(Session::open(target, act, seed as u64).await?);
    }
    let began = Instant::now();
    let end = began + options.time();
    let work = sessions.into_iter().map(|mut session| {
        let done = Arc::clone(&done);
        tokio::spawn(async move {
            while Instant::now() < end {
                if session.act(NEXT_ID.fetch_add(1, Ordering::Relaxed)).await? {
                    done.fetch_add(1, Ordering::Relaxed);
                }
            }
            Result::Ok(())
        })
    });
    for ended in try_join_all(work).await? {
        ended?;
    }
    Ok(done.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64())
}

struct Session {
    client: Client,
    act: Act,
    statements: Vec<Statement>,
    random: StdRng,
}

impl Session {
    async fn open(target: &Target, act: Act, seed: u64) -> Result<Self> {
        let client = target.connect().await?;
        let sql: &[&str] = match act {
            Act::Insert => &["insert into bench_rows values ($1, $2, $3)"],
            Act::Lookup => &["select abalance from bench_accounts where aid = $1"],
            Act::TpcB => &[
                "update bench_accounts set abalance = abalance + $1 where aid = $2",
                "select abalance from bench_accounts where aid = $1",
                "update bench_tellers set tbalance = tbalance + $1 where tid = $2",
                "update bench_branches set bbalance = bbalance + $1 where bid = $2",
                "insert into bench_history values ($1, $2, $3, $4, current_timestamp)",
            ],
        };
        let mut statements = Vec::new();
        for sql in sql {
            statements
                .push(client.prepare(sql).await.map_err(|error| format!("{sql}: {error:?}"))?);
        }
        Ok(Self { client, act, statements, random: StdRng::seed_from_u64(seed) })
    }

    /// Does it once; false if that has to be tried again.
    async fn act(&mut self, id: i64) -> Result<bool> {
        match self.act {
            Act::Insert => {
                let a = self.random.random_range(0..1000);
                self.client.execute(&self.statements[0], &[&id, &a, &"some text"]).await?;
            }
            Act::Lookup => {
                let account = self.random.random_range(1..=ACCOUNTS);
                self.client.query_one(&self.statements[0], &[&account]).await?;
            }
            Act::TpcB => return self.tpc_b().await,
        }
        Ok(true)
    }

    async fn tpc_b(&mut self) -> Result<bool> {
        let account = self.random.random_range(1..=ACCOUNTS);
        let teller = self.random.random_range(1..=TELLERS);
        let branch = self.random.random_range(1..=BRANCHES);
        let delta: i32 = self.random.random_range(-5000..=5000);
        let [accounts, read, tellers, branches, history] = self.statements.as_slice() else {
            unreachable!("five were prepared");
        };
        let client = &self.client;
        let done = async {
            client.batch_execute("begin").await?;
            client.execute(accounts, &[&delta, &account]).await?;
            client.query_one(read, &[&account]).await?;
            client.execute(tellers, &[&delta, &teller]).await?;
            client.execute(branches, &[&delta, &branch]).await?;
            client.execute(history, &[&teller, &branch, &account, &delta]).await?;
            client.batch_execute("commit").await
        };
        match done.await {
            Ok(()) => Ok(true),
            Err(error) if is_conflict(error.code()) => {
                client.batch_execute("rollback").await?;
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn is_conflict(code: Option<&SqlState>) -> bool {
    code == Some(&SqlState::T_R_SERIALIZATION_FAILURE)
        || code == Some(&SqlState::T_R_DEADLOCK_DETECTED)
}
