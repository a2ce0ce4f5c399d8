//! What the clients of a process do: `pg_stat_activity`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::Utc;

use crate::{Database, TransactionStatus};

/// How much of a statement's text is shown, as PostgreSQL's `track_activity_query_size` has it.
const TEXT_BYTES_MAX: usize = 1023;

/// The clients' sessions, by the number of what stands for their process.
#[derive(Debug, Default)]
pub(crate) struct Activities(Mutex<BTreeMap<i32, Activity>>);

/// What a session does. Moments are microseconds since 1970-01-01 UTC.
#[derive(Clone, Debug)]
pub(crate) struct Activity {
    pub(crate) user: String,
    pub(crate) application: String,
    pub(crate) client: Option<SocketAddr>,
    pub(crate) since_us: i64,
    pub(crate) transaction_since_us: Option<i64>,
    /// When the last statement began.
    pub(crate) statement_since_us: Option<i64>,
    pub(crate) state_since_us: i64,
    pub(crate) state: State,
    /// The text that the client has sent last, unless there may be a password in it.
    pub(crate) text: String,
}

/// What a session is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// A statement runs, or its rows are taken.
    Active,
    /// It waits for its client.
    Waiting(TransactionStatus),
}

impl State {
    /// PostgreSQL's word.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Waiting(TransactionStatus::Idle) => "idle",
            Self::Waiting(TransactionStatus::Open) => "idle in transaction",
            Self::Waiting(TransactionStatus::Failed) => "idle in transaction (aborted)",
        }
    }
}

impl Activities {
    /// What all sessions do, by process.
    pub(crate) fn all(&self) -> Vec<(i32, Activity)> {
        self.lock().iter().map(|(process, activity)| (*process, activity.clone())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<i32, Activity>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session's place among the activities, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Shown {
    database: Arc<Database>,
    process: i32,
}

impl Shown {
    /// Shows a session that has just begun.
    pub(crate) fn new(database: &Arc<Database>, process: i32, user: &str) -> Self {
        let now = Utc::now().timestamp_micros();
        let activity = Activity {
            user: user.to_owned(),
            application: String::new(),
            client: None,
            since_us: now,
            transaction_since_us: None,
            statement_since_us: None,
            state_since_us: now,
            state: State::Waiting(TransactionStatus::Idle),
            text: String::new(),
        };
        database.activities.lock().insert(process, activity);
        Self { database: Arc::clone(database), process }
    }

    fn change(&self, change: impl FnOnce(&mut Activity)) {
        if let Some(activity) = self.database.activities.lock().get_mut(&self.process) {
            change(activity);
        }
    }

    /// Whose session it is.
    pub(crate) fn client(&self, client: SocketAddr) {
        self.change(|activity| activity.client = Some(client));
    }

    /// A statement begins.
    pub(crate) fn begin(&self, text: &str, application: &str) {
        let now = Utc::now().timestamp_micros();
        self.change(|activity| {
            if activity.state != State::Active {
                activity.state = State::Active;
                activity.state_since_us = now;
            }
            activity.transaction_since_us.get_or_insert(now);
            activity.statement_since_us = Some(now);
            let text = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
            let text = if has_password(text) { "<hidden: it has a password>" } else { text };
            if activity.text != text {
                text.clone_into(&mut activity.text);
            }
            if activity.application != application {
                application.clone_into(&mut activity.application);
            }
        });
    }

    /// The session waits for its client.
    pub(crate) fn wait(&self, status: TransactionStatus) {
        let now = Utc::now().timestamp_micros();
        self.change(|activity| {
            if activity.state != State::Waiting(status) {
                activity.state = State::Waiting(status);
                activity.state_since_us = now;
            }
            if status == TransactionStatus::Idle {
                activity.transaction_since_us = None;
            }
        });
    }
}

/// Whether a text may have a password in it.
fn has_password(text: &str) -> bool {
    let word = b"password";
    text.as_bytes().windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.database.activities.lock().remove(&self.process);
    }
}
