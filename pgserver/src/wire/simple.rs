//! The simple protocol: text with any number of statements, each answered before the next runs.
//! Together they are one transaction, but where they say otherwise.

use std::num::NonZeroUsize;

use arrow::record_batch::RecordBatch;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use pgwire::messages::response::{CommandComplete, EmptyQueryResponse};
use stillframe_protocol::Step;
use stillframe_sql::{Error, Request, Rows, TextFormat};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

use super::backend::{Answer, Backend};
use super::connection::Connection;
use super::incoming::{Ended, Interruption, deadline};
use super::rows::{Format, Layout, RowWriter, check_width, description};

impl From<Error> for Interruption {
    fn from(error: Error) -> Self {
        Self::Statement(error)
    }
}

impl From<Ended> for Interruption {
    fn from(ended: Ended) -> Self {
        Self::Connection(ended)
    }
}

impl<B, R, W> Connection<B, R, W>
where
    B: Backend,
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    /// Runs all statements of a text, up to the first that fails.
    pub(super) async fn query(&mut self, text: &str) -> Result<(), Interruption> {
        self.extended.forget_unnamed();
        let statements = self.session.parse(text)?;
        if statements.is_empty() {
            self.outgoing.put(&EmptyQueryResponse::new())?;
        }
        if statements.len() > 1 {
            self.session.begin_request(Request::Query);
        }
        let last = statements.len().saturating_sub(1);
        for (place, statement) in statements.into_iter().enumerate() {
            self.simple_statement(statement, place == last).await?;
        }
        Ok(())
    }

    async fn simple_statement(
        &mut self,
        statement: B::Statement,
        is_last: bool,
    ) -> Result<(), Interruption> {
        let deadline = deadline(self.session.statement_timeout());
        self.lend_portal(&statement, deadline).await?;
        let prepared = self.session.prepare(statement, &[]);
        let prepared = self.incoming.attend(deadline, prepared).await??;
        let answer = self.session.execute(&prepared, vec![]);
        match self.incoming.attend(deadline, answer).await?? {
            Answer::Complete(tag) => {
                self.finish_request(is_last, deadline).await?;
                self.complete(tag)
            }
            Answer::CopyIn(copy) => {
                let tag = self.copy_in(copy, deadline).await?;
                self.finish_request(is_last, deadline).await?;
                self.complete(tag)
            }
            Answer::CopyOut(copy) => {
                let tag = self.copy_out(copy, deadline).await?;
                self.finish_request(is_last, deadline).await?;
                self.complete(tag)
            }
            Answer::Rows(rows) => {
                check_width(&rows.columns)?;
                self.outgoing.put(&description(&rows.columns, None))?;
                let formats = vec![Format::Text; rows.columns.len()];
                let mut cursor = Cursor::new(rows, formats, self.session.text_format());
                self.send_rows(&mut cursor, None, deadline).await?;
                self.finish_request(is_last, deadline).await?;
                self.complete_rows(&cursor)
            }
        }
    }

    /// Commits what the text has done before its last statement is said to be complete.
    async fn finish_request(
        &mut self,
        is_last: bool,
        deadline: Option<Instant>,
    ) -> Result<(), Interruption> {
        if is_last {
            let finish = self.session.finish_request();
            self.incoming.attend(deadline, finish).await??;
        }
        Ok(())
    }

    /// Sends rows up to a number of them or to the end.
    pub(super) async fn send_rows(
        &mut self,
        cursor: &mut Cursor,
        rows_max: Option<NonZeroUsize>,
        deadline: Option<Instant>,
    ) -> Result<Fetched, Interruption> {
        cursor.sent = 0;
        loop {
            let rest = rows_max.map_or(usize::MAX, |max| max.get() - cursor.sent);
            if rest == 0 {
                return Ok(Fetched::Suspended);
            }
            if let Some((batch, from)) = cursor.batch.take() {
                let mut writer = RowWriter::new(&batch, &cursor.layout)?;
                let to = writer.rows().min(from.saturating_add(rest));
                let mut next = from;
                while next < to {
                    next = writer.write(next, to, &mut self.outgoing.buffer)?;
                    if self.outgoing.is_full() {
                        self.send(deadline).await?;
                    }
                }
                cursor.sent += to - from;
                if to < writer.rows() {
                    cursor.batch = Some((batch, to));
                }
                continue;
            }
            match self.next_batch(cursor, deadline).await? {
                Some(batch) => cursor.batch = Some((batch?, 0)),
                None => return Ok(Fetched::All),
            }
        }
    }

    /// The next batch of a result. What was gathered is sent if it takes time to come.
    async fn next_batch(
        &mut self,
        cursor: &mut Cursor,
        deadline: Option<Instant>,
    ) -> Result<Option<Result<RecordBatch, Error>>, Interruption> {
        if let Some(next) = cursor.batches.next().now_or_never() {
            // It is there already, but the statement may be unwanted all the same.
            return self.incoming.attend(deadline, std::future::ready(next)).await;
        }
        self.send(deadline).await?;
        self.incoming.attend(deadline, cursor.batches.next()).await
    }

    /// Sends what there is, as a part of the statement: it ends when the statement is stopped.
    pub(super) async fn send(&mut self, deadline: Option<Instant>) -> Result<(), Interruption> {
        self.incoming.attend(deadline, self.outgoing.flush()).await?.map_err(Ended::from)?;
        Ok(())
    }

    /// Ends the answer of a statement that returns rows.
    pub(super) fn complete_rows(&mut self, cursor: &Cursor) -> Result<(), Interruption> {
        if let Some(told) = cursor.step.and_then(|step| self.parameters.step(step)) {
            self.outgoing.put(&told)?;
        }
        self.complete(match cursor.tag {
            // As in PostgreSQL, these don't count their rows.
            tag @ ("SHOW" | "EXPLAIN") => tag.to_owned(),
            tag => format!("{tag} {}", cursor.affected.unwrap_or(cursor.sent as u64)),
        })
    }

    /// Ends the answer of a statement.
    pub(super) fn complete(&mut self, tag: String) -> Result<(), Interruption> {
        self.tell_notices()?;
        self.outgoing.put(&CommandComplete::new(tag))?;
        Ok(())
    }
}

/// A result that is being sent. It holds its lease until it is dropped.
pub(super) struct Cursor {
    layout: Layout,
    batches: BoxStream<'static, Result<RecordBatch, Error>>,
    step: Option<Step>,
    tag: &'static str,
    /// How many rows the statement was about, if that isn't how many are sent.
    affected: Option<u64>,
    /// A batch under way, and its next row.
    batch: Option<(RecordBatch, usize)>,
    /// How many rows the last fetch has sent.
    sent: usize,
}

impl Cursor {
    /// `formats` by column.
    pub(super) fn new(rows: Rows, formats: Vec<Format>, text: TextFormat) -> Self {
        let Rows { columns, step, batches, tag, affected } = rows;
        let layout = Layout { columns, formats, text };
        Self { layout, batches, step, tag, affected, batch: None, sent: 0 }
    }

    pub(super) fn tag(&self) -> &'static str {
        self.tag
    }

    /// How many rows the last fetch has sent.
    pub(super) fn sent(&self) -> usize {
        self.sent
    }

    /// What is still to be sent, for somebody else.
    pub(super) fn into_rows(self) -> Rows {
        let rest = self.batch.map(|(batch, from)| Ok(batch.slice(from, batch.num_rows() - from)));
        let batches = futures::stream::iter(rest).chain(self.batches).boxed();
        let columns = self.layout.columns;
        Rows { columns, step: self.step, batches, tag: self.tag, affected: self.affected }
    }
}

/// How a fetch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fetched {
    /// All that was asked for was sent; there may be more.
    Suspended,
    /// There is no more.
    All,
}
