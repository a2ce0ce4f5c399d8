//! One client's session: settings, the state of its transaction, and the dispatch of statements.

use std::sync::Arc;
use std::time::Duration;

use arrow::record_batch::RecordBatch;
use datafusion::sql::sqlparser::ast;
use futures::stream::BoxStream;
use stillframe_protocol::Step;

use crate::{Database, Error, Progress, Type};

/// A parsed statement.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Its syntax tree.
    pub(crate) tree: ast::Statement,
    /// Its own text.
    pub(crate) text: Arc<str>,
}

/// A statement that is planned as far as its description needs.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub(crate) statement: Statement,
    parameters: Vec<Type>,
    columns: Option<Vec<OutputColumn>>,
}

impl Prepared {
    /// The types of `$1`, `$2`, ...
    pub fn parameters(&self) -> &[Type] {
        &self.parameters
    }

    /// The columns it returns; `None` if it returns no rows.
    pub fn columns(&self) -> Option<&[OutputColumn]> {
        self.columns.as_deref()
    }
}

/// A column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputColumn {
    /// Its name, as PostgreSQL gives it.
    pub name: String,
    /// Its type.
    pub kind: Type,
    /// The relation's OID and the column's number from 1, if it is a plain column of one.
    pub origin: Option<(u32, i16)>,
}

/// The value of a parameter.
#[derive(Clone, Debug)]
pub enum Parameter {
    /// NULL.
    Null,
    /// In text format.
    Text(String),
}

/// What a statement answers.
pub enum Response {
    /// Rows, as they come.
    Rows(Rows),
    /// Done, with PostgreSQL's command tag.
    Complete {
        /// As in `INSERT 0 3`.
        tag: String,
    },
    /// COPY FROM STDIN waits for data.
    CopyIn(CopyIn),
}

/// A result that is still coming. To drop it stops the statement and frees its lease.
pub struct Rows {
    /// The columns.
    pub columns: Vec<OutputColumn>,
    /// The step that was read, if one was.
    pub step: Option<Step>,
    /// The rows; the stream ends when all are there, and with an error otherwise.
    pub batches: BoxStream<'static, Result<RecordBatch, Error>>,
    /// The command tag without the number of rows, as in `SELECT`.
    pub tag: &'static str,
}

/// A COPY FROM STDIN under way. To drop it leaves nothing behind.
pub struct CopyIn {
    /// How many columns are expected.
    pub columns: usize,
}

/// Something to tell the client beside the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// `NOTICE`, `WARNING`, ...
    pub severity: &'static str,
    /// What to tell.
    pub error: Error,
}

/// Where a session stands, as ReadyForQuery tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionStatus {
    /// Outside a transaction block.
    Idle,
    /// Inside one.
    Open,
    /// Inside one that has failed: only its end is accepted.
    Failed,
}

/// One client's session.
pub struct Session {
    database: Arc<Database>,
    notices: Vec<Notice>,
    progress: Progress,
}

impl Session {
    /// A new session.
    pub fn new(database: Arc<Database>, _user: &str) -> Self {
        Self { database, notices: vec![], progress: Progress::default() }
    }

    /// Splits text into statements.
    pub fn parse(&self, _text: &str) -> Result<Vec<Statement>, Error> {
        Err(Error::unsupported("SQL"))
    }

    /// Finds the parameters and columns of a statement. `declared` are the types the client gives.
    pub async fn prepare(
        &mut self,
        statement: Statement,
        _declared: &[Option<Type>],
    ) -> Result<Prepared, Error> {
        let _ = &self.database;
        Err(Error::unsupported(statement.text))
    }

    /// Sets a setting as a startup packet asks, for the whole session: 42704 if there is none of
    /// this name, 22023 if the value is none of its values.
    pub fn set(&mut self, name: &str, _value: &str) -> Result<(), Error> {
        Err(Error::unsupported(name))
    }

    /// The settings that a client is told at the start and whenever they change, in PostgreSQL's
    /// spelling (`client_encoding`, `DateStyle`, `TimeZone`, ...).
    pub fn reported_settings(&self) -> Vec<(&'static str, String)> {
        vec![]
    }

    /// How long a statement may take; none is without end.
    pub fn statement_timeout(&self) -> Option<Duration> {
        None
    }

    /// Whether the statement under way can still be stopped, while [`Session::execute`] runs.
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Learns that a statement failed outside of `prepare` and `execute`: while its rows were sent
    /// or its COPY was fed, by a parameter that can't be read, or because it was stopped (its
    /// future was dropped). An open transaction block fails with it.
    pub fn fail(&mut self) {}

    /// Runs a statement. To drop the future stops it: unless it [is
    /// committing](Progress::is_committing) nothing of it remains.
    pub async fn execute(
        &mut self,
        prepared: &Prepared,
        _parameters: Vec<Parameter>,
    ) -> Result<Response, Error> {
        Err(Error::unsupported(&prepared.statement.tree))
    }

    /// Where the session stands.
    pub fn transaction_status(&self) -> TransactionStatus {
        TransactionStatus::Idle
    }

    /// Takes what is to be told to the client.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }
}

impl CopyIn {
    /// Takes a piece of the data, cut anywhere.
    pub async fn write(&mut self, _data: &[u8]) -> Result<(), Error> {
        Err(Error::unsupported("COPY"))
    }

    /// All data is there: applies it, and returns the command tag.
    pub async fn finish(self) -> Result<String, Error> {
        Err(Error::unsupported("COPY"))
    }
}
