//! Queries asked again as drivers do: prepared, with the results in binary format.

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

use crate::{Answer, Failure};

/// Whether a statement can be asked again without changing anything, and then answers the same.
pub(super) fn is_repeatable(sql: &str) -> bool {
    let sql = sql.trim().trim_end_matches(';').to_lowercase();
    let reads = ["select", "with", "values", "table", "("];
    let changes = [
        ";",
        "insert",
        "update",
        "delete",
        "merge",
        "into",
        "nextval",
        "setval",
        "lastval",
        "currval",
        "random",
        "clock_timestamp",
        "statement_timestamp",
        "set_config",
        "notify",
        "advisory",
        "cursors",
        "prepared_statements",
        "leases",
    ];
    reads.iter().any(|word| sql.starts_with(word)) && !changes.iter().any(|word| sql.contains(word))
}

/// Asks a query again; an error tells what differs from the answer in text.
pub(super) async fn in_binary(driver: &Client, sql: &str, answer: &Answer) -> Result<(), String> {
    let failed = |error| format!("in binary format: {}\n{sql}", Failure::from(error));
    let statement = driver.prepare(sql).await.map_err(failed)?;
    let names = [Type::REGCLASS, Type::REGTYPE, Type::REGPROC, Type::REGNAMESPACE, Type::REGROLE];
    if statement.columns().iter().any(|column| names.contains(column.type_())) {
        // Refused, see the differences in `docs`.
        return Ok(());
    }
    let rows = driver.query(&statement, &[]).await.map_err(failed)?;
    let plain = |column: &usize| is_plain(statement.columns()[*column].type_());
    let columns: Vec<usize> = (0..statement.columns().len()).filter(plain).collect();
    let mut found: Vec<_> = rows.iter().map(|row| shown(row, &columns)).collect();
    let wanted = answer.rows.iter().map(|row| columns.iter().map(|column| row[*column].clone()));
    let mut wanted: Vec<Vec<_>> = wanted.map(Iterator::collect).collect();
    // Without an ORDER BY they may come in any order.
    found.sort();
    wanted.sort();
    if found == wanted {
        return Ok(());
    }
    Err(format!("in binary format {found:?}, in text {wanted:?}\n{sql}"))
}

/// The types whose values the driver can show as PostgreSQL does.
fn is_plain(kind: &Type) -> bool {
    let plain = [Type::BOOL, Type::INT2, Type::INT4, Type::INT8, Type::TEXT, Type::VARCHAR];
    plain.contains(kind)
}

fn shown(row: &Row, columns: &[usize]) -> Vec<String> {
    let shown = columns.iter().map(|column| {
        let value = match *row.columns()[*column].type_() {
            Type::BOOL => row
                .get::<_, Option<bool>>(*column)
                .map(|value| if value { "t" } else { "f" }.to_owned()),
            Type::INT2 => row.get::<_, Option<i16>>(*column).map(|value| value.to_string()),
            Type::INT4 => row.get::<_, Option<i32>>(*column).map(|value| value.to_string()),
            Type::INT8 => row.get::<_, Option<i64>>(*column).map(|value| value.to_string()),
            _ => row.get::<_, Option<String>>(*column),
        };
        crate::client::shown(value.as_deref())
    });
    shown.collect()
}
