//! DataFusion's errors, classified once by their root cause.

use arrow::error::ArrowError;
use datafusion::common::{DataFusionError, SchemaError};
use stillframe_protocol::{HostError, RowError};

use crate::{Error, SqlState};

/// What PostgreSQL would say.
pub(crate) fn classify(error: DataFusionError) -> Error {
    let error = root(&error);
    // It comes in many wrappings, all of which keep the library's text.
    if error.message.contains("regex parse error") {
        let reason = error.message.lines().rev().find_map(|line| line.strip_prefix("error: "));
        let reason = reason.unwrap_or("it cannot be read");
        let message = format!("invalid regular expression: {reason}");
        return Error::new(SqlState::INVALID_REGULAR_EXPRESSION, message);
    }
    error
}

fn root(error: &DataFusionError) -> Error {
    match error {
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => root(inner),
        DataFusionError::Shared(inner) => root(inner),
        DataFusionError::Collection(errors) => match errors.first() {
            Some(first) => root(first),
            None => Error::internal("an error without a cause"),
        },
        DataFusionError::External(inner) => external(inner.as_ref()),
        DataFusionError::ArrowError(inner, _) => arrow(inner),
        DataFusionError::SchemaError(inner, _) => schema(inner),
        DataFusionError::NotImplemented(message) => {
            Error::new(SqlState::FEATURE_NOT_SUPPORTED, tidy(message))
        }
        DataFusionError::Plan(message) => plan(message),
        DataFusionError::Execution(message) => execution(message),
        DataFusionError::ResourcesExhausted(message) => {
            Error::new(SqlState::OUT_OF_MEMORY, "out of memory").with_detail(message.clone())
        }
        DataFusionError::IoError(error) => {
            Error::new(SqlState::IO_ERROR, format!("could not spill to disk: {error}"))
        }
        DataFusionError::SQL(error, _) => {
            Error::new(SqlState::SYNTAX_ERROR, tidy(&error.to_string()))
        }
        DataFusionError::Configuration(message)
        | DataFusionError::Internal(message)
        | DataFusionError::Substrait(message)
        | DataFusionError::Ffi(message) => Error::internal(tidy(message)),
        DataFusionError::ExecutionJoin(error) => Error::internal(error.to_string()),
        other => Error::internal(other.to_string()),
    }
}

fn external(error: &(dyn std::error::Error + Send + Sync + 'static)) -> Error {
    if let Some(error) = error.downcast_ref::<Error>() {
        error.clone()
    } else if let Some(error) = error.downcast_ref::<RowError>() {
        error.clone().into()
    } else if let Some(error) = error.downcast_ref::<HostError>() {
        error.clone().into()
    } else if let Some(error) = error.downcast_ref::<DataFusionError>() {
        root(error)
    } else if let Some(error) = error.downcast_ref::<ArrowError>() {
        arrow(error)
    } else {
        Error::internal(error.to_string())
    }
}

fn arrow(error: &ArrowError) -> Error {
    match error {
        ArrowError::DivideByZero => Error::new(SqlState::DIVISION_BY_ZERO, "division by zero"),
        ArrowError::ArithmeticOverflow(_) => {
            Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range")
        }
        ArrowError::ExternalError(inner) => external(inner.as_ref()),
        ArrowError::CastError(message) => {
            Error::new(SqlState::INVALID_TEXT_REPRESENTATION, tidy(message))
        }
        ArrowError::ParseError(message) => {
            Error::new(SqlState::INVALID_TEXT_REPRESENTATION, tidy(message))
        }
        ArrowError::InvalidArgumentError(message) | ArrowError::ComputeError(message) => {
            if message.to_ascii_lowercase().contains("overflow")
                || message.contains("is too large to store")
            {
                Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range")
            } else {
                Error::new(SqlState::DATA_EXCEPTION, tidy(message))
            }
        }
        ArrowError::NotYetImplemented(message) => {
            Error::new(SqlState::FEATURE_NOT_SUPPORTED, tidy(message))
        }
        other => Error::internal(other.to_string()),
    }
}

fn schema(error: &SchemaError) -> Error {
    match error {
        SchemaError::AmbiguousReference { field } => {
            let message = format!("column reference \"{}\" is ambiguous", field.name);
            Error::new(SqlState::AMBIGUOUS_COLUMN, message)
        }
        SchemaError::FieldNotFound { field, .. } => {
            let message = match &field.relation {
                Some(relation) => format!("column {}.{} does not exist", relation, field.name),
                None => format!("column \"{}\" does not exist", field.name),
            };
            Error::new(SqlState::UNDEFINED_COLUMN, message)
        }
        SchemaError::DuplicateQualifiedField { name, .. }
        | SchemaError::DuplicateUnqualifiedField { name } => {
            let message = format!("column \"{name}\" specified more than once");
            Error::new(SqlState::DUPLICATE_COLUMN, message)
        }
    }
}

fn plan(message: &str) -> Error {
    if message.contains("LIMIT must be >= 0") {
        let message = "LIMIT must not be negative";
        return Error::new(SqlState::INVALID_ROW_COUNT_IN_LIMIT, message);
    }
    if message.contains("OFFSET must be >=0") {
        let message = "OFFSET must not be negative";
        return Error::new(SqlState::INVALID_ROW_COUNT_IN_OFFSET, message);
    }
    let state = if message.contains("must appear in the GROUP BY clause") {
        SqlState::GROUPING_ERROR
    } else if message.starts_with("Invalid function") || message.contains("No function matches") {
        SqlState::UNDEFINED_FUNCTION
    } else if message.contains("DISTINCT ON expressions must match") {
        SqlState::INVALID_COLUMN_REFERENCE
    } else if message.starts_with("Error during planning: Cannot infer common") {
        SqlState::DATATYPE_MISMATCH
    } else {
        SqlState::SYNTAX_ERROR
    };
    Error::new(state, tidy(message))
}

fn execution(message: &str) -> Error {
    if message.contains("more than one row") {
        let message = "more than one row returned by a subquery used as an expression";
        return Error::new(SqlState::CARDINALITY_VIOLATION, message);
    }
    Error::new(SqlState::DATA_EXCEPTION, tidy(message))
}

/// The first line, in lower case, without a period.
fn tidy(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default().trim_end_matches('.');
    let mut characters = line.chars();
    match (characters.next(), characters.clone().next()) {
        (Some(first), Some(second)) if first.is_uppercase() && second.is_lowercase() => {
            first.to_lowercase().chain(characters).collect()
        }
        _ => line.to_owned(),
    }
}
