//! Bytes that no client sends: what clients do send, changed at random. Whatever comes, the server
//! answers as the protocol says or ends the connection; it has no error of its own (XX000), and serves
//! others.
//!
//! Runs for a minute, or `STILLFRAME_FUZZ_SECONDS`; `STILLFRAME_FUZZ_SEED` repeats a run.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use stillframe_tests::Server;
use stillframe_tests::suite::{answer, every_lease_is_free};

/// How many clients there are at a time.
const CLIENTS: u64 = 3;
/// How long a client waits for more of an answer.
const SILENCE: Duration = Duration::from_millis(40);
/// How long an answer may be: nothing that is asked has a longer one.
const ANSWER_BYTES_MAX: usize = 4 << 20;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("a number"))
}

#[test]
fn changed_bytes_break_nothing() {
    let seconds = variable("STILLFRAME_FUZZ_SECONDS").unwrap_or(60);
    let seed = variable("STILLFRAME_FUZZ_SEED").unwrap_or(5);
    let server = Server::start(2, 1);
    let mut wire = server.wire();
    answer(
        &mut wire,
        "create table fz (id integer primary key, t text, n numeric, a integer[], at timestamptz)",
    );
    answer(&mut wire, "create materialized view fz_v as select count(*) as n from fz");
    let end = Instant::now() + Duration::from_secs(seconds);
    let rounds = AtomicU64::new(0);
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (rounds, address) = (&rounds, server.address());
            scope.spawn(move || {
                let mut round = client;
                while Instant::now() < end {
                    let bytes = conversation(&mut StdRng::seed_from_u64(seed ^ (round << 20)));
                    let answered = talk(address, &bytes);
                    let text = String::from_utf8_lossy(&answered);
                    assert!(
                        !text.contains("XX000") && answered.len() <= ANSWER_BYTES_MAX,
                        "seed {seed}, round {round}: {bytes:?}\n{text}"
                    );
                    round += CLIENTS;
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    println!("seed {seed}: {} conversations", rounds.load(Ordering::Relaxed));
    // The table may have any rows by now, or be gone; the server is as it was.
    wire.query("drop table if exists fz cascade");
    wire.close();
    every_lease_is_free(&server);
    server.stop().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
}

/// Says it, and reads until nothing more comes.
fn talk(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("the server takes connections");
    stream.set_nodelay(true).expect("a TCP option");
    stream.set_read_timeout(Some(SILENCE)).expect("a timeout above zero");
    stream.set_write_timeout(Some(Duration::from_secs(20))).expect("a timeout above zero");
    let mut answered = vec![];
    if stream.write_all(bytes).is_err() {
        return answered;
    }
    let mut piece = [0; 64 << 10];
    // Data that begins must end: a few silences are those of a busy machine.
    let mut silences = 0;
    while silences < 3 && answered.len() <= ANSWER_BYTES_MAX {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => answered.extend_from_slice(&piece[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                silences += 1;
            }
            Err(_) => break,
        }
        if answered.ends_with(b"Z\0\0\0\x05I") && silences > 0 {
            break;
        }
    }
    let _ = stream.shutdown(Shutdown::Both);
    answered
}

/// A start and some requests, of which something is changed.
fn conversation(random: &mut StdRng) -> Vec<u8> {
    let mut start = startup();
    let mut rest = vec![];
    for _ in 0..random.random_range(1..5) {
        rest.extend(request(random));
    }
    // Now and then the start itself; mostly what comes after it.
    if random.random_bool(0.15) {
        change(&mut start, random);
    } else {
        for _ in 0..random.random_range(1..4) {
            change(&mut rest, random);
        }
    }
    [start, rest].concat()
}

fn startup() -> Vec<u8> {
    let mut body = 196_608_i32.to_be_bytes().to_vec();
    for text in ["user", "fuzz", "database", "stillframe", "options", "-c statement_timeout=2s"] {
        body.extend(text.bytes().chain([0]));
    }
    body.push(0);
    [&length(&body), body.as_slice()].concat()
}

fn length(body: &[u8]) -> [u8; 4] {
    i32::try_from(body.len() + 4).expect("a short message").to_be_bytes()
}

fn message(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    [&[kind], length(&body).as_slice(), &body].concat()
}

const QUERIES: &[&str] = &[
    "select 1",
    "select * from fz order by id limit 10",
    "select n from fz_v",
    "insert into fz (id, t) values (1, 'x') on conflict do nothing",
    "begin; update fz set t = 'y'; rollback",
    "begin; declare c cursor for select * from fz; fetch 3 from c; commit",
    "prepare p as select $1::int; execute p(1); deallocate p",
    "listen fz; notify fz, 'x'",
    "set timezone = 'Europe/Paris'; show timezone",
    "copy fz (id, t) to stdout (format csv, header)",
    "copy fz to stdout (format binary)",
    "explain select * from fz",
    "select '{1,2}'::int[], '{\"a\": 1}'::jsonb, 'x'::bytea, '1 day'::interval, 1.5::numeric",
];

/// One request as a client would send it.
fn request(random: &mut StdRng) -> Vec<u8> {
    match random.random_range(0..6) {
        0 => {
            let query = QUERIES[random.random_range(0..QUERIES.len())];
            message(b'Q', &[query.as_bytes(), b"\0"])
        }
        1 => {
            let data: &[u8] = b"7\tseven\n8\t\\N\n9\t\\\\x\\t\n\\.\n";
            let copy = message(b'Q', &[b"copy fz (id, t) from stdin\0"]);
            [copy, message(b'd', &[data]), message(b'c', &[])].concat()
        }
        2 => {
            let data: &[u8] = b"id,t\n17,\"a \"\"b\"\"\nc\"\n18,\n";
            let copy = message(b'Q', &[b"copy fz (id, t) from stdin (format csv, header)\0"]);
            [copy, message(b'd', &[data]), message(b'c', &[])].concat()
        }
        3 => {
            let copy = message(b'Q', &[b"copy fz (id, t, n, a, at) from stdin (format binary)\0"]);
            let header: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
            let row = [
                vec![0, 5],
                value(&27_i32.to_be_bytes()),
                value(b"text"),
                value(NUMERIC),
                value(ARRAY),
                value(&[0; 8]),
            ];
            let data = [header, &row.concat(), &[0xff, 0xff]].concat();
            [copy, message(b'd', &[&data]), message(b'c', &[])].concat()
        }
        4 => bound(b"insert into fz values ($1, $2, $3, $4, $5) on conflict do nothing", random),
        _ => bound(b"select $1::int, $2::text, $3::numeric, $4::int[], $5::timestamptz", random),
    }
}

const NUMERIC: &[u8] = &[0, 2, 0, 0, 0x40, 0, 0, 3, 0, 12, 0x13, 0x88];
const ARRAY: &[u8] = &[
    0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 23, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 5, 0xff,
    0xff, 0xff, 0xff,
];

fn value(bytes: &[u8]) -> Vec<u8> {
    let count = i32::try_from(bytes.len()).expect("a short value");
    [&count.to_be_bytes(), bytes].concat()
}

/// A statement with its five parameters, in binary.
fn bound(sql: &[u8], random: &mut StdRng) -> Vec<u8> {
    let parameters = [
        value(&37_i32.to_be_bytes()),
        value(b"text"),
        value(NUMERIC),
        value(ARRAY),
        value(&[0, 2, 0, 0, 0, 0, 0, 0]),
    ];
    let types: Vec<u8> =
        [23_i32, 25, 1700, 1007, 1184].into_iter().flat_map(i32::to_be_bytes).collect();
    let rows_max = random.random_range(0..3_i32).to_be_bytes();
    [
        message(b'P', &[b"s\0", sql, b"\0\0\x05", &types]),
        message(b'D', &[b"Ss\0"]),
        message(b'B', &[b"p\0s\0\0\x01\0\x01\0\x05", &parameters.concat(), b"\0\x01\0\x01"]),
        message(b'D', &[b"Pp\0"]),
        message(b'E', &[b"p\0", &rows_max]),
        message(b'C', &[b"Ss\0"]),
        message(b'S', &[]),
    ]
    .concat()
}

/// Changes something.
fn change(bytes: &mut Vec<u8>, random: &mut StdRng) {
    if bytes.is_empty() {
        return;
    }
    let at = random.random_range(0..bytes.len());
    let upto = (at + random.random_range(1..20)).min(bytes.len());
    match random.random_range(0..8) {
        0 => bytes[at] ^= 1 << random.random_range(0..8),
        1 => bytes[at] = random.random(),
        2 => bytes[at..upto].fill(if random.random() { 0xff } else { 0 }),
        3 => drop(bytes.drain(at..upto)),
        4 => {
            let copied = bytes[at..upto].to_vec();
            let to = random.random_range(0..=bytes.len());
            bytes.splice(to..to, copied);
        }
        5 => {
            let noise: Vec<u8> = (0..random.random_range(1..30)).map(|_| random.random()).collect();
            bytes.splice(at..at, noise);
        }
        6 => bytes.truncate(at),
        _ => {
            // Lengths and counts are where it hurts.
            let number: i32 =
                [-1, 0, 1, 3, 4, 65_535, i32::MAX, i32::MIN][random.random_range(0..8)];
            let number = number.to_be_bytes();
            let end = (at + 4).min(bytes.len());
            bytes[at..end].copy_from_slice(&number[..end - at]);
        }
    }
}
