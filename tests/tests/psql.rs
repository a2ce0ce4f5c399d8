//! The real psql: what it shows must be, character by character, what stands beside the commands.
//!
//! `STILLFRAME_UPDATE=1` writes down what it shows now.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use stillframe_tests::suite;
use stillframe_tests::{Layout, Server};

fn main() -> ExitCode {
    suite::run(
        Layout { hosts: 2, workers: 1 },
        vec![
            // First, since it shows the number of a step.
            ("the_session_of_the_readme", the_session_of_the_readme),
            ("catalog", |server| compare(server, "catalog")),
            ("session", |server| compare(server, "session")),
        ],
    )
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("psql")
}

fn compare(server: &Server, name: &str) {
    check(server, name, &folder().join(format!("{name}.sql")));
}

/// The README promises that this works as it stands there.
fn the_session_of_the_readme(server: &Server) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("README.md");
    let readme = fs::read_to_string(path).expect("a readable README");
    let (_, session) = readme.split_once("```sql\n").expect("a session in the README");
    let (session, _) = session.split_once("```").expect("an end of the session");
    let commands = tempfile::NamedTempFile::new().expect("a temporary file");
    // What it leaves behind is of no use to the others.
    fs::write(&commands, format!("{session}\ndrop table account cascade;\n"))
        .expect("it is written");
    check(server, "readme", commands.path());
}

fn check(server: &Server, name: &str, commands: &Path) {
    let url = format!("postgres://tester@{}/stillframe", server.address());
    // One stream, so that errors stand where they come.
    let output = Command::new("sh")
        .args(["-c", "exec psql --no-psqlrc --echo-queries --file \"$1\" \"$2\" 2>&1", "psql"])
        .arg(commands)
        .arg(url)
        .env("PGCONNECT_TIMEOUT", "30")
        .env("LC_ALL", "C.UTF-8")
        .output()
        .expect("a shell");
    let shown = String::from_utf8(output.stdout).expect("psql writes UTF-8");
    let prefix = format!("psql:{}:", commands.display());
    let actual: Vec<_> = shown.lines().map(|line| without_place(line, &prefix)).collect();
    let actual = actual.join("\n") + "\n";
    let golden = folder().join(format!("{name}.out"));
    if std::env::var_os("STILLFRAME_UPDATE").is_some() {
        fs::write(&golden, &actual).expect("a writable file");
        return;
    }
    let expected = fs::read_to_string(&golden).expect("a readable file");
    if actual != expected {
        let different = actual.lines().zip(expected.lines()).position(|(a, e)| a != e);
        let line = different.unwrap_or(actual.lines().count().min(expected.lines().count())) + 1;
        panic!("{} differs from line {line} on:\n{actual}", golden.display());
    }
}

/// psql writes the file and the line before a message; the path isn't everywhere the same.
fn without_place<'a>(line: &'a str, prefix: &str) -> &'a str {
    let message = line.strip_prefix(prefix).and_then(|rest| rest.split_once(": "));
    message.map_or(line, |(_, message)| message)
}
