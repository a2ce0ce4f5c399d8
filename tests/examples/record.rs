//! Writes the answers of a PostgreSQL server into scripts: `record SOCKET_FOLDER FILE.slt ...`.
//!
//! A record `onlyif stillframe` stays as it is. A statement keeps what it expects (`ok`, `error`,
//! `count`): one that answers otherwise is reported, and the file isn't written. `tests/record`
//! starts the server.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use sqllogictest::{
    ExpectedError, QueryExpect, Record, RecordOutput, Runner, SortMode, StatementExpect,
};
use stillframe_tests::script::{Column, Product, Script, ScriptRecord, Session};
use stillframe_tests::{Client, Failure};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let socket = arguments.next().ok_or("usage: record SOCKET_FOLDER FILE.slt ...")?;
    let runtime = tokio::runtime::Runtime::new()?;
    let mut code = ExitCode::SUCCESS;
    for file in arguments {
        if let Err(error) = runtime.block_on(record(&socket, Path::new(&file))) {
            eprintln!("{error}");
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

async fn record(socket: &str, file: &Path) -> Result<(), Box<dyn Error>> {
    let script = Script::load(file.parent().unwrap_or(Path::new("")), file);
    let mut config = tokio_postgres::Config::new();
    config.host(socket).user("postgres").dbname("postgres");
    let connect = || async {
        Ok::<_, Failure>(Session::new(Client::open(&config).await?, Product::Postgresql))
    };
    let mut runner = Runner::new(connect);
    let mut text = String::new();
    for record in script.records() {
        let recorded = if matches!(record, Record::Statement { .. } | Record::Query { .. }) {
            let output = runner.apply_record(record.clone()).await;
            recorded(record, &output)?
        } else {
            record.clone()
        };
        writeln!(text, "{recorded}")?;
    }
    runner.shutdown_async().await;
    let text = format!("{}\n", text.trim_end());
    if std::fs::read_to_string(file)? != text {
        std::fs::write(file, text)?;
        println!("{}: changed", file.display());
    }
    Ok(())
}

/// The record with the answer that came.
fn recorded(record: &ScriptRecord, output: &RecordOutput<Column>) -> Result<ScriptRecord, String> {
    let mut record = record.clone();
    match (&mut record, output) {
        // Skipped: it isn't for PostgreSQL.
        (_, RecordOutput::Nothing) => {}
        (
            Record::Query {
                expected: QueryExpect::Results { types, results, sort_mode, .. }, ..
            },
            RecordOutput::Query { rows, error: None, types: actual },
        ) => {
            types.clone_from(actual);
            let mut rows = rows.clone();
            if *sort_mode == Some(SortMode::RowSort) {
                rows.sort_unstable();
            }
            *results = rows.iter().map(|row| row.join(" ")).collect();
        }
        (
            Record::Query { expected: QueryExpect::Error(expected), .. },
            RecordOutput::Query { error: Some(error), .. },
        )
        | (
            Record::Statement { expected: StatementExpect::Error(expected), .. },
            RecordOutput::Statement { error: Some(error), .. },
        ) => {
            let failure = error.downcast_ref::<Failure>().ok_or("an unknown kind of error")?;
            let sqlstate = failure.sqlstate().ok_or_else(|| failure.to_string())?;
            *expected = ExpectedError::SqlState(sqlstate.to_owned());
        }
        (
            Record::Statement { expected: StatementExpect::Count(expected), .. },
            RecordOutput::Statement { count, error: None },
        ) => *expected = *count,
        (
            Record::Statement { expected: StatementExpect::Ok, .. },
            RecordOutput::Statement { error: None, .. } | RecordOutput::Query { error: None, .. },
        ) => {}
        (Record::Statement { loc, .. } | Record::Query { loc, .. }, output) => {
            return Err(format!("{loc}: {output:?}"));
        }
        _ => {}
    }
    Ok(record)
}
