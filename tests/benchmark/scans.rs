//! Aggregates over a whole table, against DataFusion with the same rows in memory.

use std::time::{Duration, Instant};

use datafusion::prelude::{SessionConfig, SessionContext};

use crate::report::Report;
use crate::{Options, Result, Target};

/// Each is run so often, and the best counts: the first one fills caches.
const RUNS: usize = 3;
const QUERIES: [(&str, &str); 5] = [
    ("count(*)", "select count(*) from bench_wide"),
    ("sum of a column", "select sum(b) from bench_wide"),
    ("sums where a condition holds", "select count(*), sum(c) from bench_wide where a < 100"),
    ("1000 groups", "select a, count(*), sum(b) from bench_wide group by a"),
    (
        "extremes of texts by 10 groups",
        "select b % 10, min(d), max(d) from bench_wide group by b % 10",
    ),
];

pub(crate) async fn measure(options: &Options, target: &Target, report: &mut Report) -> Result<()> {
    let rows = options.rows;
    let columns = "i as id, i % 1000 as a, i % 77777 as b, (i % 1000)::double precision / 8 as c,
         'text ' || (i % 5000) as d";
    let began = Instant::now();
    target
        .run(&[
            "create table bench_wide (id bigint primary key, a bigint, b bigint, c double precision,
                 d text)",
            &format!("insert into bench_wide select {columns} from generate_series(1, {rows}) g(i)"),
        ])
        .await?;
    report.rate(
        "rows per second of INSERT ... SELECT",
        rows as f64 / began.elapsed().as_secs_f64(),
        None,
    );

    let partitions = (options.hosts * options.workers) as usize;
    let config = SessionConfig::new().with_target_partitions(partitions);
    let peer = SessionContext::new_with_config(config);
    let made =
        format!("create table bench_wide as select {columns} from generate_series(1, {rows}) g(i)");
    peer.sql(&made).await?.collect().await?;
    let client = target.connect().await?;
    for (what, sql) in QUERIES {
        let mut ours = Duration::MAX;
        let mut theirs = Duration::MAX;
        for _ in 0..RUNS {
            let began = Instant::now();
            client.query(sql, &[]).await.map_err(|error| format!("{sql}: {error:?}"))?;
            ours = ours.min(began.elapsed());
            let began = Instant::now();
            peer.sql(sql).await?.collect().await?;
            theirs = theirs.min(began.elapsed());
        }
        report.time(&format!("{what} of {rows} rows"), ours, Some(theirs));
    }
    Ok(())
}
