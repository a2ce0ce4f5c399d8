//! Queries that take advisory locks, and wait for them.

use arrow::record_batch::RecordBatch;
use datafusion::common::ScalarValue;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};

use super::Session;
use crate::advisory::Span;
use crate::query::{QueryContext, Ready};
use crate::{Error, SqlState};

/// Whether a query names a function that takes or gives back advisory locks.
pub(super) fn is_named(text: &str) -> bool {
    text.contains("pg_advisory_") || text.contains("pg_try_advisory_")
}

impl Session {
    /// Runs a query whose functions may have to wait. What can't be taken ends the attempt, which
    /// leaves nothing; when something is given back there is another one.
    pub(super) async fn run_with_locks(
        &self,
        context: &QueryContext,
        ready: &Ready,
        values: Vec<ScalarValue>,
    ) -> Result<BoxStream<'static, Result<RecordBatch, Error>>, Error> {
        let (facts, locks) = (self.settings.facts(), &self.database.advisory);
        let holder = facts.holder();
        let waiting = async {
            loop {
                let mut freed = std::pin::pin!(locks.freed());
                // It counts from here on what is freed.
                let _ = futures::poll!(freed.as_mut());
                let mark = locks.mark(holder);
                let batches: Result<Vec<_>, Error> =
                    async { context.run_ready(ready, values.clone()).await?.try_collect().await }
                        .await;
                if !facts.take_is_blocked() {
                    return batches;
                }
                locks.restore(holder, mark);
                freed.await;
            }
        };
        let batches = match self.settings.lock_timeout() {
            None => waiting.await?,
            Some(time) => tokio::time::timeout(time, waiting).await.map_err(|_| {
                let message = "canceling statement due to lock timeout";
                Error::new(SqlState::LOCK_NOT_AVAILABLE, message)
            })??,
        };
        if self.transaction.is_idle() {
            locks.give_all_back(holder, Some(Span::Transaction));
        }
        Ok(stream::iter(batches.into_iter().map(Ok)).boxed())
    }

    /// The transaction has ended.
    pub(super) fn end_advisory(&self) {
        let holder = self.settings.facts().holder();
        self.database.advisory.give_all_back(holder, Some(Span::Transaction));
    }
}
