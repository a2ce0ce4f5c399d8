//! What a session is told beside its results: the step it reads, system tables, notices, the
//! extended protocol, and what another session sees of it.

use std::process::ExitCode;

use stillframe_tests::deadline::{PATIENCE, poll};
use stillframe_tests::suite::{self, answer};
use stillframe_tests::wire::{parameter, rows, sqlstate, tags};
use stillframe_tests::{Layout, Server, Wire};

fn main() -> ExitCode {
    suite::run(
        Layout::new(2, 2),
        vec![
            ("every_write_makes_one_step", every_write_makes_one_step),
            ("every_result_tells_its_step", every_result_tells_its_step),
            ("one_lease_in_repeatable_read", one_lease_in_repeatable_read),
            ("a_write_is_seen_at_once_by_all", a_write_is_seen_at_once_by_all),
            ("system_tables", system_tables),
            ("leases_are_shown_while_they_are_held", leases_are_shown_while_they_are_held),
            ("clients_are_shown_with_what_they_do", clients_are_shown_with_what_they_do),
            ("extended_protocol", extended_protocol),
            ("a_parameter_is_read_when_it_is_bound", a_parameter_is_read_when_it_is_bound),
            ("a_portal_keeps_its_frame", a_portal_keeps_its_frame),
            ("copy_in_its_forms", copy_in_its_forms),
            ("copy_by_the_extended_protocol", copy_by_the_extended_protocol),
            ("several_statements_in_one_query", several_statements_in_one_query),
            ("refresh_gives_a_notice", refresh_gives_a_notice),
            ("cancel", cancel),
        ],
    )
}

fn step(wire: &mut Wire) -> u64 {
    let step = answer(wire, "select stillframe.current_step()");
    step[0][0].parse().unwrap_or_else(|_| panic!("a step was expected: {step:?}"))
}

fn every_write_makes_one_step(server: &Server) {
    let mut wire = server.wire();
    let mut last = step(&mut wire);
    for (sql, steps) in [
        ("create table ws_t (id int primary key, x int)", 1),
        // One with what there was, one with what is new.
        ("create materialized view ws_v as select count(*) as n from ws_t", 2),
        ("insert into ws_t values (1, 1), (2, 2), (3, 3)", 1),
        ("update ws_t set x = x + 1", 1),
        ("delete from ws_t where id = 2", 1),
        ("select * from ws_t", 0),
        ("select n from ws_v", 0),
        ("begin; select * from ws_t; commit", 0),
        ("drop table ws_t cascade", 1),
    ] {
        answer(&mut wire, sql);
        let now = step(&mut wire);
        assert_eq!(now - last, steps, "{sql}");
        last = now;
    }
    wire.close();
}

fn every_result_tells_its_step(server: &Server) {
    let mut wire = server.wire();
    answer(&mut wire, "create table rs_t (x int)");
    for turn in 0..3 {
        answer(&mut wire, &format!("insert into rs_t values ({turn})"));
        let messages = wire.query("select stillframe.current_step() from rs_t limit 1");
        assert_eq!(sqlstate(&messages), None, "{messages:?}");
        let step = rows(&messages)[0][0].clone();
        assert_eq!(parameter(&messages, "stillframe.step").as_ref(), Some(&step), "{messages:?}");
        assert_eq!(answer(&mut wire, "show stillframe.step"), [[step]]);
    }
    answer(&mut wire, "drop table rs_t");
    wire.close();
}

fn one_lease_in_repeatable_read(server: &Server) {
    let (mut reader, mut writer) = (server.wire(), server.wire());
    answer(&mut writer, "create table rr_t (x int)");
    answer(&mut writer, "create materialized view rr_v as select count(*) as n from rr_t");
    answer(&mut reader, "begin isolation level repeatable read read only");
    // The lease is taken at the first read, not before.
    answer(&mut writer, "insert into rr_t values (1)");
    let read = "select n, (select count(*) from rr_t), stillframe.current_step() from rr_v";
    let first = answer(&mut reader, read);
    assert_eq!(first[0][..2], ["1", "1"]);
    for _ in 0..20 {
        answer(&mut writer, "insert into rr_t values (2)");
        assert_eq!(answer(&mut reader, read), first);
    }
    // What is dropped meanwhile can still be read.
    answer(&mut writer, "drop table rr_t cascade");
    assert_eq!(sqlstate(&writer.query("select * from rr_v")).as_deref(), Some("42P01"));
    assert_eq!(answer(&mut reader, read), first);
    assert_eq!(answer(&mut reader, "show stillframe.step")[0][0], first[0][2]);
    answer(&mut reader, "commit");
    assert_eq!(sqlstate(&reader.query("select * from rr_v")).as_deref(), Some("42P01"));
    reader.close();
    writer.close();
}

fn a_write_is_seen_at_once_by_all(server: &Server) {
    let mut sessions = [server.wire(), server.wire(), server.wire()];
    answer(&mut sessions[0], "create table so_t (x int)");
    answer(
        &mut sessions[0],
        "create materialized view so_v as select count(*) as n, max(x) as m from so_t",
    );
    for turn in 1..=100 {
        let writer = turn % sessions.len();
        answer(&mut sessions[writer], &format!("insert into so_t values ({turn})"));
        for wire in &mut sessions {
            let seen = answer(wire, "select n, m, (select count(*) from so_t) from so_v");
            assert_eq!(seen, [vec![turn.to_string(); 3]]);
        }
    }
    answer(&mut sessions[0], "drop table so_t cascade");
    sessions.into_iter().for_each(Wire::close);
}

fn system_tables(server: &Server) {
    let mut wire = server.wire();
    let layout = server.layout();
    answer(&mut wire, "create table sy_t (x int)");
    answer(&mut wire, "create materialized view sy_v as select x from sy_t where x > 0");
    let mut count = |sql: &str| -> u32 {
        let found = answer(&mut wire, sql);
        found[0][0].parse().unwrap_or_else(|_| panic!("{sql}: {found:?}"))
    };
    assert_eq!(count("select count(*) from stillframe.hosts"), layout.hosts);
    assert_eq!(count("select count(*) from stillframe.workers"), layout.hosts * layout.workers);
    assert_eq!(
        count("select count(*) from stillframe.steps where step = stillframe.current_step()"),
        1
    );
    assert_eq!(count("select count(*) from stillframe.views where name = 'sy_v'"), 1);
    assert_eq!(count("select count(*) from stillframe.views where name = 'sy_t'"), 0);
    answer(&mut wire, "drop table sy_t cascade");
    assert_eq!(answer(&mut wire, "select name from stillframe.views"), Vec::<Vec<String>>::new());
    wire.close();
}

fn leases_are_shown_while_they_are_held(server: &Server) {
    let (mut holder, mut other) = (server.wire(), server.wire());
    answer(&mut other, "create table lh_t (x int)");
    answer(&mut holder, "begin isolation level repeatable read");
    let held =
        answer(&mut holder, "select stillframe.current_step() from (select 1) s")[0][0].clone();
    answer(&mut holder, "select * from lh_t");
    for _ in 0..3 {
        answer(&mut other, "insert into lh_t values (1)");
    }
    let leases = |wire: &mut Wire| {
        answer(wire, &format!("select step from stillframe.leases where step = {held}")).len()
    };
    assert_eq!(leases(&mut other), 1);
    answer(&mut holder, "rollback");
    // The holder's answer doesn't wait for the release.
    poll(PATIENCE, || (leases(&mut other) == 0).then_some(())).expect("the lease is released");
    answer(&mut other, "drop table lh_t");
    holder.close();
    other.close();
}

fn clients_are_shown_with_what_they_do(server: &Server) {
    let mut other = server.wire();
    answer(&mut other, "set application_name = 'shown'");
    let mut wire = server.wire();
    let asked = "select state, query, usename, xact_start is null from pg_stat_activity \
        where application_name = 'shown'";
    let shown = |wire: &mut Wire| answer(wire, asked);
    // The text alone doesn't tell a client's name: its next statement does.
    answer(&mut other, "select 1");
    assert_eq!(shown(&mut wire), [["idle", "select 1", "tester", "t"]]);
    answer(&mut other, "begin");
    assert_eq!(shown(&mut wire), [["idle in transaction", "begin", "tester", "f"]]);
    assert_eq!(sqlstate(&other.query("select 1 / 0")).as_deref(), Some("22012"));
    let failed = ["idle in transaction (aborted)", "select 1 / 0", "tester", "f"];
    assert_eq!(shown(&mut wire), [failed]);
    answer(&mut other, "rollback");
    answer(&mut other, "select 'password'");
    let hidden = ["idle", "<hidden: it has a password>", "tester", "t"];
    assert_eq!(shown(&mut wire), [hidden]);
    other.close();
    poll(PATIENCE, || shown(&mut wire).is_empty().then_some(())).expect("the client has gone");
    let own = "select count(*) from pg_stat_activity \
        where pid = pg_backend_pid() and state = 'active' and query like 'select count%'";
    assert_eq!(answer(&mut wire, own), [["1"]]);
    wire.close();
}

fn extended_protocol(server: &Server) {
    let mut wire = server.wire();
    answer(&mut wire, "create table ep_t (id int primary key, a bigint, t text, n numeric(8,2))");
    let mut run = |sql: &str, parameters: &[Option<&str>]| {
        let bytes: Vec<_> = parameters.iter().map(|p| p.map(str::as_bytes)).collect();
        let messages = wire.extended(sql, &bytes);
        assert_eq!(sqlstate(&messages), None, "{sql}\n{messages:?}");
        (tags(&messages).concat(), rows(&messages))
    };
    let insert = "insert into ep_t values ($1, $2, $3, $4)";
    assert_eq!(run(insert, &[Some("1"), Some("-5"), Some("ü'x"), Some("1.5")]).0, "INSERT 0 1");
    assert_eq!(run(insert, &[Some("2"), None, None, None]).0, "INSERT 0 1");
    let select = "select id, a, t, n from ep_t where id = $1 or t = $2";
    assert_eq!(run(select, &[Some("1"), None]).1, [["1", "-5", "ü'x", "1.50"]]);
    assert_eq!(run(select, &[Some("2"), Some("q")]).1, [["2", "NULL", "NULL", "NULL"]]);
    assert_eq!(run("update ep_t set a = $1 where id = $2", &[Some("9"), Some("2")]).0, "UPDATE 1");
    assert_eq!(run("delete from ep_t where a = $1", &[Some("9")]).0, "DELETE 1");
    let copied = "insert into ep_t (id, t) select $1, $2 from ep_t where a < $3";
    assert_eq!(run(copied, &[Some("3"), Some("x"), Some("0")]).0, "INSERT 0 1");
    // A parameter takes the type that a literal would take.
    for (sql, parameter, expected) in [
        ("select $1::int + id from ep_t where id = 1", "7", "8"),
        ("select id from ep_t order by id limit $1", "1", "1"),
        ("select id from ep_t order by id offset $1", "1", "3"),
        ("select coalesce(a, $1) from ep_t where id = 3", "4", "4"),
        ("select case when $1 then 'yes' else 'no' end", "f", "no"),
        ("select count(*) from ep_t where $1 and id > 0", "t", "2"),
        ("select count(*) from ep_t where not $1", "t", "0"),
        ("select timestamp '2020-01-31' + $1", "1 month", "2020-02-29 00:00:00"),
        ("select greatest(id, $1) from ep_t where id = 1", "2", "2"),
        ("select nullif(id, $1) from ep_t where id = 1", "1", "NULL"),
        ("select count(*) from ep_t where (id, t) = ($1, 'x')", "3", "1"),
        ("select count(*) from (select id from ep_t union select $1) s", "3", "2"),
        ("select $1 || 'x'", "5", "5x"),
        ("select $1::numeric(10,2)", "1.234", "1.23"),
    ] {
        assert_eq!(run(sql, &[Some(parameter)]).1, [[expected]], "{sql}");
    }
    // A named statement, run again and again.
    wire.parse("count", "select count(*), $1::int + 1 from ep_t where id >= $1");
    for (parameter, expected) in [("1", ["2", "2"]), ("2", ["1", "3"])] {
        wire.bind("", "count", &[Some(parameter.as_bytes())]);
        wire.execute("", 0);
        let messages = wire.sync();
        assert_eq!(rows(&messages), [expected], "{messages:?}");
    }
    answer(&mut wire, "drop table ep_t");
    wire.close();
}

fn a_parameter_is_read_when_it_is_bound(server: &Server) {
    let mut wire = server.wire();
    answer(&mut wire, "create table pb_t (id int primary key, d date)");
    for (sql, parameter, state) in [
        ("select * from pb_t where id = $1", "x", "22P02"),
        ("insert into pb_t values ($1)", "x", "22P02"),
        ("update pb_t set id = $1", "99999999999", "22003"),
        ("delete from pb_t where d = $1", "2020-02-30", "22008"),
        ("select $1::boolean", "maybe", "22P02"),
    ] {
        wire.parse("", sql);
        wire.bind("", "", &[Some(parameter.as_bytes())]);
        // Nothing is executed.
        let messages = wire.sync();
        assert_eq!(sqlstate(&messages).as_deref(), Some(state), "{sql}: {messages:?}");
    }
    answer(&mut wire, "drop table pb_t");
    wire.close();
}

fn a_portal_keeps_its_frame(server: &Server) {
    let (mut wire, mut other) = (server.wire(), server.wire());
    answer(&mut other, "create table pf_t (id int primary key, x int)");
    answer(&mut other, "insert into pf_t select g, 0 from generate_series(1, 50) as s(g)");
    answer(&mut wire, "begin");
    wire.parse("", "select id, x from pf_t order by id");
    wire.bind("portal", "", &[]);
    wire.execute("portal", 20);
    wire.send('H', &[]);
    let mut seen = rows(&wire.until("sCE"));
    assert_eq!(seen.len(), 20, "{seen:?}");
    answer(&mut other, "update pf_t set x = 1");
    answer(&mut other, "delete from pf_t where id > 30");
    loop {
        wire.execute("portal", 20);
        wire.send('H', &[]);
        let messages = wire.until("sCE");
        seen.extend(rows(&messages));
        if messages.last().map(|message| message.kind) != Some('s') {
            break;
        }
    }
    wire.sync();
    let expected: Vec<_> = (1..=50).map(|id| vec![id.to_string(), "0".to_owned()]).collect();
    assert_eq!(seen, expected);
    answer(&mut wire, "commit");
    assert_eq!(answer(&mut wire, "select count(*), min(x) from pf_t"), [["30", "1"]]);
    answer(&mut wire, "drop table pf_t");
    wire.close();
    other.close();
}

fn copy_in_its_forms(server: &Server) {
    let mut wire = server.wire();
    answer(
        &mut wire,
        "create table cf_t (id int primary key, t text, d date, n numeric(6,2), b boolean)",
    );
    answer(
        &mut wire,
        "create materialized view cf_v as select count(*) as n, sum(n) as s from cf_t",
    );
    let text = "1\ta\\tb\\\\c\\nd\t2024-01-31\t1.5\tt\n2\t\\N\t\\N\t\\N\t\\N\n3\t\\101\\x42\t2024-02-01\t-0.005\tfalse\n\\.\n";
    assert_eq!(tags(&wire.copy("copy cf_t from stdin", text.as_bytes())), ["COPY 3"]);
    assert_eq!(
        answer(&mut wire, "select * from cf_t order by id"),
        [
            ["1", "a\tb\\c\nd", "2024-01-31", "1.50", "t"],
            ["2", "NULL", "NULL", "NULL", "NULL"],
            ["3", "AB", "2024-02-01", "-0.01", "f"],
        ]
    );
    let csv = "t,id,b\n\"say \"\"hi\"\",\nbye\",4,yes\n,5,\n\"\",6,0\nNA,7,off\n";
    let sql = "copy cf_t (t, id, b) from stdin with (format csv, header true)";
    assert_eq!(tags(&wire.copy(sql, csv.as_bytes())), ["COPY 4"]);
    assert_eq!(
        answer(&mut wire, "select id, t, b, t is null, n from cf_t where id > 3 order by id"),
        [
            ["4", "say \"hi\",\nbye", "t", "f", "NULL"],
            ["5", "NULL", "NULL", "t", "NULL"],
            ["6", "", "f", "f", "NULL"],
            ["7", "NA", "f", "f", "NULL"],
        ]
    );
    let sql = "copy cf_t (id, t) from stdin (format csv, null 'NA', delimiter ';', quote '''')";
    assert_eq!(tags(&wire.copy(sql, "8;NA\r\n9;'N;A'\r\n".as_bytes())), ["COPY 2"]);
    assert_eq!(
        answer(&mut wire, "select id, t from cf_t where id > 7 order by id"),
        [["8", "NULL"], ["9", "N;A"]]
    );
    assert_eq!(answer(&mut wire, "select n, s from cf_v"), [["9", "1.49"]]);
    // Nothing at all is fine too.
    assert_eq!(tags(&wire.copy("copy cf_t from stdin", &b""[..])), ["COPY 0"]);
    answer(&mut wire, "drop table cf_t cascade");
    wire.close();
}

fn copy_by_the_extended_protocol(server: &Server) {
    let mut wire = server.wire();
    answer(&mut wire, "create table ce_t (id int primary key, t text)");
    wire.parse("", "copy ce_t from stdin (format csv)");
    wire.bind("", "", &[]);
    wire.execute("", 0);
    wire.send('H', &[]);
    let messages = wire.until("GE");
    assert_eq!(messages.last().map(|message| message.kind), Some('G'), "{messages:?}");
    wire.send('d', b"1,on");
    wire.send('d', b"e\n2,two\n");
    wire.send('c', &[]);
    assert_eq!(tags(&wire.sync()), ["COPY 2"]);
    assert_eq!(answer(&mut wire, "select * from ce_t order by id"), [["1", "one"], ["2", "two"]]);
    answer(&mut wire, "drop table ce_t");
    wire.close();
}

fn several_statements_in_one_query(server: &Server) {
    let mut wire = server.wire();
    let messages = wire.query(
        "create table ss_t (x int); insert into ss_t values (1), (2); select count(*) from ss_t; ; drop table ss_t",
    );
    assert_eq!(tags(&messages), ["CREATE TABLE", "INSERT 0 2", "SELECT 1", "DROP TABLE"]);
    assert_eq!(rows(&messages), [["2"]]);
    let messages = wire.query("select 1; select 1 / 0; select 2");
    assert_eq!(sqlstate(&messages).as_deref(), Some("22012"));
    assert_eq!(rows(&messages), [["1"]], "what comes after an error isn't run");
    let messages = wire.query("  ;  ");
    assert_eq!(messages.iter().map(|m| m.kind).filter(|k| *k != 'S').collect::<String>(), "IZ");
    wire.close();
}

fn refresh_gives_a_notice(server: &Server) {
    let mut wire = server.wire();
    answer(&mut wire, "create table rn_t (x int)");
    answer(&mut wire, "create materialized view rn_v as select x from rn_t");
    answer(&mut wire, "insert into rn_t values (1)");
    let messages = wire.query("refresh materialized view rn_v");
    assert_eq!(tags(&messages), ["REFRESH MATERIALIZED VIEW"]);
    assert!(messages.iter().any(|message| message.kind == 'N'), "{messages:?}");
    assert_eq!(answer(&mut wire, "select x from rn_v"), [["1"]]);
    assert_eq!(sqlstate(&wire.query("refresh materialized view rn_t")).as_deref(), Some("42809"));
    assert_eq!(
        sqlstate(&wire.query("refresh materialized view rn_none")).as_deref(),
        Some("42P01")
    );
    answer(&mut wire, "drop table rn_t cascade");
    wire.close();
}

fn cancel(server: &Server) {
    let mut wire = Wire::open(server.address());
    let greeting = wire.start(&[("user", "tester"), ("database", "stillframe")]);
    let key = greeting.iter().find(|message| message.kind == 'K').expect("a key to cancel with");
    wire.send_query(
        "select count(*) from generate_series(1, 100000) as a(x), generate_series(1, 100000) as b(y) \
         where x + y < 0",
    );
    // Until the query is under way a cancel has nothing to stop: it is sent until one has.
    let cancelled = poll(PATIENCE, || {
        let mut other = Wire::open(server.address());
        let mut packet = vec![0, 0, 0, 16];
        packet.extend_from_slice(&80_877_102_i32.to_be_bytes());
        packet.extend_from_slice(&key.body);
        other.bytes(&packet);
        assert_eq!(other.drain(), b"", "a cancel request gets no answer");
        wire.has_something().then_some(())
    });
    assert!(cancelled.is_some(), "the query goes on");
    assert_eq!(sqlstate(&wire.until("Z")).as_deref(), Some("57014"));
    assert_eq!(answer(&mut wire, "select 5"), [["5"]]);
    wire.close();
}
