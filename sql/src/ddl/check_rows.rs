//! What must be true of the rows that a table has when it gets a new constraint.

use arrow::record_batch::RecordBatch;
use datafusion::sql::sqlparser::ast;
use futures::TryStreamExt;

use crate::parser::{self, Tree};
use crate::query::QueryContext;
use crate::text::{TextColumn, TextFormat};
use crate::{Error, OutputColumn, Relation, SqlState, Subject, names};

/// The names of the tables of a foreign key, which no column has: `c.x` would be a part of column `c`.
const CHILD: &str = "\"stillframe child\"";
const PARENT: &str = "\"stillframe parent\"";

/// A query that must return no row.
#[derive(Clone, Debug)]
pub(crate) struct RowCheck {
    query: String,
    /// What is wrong if it returns one.
    error: Error,
    /// The detail, around the values of that row.
    detail: Option<(String, String)>,
    /// Whether it is asked of the table as it was: as it is to be, its answer goes without saying.
    pub(super) is_before: bool,
}

impl RowCheck {
    /// A column has no NULL.
    pub(super) fn not_null(table: &Relation, column: &str) -> Self {
        let message =
            format!("column \"{column}\" of relation \"{}\" contains null values", table.name);
        Self {
            query: format!(
                "SELECT 1 FROM {} WHERE {} IS NULL LIMIT 1",
                qualified(table),
                quoted(column)
            ),
            error: Error::new(SqlState::NOT_NULL_VIOLATION, message)
                .about(Subject::column(table, column)),
            detail: None,
            is_before: true,
        }
    }

    /// An expression isn't false.
    pub(super) fn check(table: &Relation, name: &str, expression: &str) -> Self {
        let message = format!(
            "check constraint \"{name}\" of relation \"{}\" is violated by some row",
            table.name
        );
        Self {
            query: format!("SELECT 1 FROM {} WHERE NOT ({expression}) LIMIT 1", qualified(table)),
            error: Error::new(SqlState::CHECK_VIOLATION, message)
                .about(Subject::constraint(table, name)),
            detail: None,
            is_before: false,
        }
    }

    /// No two rows have the same values.
    pub(super) fn unique(table: &Relation, name: &str, columns: &[usize]) -> Self {
        let message = format!("could not create unique index \"{name}\"");
        let names: Vec<_> =
            columns.iter().map(|place| table.columns[*place].name.as_str()).collect();
        let list = names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
        let present =
            names.iter().map(|name| format!("{} IS NOT NULL", quoted(name))).collect::<Vec<_>>();
        Self {
            query: format!(
                "SELECT {list} FROM {} WHERE {} GROUP BY {list} HAVING count(*) > 1 \
                 ORDER BY {list} LIMIT 1",
                qualified(table),
                present.join(" AND ")
            ),
            error: Error::new(SqlState::UNIQUE_VIOLATION, message)
                .about(Subject::constraint(table, name)),
            detail: Some((shown(&names), "is duplicated.".to_owned())),
            is_before: false,
        }
    }

    /// Every row has its parent.
    pub(super) fn foreign_key(
        table: &Relation,
        name: &str,
        columns: &[usize],
        parent: &Relation,
        parent_columns: &[usize],
    ) -> Self {
        let message = format!(
            "insert or update on table \"{}\" violates foreign key constraint \"{name}\"",
            table.name
        );
        let own: Vec<_> = columns.iter().map(|place| table.columns[*place].name.as_str()).collect();
        let theirs = parent_columns.iter().map(|place| parent.columns[*place].name.as_str());
        let list = own.iter().map(|name| format!("{CHILD}.{}", quoted(name))).collect::<Vec<_>>();
        let present = list.iter().map(|column| format!("{column} IS NOT NULL"));
        let equal =
            list.iter().zip(theirs).map(|(own, name)| format!("{own} = {PARENT}.{}", quoted(name)));
        let (present, equal) = (present.collect::<Vec<_>>(), equal.collect::<Vec<_>>());
        Self {
            query: format!(
                "SELECT {} FROM {} AS {CHILD} WHERE {} AND NOT EXISTS \
                 (SELECT 1 FROM {} AS {PARENT} WHERE {}) LIMIT 1",
                list.join(", "),
                qualified(table),
                present.join(" AND "),
                qualified(parent),
                equal.join(" AND ")
            ),
            error: Error::new(SqlState::FOREIGN_KEY_VIOLATION, message)
                .about(Subject::constraint(table, name)),
            detail: Some((shown(&own), format!("is not present in table \"{}\".", parent.name))),
            is_before: false,
        }
    }

    /// Fails if there is such a row.
    pub(super) async fn run(&self, context: &QueryContext) -> Result<(), Error> {
        let (columns, batches) = rows_of(context, &self.query).await?;
        let Some(row) = batches.iter().find(|batch| batch.num_rows() > 0) else { return Ok(()) };
        let error = self.error.clone();
        let Some((before, after)) = &self.detail else { return Err(error) };
        let mut values = vec![];
        for (column, array) in columns.iter().zip(row.columns()) {
            let mut out = vec![];
            TextColumn::new(&column.kind, array, &TextFormat::default())?.write(0, &mut out);
            values.push(String::from_utf8_lossy(&out).into_owned());
        }
        Err(error.with_detail(format!("Key ({before})=({}) {after}", values.join(", "))))
    }
}

/// The rows of a query of ours, and their columns.
pub(super) async fn rows_of(
    context: &QueryContext,
    query: &str,
) -> Result<(Vec<OutputColumn>, Vec<RecordBatch>), Error> {
    let broken = || Error::internal(format!("the query {query} is broken"));
    let statement = parser::parse(query).map_err(|_| broken())?.pop();
    let Some(parser::Statement { tree: Tree::Sql(tree), .. }) = statement else {
        return Err(broken());
    };
    let ast::Statement::Query(query) = *tree else { return Err(broken()) };
    let planned = context.plan(&query, &[])?;
    let batches = context.run(&planned.plan).await?.try_collect().await?;
    Ok((planned.columns, batches))
}

fn shown(columns: &[&str]) -> String {
    columns.iter().map(|name| names::quote(name)).collect::<Vec<_>>().join(", ")
}

pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

pub(super) fn qualified(table: &Relation) -> String {
    format!("{}.{}", quoted(&table.schema), quoted(&table.name))
}
