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
        Layout::new(2, 1),
        vec![
            // First, since it shows the number of a step.
            ("the_session_of_the_readme", the_session_of_the_readme),
            ("the_examples_of_the_sql_reference", the_examples_of_the_sql_reference),
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
    // What it leaves behind is of no use to the others.
    examples(server, "README.md", "readme", "drop table account cascade;\n");
}

fn the_examples_of_the_sql_reference(server: &Server) {
    examples(server, "docs/sql-reference.md", "sql-reference", "");
}

/// Runs all that a document shows as SQL, from top to bottom, and then `last`.
fn examples(server: &Server, document: &str, name: &str, last: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a folder above the tests");
    let text = fs::read_to_string(root.join(document)).expect("a readable document");
    let blocks = text.split("```sql\n").skip(1);
    let blocks = blocks.map(|rest| rest.split_once("```").expect("an end of the block").0);
    let mut session: Vec<_> = blocks.collect();
    assert!(!session.is_empty(), "{document} has no examples");
    session.push(last);
    let commands = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(&commands, session.join("\n")).expect("it is written");
    check(server, name, commands.path());
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
