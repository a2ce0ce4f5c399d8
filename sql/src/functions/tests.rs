//! Expressions against PostgreSQL's recorded answers.
//!
//! Each line of `answers.tsv` is a query of one row and column with the type and the text that
//! PostgreSQL 15 (UTF8, C.UTF-8, UTC) has for it, or its SQLSTATE: the columns of
//! `select pg_typeof(q.v), q.v from (QUERY) q(v)`. `differences.tsv` has our answers where they are
//! others, each group with the reason. `generated.tsv` has the same of expressions over all operators,
//! functions and casts: `tests/expressions` writes it.

use std::collections::HashMap;

use arrow::array::RecordBatch;
use datafusion::common::DataFusionError;
use datafusion::config::Dialect;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::physical_plan::collect;
use datafusion::prelude::SessionConfig;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use stillframe_protocol::RowError;

use super::{register, rewrite};
use crate::{Error, TextColumn, TextFormat, Type};

pub(super) fn state() -> SessionState {
    let mut config = SessionConfig::new().with_target_partitions(2);
    let parser = &mut config.options_mut().sql_parser;
    parser.dialect = Dialect::PostgreSQL;
    parser.parse_float_as_decimal = true;
    parser.map_string_types_to_utf8view = false;
    let builder = SessionStateBuilder::new().with_config(config).with_default_features();
    register(builder).build()
}

/// The SQLSTATE of an error, or its text.
fn told(error: &DataFusionError) -> String {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<Error>() {
            return error.state.code().to_owned();
        }
        if let Some(error) = error.downcast_ref::<RowError>() {
            return error.sqlstate.clone();
        }
        cause = match error.downcast_ref::<DataFusionError>() {
            Some(DataFusionError::External(inner)) => Some(inner.as_ref()),
            Some(DataFusionError::ArrowError(inner, _)) => match inner.as_ref() {
                arrow::error::ArrowError::ExternalError(inner) => Some(inner.as_ref()),
                other => Some(other),
            },
            _ => error.source(),
        };
    }
    error.strip_backtrace()
}

/// Type and text of the only value, or the SQLSTATE.
pub(super) async fn answer(state: &SessionState, sql: &str) -> Result<(String, String), String> {
    let mut statements =
        Parser::parse_sql(&PostgreSqlDialect {}, sql).map_err(|e| e.to_string())?;
    let mut statement = statements.remove(0);
    rewrite(&mut statement).map_err(|error| error.state.code().to_owned())?;
    let told = |error: DataFusionError| told(&error);
    let plan =
        state.statement_to_plan(Statement::Statement(Box::new(statement))).await.map_err(told)?;
    let physical = state.create_physical_plan(&plan).await.map_err(told)?;
    let schema = physical.schema();
    let batches = collect(physical, state.task_ctx()).await.map_err(told)?;
    let kind = Type::of(schema.field(0)).ok_or("no type")?;
    let row: &RecordBatch = batches.iter().find(|batch| batch.num_rows() > 0).ok_or("no row")?;
    let column = TextColumn::new(&kind, row.column(0), &TextFormat::default())
        .map_err(|error| error.to_string())?;
    let mut text = vec![];
    let shown = if column.write(0, &mut text) {
        String::from_utf8(text).map_err(|error| error.to_string())?
    } else {
        "NULL".to_owned()
    };
    let kind = match kind {
        Type::Numeric(_) => "numeric".to_owned(),
        Type::Varchar(_) => "character varying".to_owned(),
        other => other.to_string(),
    };
    Ok((kind, shown))
}

/// What we answer on purpose otherwise than PostgreSQL, by query.
fn differences() -> HashMap<&'static str, &'static str> {
    let lines = include_str!("differences.tsv").lines();
    lines.filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('\t')).collect()
}

#[tokio::test]
async fn expressions_have_postgresql_s_answers() {
    let state = state();
    let mut differences = differences();
    let mut wrong = vec![];
    let generated = include_str!("generated.tsv").lines();
    for line in include_str!("answers.tsv").lines().chain(generated) {
        let (sql, recorded) = line.split_once('\t').unwrap();
        let expected = differences.remove(sql).unwrap_or(recorded);
        let got = match answer(&state, sql).await {
            Ok((kind, text)) => format!("{kind}\t{text}"),
            Err(state) => state,
        };
        if got != expected {
            wrong.push(format!("{sql}\n  expected: {expected}\n  got:      {got}"));
        }
    }
    assert!(wrong.is_empty(), "{} answers differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(differences.is_empty(), "nobody asks {differences:?}");
}
