//! Errors of evaluation in PostgreSQL's words, classified once, at the root cause.

use std::error::Error;

use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use datafusion::common::DataFusionError;
use stillframe_protocol::RowError;

use super::arithmetic::{division_by_zero, out_of_range};

/// What a row did wrong, from the error that the evaluation of an expression gave.
///
/// A function that knows better than DataFusion raises [`DataFusionError::External`] with a
/// [`RowError`], which is passed on as it is.
pub fn row_error(error: &DataFusionError) -> RowError {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    let mut root = None;
    while let Some(error) = cause {
        if let Some(known) = error.downcast_ref::<RowError>() {
            return known.clone();
        }
        // Neither wrapper names what it carries among its sources.
        let carried = match error.downcast_ref::<ArrowError>() {
            Some(ArrowError::ExternalError(carried)) => Some(&**carried as &(dyn Error + 'static)),
            _ => match error.downcast_ref::<DataFusionError>() {
                Some(DataFusionError::External(carried)) => {
                    Some(&**carried as &(dyn Error + 'static))
                }
                _ => None,
            },
        };
        if let Some(arrow) = error.downcast_ref::<ArrowError>() {
            root = Some(arrow);
        }
        cause = carried.or_else(|| error.source());
    }
    match root {
        Some(error) => arrow_error(error),
        None => message(&error.find_root().strip_backtrace()),
    }
}

fn arrow_error(error: &ArrowError) -> RowError {
    match error {
        ArrowError::DivideByZero => division_by_zero(),
        ArrowError::ArithmeticOverflow(_) => out_of_range(&DataType::Int32),
        ArrowError::CastError(text)
        | ArrowError::ParseError(text)
        | ArrowError::InvalidArgumentError(text)
        | ArrowError::ComputeError(text) => message(text),
        error => message(&error.to_string()),
    }
}

/// Recognises what Arrow's casts and DataFusion's kernels say.
fn message(text: &str) -> RowError {
    if let Some((value, target)) = bad_text(text) {
        return invalid_text(value, target);
    }
    if let Some(target) = text.strip_prefix("Can't cast value ").and_then(target_type) {
        return out_of_range(&target);
    }
    let too_long =
        ["is too large to store in a Decimal", "Cannot cast to Decimal", "Overflowing on"];
    if too_long.iter().any(|known| text.contains(known)) {
        return error("22003", "numeric field overflow");
    }
    if text.contains("Error parsing timestamp from") || text.contains("Error parsing date from") {
        let value = quoted(text).unwrap_or_default();
        return invalid_text(value, "Timestamp");
    }
    if text.contains("Invalid input syntax for type interval") {
        let value = text.rsplit_once(": ").map_or("", |(_, value)| value).trim_matches('"');
        return invalid_text(value, "Interval");
    }
    if text.contains("Regular expression did not compile") {
        return error("2201B", &format!("invalid regular expression: {text}"));
    }
    if text.contains("ivide by zero") || text.contains("ivision by zero") {
        return division_by_zero();
    }
    if text.contains("verflow") {
        return out_of_range(&DataType::Null);
    }
    error("22000", text)
}

/// "Cannot cast string 'abc' to value of Int32 type" as ("abc", "Int32").
fn bad_text(text: &str) -> Option<(&str, &str)> {
    let rest = text
        .strip_prefix("Cannot cast string '")
        .or_else(|| text.strip_prefix("Cannot cast value '"))?;
    let (value, rest) = rest.rsplit_once("' to value of ")?;
    Some((value, rest.strip_suffix(" type")?))
}

/// "70000 to type Int16" as `Int16`.
fn target_type(text: &str) -> Option<DataType> {
    match text.rsplit_once(" to type ")?.1 {
        "Int16" => Some(DataType::Int16),
        "Int32" => Some(DataType::Int32),
        "Int64" => Some(DataType::Int64),
        "Float32" => Some(DataType::Float32),
        "Float64" => Some(DataType::Float64),
        _ => None,
    }
}

fn quoted(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('\'')?;
    rest.split_once('\'').map(|(value, _)| value)
}

/// Text that isn't a value of a type; `target` is Arrow's name of it.
fn invalid_text(value: &str, target: &str) -> RowError {
    let (state, name) = match target.split(['(', ' ']).next().unwrap_or(target) {
        "Boolean" => ("22P02", "boolean"),
        "Int16" => ("22P02", "smallint"),
        "Int32" => ("22P02", "integer"),
        "Int64" => ("22P02", "bigint"),
        "Float32" => ("22P02", "real"),
        "Float64" => ("22P02", "double precision"),
        "Decimal128" => ("22P02", "numeric"),
        "Date32" => ("22007", "date"),
        "Time64" => ("22007", "time"),
        "Timestamp" => ("22007", "timestamp"),
        "Interval" => ("22007", "interval"),
        other => ("22P02", other),
    };
    let is_integer = matches!(name, "smallint" | "integer" | "bigint");
    let digits = value.trim().trim_start_matches(['-', '+']);
    if is_integer && !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return error("22003", &format!("value \"{value}\" is out of range for type {name}"));
    }
    error(state, &format!("invalid input syntax for type {name}: \"{value}\""))
}

fn error(sqlstate: &str, message: &str) -> RowError {
    RowError { sqlstate: sqlstate.to_owned(), message: message.to_owned() }
}
