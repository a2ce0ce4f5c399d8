//! Scripts of several sessions, with the answers of PostgreSQL 15 (`hermitage/*.txt`).
//!
//! ```text
//! ## the anomaly                    its name; before it the tables are made anew
//! 1: update test set value = 11     a session and its statement
//!    UPDATE 1                       what it is answered: rows, and how many
//! 2: delete from test
//!    waits                          nothing yet
//! 1: commit
//!    ok
//! 2 goes on
//!    ERROR 40001
//! ```
//!
//! Where the two differ (`docs/sql-reference/differences.md`), each has an anomaly of its own, whose
//! name says so.
//!
//! Reads go to the table, to a view, and to a view on it. PostgreSQL has no materialized views that
//! are maintained; there they are plain ones.

use std::fmt::Write as _;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use stillframe_tests::deadline::PATIENCE;
use stillframe_tests::{Answer, Client, Failure, Layout, Server};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::{A_WHILE, postgresql};

const SESSIONS: usize = 3;
/// What follows in an anomaly's name is the only server that it is played on.
const ONLY: &str = "; only ";
const TABLES: [&str; 5] = [
    "create table test (id int primary key, value int)",
    "insert into test values (1, 10), (2, 20)",
    "create materialized view seen as select id, value from test",
    "create materialized view summed as select sum(value) as total, count(*) as n from seen",
    "create table other (id int primary key, value int)",
];

#[tokio::test(flavor = "multi_thread")]
async fn read_committed() {
    replay("read_committed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn repeatable_read() {
    replay("repeatable_read").await;
}

async fn replay(name: &str) {
    let path = format!("{}/tests/history/hermitage/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let expected = fs::read_to_string(&path).expect("a script");
    if let Some(sessions) = postgresql(SESSIONS).await {
        for session in &sessions {
            let schema = format!("create schema if not exists hermitage_{name}");
            session.query(&schema).await;
            session.query(&format!("set search_path to hermitage_{name}")).await;
        }
        let told = told("PostgreSQL", &expected, sessions, "create view").await;
        if std::env::var_os("STILLFRAME_UPDATE").is_some() {
            fs::write(&path, &told).expect("the script can be written");
        }
        compare("PostgreSQL", &told, &fs::read_to_string(&path).expect("a script"));
    }
    let expected = fs::read_to_string(&path).expect("a script");
    let server = Server::start_layout(Layout::processes(3, 1));
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        sessions.push(server.connect().await);
    }
    let told = told("Stillframe", &expected, sessions, "create materialized view").await;
    compare("Stillframe", &told, &expected);
    server.stop().unwrap_or_else(|error| panic!("{error}"));
}

/// Panics with what is different, anomaly by anomaly.
fn compare(server: &str, told: &str, expected: &str) {
    let wrong = told.split("\n## ").zip(expected.split("\n## "));
    let wrong: Vec<_> = wrong.filter(|(told, expected)| told != expected).collect();
    let wrong = wrong.iter().map(|(told, expected)| format!("{told}\nand not:\n{expected}"));
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{server} tells something else:\n{}", wrong.join("\n"));
}

/// The script with the answers of a server.
async fn told(server: &str, script: &str, sessions: Vec<Client>, create_view: &str) -> String {
    let mut play = Play {
        sessions: sessions.into_iter().map(Arc::new).collect(),
        waiting: (0..SESSIONS).map(|_| None).collect(),
        told: String::new(),
    };
    let lines: Vec<&str> = script.lines().collect();
    let mut is_played = true;
    for (number, line) in lines.iter().enumerate() {
        if let Some(anomaly) = line.strip_prefix("## ") {
            is_played = anomaly.ends_with(server) || !anomaly.contains(ONLY);
        }
        if !is_played {
            let _ = writeln!(play.told, "{line}");
            continue;
        }
        // How long an answer is waited for depends on whether one is expected.
        let waits = lines.get(number + 1).is_some_and(|next| next.trim() == "waits");
        let patience = if waits { A_WHILE } else { PATIENCE };
        if let Some(session) = line.strip_suffix(" goes on") {
            let _ = writeln!(play.told, "{line}");
            play.go_on(index(session), PATIENCE).await;
        } else if let Some((session, sql)) = line.split_once(": ")
            && session.parse::<usize>().is_ok()
        {
            let _ = writeln!(play.told, "{line}");
            play.run(index(session), sql, patience).await;
        } else if !line.starts_with("   ") {
            let _ = writeln!(play.told, "{line}");
            if line.starts_with("## ") {
                play.begin(create_view).await;
            }
        }
    }
    play.told
}

fn index(session: &str) -> usize {
    session.parse::<usize>().expect("the number of a session") - 1
}

struct Play {
    sessions: Vec<Arc<Client>>,
    /// What a session waits for.
    waiting: Vec<Option<JoinHandle<Result<Answer, Failure>>>>,
    told: String,
}

impl Play {
    async fn begin(&mut self, create_view: &str) {
        for (session, waiting) in self.sessions.iter().zip(&mut self.waiting) {
            session.query("rollback").await;
            *waiting = None;
        }
        self.sessions[0].query("drop table if exists test, other cascade").await;
        for sql in TABLES {
            self.sessions[0].query(&sql.replace("create materialized view", create_view)).await;
        }
    }

    async fn run(&mut self, session: usize, sql: &str, patience: Duration) {
        assert!(self.waiting[session].is_none(), "session {session} still waits: {}", self.told);
        let (client, sql) = (Arc::clone(&self.sessions[session]), sql.to_owned());
        self.waiting[session] = Some(tokio::spawn(async move { client.try_query(&sql).await }));
        self.go_on(session, patience).await;
    }

    async fn go_on(&mut self, session: usize, patience: Duration) {
        let Some(mut waiting) = self.waiting[session].take() else {
            self.told.push_str("   did not wait\n");
            return;
        };
        match timeout(patience, &mut waiting).await {
            Ok(answer) => self.tell(answer.expect("a query does not panic")),
            Err(_) => {
                self.waiting[session] = Some(waiting);
                self.told.push_str("   waits\n");
            }
        }
    }

    fn tell(&mut self, answer: Result<Answer, Failure>) {
        match answer {
            Ok(answer) => {
                for row in &answer.rows {
                    let _ = writeln!(self.told, "   {}", row.join(" "));
                }
                let _ = match answer.columns {
                    Some(_) => writeln!(self.told, "   {} rows", answer.rows.len()),
                    None => writeln!(self.told, "   ok {}", answer.count),
                };
            }
            Err(Failure::Refused { sqlstate, .. }) => {
                let _ = writeln!(self.told, "   ERROR {sqlstate}");
            }
            Err(failure) => panic!("{failure}\n{}", self.told),
        }
    }
}
