//! Constraints that rows break, in PostgreSQL's words.

use arrow::array::ArrayRef;
use arrow::record_batch::RecordBatch;

use super::{Target, UniqueKey};
use crate::text::{TextColumn, TextFormat};
use crate::{Column, Error, SqlState, Subject, names};

/// How many bytes of a value are shown of a row.
const SHOWN_BYTES_MAX: usize = 64;

/// A key that is there already. `keys` has the key's columns.
pub(crate) fn unique_violation(
    target: &Target,
    key: &UniqueKey,
    keys: &RecordBatch,
    row: usize,
) -> Error {
    let message = format!("duplicate key value violates unique constraint \"{}\"", key.name);
    let error = Error::new(SqlState::UNIQUE_VIOLATION, message)
        .about(Subject::constraint(target.relation(), &key.name));
    match key_text(target, &key.columns, keys, row) {
        Ok(key) => error.with_detail(format!("Key {key} already exists.")),
        Err(_) => error,
    }
}

/// `(a, b)=(1, 2)`. `columns` are places as stored, `keys` has their values.
pub(super) fn key_text(
    target: &Target,
    columns: &[usize],
    keys: &RecordBatch,
    row: usize,
) -> Result<String, Error> {
    let stored: Vec<&Column> = target.stored_columns().collect();
    let columns: Vec<&Column> = columns.iter().map(|place| stored[*place]).collect();
    let names: Vec<_> = columns.iter().map(|column| names::quote(&column.name)).collect();
    let values = columns.iter().zip(keys.columns()).map(|(column, array)| {
        text(column, array, row).map(|value| value.unwrap_or_else(|| "null".to_owned()))
    });
    let values = values.collect::<Result<Vec<_>, Error>>()?;
    Ok(format!("({})=({})", names.join(", "), values.join(", ")))
}

/// A row that a CHECK is false of. `row` has a value of each column, as defined.
pub(crate) fn check_violation(target: &Target, constraint: &str, row: &[ArrayRef]) -> Error {
    let message = format!(
        "new row for relation \"{}\" violates check constraint \"{constraint}\"",
        target.relation().name
    );
    let error = Error::new(SqlState::CHECK_VIOLATION, message)
        .about(Subject::constraint(target.relation(), constraint));
    failing(target, error, row)
}

/// A row with a NULL in a column that takes none. `row` has a value of each column, as defined.
pub(super) fn not_null_violation(target: &Target, column: &Column, row: &[ArrayRef]) -> Error {
    let table = &target.relation().name;
    let message = format!(
        "null value in column \"{}\" of relation \"{table}\" violates not-null constraint",
        column.name
    );
    let error = Error::new(SqlState::NOT_NULL_VIOLATION, message)
        .about(Subject::column(target.relation(), &column.name));
    failing(target, error, row)
}

fn failing(target: &Target, error: Error, row: &[ArrayRef]) -> Error {
    let values = target.relation().columns.iter().zip(row).map(|(column, value)| {
        Ok(text(column, value, 0)?.map_or_else(|| "null".to_owned(), |value| shown(&value)))
    });
    match values.collect::<Result<Vec<_>, Error>>() {
        Ok(values) => error.with_detail(format!("Failing row contains ({}).", values.join(", "))),
        Err(_) => error,
    }
}

fn text(column: &Column, array: &ArrayRef, row: usize) -> Result<Option<String>, Error> {
    let mut out = vec![];
    let is_value =
        TextColumn::new(&column.kind, array, &TextFormat::default())?.write(row, &mut out);
    Ok(is_value.then(|| String::from_utf8_lossy(&out).into_owned()))
}

fn shown(value: &str) -> String {
    if value.len() <= SHOWN_BYTES_MAX {
        return value.to_owned();
    }
    format!("{}...", &value[..value.floor_char_boundary(SHOWN_BYTES_MAX)])
}
