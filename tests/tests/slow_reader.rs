//! Results of any size: a client that reads slowly costs the server no memory, stops nobody, and gets
//! its frame to the last row.

use std::fs;

use stillframe_tests::suite::{answer, every_lease_is_free};
use stillframe_tests::wire::{rows, tags};
use stillframe_tests::{Server, Wire};

/// How many rows the result has.
const ROWS: u64 = 2_000_000;
/// By how much the server's memory may grow while the client doesn't read: far less than the result,
/// which is more than this for each of its columns.
const GROWTH_BYTES_MAX: u64 = 96 << 20;
/// How many changes others make meanwhile.
const CHANGES: u64 = 200;

/// The memory that the server has in use.
fn resident_bytes(server: &Server) -> u64 {
    let file = format!("/proc/{}/status", server.front().id());
    let status = fs::read_to_string(file).expect("Linux tells it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line of it");
    let kibibytes = line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number");
    kibibytes << 10
}

fn step(wire: &mut Wire) -> u64 {
    answer(wire, "select stillframe.current_step()")[0][0].parse().expect("a number")
}

#[test]
fn a_slow_reader_costs_nothing() {
    let server = Server::start(2, 1);
    let mut writer = server.wire();
    answer(&mut writer, "create table sr (id bigint primary key, n bigint, t text)");
    answer(
        &mut writer,
        "create materialized view sr_v as select count(*) as rows, sum(n) as total from sr",
    );
    // In parts, so that loading needs little memory itself.
    for part in 0..10 {
        let (from, to) = (part * ROWS / 10 + 1, (part + 1) * ROWS / 10);
        let sql = format!(
            "insert into sr select g, 1, 'row number ' || g from generate_series({from}, {to}) g"
        );
        assert_eq!(tags(&writer.query(&sql)), [format!("INSERT 0 {}", ROWS / 10)]);
    }
    let before = resident_bytes(&server);
    let mut reader = server.wire();
    reader.send_query("select id, n, t from sr");
    // It has begun, and then the client does something else.
    assert_eq!(reader.until("D").len(), 2);
    let first = step(&mut writer);
    let mut most = 0;
    for change in 0..CHANGES {
        let id = change * (ROWS / CHANGES) + 1;
        answer(&mut writer, &format!("update sr set n = 5, t = 'changed' where id = {id}"));
        answer(&mut writer, &format!("delete from sr where id = {}", id + 1));
        most = most.max(resident_bytes(&server));
    }
    assert_eq!(step(&mut writer), first + 2 * CHANGES, "steps go on");
    let grown = most.saturating_sub(before);
    assert!(grown < GROWTH_BYTES_MAX, "{grown} bytes more for a client that doesn't read");
    let shown = answer(&mut writer, "select rows, total from sr_v");
    assert_eq!(shown, [[(ROWS - CHANGES).to_string(), (ROWS + 3 * CHANGES).to_string()]]);

    // Now it reads: all rows of its frame, and none of another.
    let (mut count, mut sum, mut ids) = (1, 1_u64, 0_u64);
    loop {
        let message = reader.receive().expect("the result goes on");
        match message.kind {
            'D' => {
                let values = message.values();
                let number = |place: usize| {
                    values[place].as_deref().and_then(|text| text.parse::<u64>().ok())
                };
                let id = number(0).expect("an id");
                assert_eq!(values[2], Some(format!("row number {id}")));
                sum += number(1).expect("a number");
                ids += id;
                count += 1;
            }
            'C' => break,
            'S' => {}
            other => panic!("{other}: {message:?}"),
        }
        if count % 500_000 == 0 {
            most = most.max(resident_bytes(&server));
        }
    }
    assert_eq!((count, sum), (ROWS, ROWS));
    // The first row was read before.
    let all = ROWS * (ROWS + 1) / 2;
    assert!((all - ROWS..all).contains(&ids), "{ids}");
    let grown = most.saturating_sub(before);
    assert!(grown < GROWTH_BYTES_MAX, "{grown} bytes more for a result that is read");
    reader.until("Z");
    assert_eq!(rows(&reader.query("select count(*) from sr")), [[(ROWS - CHANGES).to_string()]]);
    reader.close();
    writer.close();
    every_lease_is_free(&server);
    server.stop().expect("it ends");
}
