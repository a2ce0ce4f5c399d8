//! Bad input: the right error, no panic, no hang, nothing changed, every lease free, and the server
//! goes on.

use std::process::ExitCode;

use stillframe_tests::deadline::{PATIENCE, poll};
use stillframe_tests::suite::{self, answer};
use stillframe_tests::wire::{Message, rows, sqlstate, tags};
use stillframe_tests::{Layout, Server, Wire};

fn main() -> ExitCode {
    suite::run(
        Layout::new(2, 1),
        vec![
            ("garbage_instead_of_a_start", garbage_instead_of_a_start),
            ("starts_that_never_end", starts_that_never_end),
            ("names_at_the_start", names_at_the_start),
            ("encryption_is_declined", encryption_is_declined),
            ("garbage_within_a_session", garbage_within_a_session),
            ("text_that_is_no_text", text_that_is_no_text),
            ("errors_of_the_extended_protocol", errors_of_the_extended_protocol),
            ("an_error_skips_to_sync", an_error_skips_to_sync),
            ("copy_of_bad_data", copy_of_bad_data),
            ("copy_that_is_given_up", copy_that_is_given_up),
            ("a_client_vanishes_in_a_copy", a_client_vanishes_in_a_copy),
            ("a_client_vanishes_in_a_scan", a_client_vanishes_in_a_scan),
            ("a_client_vanishes_in_a_block", a_client_vanishes_in_a_block),
            ("a_client_vanishes_in_a_write", a_client_vanishes_in_a_write),
            ("an_error_in_mid_stream", an_error_in_mid_stream),
            ("nested_beyond_reason", nested_beyond_reason),
            ("chains_beyond_reason", chains_beyond_reason),
        ],
    )
}

/// The connection is closed and others are served.
fn closed(server: &Server, sent: &[u8]) -> Vec<u8> {
    let mut wire = Wire::open(server.address());
    wire.try_bytes(sent);
    let answered = wire.drain();
    assert!(answered.len() < 1000, "so long an answer to garbage: {}", answered.len());
    alive(server);
    answered
}

fn alive(server: &Server) {
    let mut wire = server.wire();
    assert_eq!(answer(&mut wire, "select 1"), [["1"]]);
    wire.close();
}

fn start_packet(length: i32, rest: &[u8]) -> Vec<u8> {
    [&length.to_be_bytes(), rest].concat()
}

fn garbage_instead_of_a_start(server: &Server) {
    let version = 196_608_i32.to_be_bytes();
    let user = [&version[..], b"user\0x\0\0"].concat();
    closed(
        server,
        &start_packet(16, &[0xde, 0xad, 0xbe, 0xef, 0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 0]),
    );
    closed(server, &[0xff; 64]);
    closed(server, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    closed(server, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03and so on, as TLS begins");
    closed(server, &start_packet(i32::MAX, &user));
    closed(server, &start_packet(3, b"abc"));
    closed(server, &start_packet(0, b""));
    closed(server, &start_packet(-5, b"abc"));
    // Parameters without an end, and a name without a value.
    closed(server, &start_packet(14, &[&version[..], b"user\0x"].concat()));
    closed(server, &start_packet(14, &[&version[..], b"user\0\0"].concat()));
}

fn starts_that_never_end(server: &Server) {
    let silent: Vec<_> = (0..50).map(|_| Wire::open(server.address())).collect();
    let half: Vec<_> = (0..50)
        .map(|_| {
            let mut wire = Wire::open(server.address());
            wire.bytes(&start_packet(100, b"\0\x03\0\0user\0"));
            wire
        })
        .collect();
    alive(server);
    drop(silent);
    drop(half);
    alive(server);
}

fn names_at_the_start(server: &Server) {
    let start = |parameters: &[(&str, &str)]| Wire::open(server.address()).start(parameters);
    let refused = start(&[("user", "tester"), ("database", "nosuch")]);
    assert_eq!(sqlstate(&refused).as_deref(), Some("3D000"), "{refused:?}");
    let refused = start(&[("database", "stillframe")]);
    assert_eq!(sqlstate(&refused).as_deref(), Some("28000"), "{refused:?}");
    for database in ["stillframe", "postgres"] {
        let welcome = start(&[("user", "anyone"), ("database", database)]);
        assert_eq!(sqlstate(&welcome), None, "{welcome:?}");
    }
}

fn encryption_is_declined(server: &Server) {
    // SSLRequest and GSSENCRequest: one byte each, then the start goes on in the clear.
    let mut wire = Wire::open(server.address());
    for code in [80_877_103_i32, 80_877_104] {
        wire.bytes(&start_packet(8, &code.to_be_bytes()));
        assert_eq!(wire.byte(), b'N');
    }
    let welcome = wire.start(&[("user", "tester"), ("database", "stillframe")]);
    assert_eq!(sqlstate(&welcome), None, "{welcome:?}");
    assert_eq!(answer(&mut wire, "select 1"), [["1"]]);
    wire.close();
}

fn garbage_within_a_session(server: &Server) {
    // An unknown message, a length that can't be, a message that is cut short inside.
    for sent in [
        &b"\x01\0\0\0\x04"[..],
        b"!\0\0\0\x08abcd",
        b"Q\0\0\0\x02",
        b"Q\xff\xff\xff\xff",
        b"Q\x7f\xff\xff\xffselect 1",
        b"B\0\0\0\x05\0",
        b"P\0\0\0\x08abcd",
        b"D\0\0\0\x06Xx",
    ] {
        let mut wire = server.wire();
        wire.bytes(sent);
        // Either the session ends, or it says what is wrong and goes on.
        let first = wire.receive();
        if let Some(message) = first {
            assert_eq!(message.kind, 'E', "{sent:?}: {message:?}");
            assert_eq!(message.field('C').as_deref(), Some("08P01"), "{sent:?}: {message:?}");
        }
        drop(wire);
        alive(server);
    }
}

fn text_that_is_no_text(server: &Server) {
    let mut wire = server.wire();
    wire.send('Q', b"select '\xff\xfe'\0");
    assert_eq!(sqlstate(&wire.until("Z")).as_deref(), Some("22021"));
    for parameter in [&b"a\0b"[..], b"\xc3\x28"] {
        let messages = wire.extended("select $1::text", &[Some(parameter)]);
        assert_eq!(sqlstate(&messages).as_deref(), Some("22021"), "{parameter:?}");
    }
    assert_eq!(rows(&wire.extended("select $1::text", &[Some(b"ab")])), [["ab"]]);
    wire.close();
}

fn errors_of_the_extended_protocol(server: &Server) {
    let mut wire = server.wire();
    let mut check = |expected: &str, act: &dyn Fn(&mut Wire)| {
        act(&mut wire);
        let messages = wire.sync();
        assert_eq!(sqlstate(&messages).as_deref(), Some(expected), "{messages:?}");
        assert_eq!(answer(&mut wire, "select 1"), [["1"]]);
    };
    check("26000", &|wire| wire.bind("", "nosuch", &[]));
    check("34000", &|wire| wire.execute("nosuch", 0));
    check("34000", &|wire| wire.describe("nosuch"));
    check("42601", &|wire| wire.parse("", "selec 1"));
    check("42601", &|wire| wire.parse("", "select 1; select 2"));
    check("42P01", &|wire| {
        wire.parse("", "select * from nosuch");
        wire.bind("", "", &[]);
        wire.execute("", 0);
    });
    check("42P05", &|wire| {
        wire.parse("twice", "select 1");
        wire.parse("twice", "select 2");
    });
    // Too few parameters; one that isn't of its type; one that makes no sense.
    check("08P01", &|wire| {
        wire.parse("", "select $1::int");
        wire.bind("", "", &[]);
    });
    check("22P02", &|wire| {
        wire.parse("", "select $1::int");
        wire.bind("", "", &[Some(b"one")]);
        wire.execute("", 0);
    });
    check("22012", &|wire| {
        wire.parse("", "select 1 / $1::int");
        wire.bind("", "", &[Some(b"0")]);
        wire.execute("", 0);
    });
    wire.close();
}

fn an_error_skips_to_sync(server: &Server) {
    let mut wire = server.wire();
    answer(&mut wire, "create table es_t (x int)");
    wire.parse("", "selec 1");
    wire.parse("", "insert into es_t values (1)");
    wire.bind("", "", &[]);
    wire.execute("", 0);
    let messages = wire.sync();
    assert_eq!(kinds(&messages), "EZ", "{messages:?}");
    assert_eq!(answer(&mut wire, "select count(*) from es_t"), [["0"]]);
    answer(&mut wire, "drop table es_t");
    wire.close();
}

fn copy_of_bad_data(server: &Server) {
    let mut wire = server.wire();
    answer(&mut wire, "create table cb_t (id int primary key, d date not null)");
    answer(&mut wire, "create materialized view cb_v as select count(*) as n from cb_t");
    answer(&mut wire, "insert into cb_t values (1, '2024-01-01')");
    let good = "2\t2024-01-01\n";
    for (bad, expected) in [
        ("3\n", "22P04"),
        ("3\t2024-01-01\t9\n", "22P04"),
        ("x\t2024-01-01\n", "22P02"),
        ("3\t2024-02-31\n", "22008"),
        ("3\tsoon\n", "22007"),
        ("3\t\\N\n", "23502"),
        ("\\N\t2024-01-01\n", "23502"),
        ("1\t2024-01-01\n", "23505"),
        ("2\t2024-01-02\n", "23505"),
        ("99999999999\t2024-01-01\n", "22003"),
    ] {
        let messages = wire.copy("copy cb_t from stdin", format!("{good}{bad}").as_bytes());
        assert_eq!(sqlstate(&messages).as_deref(), Some(expected), "{bad:?}: {messages:?}");
    }
    for (bad, expected) in
        [("3,\"2024-01-01\n", "22P04"), ("3,2024-01-01,\n", "22P04"), ("\n", "22P04")]
    {
        let data = format!("2,2024-01-01\n{bad}");
        let messages = wire.copy("copy cb_t from stdin (format csv)", data.as_bytes());
        assert_eq!(sqlstate(&messages).as_deref(), Some(expected), "{bad:?}: {messages:?}");
    }
    let messages = wire.copy("copy cb_t from stdin", &b"2\t\xff\n"[..]);
    assert_eq!(sqlstate(&messages).as_deref(), Some("22021"));
    for (sql, expected) in [
        ("copy cb_nosuch from stdin", "42P01"),
        ("copy cb_t (nosuch) from stdin", "42703"),
        ("copy cb_t from stdin (format nosuch)", "22023"),
        ("copy cb_v from stdin", "42809"),
    ] {
        wire.send_query(sql);
        // A client may have sent its data before it hears of the error; that is passed over.
        wire.send('d', b"1\n");
        wire.send('c', &[]);
        let messages = wire.until("Z");
        assert_eq!(sqlstate(&messages).as_deref(), Some(expected), "{sql}: {messages:?}");
        assert_eq!(answer(&mut wire, "select n from cb_v"), [["1"]]);
    }
    // What nests in brackets, as deep as is allowed and is planned, stays readable in the catalog.
    let nested = format!("{}id{}", "(1 - ".repeat(90), ")".repeat(90));
    answer(&mut wire, &format!("create materialized view cb_n as select {nested} as n from cb_t"));
    assert_eq!(answer(&mut wire, "select n from cb_n"), [["1"]]);
    answer(&mut wire, "drop table cb_t cascade");
    wire.close();
}

fn copy_that_is_given_up(server: &Server) {
    let mut wire = server.wire();
    answer(&mut wire, "create table cg_t (id int primary key)");
    let begin = |wire: &mut Wire| {
        wire.send_query("copy cg_t from stdin");
        let messages = wire.until("GZ");
        assert_eq!(kinds(&messages), "G", "{messages:?}");
        wire.send('d', b"1\n2\n");
    };
    begin(&mut wire);
    wire.send('f', b"changed my mind\0");
    assert_eq!(sqlstate(&wire.until("Z")).as_deref(), Some("57014"));
    // A query in the middle of a COPY breaks the protocol.
    begin(&mut wire);
    wire.send_query("select 1");
    let broken = wire.receive().map(|message| message.field('C'));
    assert!(matches!(&broken, None | Some(Some(_))), "{broken:?}");
    drop(wire);
    let mut wire = server.wire();
    assert_eq!(answer(&mut wire, "select count(*) from cg_t"), [["0"]]);
    begin(&mut wire);
    wire.send('c', &[]);
    assert_eq!(tags(&wire.until("Z")), ["COPY 2"]);
    answer(&mut wire, "drop table cg_t");
    wire.close();
}

fn a_client_vanishes_in_a_copy(server: &Server) {
    let mut other = server.wire();
    answer(&mut other, "create table vc_t (id int primary key, t text)");
    for turn in 0..10 {
        let mut wire = server.wire();
        wire.send_query("copy vc_t from stdin");
        wire.until("G");
        let rows: Vec<_> = (0..turn * 500).map(|id| format!("{id}\tsome text\n")).collect();
        wire.send('d', rows.concat().as_bytes());
        wire.send('d', b"999999\thalf a r");
        drop(wire);
    }
    assert_eq!(answer(&mut other, "select count(*) from vc_t"), [["0"]]);
    // Nothing is reserved any more.
    let data: Vec<_> = (0..1000).map(|id| format!("{id}\tnew\n")).collect();
    assert_eq!(tags(&other.copy("copy vc_t from stdin", data.concat().as_bytes())), ["COPY 1000"]);
    assert_eq!(answer(&mut other, "select count(*) from vc_t where t = 'new'"), [["1000"]]);
    answer(&mut other, "drop table vc_t");
    other.close();
}

/// Creates a table whose contents don't fit into the buffers of a connection.
fn create_big(wire: &mut Wire, name: &str) {
    answer(wire, &format!("create table {name} (id int primary key, t text)"));
    let sql = format!(
        "insert into {name} select g, repeat('x', 1000) from generate_series(1, 50000) as s(g)"
    );
    answer(wire, &sql);
}

fn a_client_vanishes_in_a_scan(server: &Server) {
    let mut other = server.wire();
    create_big(&mut other, "vs_t");
    for _ in 0..5 {
        let mut wire = server.wire();
        wire.send_query("select * from vs_t");
        let first = wire.until("DE");
        assert_eq!(first.last().map(|message| message.kind), Some('D'), "{first:?}");
        // Its frame is held as long as it doesn't read on.
        answer(&mut other, "update vs_t set t = t || 'y' where id = 1");
        let held =
            "select count(*) > 0 from stillframe.leases where step < stillframe.current_step()";
        assert_eq!(answer(&mut other, held), [["t"]]);
        drop(wire);
    }
    suite::every_lease_is_free(server);
    assert_eq!(answer(&mut other, "select count(*) from vs_t"), [["50000"]]);
    answer(&mut other, "drop table vs_t");
    other.close();
}

fn a_client_vanishes_in_a_block(server: &Server) {
    let mut other = server.wire();
    answer(&mut other, "create table vb_t (id int primary key)");
    let mut wire = server.wire();
    answer(&mut wire, "begin isolation level repeatable read");
    assert_eq!(answer(&mut wire, "select count(*) from vb_t"), [["0"]]);
    answer(&mut other, "insert into vb_t values (1)");
    drop(wire);
    suite::every_lease_is_free(server);
    answer(&mut other, "drop table vb_t");
    other.close();
}

fn a_client_vanishes_in_a_write(server: &Server) {
    let mut other = server.wire();
    answer(&mut other, "create table vw_t (id int primary key, x int)");
    answer(&mut other, "insert into vw_t values (1, 0)");
    for turn in 0..20 {
        let mut wire = server.wire();
        wire.send_query(&format!("update vw_t set x = x + 1 where id = 1 or id = {turn}"));
        drop(wire);
    }
    // Each has happened or it hasn't, and none of them holds the row.
    answer(&mut other, "update vw_t set x = x + 1000 where id = 1");
    let settled = poll(PATIENCE, || {
        let x = answer(&mut other, "select x from vw_t")[0][0].parse::<i32>().ok()?;
        (1000..=1020).contains(&x).then_some(())
    });
    assert!(settled.is_some());
    suite::every_lease_is_free(server);
    answer(&mut other, "drop table vw_t");
    other.close();
}

fn an_error_in_mid_stream(server: &Server) {
    let mut wire = server.wire();
    answer(&mut wire, "create table em_t (id int primary key, x int)");
    answer(&mut wire, "insert into em_t select g, 5000 - g from generate_series(1, 10000) as s(g)");
    let messages = wire.query("select id / x from em_t");
    assert_eq!(sqlstate(&messages).as_deref(), Some("22012"));
    assert_eq!(tags(&messages), Vec::<String>::new());
    assert_eq!(answer(&mut wire, "select 7"), [["7"]]);
    answer(&mut wire, "drop table em_t");
    wire.close();
}

fn nested_beyond_reason(server: &Server) {
    let mut wire = server.wire();
    for sql in [
        format!("select {}1{}", "(".repeat(20_000), ")".repeat(20_000)),
        format!("select {}1", "- ".repeat(20_000)),
        format!("select {}true", "not ".repeat(20_000)),
        format!("select {}1{}", "abs(".repeat(10_000), ")".repeat(10_000)),
        format!("{}select 1{}", "select * from (".repeat(5_000), ") s".repeat(5_000)),
        format!("select 1{}", " + 1".repeat(20_000)),
        format!("select {}0{}", "case when true then ".repeat(5_000), " end".repeat(5_000)),
    ] {
        // An answer or an error, but not the end.
        let messages = wire.query(&sql);
        let start = &sql[..30];
        assert!(
            sqlstate(&messages)
                .is_none_or(|state| state == "54001" || state == "54000" || state == "42601"),
            "{start}...: {:?}",
            sqlstate(&messages)
        );
        assert_eq!(answer(&mut wire, "select 1"), [["1"]]);
    }
    alive(server);
    wire.close();
}

/// A chain within the limit is answered, alone and in a view; one beyond it is refused, however
/// long.
fn chains_beyond_reason(server: &Server) {
    let mut wire = server.wire();
    answer(&mut wire, "create table cb_t (id int primary key, s text)");
    answer(&mut wire, "insert into cb_t values (1, 'x')");
    let chain = |first: &str, next: &str, times: usize| format!("{first}{}", next.repeat(times));
    let kinds: [(&str, &str, &str); 9] = [
        ("select id ", "+ 1 ", "from cb_t"),
        ("select true ", "and id = 1 ", "from cb_t"),
        ("select false ", "or id = 1 ", "from cb_t"),
        ("select s ", "|| 'a' ", "from cb_t"),
        ("select id", "::bigint", " from cb_t"),
        ("select id ", "is null ", "from cb_t"),
        ("select id from cb_t ", "union all select id from cb_t ", ""),
        ("select t0.id from cb_t t0 ", "cross join cb_t ", ""),
        ("select id from cb_t where id = 1 ", "or id = 2 + 3 ", ""),
    ];
    for (first, next, last) in kinds {
        for times in [1_000, 100_000] {
            let sql = chain(first, next, times) + last;
            let messages = wire.query(&sql);
            assert_eq!(sqlstate(&messages).as_deref(), Some("54001"), "{first}{next}...");
            assert_eq!(answer(&mut wire, "select 1"), [["1"]]);
        }
    }
    assert_eq!(answer(&mut wire, &(chain("select id ", "+ 1 ", 90) + "from cb_t")), [["91"]]);
    assert_eq!(
        answer(&mut wire, &(chain("select id from cb_t where id = 1 ", "or id = 2 ", 400))),
        [["1"]]
    );
    let view = chain("create materialized view cb_v as select id ", "+ 1 ", 90) + "as n from cb_t";
    answer(&mut wire, &view);
    assert_eq!(answer(&mut wire, "select n from cb_v"), [["91"]]);
    answer(&mut wire, "drop table cb_t cascade");
    wire.close();
}

fn kinds(messages: &[Message]) -> String {
    let told = messages.iter().map(|message| message.kind).filter(|kind| !"SN".contains(*kind));
    told.collect()
}
