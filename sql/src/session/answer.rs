//! What a session is told and what it answers.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray};
use arrow::datatypes::Schema;
use arrow::record_batch::RecordBatch;
use futures::StreamExt;
use futures::stream::BoxStream;
use stillframe_protocol::Step;

use crate::parser::Statement;
use crate::query::Plans;
use crate::{CopyIn, CopyOut, Error, Type};

/// A statement that is planned as far as its description needs.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub(crate) statement: Statement,
    /// The types of the parameters that the client gave.
    pub(super) parameters: Vec<Type>,
    pub(super) columns: Option<Vec<OutputColumn>>,
    /// What was planned for it.
    pub(crate) plans: Plans,
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

impl OutputColumn {
    /// A column that is computed.
    pub(crate) fn new(name: impl Into<String>, kind: Type) -> Self {
        Self { name: name.into(), kind, origin: None }
    }
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
    /// The data of a COPY TO STDOUT, as it comes.
    CopyOut(CopyOut),
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
    /// How many rows the statement was about, if the tag tells that and not how many were sent.
    pub affected: Option<u64>,
}

impl Rows {
    /// Rows of text that are here already.
    pub(crate) fn of_text(
        columns: Vec<OutputColumn>,
        rows: Vec<Vec<String>>,
        tag: &'static str,
    ) -> Self {
        let fields = columns.iter().map(|column| column.kind.field(&column.name, true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let arrays = (0..columns.len()).map(|place| {
            let values = rows.iter().map(|row| row[place].as_str());
            Arc::new(StringArray::from_iter_values(values)) as ArrayRef
        });
        let batch = RecordBatch::try_new(schema, arrays.collect())
            .map_err(|error| Error::internal(error.to_string()));
        Self {
            columns,
            step: None,
            batches: futures::stream::iter([batch]).boxed(),
            tag,
            affected: None,
        }
    }
}

/// Something to tell the client beside the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// `NOTICE`, `WARNING`, ...
    pub severity: &'static str,
    /// What to tell.
    pub error: Error,
}

impl Notice {
    /// Something that is worth knowing.
    pub(crate) fn of(error: Error) -> Self {
        Self { severity: "NOTICE", error }
    }

    /// Something that is likely a mistake.
    pub(crate) fn warning(error: Error) -> Self {
        Self { severity: "WARNING", error }
    }
}

/// How long a client may be silent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleLimit {
    /// From when it was told that the next request may come.
    pub time: std::time::Duration,
    /// What it is told then.
    pub error: Error,
}

/// What statements come in together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Request {
    /// A query of several statements.
    Query,
    /// Messages up to a Sync, which may be one statement's.
    #[default]
    Pipeline,
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
