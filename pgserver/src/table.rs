//! The rows of a query as text, for those of this process who want a few.

use std::sync::Arc;

use futures::TryStreamExt;
use stillframe_sql::{Database, Error, Response, Session, TextColumn};

/// The user whose name such queries run under.
const USER: &str = "stillframe";

/// Rows as text; none is NULL.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<Option<String>>>,
}

impl Table {
    /// Runs one query.
    pub(crate) async fn read(database: &Arc<Database>, sql: &str) -> Result<Self, Error> {
        let mut session = Session::new(Arc::clone(database), USER);
        let one = || Error::internal(format!("not one query: {sql}"));
        let statement = session.parse(sql)?.pop().ok_or_else(one)?;
        let prepared = session.prepare(statement, &[]).await?;
        let Response::Rows(answer) = session.execute(&prepared, vec![]).await? else {
            return Err(one());
        };
        let format = session.text_format();
        let columns = answer.columns.iter().map(|column| column.name.clone()).collect();
        let kinds: Vec<_> = answer.columns.into_iter().map(|column| column.kind).collect();
        let mut rows = vec![];
        let mut batches = answer.batches;
        while let Some(batch) = batches.try_next().await? {
            let columns = kinds.iter().zip(batch.columns());
            let columns = columns.map(|(kind, array)| TextColumn::new(kind, array, &format));
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            rows.extend((0..batch.num_rows()).map(|place| {
                let value = |column: &TextColumn| {
                    let mut text = vec![];
                    let is_value = column.write(place, &mut text);
                    is_value.then(|| String::from_utf8_lossy(&text).into_owned())
                };
                columns.iter().map(value).collect()
            }));
        }
        Ok(Self { columns, rows })
    }
}
