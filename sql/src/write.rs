//! The way of a write: from what a statement wants to the step that shows it.
//!
//! A statement that writes is evaluated under a frame and makes a [`Proposal`] of exact changes:
//! old rows that go, new rows that come. A [`Transaction`] reserves their keys, has the statement
//! evaluated again if one of them was written after the frame, and keeps the changes in an
//! [`Overlay`] over what its statements read. Its commit stages them at the hosts.
//!
//! Nothing here knows SQL's syntax or plans queries.

mod changes;
mod deferred;
mod draft;
mod keys;
mod loading;
mod lookup;
mod overlay;
mod proposal;
mod references;
mod staging;
mod target;
#[cfg(test)]
mod tests;
mod transaction;
mod unique;
mod violation;

use std::sync::Arc;
use std::time::Duration;

pub(crate) use changes::Rows;
pub(crate) use draft::Draft;
pub(crate) use keys::{KeyEncoder, hash, row_entries};
pub(crate) use loading::{LoadError, Loading, Repeated, check_table};
pub(crate) use lookup::{all_rows, existing_keys, rows_with};
pub(crate) use overlay::{Difference, Gone, Overlay, keep};
pub(crate) use proposal::{Proposal, Returned};
pub(crate) use staging::ExactChanges;
pub(crate) use target::Target;
pub(crate) use transaction::{Ended, Loan, Outcome, Transaction, changed_meanwhile};
pub(crate) use unique::{UniqueKey, Values};
pub(crate) use violation::{check_violation, unique_violation};

use crate::query::Given;
use crate::settings::Settings;
use crate::{Database, Error, Frame, Progress};

/// A statement that writes.
pub(crate) trait Write: Sync {
    /// What the statement would do under a frame. Asked again with a newer one if something it is
    /// about was written since.
    fn propose(&self, frame: &Arc<Frame>) -> impl Future<Output = Result<Proposal, Error>> + Send;

    /// What its session has set.
    fn settings(&self) -> &Settings;

    /// What the statement answers of rows that it has written, once nothing is wrong with them.
    fn answer(
        &self,
        frame: &Arc<Frame>,
        given: Vec<Given>,
    ) -> impl Future<Output = Result<Option<Returned>, Error>> + Send;
}

/// Runs a statement as a transaction of its own.
///
/// To drop the future leaves nothing behind, unless the commit was sent already.
pub(crate) async fn autocommit(
    database: &Arc<Database>,
    lock_timeout: Option<Duration>,
    progress: &Progress,
    statement: &impl Write,
) -> Result<Outcome, Error> {
    let mut transaction = Transaction::new(database, lock_timeout);
    let outcome = transaction.run(statement).await?;
    transaction.commit(progress).await?;
    Ok(outcome)
}
