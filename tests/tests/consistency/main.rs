//! Consistency under load, on three hosts.
//!
//! `STILLFRAME_LOAD_SECONDS=60` lets each run for at least that long.

mod canary;

use std::time::Duration;

use stillframe_tests::bank::{self, Hours};
use stillframe_tests::{Server, suite};

#[tokio::test(flavor = "multi_thread")]
async fn no_money_is_lost_on_three_hosts() {
    run(1000, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn views_come_and_go_under_load() {
    run(300, 30).await;
}

async fn run(steps_min: u64, views_min: u64) {
    let seconds = std::env::var("STILLFRAME_LOAD_SECONDS")
        .map_or(0, |seconds| seconds.parse().expect("a number of seconds"));
    let time_min = Duration::from_secs(seconds);
    let time_max = time_min + Duration::from_secs(120);
    let hours = Hours { time_min, time_max, steps_min, views_min };
    let server = Server::start(3, 1);
    let report = bank::run(server.address(), hours).await;
    println!("{report:#?}");
    report.check(hours);
    tokio::task::block_in_place(|| suite::every_lease_is_free(&server));
    server.stop().unwrap_or_else(|error| panic!("{error}"));
}
