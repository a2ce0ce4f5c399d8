//! A live stream to play with: the auctions of [Nexmark](https://datalab.cs.pdx.edu/niagara/NEXMark/),
//! and views over them.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use nexmark::EventGenerator;
use nexmark::config::NexmarkConfig;
use nexmark::event::Event;
use stillframe_sql::Error;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::Database;

/// Tables and views of the demo.
pub const DEMO_SCHEMA: &str = include_str!("demo/schema.sql");

/// How often events are written.
const BEAT: Duration = Duration::from_millis(100);

/// Writes so many events a second into the tables of [`DEMO_SCHEMA`], for as long as it is polled.
///
/// # Errors
///
/// That of the first statement that fails.
pub async fn stream(database: &Arc<Database>, events_per_second: u32) -> Result<(), Error> {
    let mut events = EventGenerator::new(NexmarkConfig::default());
    let mut beat = interval(BEAT);
    // After a pause the stream goes on, and doesn't make up for it.
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let per_beat = f64::from(events_per_second) * BEAT.as_secs_f64();
    let (began, mut owed, mut said) = (Instant::now(), 0.0, Instant::now());
    let mut written: u64 = 0;
    loop {
        beat.tick().await;
        owed += per_beat;
        let count = owed as usize;
        owed -= count as f64;
        if count == 0 {
            continue;
        }
        let statements = inserts(events.by_ref().take(count));
        database.execute(&statements).await?;
        written += count as u64;
        if said.elapsed() > Duration::from_secs(60) {
            said = Instant::now();
            tracing::info!(events = written, seconds = began.elapsed().as_secs(), "demo");
        }
    }
}

/// One INSERT for each table that gets rows.
fn inserts(events: impl Iterator<Item = Event>) -> String {
    const TABLES: [&str; 3] = ["person", "auction", "bid"];
    let mut rows = TABLES.map(|_| vec![]);
    for event in events {
        let (place, row) = match event {
            Event::Person(p) => {
                let place = (text(&p.city), text(&p.state));
                let row = format!("{}, {}, {}, {}", p.id, text(&p.name), place.0, place.1);
                (0, format!("({row}, {})", timestamp(p.date_time)))
            }
            Event::Auction(a) => {
                let numbers = format!("{}, {}, {}", a.initial_bid, a.reserve, a.seller);
                let row = format!("{}, {}, {numbers}, {}", a.id, text(&a.item_name), a.category);
                (1, format!("({row}, {}, {})", timestamp(a.date_time), timestamp(a.expires)))
            }
            Event::Bid(b) => {
                let row = format!("{}, {}, {}, {}", b.auction, b.bidder, b.price, text(&b.channel));
                (2, format!("({row}, {})", timestamp(b.date_time)))
            }
        };
        rows[place].push(row);
    }
    let mut statements = String::new();
    for (table, rows) in TABLES.iter().zip(rows) {
        if !rows.is_empty() {
            let _ = writeln!(statements, "INSERT INTO {table} VALUES {};", rows.join(", "));
        }
    }
    statements
}

fn text(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

/// Milliseconds since 1970.
fn timestamp(milliseconds: u64) -> String {
    let seconds = i64::try_from(milliseconds / 1000).unwrap_or_default();
    let nanoseconds = u32::try_from(milliseconds % 1000).unwrap_or_default() * 1_000_000;
    let moment = chrono::DateTime::from_timestamp(seconds, nanoseconds).unwrap_or_default();
    format!("'{}'", moment.format("%Y-%m-%d %H:%M:%S%.3f"))
}
