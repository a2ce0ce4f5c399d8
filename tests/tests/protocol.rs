//! The protocol beyond statements and their rows: what others tell a session, silent clients,
//! cursors as portals, COPY in binary format.

use std::process::ExitCode;

use stillframe_tests::suite::{self, answer};
use stillframe_tests::wire::{Message, rows, sqlstate, tags};
use stillframe_tests::{Layout, Server};

fn main() -> ExitCode {
    suite::run(
        Layout::new(2, 1),
        vec![
            ("notifications_come_with_the_commit", notifications_come_with_the_commit),
            ("notifications_wait_for_the_end", notifications_wait_for_the_end),
            ("listening_is_part_of_the_transaction", listening_is_part_of_the_transaction),
            ("silent_clients", silent_clients),
            ("a_declared_cursor_is_a_portal", a_declared_cursor_is_a_portal),
            ("binary_copy", binary_copy),
            ("set_config_is_set", set_config_is_set),
            ("errors_name_their_objects", errors_name_their_objects),
        ],
    )
}

/// Channel and payload of the notifications among messages.
fn told(messages: &[Message]) -> Vec<(String, String)> {
    let told = messages.iter().filter(|message| message.kind == 'A');
    told.map(|message| {
        let mut texts = message.body[4..].split(|byte| *byte == 0);
        let mut text = || String::from_utf8_lossy(texts.next().expect("a text")).into_owned();
        (text(), text())
    })
    .collect()
}

fn payloads(messages: &[Message]) -> Vec<String> {
    told(messages).into_iter().map(|(_, payload)| payload).collect()
}

fn notifications_come_with_the_commit(server: &Server) {
    let (mut one, mut two) = (server.wire(), server.wire());
    answer(&mut one, "listen nt");
    answer(&mut two, "begin; notify nt, 'never'; rollback");
    answer(
        &mut two,
        "begin; notify nt, 'a'; savepoint s; notify nt, 'gone'; rollback to s; notify nt, 'b'; notify nt, 'a'; commit",
    );
    let process = answer(&mut two, "select pg_backend_pid()");
    answer(&mut two, "select pg_notify('nt', 'c')");
    // Of a statement that fails nothing is told.
    assert_eq!(
        sqlstate(&two.query("select pg_notify('nt', 'bad'), 1 / 0")).as_deref(),
        Some("22012")
    );
    assert_eq!(sqlstate(&two.query("notify nt, 'bad'; select 1 / 0")).as_deref(), Some("22012"));
    answer(&mut two, "notify nt");
    // The listener waits for nothing, and hears all the same.
    let mut heard = vec![];
    while heard.len() < 4 {
        heard.extend(one.until("A"));
    }
    assert_eq!(payloads(&heard), ["a", "b", "c", ""]);
    let from = i32::from_be_bytes(heard[0].body[..4].try_into().expect("four bytes"));
    assert_eq!(process, [[from.to_string()]]);
    // Who tells itself hears it before it may go on.
    let messages = one.query("notify nt, 'own'");
    let kinds: String = messages.iter().map(|message| message.kind).collect();
    assert_eq!((kinds.as_str(), payloads(&messages)), ("CAZ", vec!["own".to_owned()]));
    for (wrong, state) in [
        ("select pg_notify('', 'x')", "22023"),
        ("select pg_notify(null, 'x')", "22023"),
        ("select pg_notify(repeat('x', 64), 'x')", "22023"),
        ("select pg_notify('nt', repeat('x', 8000))", "22023"),
        ("notify nt, x", "42601"),
        ("listen", "42601"),
    ] {
        assert_eq!(sqlstate(&two.query(wrong)).as_deref(), Some(state), "{wrong}");
    }
    one.close();
    two.close();
}

fn notifications_wait_for_the_end(server: &Server) {
    let (mut one, mut two) = (server.wire(), server.wire());
    answer(&mut one, "listen nw");
    answer(&mut one, "begin");
    answer(&mut two, "notify nw, 'x'");
    assert_eq!(payloads(&one.query("select 1")), [""; 0]);
    assert_eq!(payloads(&one.query("commit")), ["x"]);
    // So it is in a pipeline: up to Sync nothing is told.
    one.parse("", "select 1");
    one.send('H', &[]);
    assert_eq!(one.until("1").len(), 1);
    answer(&mut two, "notify nw, 'y'");
    one.bind("", "", &[]);
    one.execute("", 0);
    assert_eq!(payloads(&one.sync()), ["y"]);
    one.close();
    two.close();
}

fn listening_is_part_of_the_transaction(server: &Server) {
    let (mut one, mut two) = (server.wire(), server.wire());
    let channels = "select * from pg_listening_channels()";
    answer(&mut one, "begin; listen lp; rollback");
    assert!(answer(&mut one, channels).is_empty());
    answer(&mut one, "begin; listen lp; listen \"Lp 2\"; commit; listen lp");
    assert_eq!(answer(&mut one, channels), [["lp"], ["Lp 2"]]);
    answer(&mut two, "notify lp, '1'; notify \"Lp 2\", '2'");
    answer(&mut two, "select pg_notify('lp' || n, 'x') from generate_series(1, 3) n");
    let mut heard = payloads(&one.query("select 1"));
    heard.extend(payloads(&one.query("unlisten lp")));
    assert_eq!(heard, ["1", "2"]);
    answer(&mut two, "notify lp, '3'");
    answer(&mut two, "notify \"Lp 2\", '4'");
    assert_eq!(payloads(&one.until("A")), ["4"]);
    answer(&mut one, "discard all");
    assert!(answer(&mut one, channels).is_empty());
    one.close();
    two.close();
}

fn silent_clients(server: &Server) {
    for (setting, begin, state) in [
        ("idle_session_timeout", "", "57P05"),
        ("idle_in_transaction_session_timeout", "begin", "25P03"),
    ] {
        let mut wire = server.wire();
        answer(&mut wire, &format!("set {setting} = 300"));
        if !begin.is_empty() {
            answer(&mut wire, begin);
        }
        let last = wire.until("E");
        assert_eq!(sqlstate(&last).as_deref(), Some(state), "{last:?}");
        assert_eq!(last[0].field('S').as_deref(), Some("FATAL"));
        assert!(wire.receive().is_none(), "the connection is closed");
    }
}

fn a_declared_cursor_is_a_portal(server: &Server) {
    let mut wire = server.wire();
    answer(&mut wire, "begin; declare dc cursor for select 1 as one, 'x' as two");
    wire.describe("dc");
    let described = wire.sync();
    assert_eq!(described[0].kind, 'T', "{described:?}");
    assert_eq!(answer(&mut wire, "select name, is_holdable from pg_cursors"), [["dc", "f"]]);
    wire.send('C', b"Pdc\0");
    wire.sync();
    assert_eq!(sqlstate(&wire.query("fetch dc")).as_deref(), Some("34000"));
    answer(&mut wire, "rollback");
    assert!(answer(&mut wire, "select name from pg_cursors").is_empty());
    wire.describe("dc");
    assert_eq!(sqlstate(&wire.sync()).as_deref(), Some("34000"));
    wire.close();
}

fn binary_copy(server: &Server) {
    const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
    let mut wire = server.wire();
    answer(&mut wire, "create table bc (id integer primary key, t text)");
    let row = |id: i32, text: &[u8]| {
        let length = i32::try_from(text.len()).expect("a short text");
        [&[0, 2, 0, 0, 0, 4][..], &id.to_be_bytes(), &length.to_be_bytes(), text].concat()
    };
    let end = [0xff, 0xff];
    let copy = "copy bc from stdin (format binary)";
    let whole = [HEADER, &row(1, b"one"), &row(2, "añ".as_bytes()), &end].concat();
    assert_eq!(tags(&wire.copy(copy, whole.as_slice())), ["COPY 2"]);
    wire.send_query("copy (select * from bc order by id) to stdout (format binary)");
    let messages = wire.until("Z");
    let data = messages.iter().filter(|message| message.kind == 'd');
    assert_eq!(data.flat_map(|message| message.body.clone()).collect::<Vec<_>>(), whole);
    assert_eq!(messages[0].body[..3], [1, 0, 2], "binary, two columns");
    for (data, state) in [
        (b"1\tone\n".to_vec(), "22P04"),
        (HEADER[..15].to_vec(), "22P04"),
        ([HEADER, &row(3, b"x")[..9]].concat(), "22P04"),
        ([HEADER, &[0, 1, 0, 0, 0, 0]].concat(), "22P04"),
        ([HEADER, &row(3, b"x"), &end, b"more"].concat(), "22P04"),
        ([HEADER, &row(3, b"\xff\xfe")].concat(), "22021"),
        ([HEADER, &row(3, b"\0")].concat(), "22021"),
        ([HEADER, &row(1, b"again")].concat(), "23505"),
        ([HEADER, &[0, 2, 0, 0, 0, 2, 0, 1, 0xff, 0xff, 0xff, 0xff]].concat(), "22P03"),
        ([HEADER, &[0, 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]].concat(), "23502"),
    ] {
        let messages = wire.copy(copy, data.as_slice());
        assert_eq!(sqlstate(&messages).as_deref(), Some(state), "{data:?}: {messages:?}");
    }
    for (wrong, state) in [
        ("copy bc to stdout (format binary, delimiter ',')", "42601"),
        ("copy bc to stdout (format binary, null 'x')", "42601"),
        ("copy bc to stdout (format binary, header)", "0A000"),
    ] {
        assert_eq!(sqlstate(&wire.query(wrong)).as_deref(), Some(state), "{wrong}");
    }
    assert_eq!(answer(&mut wire, "select count(*) from bc"), [["2"]]);
    answer(&mut wire, "drop table bc");
    wire.close();
}

fn set_config_is_set(server: &Server) {
    let mut wire = server.wire();
    let messages = wire.query("select set_config('TimeZone', 'Europe/Paris', false)");
    assert_eq!(rows(&messages), [["Europe/Paris"]]);
    assert!(messages.iter().any(|message| message.kind == 'S'), "it is told: {messages:?}");
    assert_eq!(answer(&mut wire, "show timezone"), [["Europe/Paris"]]);
    answer(&mut wire, "begin; select set_config('app.user', 'x', true)");
    assert_eq!(answer(&mut wire, "select current_setting('app.user')"), [["x"]]);
    answer(&mut wire, "commit");
    let wrong = wire.query("select set_config('TimeZone', 'Nowhere', false)");
    assert_eq!(sqlstate(&wrong).as_deref(), Some("22023"));
    assert_eq!(answer(&mut wire, "show timezone"), [["Europe/Paris"]]);
    wire.close();
}

fn errors_name_their_objects(server: &Server) {
    let mut wire = server.wire();
    answer(
        &mut wire,
        "create table en (id integer primary key, n integer not null check (n > 0), \
         p integer references en)",
    );
    for (sql, column, constraint) in [
        ("insert into en values (1, 1), (1, 1)", None, Some("en_pkey")),
        ("insert into en values (2, null)", Some("n"), None),
        ("insert into en values (2, -1)", None, Some("en_n_check")),
        ("insert into en values (2, 1, 7)", None, Some("en_p_fkey")),
        (
            "insert into en values (3, 1, 3); delete from en where id = 3; insert into en values (4, 1, 3)",
            None,
            Some("en_p_fkey"),
        ),
        (
            "alter table en add check (n < 0); insert into en values (5, 1)",
            None,
            Some("en_n_check1"),
        ),
    ] {
        let messages = wire.query(sql);
        let error = messages
            .iter()
            .find(|message| message.kind == 'E')
            .unwrap_or_else(|| panic!("{sql}: {messages:?}"));
        let field = |letter| error.field(letter);
        assert_eq!(
            (field('s').as_deref(), field('t').as_deref()),
            (Some("public"), Some("en")),
            "{sql}"
        );
        assert_eq!((field('c').as_deref(), field('n').as_deref()), (column, constraint), "{sql}");
    }
    answer(&mut wire, "drop table en");
    wire.close();
}
