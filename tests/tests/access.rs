//! Who may come in: passwords by SCRAM-SHA-256, TLS, and that neither can be gone around.

use std::fs;
use std::path::Path;
use std::process::Command;

use stillframe_tests::suite::answer;
use stillframe_tests::wire::{Message, sqlstate};
use stillframe_tests::{Layout, Process, Server, Wire, certificates};
use tempfile::TempDir;

/// What psql says to a statement: what it prints, or the message of the error.
fn psql(
    server: &Server,
    user: &str,
    password: &str,
    options: &str,
    sql: &str,
) -> Result<String, String> {
    let address = server.address();
    let target = format!(
        "host={} port={} user={user} dbname=stillframe connect_timeout=30 {options}",
        address.ip(),
        address.port()
    );
    let output = Command::new("psql")
        .args([
            "--no-psqlrc",
            "--no-password",
            "--tuples-only",
            "--no-align",
            "--set=VERBOSITY=verbose",
        ])
        .args(["--command", sql, &target])
        .env("PGPASSWORD", password)
        .output()
        .expect("psql is there");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

fn refused(answer: Result<String, String>, reason: &str) {
    let error = answer.expect_err("it is refused");
    assert!(error.contains(reason), "{error}");
}

fn password_file(folder: &Path) -> String {
    let file = folder.join("password");
    fs::write(&file, "s3cret pässword\n").expect("a writable file");
    format!("--password-file={}", file.display())
}

#[test]
fn passwords() {
    const OWNER: &str = "s3cret pässword";
    let folder = TempDir::new().expect("a temporary folder");
    let password = password_file(folder.path());
    let server = Server::start_with(Layout::new(1, 1), &["--auth=scram", &password]);
    let ask = |user: &str, password: &str, sql: &str| psql(&server, user, password, "", sql);

    assert_eq!(ask("stillframe", OWNER, "select current_user").as_deref(), Ok("stillframe"));
    for (user, password) in [("stillframe", "wrong"), ("stillframe", ""), ("nobody", OWNER)] {
        let reason = if password.is_empty() {
            "no password supplied"
        } else {
            "password authentication failed"
        };
        refused(ask(user, password, "select 1"), reason);
    }
    let made = ask(
        "stillframe",
        OWNER,
        "create role bob login password 'bob''s'; create user eve password 'eve'; create role group_only password 'g'; create role silent login",
    );
    made.expect("roles are made");
    assert_eq!(
        ask("bob", "bob's", "select current_user || current_setting('is_superuser')").as_deref(),
        Ok("boboff")
    );
    assert_eq!(ask("eve", "eve", "select 1").as_deref(), Ok("1"));
    refused(ask("eve", "bob's", "select 1"), "password authentication failed for user \"eve\"");
    refused(ask("group_only", "g", "select 1"), "is not permitted to log in");
    refused(ask("silent", "x", "select 1"), "password authentication failed");

    // What is kept is no password, and only superusers see it.
    let shown = "select rolpassword from pg_authid where rolname = 'bob'";
    let verifier = ask("stillframe", OWNER, shown).expect("it is shown");
    assert!(
        verifier.starts_with("SCRAM-SHA-256$4096:") && !verifier.contains("bob's"),
        "{verifier}"
    );
    assert_eq!(ask("bob", "bob's", shown).as_deref(), Ok(""));
    assert_eq!(
        ask(
            "bob",
            "bob's",
            "select string_agg(rolname || rolcanlogin, ',' order by rolname) from pg_roles"
        )
        .as_deref(),
        Ok("bobtrue,evetrue,group_onlyfalse,silenttrue,stillframetrue")
    );

    // Roles are changed by superusers, and one's own password by oneself.
    for sql in [
        "create role x",
        "drop role eve",
        "alter role eve password 'x'",
        "alter role bob superuser",
    ] {
        refused(ask("bob", "bob's", sql), "42501");
    }
    ask("bob", "bob's", "alter role bob password 'new'").expect("it is one's own");
    refused(ask("bob", "bob's", "select 1"), "password authentication failed");
    assert_eq!(ask("bob", "new", "select 1").as_deref(), Ok("1"));
    ask("stillframe", OWNER, "alter user bob password null; alter role eve nologin").expect("done");
    refused(ask("bob", "new", "select 1"), "password authentication failed");
    refused(ask("eve", "eve", "select 1"), "is not permitted to log in");
    // A verifier that was made elsewhere is taken as it is.
    ask("stillframe", OWNER, &format!("alter role silent password '{verifier}'")).expect("done");
    assert_eq!(ask("silent", "bob's", "select 1").as_deref(), Ok("1"));
    ask("stillframe", OWNER, "drop role bob, eve; drop role if exists eve").expect("done");
    ask("stillframe", OWNER, "begin; create role gone login password 'x'; rollback").expect("done");
    refused(ask("gone", "x", "select 1"), "password authentication failed");
    for (sql, state) in [
        ("drop role bob", "42704"),
        ("drop role stillframe", "55006"),
        ("create role silent", "42710"),
        ("create role pg_x", "42939"),
        ("alter role nobody login", "42704"),
        ("create role y valid until 'tomorrow'", "0A000"),
        ("create role y in role silent", "0A000"),
        ("grant select on pg_class to silent", "0A000"),
        ("create role y password", "42601"),
    ] {
        refused(ask("stillframe", OWNER, sql), state);
    }
    // The owner's password by a statement counts from then on.
    ask("stillframe", OWNER, "alter role stillframe password 'other'").expect("done");
    refused(ask("stillframe", OWNER, "select 1"), "password authentication failed");
    assert_eq!(ask("stillframe", "other", "select 1").as_deref(), Ok("1"));

    garbage_as_a_password(&server);
    server.stop().expect("it ends");
}

/// Messages that are no answers to what was asked: an error, and the server goes on.
fn garbage_as_a_password(server: &Server) {
    let sasl = |mechanism: &[u8], data: &[u8]| {
        let length = i32::try_from(data.len()).expect("short data").to_be_bytes();
        [mechanism, b"\0", &length, data].concat()
    };
    for body in [
        vec![],
        b"no terminator".to_vec(),
        sasl(b"SCRAM-SHA-1", b"n,,n=,r=abc"),
        sasl(b"SCRAM-SHA-256", b""),
        sasl(b"SCRAM-SHA-256", b"p=tls-unique,,n=,r=abc"),
        sasl(b"SCRAM-SHA-256", b"n,,\xff\xfe"),
        b"SCRAM-SHA-256\0\x7f\xff\xff\xff".to_vec(),
        b"SCRAM-SHA-256\0\xff\xff\xff\xff".to_vec(),
    ] {
        let mut wire = Wire::open(server.address());
        let asked = wire.start_until(&[("user", "stillframe")], "RE");
        assert_eq!(asked.last().map(|message| message.kind), Some('R'), "{asked:?}");
        wire.send('p', &body);
        assert_eq!(sqlstate(&wire.until("E")).as_deref(), Some("08P01"), "{body:?}");
    }
    // A query instead of an answer isn't run.
    let mut wire = Wire::open(server.address());
    wire.start_until(&[("user", "stillframe")], "RE");
    wire.send('Q', b"select 1\0");
    let answered: Vec<Message> = wire.until("E");
    assert_eq!(sqlstate(&answered).as_deref(), Some("08P01"));
    assert!(wire.receive().is_none());
}

#[test]
fn tls() {
    let (_folder, certificates) = certificates();
    let file = |name: &str| certificates.join(name).display().to_string();
    let (cert, key) =
        (format!("--tls-cert={}", file("node.crt")), format!("--tls-key={}", file("node.key")));
    let server = Server::start_with(Layout::new(1, 1), &[&cert, &key, "--tls-require"]);
    let verified = format!("sslmode=verify-ca sslrootcert={}", file("ca.crt"));
    let ask = |options: &str| psql(&server, "tester", "", options, "select 'in'");
    assert_eq!(ask(&verified).as_deref(), Ok("in"));
    assert_eq!(ask("sslmode=require").as_deref(), Ok("in"));
    refused(ask("sslmode=disable"), "is not admitted without encryption");
    // The certificate is another host's.
    let named = format!("sslmode=verify-full sslrootcert={}", file("ca.crt"));
    refused(ask(&named), "does not match host name");

    // What comes before TLS has begun could be anybody's.
    let request = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];
    let mut wire = Wire::open(server.address());
    wire.bytes(&[&request[..], b"\0\0\0\x10\0\x03\0\0user\0u\0\0"].concat());
    let answered = wire.drain();
    assert!(answered.starts_with(b"E"), "{}", String::from_utf8_lossy(&answered));
    // Garbage where TLS should begin ends the connection.
    let mut wire = Wire::open(server.address());
    wire.bytes(&request);
    assert_eq!(wire.byte(), b'S');
    wire.try_bytes(b"\0\0\0\x10\0\x03\0\0user\0u\0\0 and not a hello");
    drop(wire.drain());
    assert_eq!(ask("sslmode=require").as_deref(), Ok("in"), "others are served");
    server.stop().expect("it ends");
}

#[test]
fn both_may_be_offered_and_not_asked() {
    let (folder, certificates) = certificates();
    let file = |name: &str| certificates.join(name).display().to_string();
    let (cert, key) =
        (format!("--tls-cert={}", file("node.crt")), format!("--tls-key={}", file("node.key")));
    let password = password_file(folder.path());
    let options = ["--auth=scram", &password, &cert, &key];
    let server = Server::start_with(Layout::new(1, 1), &options);
    for mode in ["disable", "require"] {
        let answer =
            psql(&server, "stillframe", "s3cret pässword", &format!("sslmode={mode}"), "select 1");
        assert_eq!(answer.as_deref(), Ok("1"), "{mode}");
    }
    server.stop().expect("it ends");
    let open = Server::start(1, 1);
    let mut wire = open.wire();
    // Where nobody is asked, roles are there all the same.
    answer(&mut wire, "create role someone login password 'x'");
    wire.close();
    assert_eq!(psql(&open, "someone", "", "", "select 1").as_deref(), Ok("1"));
    open.stop().expect("it ends");
}

#[test]
fn half_an_access_is_none() {
    let folder = TempDir::new().expect("a temporary folder");
    let password = password_file(folder.path());
    for arguments in [
        vec!["serve", "--tls-cert=x.crt"],
        vec!["serve", "--tls-require"],
        vec!["serve", "--pg-listen=127.0.0.1:0", "--tls-cert=x.crt", "--tls-key=x.key"],
        vec!["serve", "--pg-listen=0.0.0.0:0"],
        vec!["serve", "--pg-listen=0.0.0.0:0", "--auth=scram"],
        vec!["serve", "--pg-listen=127.0.0.1:0", &password],
        vec!["serve", "--auth=maybe"],
    ] {
        let mut process = Process::start(&arguments);
        let ended = process.ended();
        assert!(!ended.success(), "{arguments:?}: {ended}");
    }
}
