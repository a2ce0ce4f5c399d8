//! Cursors: queries whose rows are fetched a part at a time, from the step on which they were
//! declared.

mod window;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use futures::StreamExt;
use stillframe_protocol::Step;
use tokio::sync::Mutex;

use super::answer::{OutputColumn, Response, Rows};
use super::{Prepared, Session};
use crate::parser::{Direction, Statement};
use crate::{Error, SqlState, facts};
use window::Window;

/// The cursors of a session.
#[derive(Default)]
pub(super) struct Cursors(BTreeMap<String, Cursor>);

/// A cursor. It holds its lease until it is closed.
struct Cursor {
    fact: facts::Cursor,
    columns: Vec<OutputColumn>,
    step: Option<Step>,
    /// Whether it outlives its transaction, if that commits.
    hold: bool,
    /// Whether its transaction is still open.
    is_new: bool,
    /// How many savepoints there were when it was declared.
    depth: usize,
    window: Arc<Mutex<Window>>,
}

impl Cursors {
    fn get(&self, name: &str) -> Result<&Cursor, Error> {
        self.0.get(name).ok_or_else(|| missing(name))
    }

    /// Closes what ends with a transaction; returns what stays if it commits.
    pub(super) fn end(&mut self) -> Self {
        let (new, old) =
            std::mem::take(&mut self.0).into_iter().partition(|(_, cursor)| cursor.is_new);
        self.0 = old;
        let held: BTreeMap<_, _> = new;
        Self(held.into_iter().filter(|(_, cursor)| cursor.hold).collect())
    }

    /// The transaction of these has committed.
    pub(super) fn hold(&mut self, held: Self) {
        let held = held.0.into_iter();
        self.0.extend(held.map(|(name, cursor)| (name, Cursor { is_new: false, ..cursor })));
    }

    /// Closes what was declared after a savepoint, one of the block's first `depth`.
    pub(super) fn roll_back(&mut self, depth: usize) {
        self.0.retain(|_, cursor| !cursor.is_new || cursor.depth <= depth);
    }

    /// Savepoints beyond the first `depth` are gone: what was declared after them stays.
    pub(super) fn release(&mut self, depth: usize) {
        for cursor in self.0.values_mut() {
            cursor.depth = cursor.depth.min(depth);
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

fn missing(name: &str) -> Error {
    Error::new(SqlState::INVALID_CURSOR_NAME, format!("cursor \"{name}\" does not exist"))
}

impl Session {
    /// DECLARE.
    pub(super) async fn declare_cursor(
        &mut self,
        name: &str,
        scroll: Option<bool>,
        hold: bool,
        query: &Statement,
    ) -> Result<(), Error> {
        if self.transaction.is_idle() && !hold {
            let message = "DECLARE CURSOR can only be used in transaction blocks";
            return Err(Error::new(SqlState::NO_ACTIVE_SQL_TRANSACTION, message));
        }
        if self.cursors.0.contains_key(name) {
            let message = format!("cursor \"{name}\" already exists");
            return Err(Error::new(SqlState::DUPLICATE_CURSOR, message));
        }
        let prepared: Prepared = Box::pin(self.describe(query.clone(), &[])).await?;
        let Response::Rows(rows) = Box::pin(self.dispatch(&prepared, &[])).await? else {
            return Err(Error::internal("a query has no rows"));
        };
        let Rows { columns, step, batches, .. } = rows;
        let is_new = !self.transaction.is_idle();
        let depth = self.transaction.savepoints();
        let window = Arc::new(Mutex::new(Window::new(batches, scroll != Some(false))));
        let fact = facts::Cursor {
            text: query.source.text().to_owned(),
            is_held: hold,
            goes_back: scroll == Some(true),
            since_us: chrono::Utc::now().timestamp_micros(),
        };
        let cursor = Cursor { fact, columns, step, hold, is_new, depth, window };
        self.cursors.0.insert(name.to_owned(), cursor);
        self.show_cursors();
        Ok(())
    }

    /// FETCH, as rows that come when they are asked for.
    pub(super) async fn fetch(&self, name: &str, direction: Direction) -> Result<Rows, Error> {
        let cursor = self.cursors.get(name)?;
        let columns = cursor.columns.clone();
        let batches = window::fetch(Arc::clone(&cursor.window), direction).await?;
        Ok(Rows { columns, step: cursor.step, batches, tag: "FETCH", affected: None })
    }

    /// MOVE; returns over how many rows.
    pub(super) async fn move_cursor(
        &self,
        name: &str,
        direction: Direction,
    ) -> Result<usize, Error> {
        let cursor = self.cursors.get(name)?;
        let mut batches = window::fetch(Arc::clone(&cursor.window), direction).await?;
        let mut rows = 0;
        while let Some(batch) = batches.next().await {
            rows += batch?.num_rows();
        }
        Ok(rows)
    }

    /// The columns of what FETCH returns.
    pub(super) fn cursor_columns(&self, name: &str) -> Result<Vec<OutputColumn>, Error> {
        Ok(self.cursors.get(name)?.columns.clone())
    }

    /// CLOSE.
    pub(super) fn close_cursor(&mut self, name: &str) -> Result<(), Error> {
        self.cursors.0.remove(name).map(drop).ok_or_else(|| missing(name))?;
        self.show_cursors();
        Ok(())
    }

    /// The columns of a cursor, if there is one of this name; FETCH from it answers them.
    pub fn columns_of_cursor(&self, name: &str) -> Option<&[OutputColumn]> {
        self.cursors.0.get(name).map(|cursor| cursor.columns.as_slice())
    }

    /// Makes a cursor of the rows of a portal, which FETCH and MOVE then know by its name.
    pub fn adopt_cursor(&mut self, name: &str, rows: Rows) {
        let Rows { columns, step, batches, .. } = rows;
        let fact = facts::Cursor {
            text: String::new(),
            is_held: false,
            goes_back: true,
            since_us: chrono::Utc::now().timestamp_micros(),
        };
        let (is_new, depth) = (true, self.transaction.savepoints());
        let window = Arc::new(Mutex::new(Window::new(batches, true)));
        let cursor = Cursor { fact, columns, step, hold: false, is_new, depth, window };
        self.cursors.0.insert(name.to_owned(), cursor);
        self.show_cursors();
    }

    /// The next rows of a cursor, at most so many, as those of a query.
    pub async fn fetch_forward(
        &self,
        name: &str,
        rows_max: Option<NonZeroUsize>,
    ) -> Result<Rows, Error> {
        let count = rows_max.map_or(u64::MAX, |max| max.get() as u64);
        Ok(Rows { tag: "SELECT", ..self.fetch(name, Direction::Forward(count)).await? })
    }

    /// Closes a cursor, if there is one of this name.
    pub fn forget_cursor(&mut self, name: &str) {
        if self.cursors.0.remove(name).is_some() {
            self.show_cursors();
        }
    }

    /// Lets `pg_cursors` show what there is.
    pub(super) fn show_cursors(&self) {
        let all = self.cursors.0.iter();
        let all = all.map(|(name, cursor)| (name.clone(), cursor.fact.clone())).collect();
        self.settings.facts().set_cursors(all);
    }
}
