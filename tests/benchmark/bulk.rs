//! COPY: into a table, and into one that views read.

use std::fmt::Write as _;
use std::pin::pin;
use std::process::Command;
use std::time::Instant;

use futures::SinkExt as _;

use crate::report::Report;
use crate::{Options, Result, Target};

/// Rows that are sent at once.
const CHUNK_ROWS: u64 = 1000;

pub(crate) async fn measure(
    options: &Options,
    stillframe: &Target,
    postgresql: Option<&Target>,
    report: &mut Report,
) -> Result<()> {
    let chunks = chunks(options.copied);
    let ours = copied(options, stillframe, &chunks).await?;
    let peer = match postgresql {
        Some(target) => Some(copied(options, target, &chunks).await?),
        None => None,
    };
    report.rate("rows per second of COPY, text, with a primary key", ours, peer);
    let (alone, below_views) = flights(stillframe).await?;
    report.rate("rows per second of COPY, flights", alone, None);
    report.rate("rows per second of COPY, flights below three views", below_views, None);
    Ok(())
}

fn chunks(rows: u64) -> Vec<String> {
    let mut chunks = Vec::new();
    for first in (0..rows).step_by(CHUNK_ROWS as usize) {
        let mut chunk = String::new();
        for row in first..rows.min(first + CHUNK_ROWS) {
            let _ =
                writeln!(chunk, "{row}\t{}\t{}.5\tsome text {}", row % 1000, row % 77, row % 10);
        }
        chunks.push(chunk);
    }
    chunks
}

async fn copied(options: &Options, target: &Target, chunks: &[String]) -> Result<f64> {
    target
        .run(&[
            "drop table if exists bench_copied",
            "create table bench_copied (id bigint primary key, a int, b double precision, c text)",
        ])
        .await?;
    let began = Instant::now();
    copy(target, "copy bench_copied from stdin", chunks.iter().cloned()).await?;
    Ok(options.copied as f64 / began.elapsed().as_secs_f64())
}

async fn copy(target: &Target, sql: &str, chunks: impl Iterator<Item = String>) -> Result<u64> {
    let client = target.connect().await?;
    let mut sink = pin!(client.copy_in::<_, std::io::Cursor<Vec<u8>>>(sql).await?);
    for chunk in chunks {
        sink.send(std::io::Cursor::new(chunk.into_bytes())).await?;
    }
    Ok(sink.finish().await?)
}

/// The flights of the tests, without views and with them.
async fn flights(target: &Target) -> Result<(f64, f64)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/data/flights");
    let read = |name: &str| -> Result<String> {
        let path = format!("{folder}/{name}");
        if name.ends_with(".gz") {
            let unpacked = Command::new("gzip").args(["-dc", &path]).output()?;
            return Ok(String::from_utf8(unpacked.stdout)?);
        }
        Ok(std::fs::read_to_string(path)?)
    };
    let data = read("flights.csv.gz")?;
    let rows = data.lines().count() as f64 - 1.0;
    target.run(&[&read("schema.sql")?]).await?;
    for (table, file) in [("airlines", "airlines.csv"), ("weather", "weather.csv.gz")] {
        let sql = format!("copy {table} from stdin (format csv, header, null 'NA')");
        copy(target, &sql, std::iter::once(read(file)?)).await?;
    }
    let load = async || {
        let began = Instant::now();
        let sql = "copy flights from stdin (format csv, header, null 'NA')";
        copy(target, sql, std::iter::once(data.clone())).await?;
        Result::Ok(rows / began.elapsed().as_secs_f64())
    };
    let alone = load().await?;
    target.run(&["delete from flights", &read("views.sql")?]).await?;
    let below_views = load().await?;
    Ok((alone, below_views))
}
