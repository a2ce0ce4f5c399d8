//! Consistency under load, on three hosts.
//!
//! `STILLFRAME_LOAD_SECONDS=60` lets each run for at least that long.

mod canary;

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use stillframe_tests::bank::{self, Hours};
use stillframe_tests::{Layout, Processes, ProcessesOptions, Server, suite};

#[tokio::test(flavor = "multi_thread")]
async fn no_money_is_lost_on_three_hosts() {
    run(1000, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn views_come_and_go_under_load() {
    run(300, 30).await;
}

/// Whatever arrives late, and however late: everybody waits for it, and nobody sees a mixture.
#[tokio::test(flavor = "multi_thread")]
async fn no_money_is_lost_over_slow_links() {
    // A step may need many messages that are late.
    let patience = ["--patience=600".to_owned()].into();
    let options = ProcessesOptions { coordinator: patience, ..ProcessesOptions::new(2) };
    let mut cluster = Processes::start_coordinator(3, options, "127.0.0.1:0");
    for _ in 0..3 {
        cluster.add_linked_host();
    }
    let client = cluster.connect().await;
    client.execute("CREATE TABLE ready (a int)").await;

    let hours = hours(20, 0);
    let delays = async {
        let mut random = StdRng::seed_from_u64(7);
        loop {
            let link = &cluster.links[random.random_range(0..cluster.links.len())];
            link.delay(Duration::from_millis(random.random_range(0..=3000)));
            tokio::time::sleep(Duration::from_millis(random.random_range(100..1000))).await;
            link.delay(Duration::ZERO);
        }
    };
    let report = tokio::select! {
        report = bank::run(cluster.address(), hours) => report,
        () = delays => unreachable!("it goes on for ever"),
    };
    println!("{report:#?}");
    report.check(hours);
}

fn hours(steps_min: u64, views_min: u64) -> Hours {
    let seconds = std::env::var("STILLFRAME_LOAD_SECONDS")
        .map_or(0, |seconds| seconds.parse().expect("a number of seconds"));
    let time_min = Duration::from_secs(seconds);
    let time_max = time_min + Duration::from_secs(300);
    Hours { time_min, time_max, steps_min, views_min }
}

async fn run(steps_min: u64, views_min: u64) {
    let hours = hours(steps_min, views_min);
    let server = Server::start_layout(Layout::processes(3, 1));
    let report = bank::run(server.address(), hours).await;
    println!("{report:#?}");
    report.check(hours);
    tokio::task::block_in_place(|| suite::every_lease_is_free(&server));
    server.stop().unwrap_or_else(|error| panic!("{error}"));
}
