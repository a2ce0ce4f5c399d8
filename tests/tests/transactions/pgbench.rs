//! pgbench, PostgreSQL's own: its tables in all the ways it makes them, and its script TPC-B; and
//! many writers of few rows.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use stillframe_tests::Server;
use stillframe_tests::suite::answer;

/// pgbench, which Debian keeps beside the server's programs.
fn pgbench(server: &Server, arguments: &str) -> String {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let found = versions.map(|version| version.path().join("bin/pgbench")).find(|p| p.exists());
    let program = found.unwrap_or_else(|| PathBuf::from("pgbench"));
    let output = Command::new(&program)
        .args([
            "--host",
            &server.address().ip().to_string(),
            "--port",
            &server.address().port().to_string(),
        ])
        .args(["--username", "stillframe"])
        .args(arguments.split_whitespace())
        .arg("stillframe")
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}; install postgresql", program.display()));
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "pgbench {arguments}: {told}{errors}");
    assert!(!errors.contains("error"), "pgbench {arguments}: {errors}");
    told
}

pub(super) fn pgbench_makes_its_tables(server: &Server) {
    let mut wire = server.wire();
    let count = |wire: &mut _| {
        let counts = "select (select count(*) from pgbench_accounts), \
             (select count(*) from pgbench_tellers), (select count(*) from pgbench_branches)";
        answer(wire, counts)
    };
    for modes in ["dtgvp", "dtpfg", "dtpGv"] {
        pgbench(server, &format!("-i -I {modes} -F 90 -q"));
        assert_eq!(count(&mut wire), [["100000", "10", "1"]], "{modes}");
    }
    // Of a table that is there, the key is added behind a view that goes on.
    pgbench(server, "-i -I dtg -q");
    answer(
        &mut wire,
        "create materialized view pgb_v as select bid, count(*) as n, sum(abalance) as s \
         from pgbench_accounts group by bid",
    );
    pgbench(server, "-i -I p -q");
    answer(&mut wire, "update pgbench_accounts set abalance = 5 where aid = 77");
    assert_eq!(answer(&mut wire, "select * from pgb_v"), [["1", "100000", "5"]]);
    answer(&mut wire, "drop materialized view pgb_v");
    pgbench(server, "-i -I d -q");
    wire.close();
}

pub(super) fn pgbench_adds_up(server: &Server) {
    let mut wire = server.wire();
    pgbench(server, "-i -q");
    answer(
        &mut wire,
        "create materialized view pgb_sums as select \
         (select sum(abalance) from pgbench_accounts) as a, \
         (select sum(tbalance) from pgbench_tellers) as t, \
         (select sum(bbalance) from pgbench_branches) as b, \
         coalesce((select sum(delta) from pgbench_history), 0) as h",
    );
    let mut done = 0;
    for mode in ["simple", "extended", "prepared"] {
        let told = pgbench(server, &format!("-n -c 16 -j 2 -T 3 -M {mode}"));
        let line = told.lines().find_map(|line| line.split_once("actually processed: "));
        let processed: u64 = line.expect("a count").1.trim().parse().expect("a number");
        assert!(processed > 0, "{told}");
        done += processed;
        let sums = answer(&mut wire, "select a = t and t = b and b = h, h from pgb_sums");
        assert_eq!(sums[0][0], "t", "{mode}: {sums:?}");
        let asked = "select sum(delta), count(*) from pgbench_history";
        assert_eq!(answer(&mut wire, asked), [[sums[0][1].clone(), done.to_string()]], "{mode}");
    }
    answer(&mut wire, "drop materialized view pgb_sums");
    pgbench(server, "-i -I d -q");
    wire.close();
}

/// Nobody is passed over for ever: neither one of many writers of one row, nor who writes all rows
/// while others write each of them.
pub(super) fn a_hot_row_and_a_long_update_get_on(server: &Server) {
    const WRITERS: usize = 64;
    const ROWS: usize = 2000;
    let mut wire = server.wire();
    answer(&mut wire, "create table hot_t (id int primary key, n int)");
    answer(&mut wire, &format!("insert into hot_t select g, 0 from generate_series(1, {ROWS}) g"));
    let stop = AtomicBool::new(false);
    let deadline = Instant::now() + Duration::from_secs(60);
    let counts: Vec<u64> = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let stop = &stop;
                scope.spawn(move || {
                    let mut wire = server.wire();
                    let mut count = 0;
                    while !stop.load(Ordering::Relaxed) && Instant::now() < deadline {
                        // Half of them write one row, the others each time another.
                        let id = if writer % 2 == 0 { 1 } else { (writer * 31 + count) % ROWS + 1 };
                        answer(&mut wire, &format!("update hot_t set n = n + 1 where id = {id}"));
                        count += 1;
                    }
                    wire.close();
                    count as u64
                })
            })
            .collect();
        for _ in 0..3 {
            answer(&mut wire, "update hot_t set n = n + 1 where n >= 0");
        }
        stop.store(true, Ordering::Relaxed);
        writers.into_iter().map(|writer| writer.join().expect("a writer")).collect()
    });
    assert!(Instant::now() < deadline, "the long update was passed over");
    let total: u64 = counts.iter().sum::<u64>() + 3 * ROWS as u64;
    assert_eq!(answer(&mut wire, "select sum(n) from hot_t"), [[total.to_string()]]);
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    answer(&mut wire, "drop table hot_t");
    wire.close();
}
