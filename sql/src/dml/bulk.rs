//! INSERT ... SELECT as a transaction of its own: the rows go to the hosts as the query gives them,
//! so that there may be any number.

use std::sync::Arc;
use std::time::Duration;

use datafusion::sql::sqlparser::ast::{Insert, Query};
use futures::TryStreamExt;
use stillframe_protocol::Step;

use super::assign::assign;
use super::complete::complete;
use super::insert::{Given, rows_of_values, table, with_defaults};
use super::source::untyped;
use super::{Command, Statement, Tree, later, target};
use crate::write::{Loading, Transaction};
use crate::{Database, Error, Frame, Progress, Type};

/// An INSERT of a query's rows, of which nobody wants to know more than how many they are.
#[derive(Debug)]
pub(crate) struct Bulk<'a> {
    statement: Statement<'a>,
    insert: &'a Insert,
    query: &'a Query,
}

impl<'a> Bulk<'a> {
    /// The statement, if it is such an INSERT.
    pub(crate) fn of(statement: Statement<'a>) -> Option<Self> {
        let Tree::Insert(insert) = statement.tree else { return None };
        let query = insert.source.as_deref()?;
        let is_plain = insert.on.is_none()
            && insert.returning.is_none()
            && statement.beside.is_empty()
            && statement.overriding.is_none()
            && rows_of_values(query).is_none();
        is_plain.then_some(Self { statement, insert, query })
    }

    /// Runs it; returns how many rows it has added, or none if the table has rules by which all its
    /// rows must be looked at together. Then nothing has happened.
    pub(crate) async fn run(
        &self,
        database: &Arc<Database>,
        lock_timeout: Option<Duration>,
        progress: &Progress,
    ) -> Result<Option<u64>, Error> {
        let mut transaction = Transaction::new(database, lock_timeout);
        let frame = transaction.frame(Step(0)).await?;
        let Some(loading) = self.load(&mut transaction, &frame).await? else { return Ok(None) };
        drop(frame);
        let rows = loading.rows();
        loading.finish(&mut transaction).await?;
        transaction.commit(progress).await?;
        Ok(Some(rows))
    }

    /// Has the hosts hold the query's rows.
    async fn load(
        &self,
        transaction: &mut Transaction,
        frame: &Arc<Frame>,
    ) -> Result<Option<Loading>, Error> {
        let Self { statement, insert, query } = self;
        let settings = statement.settings;
        let target = target(frame, settings, table(insert)?, Command::Insert)?;
        let given = Given::new(insert, &target)?;
        let target = with_defaults(statement, insert, frame, target, &given).await?;
        if !later(frame, settings, &target, &given.places)?.is_empty() {
            return Ok(None);
        }
        let Some(mut loading) = Loading::new(&target, "INSERT", false)? else { return Ok(None) };
        let context = statement.context(frame);
        let ready =
            context.ready(&statement.with((*query).clone()), &statement.arguments.declared())?;
        let columns = &ready.planned.columns;
        given.check(columns.len(), None)?;
        given.refuse_generated(statement, insert, &target, columns.len())?;
        let untyped = untyped(query, columns.len());
        let format = settings.text_format();
        let values = statement.arguments.scalars(&format)?;
        let mut batches = context.run_ready(&ready, values).await?;
        while let Some(batch) = batches.try_next().await? {
            let mut values = vec![None; target.relation().columns.len()];
            for (position, place) in given.places.iter().take(columns.len()).enumerate() {
                let kind = if untyped[position] { &Type::Unknown } else { &columns[position].kind };
                let column = &target.relation().columns[*place];
                values[*place] = Some(assign(batch.column(position), kind, column, &format)?);
            }
            let rows = complete(frame, settings, &target, values, batch.num_rows()).await?;
            loading.add(transaction, rows).await?;
        }
        Ok(Some(loading))
    }
}
