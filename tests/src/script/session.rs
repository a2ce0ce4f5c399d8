//! A session as the runner of scripts wants it.

use async_trait::async_trait;
use sqllogictest::{AsyncDB, DBOutput};

use super::{Column, again, variant};
use crate::{Answer, Client, Failure};

/// Whose server it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    /// Ours.
    Stillframe,
    /// The reference. A materialized view of PostgreSQL isn't kept up to date, so that a plain view
    /// takes its place.
    Postgresql,
}

impl Product {
    /// As what a relation of this kind may exist: a variant or the reference has made it a plain
    /// view.
    pub(super) fn kinds(self, kind: &'static str) -> Vec<&'static str> {
        match (self, kind) {
            (Self::Stillframe, "materialized view") => vec!["materialized view", "view"],
            (Self::Postgresql, "materialized view") => vec!["view"],
            (_, kind) => vec![kind],
        }
    }
}

/// A session.
#[derive(Debug)]
pub struct Session {
    client: Option<Client>,
    product: Product,
    /// Whether queries are asked again with their results in binary format.
    asks_again: bool,
}

impl Session {
    /// A session of a script.
    pub fn new(client: Client, product: Product) -> Self {
        Self { client: Some(client), product, asks_again: false }
    }

    /// A session that asks each query twice, the second time prepared and with its results in
    /// binary format.
    pub fn asking_again(client: Client) -> Self {
        Self { asks_again: true, ..Self::new(client, Product::Stillframe) }
    }

    /// The types of a query's columns, which the simple protocol's driver doesn't tell.
    async fn types(&self, sql: &str) -> Result<Vec<Column>, Failure> {
        let client = self.client.as_ref().ok_or_else(|| Failure::Lost("it is shut down".into()))?;
        let statement = client.driver().prepare(sql).await?;
        Ok(statement.columns().iter().map(|column| Column::of(column.type_())).collect())
    }

    /// Runs one statement.
    pub async fn query(&self, sql: &str) -> Result<Answer, Failure> {
        let client = self.client.as_ref().ok_or_else(|| Failure::Lost("it is shut down".into()))?;
        match self.product {
            Product::Stillframe => client.try_query(sql).await,
            Product::Postgresql => {
                client.try_query(variant::plain(sql).as_deref().unwrap_or(sql)).await
            }
        }
    }
}

#[async_trait]
impl AsyncDB for Session {
    type Error = Failure;
    type ColumnType = Column;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<Column>, Failure> {
        let answer = self.query(sql).await;
        if matches!(answer, Err(Failure::Lost(_) | Failure::Hung(_))) {
            // Even where any error is expected, this one never is.
            panic!("{answer:?}\n{sql}");
        }
        let answer = answer?;
        if let Some(client) = &self.client
            && self.asks_again
            && again::is_repeatable(sql)
            && let Err(difference) = again::in_binary(client.driver(), sql, &answer).await
        {
            panic!("{difference}");
        }
        let Some(columns) = answer.columns else {
            return Ok(DBOutput::StatementComplete(answer.count));
        };
        let types = match self.product {
            Product::Stillframe => vec![Column::ANY; columns.len()],
            Product::Postgresql => self.types(sql).await?,
        };
        Ok(DBOutput::Rows { types, rows: answer.rows })
    }

    async fn shutdown(&mut self) {
        self.client = None;
    }

    fn engine_name(&self) -> &str {
        match self.product {
            Product::Stillframe => "stillframe",
            Product::Postgresql => "postgresql",
        }
    }

    fn error_sql_state(failure: &Failure) -> Option<String> {
        failure.sqlstate().map(str::to_owned)
    }
}
