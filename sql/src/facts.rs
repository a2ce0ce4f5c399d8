//! What queries can learn of the session that runs them, and what they can leave with it. It is
//! shared by all copies of a session's settings and no part of any transaction.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Type;
use crate::signal::{Inbox, Outbox};

/// The facts of one session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    /// What stands for the number of the session's process.
    process: i32,
    statements: BTreeMap<String, Statement>,
    cursors: BTreeMap<String, Cursor>,
    outbox: Outbox,
    inbox: Arc<Inbox>,
    assignments: Vec<Assignment>,
    /// Whether a function of the query under way waits for a lock.
    is_blocked: bool,
}

/// What `set_config` was asked to set.
#[derive(Clone, Debug)]
pub(crate) struct Assignment {
    pub(crate) name: String,
    pub(crate) value: Option<String>,
    pub(crate) local: bool,
}

/// A statement that is kept under a name.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub(crate) text: String,
    pub(crate) types: Vec<Type>,
    /// Whether PREPARE has made it, not a message of the wire.
    pub(crate) is_from_sql: bool,
    /// Microseconds since 1970-01-01 UTC.
    pub(crate) since_us: i64,
}

/// A cursor that is open.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    pub(crate) text: String,
    pub(crate) is_held: bool,
    pub(crate) goes_back: bool,
    /// Microseconds since 1970-01-01 UTC.
    pub(crate) since_us: i64,
}

impl Facts {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What stands for the session where it holds something.
    pub(crate) fn holder(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    pub(crate) fn set_is_blocked(&self) {
        self.lock().is_blocked = true;
    }

    /// Whether a function waits for a lock, once.
    pub(crate) fn take_is_blocked(&self) -> bool {
        std::mem::take(&mut self.lock().is_blocked)
    }

    /// The number of the session's process; 0 where there is no client.
    pub(crate) fn process(&self) -> i32 {
        self.lock().process
    }

    pub(crate) fn set_process(&self, process: i32) {
        self.lock().process = process;
    }

    /// A row for each kept statement, by name.
    pub(crate) fn statements<T>(&self, row: impl Fn(&str, &Statement) -> T) -> Vec<T> {
        self.lock().statements.iter().map(|(name, fact)| row(name, fact)).collect()
    }

    pub(crate) fn keep_statement(&self, name: &str, statement: Statement) {
        self.lock().statements.insert(name.to_owned(), statement);
    }

    pub(crate) fn forget_statement(&self, name: &str) {
        self.lock().statements.remove(name);
    }

    pub(crate) fn forget_statements(&self) {
        self.lock().statements.clear();
    }

    /// A row for each cursor, by name.
    pub(crate) fn cursors<T>(&self, row: impl Fn(&str, &Cursor) -> T) -> Vec<T> {
        self.lock().cursors.iter().map(|(name, fact)| row(name, fact)).collect()
    }

    /// Makes these the cursors there are.
    pub(crate) fn set_cursors(&self, cursors: BTreeMap<String, Cursor>) {
        self.lock().cursors = cursors;
    }

    /// What others tell the session.
    pub(crate) fn inbox(&self) -> Arc<Inbox> {
        Arc::clone(&self.lock().inbox)
    }

    /// Leaves a setting to be set before the next statement.
    pub(crate) fn assign(&self, assignment: Assignment) {
        self.lock().assignments.push(assignment);
    }

    /// Takes what is to be set.
    pub(crate) fn take_assignments(&self) -> Vec<Assignment> {
        std::mem::take(&mut self.lock().assignments)
    }

    pub(crate) fn forget_assignments(&self) {
        self.lock().assignments.clear();
    }

    /// What the open transaction wants to be told when it commits.
    pub(crate) fn with_outbox<T>(&self, act: impl FnOnce(&mut Outbox) -> T) -> T {
        act(&mut self.lock().outbox)
    }
}
