//! Real clients: each has a program beside (`tests/clients`) that does what its users do and looks at
//! the answers.
//!
//! `tests/run` installs them in a folder beside the build's cache, or in the one that
//! `STILLFRAME_CLIENTS` names.

mod rust;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use stillframe_tests::{Layout, Server, suite};

/// How long a program may take.
const TIME_MAX: Duration = Duration::from_secs(240);

fn main() -> ExitCode {
    suite::run(
        Layout::new(2, 1),
        vec![
            ("psycopg", |server| python(server, "with_psycopg.py")),
            ("asyncpg", |server| python(server, "with_asyncpg.py")),
            ("sqlalchemy", |server| python(server, "with_sqlalchemy.py")),
            ("pgjdbc", pgjdbc),
            ("node_postgres", node_postgres),
            ("tokio_postgres", rust::run),
            ("sqllogictest_simple", |server| sqllogictest(server, "postgres")),
            ("sqllogictest_extended", |server| sqllogictest(server, "postgres-extended")),
        ],
    )
}

/// Where the programs are.
fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients")
}

/// Where the clients are installed.
fn installed() -> PathBuf {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let installed = match (folder("STILLFRAME_CLIENTS"), folder("XDG_CACHE_HOME"), folder("HOME")) {
        (Some(clients), ..) => PathBuf::from(clients),
        (None, Some(cache), _) => Path::new(&cache).join("stillframe/clients"),
        (None, None, Some(home)) => Path::new(&home).join(".cache/stillframe/clients"),
        (None, None, None) => panic!("there is no folder for clients: set STILLFRAME_CLIENTS"),
    };
    assert!(installed.is_dir(), "{}: run tests/run, which installs clients", installed.display());
    installed
}

/// Runs a program to its end; it must succeed.
fn run(server: &Server, command: &mut Command) {
    let address = server.address();
    command
        .env("DSN", format!("postgresql://stillframe@{address}/stillframe"))
        .env("PGHOST", address.ip().to_string())
        .env("PGPORT", address.port().to_string())
        .env("TZ", "UTC")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let id = child.id();
    let (ended, waits) = std::sync::mpsc::channel::<()>();
    let watch = thread::spawn(move || {
        let began = Instant::now();
        while began.elapsed() < TIME_MAX {
            match waits.recv_timeout(Duration::from_secs(1)) {
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
                _ => return,
            }
        }
        // It has run for too long.
        let _ = Command::new("kill").arg(id.to_string()).status();
    });
    let output = child.wait_with_output().expect("its output is read");
    drop(ended);
    watch.join().expect("a watch doesn't panic");
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
}

fn python(server: &Server, program: &str) {
    let python = installed().join("python/bin/python");
    run(server, Command::new(python).arg(programs().join("python").join(program)));
}

fn node_postgres(server: &Server) {
    let modules = installed().join("node/node_modules");
    let program = programs().join("node/client.js");
    run(server, Command::new("node").arg(program).env("NODE_PATH", modules));
}

fn pgjdbc(server: &Server) {
    let program = programs().join("java/Client.java");
    run(server, Command::new("java").args(["-cp", "/usr/share/java/postgresql.jar"]).arg(program));
}

/// The command of sqllogictest-rs, over a script of statements of all kinds.
fn sqllogictest(server: &Server, engine: &str) {
    let address = server.address();
    run(
        server,
        Command::new(installed().join("sqllogictest/bin/sqllogictest"))
            .arg(programs().join("sqllogictest/*.slt"))
            .args(["--engine", engine, "--db", "stillframe", "--user", "stillframe"])
            .args(["--host", &address.ip().to_string(), "--port", &address.port().to_string()]),
    );
}
