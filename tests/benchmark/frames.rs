//! Leases, steps, and how soon a view shows what was written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

use crate::report::Report;
use crate::{Options, Result, Target};

const WRITERS: usize = 4;
const HOLDERS: usize = 8;

pub(crate) async fn measure(options: &Options, target: &Target, report: &mut Report) -> Result<()> {
    target
        .run(&[
            "create table bench_framed (id int primary key, g int, x int)",
            "insert into bench_framed select i, i % 100, 0 from generate_series(1, 10000) g(i)",
            "create materialized view bench_seen as
                 select g, count(*) as n, sum(x) as s from bench_framed group by g",
        ])
        .await?;
    let mut times = leases(options, target).await?;
    report.latency(
        "a statement that only leases a frame and releases it, under 4 writers",
        &mut times,
    );
    for holders in [0, HOLDERS] {
        let steps = steps(options, target, holders).await?;
        let what = format!("steps per second of 4 writers, {holders} readers with a lease each");
        report.rate(&what, steps, None);
    }
    let mut times = visible(options, target).await?;
    report.latency("INSERT, and a view that shows it", &mut times);
    Ok(())
}

/// Clients who write without a pause until they are told.
struct Writers {
    stop: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<Result<()>>>,
}

impl Writers {
    async fn start(target: &Target) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut tasks = Vec::new();
        for writer in 0..WRITERS {
            let (client, stop) = (target.connect().await?, Arc::clone(&stop));
            let update = client.prepare("update bench_framed set x = x + 1 where id = $1").await?;
            tasks.push(tokio::spawn(async move {
                // Each has rows of its own.
                for id in (0..2500).map(|row| row * 4 + writer as i32 + 1).cycle() {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    client.execute(&update, &[&id]).await?;
                }
                Ok(())
            }));
        }
        Ok(Self { stop, tasks })
    }

    async fn stop(self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await??;
        }
        Ok(())
    }
}

async fn leases(options: &Options, target: &Target) -> Result<Vec<Duration>> {
    let writers = Writers::start(target).await?;
    let client = target.connect().await?;
    let lease = client.prepare("select stillframe.current_step()").await?;
    let end = Instant::now() + options.time();
    let mut times = Vec::new();
    while Instant::now() < end {
        let began = Instant::now();
        client.query_one(&lease, &[]).await?;
        times.push(began.elapsed());
    }
    writers.stop().await?;
    Ok(times)
}

async fn steps(options: &Options, target: &Target, holders: usize) -> Result<f64> {
    let mut held = Vec::new();
    for _ in 0..holders {
        let client = target.connect().await?;
        client.batch_execute("begin isolation level repeatable read").await?;
        client.simple_query("select count(*) from bench_seen").await?;
        held.push(client);
    }
    let client = target.connect().await?;
    let step = async || -> Result<i64> {
        let row = client.query_one("select stillframe.current_step()::bigint", &[]).await?;
        Ok(row.get(0))
    };
    let writers = Writers::start(target).await?;
    let (before, began) = (step().await?, Instant::now());
    tokio::time::sleep(options.time()).await;
    let steps = (step().await? - before) as f64 / began.elapsed().as_secs_f64();
    writers.stop().await?;
    for client in held {
        client.batch_execute("commit").await?;
    }
    Ok(steps)
}

async fn visible(options: &Options, target: &Target) -> Result<Vec<Duration>> {
    let client = target.connect().await?;
    let insert = client.prepare("insert into bench_framed values ($1, $2, 1)").await?;
    let read = client.prepare("select n from bench_seen where g = $1").await?;
    let end = Instant::now() + options.time();
    let mut times = Vec::new();
    for id in 1_000_000.. {
        if Instant::now() > end {
            break;
        }
        let group = 1000 + id % 100;
        let began = Instant::now();
        client.execute(&insert, &[&id, &group]).await?;
        let rows: i64 = client.query_one(&read, &[&group]).await?.get(0);
        times.push(began.elapsed());
        assert_eq!(rows, i64::from((id - 1_000_000) / 100 + 1), "an acknowledged row is there");
    }
    Ok(times)
}
