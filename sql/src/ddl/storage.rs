//! The storage parameters of tables: read as PostgreSQL does, and not needed.

use datafusion::sql::sqlparser::ast::{Expr, SqlOption, Value};

use crate::{Error, SqlState, names};

/// The parameters that tables have in PostgreSQL.
const KNOWN: &[&str] = &[
    "autovacuum_analyze_scale_factor",
    "autovacuum_analyze_threshold",
    "autovacuum_enabled",
    "autovacuum_freeze_max_age",
    "autovacuum_freeze_min_age",
    "autovacuum_freeze_table_age",
    "autovacuum_multixact_freeze_max_age",
    "autovacuum_multixact_freeze_min_age",
    "autovacuum_multixact_freeze_table_age",
    "autovacuum_vacuum_cost_delay",
    "autovacuum_vacuum_cost_limit",
    "autovacuum_vacuum_insert_scale_factor",
    "autovacuum_vacuum_insert_threshold",
    "autovacuum_vacuum_scale_factor",
    "autovacuum_vacuum_threshold",
    "fillfactor",
    "log_autovacuum_min_duration",
    "oids",
    "parallel_workers",
    "toast_tuple_target",
    "user_catalog_table",
    "vacuum_index_cleanup",
    "vacuum_truncate",
];

/// Refuses what PostgreSQL refuses.
pub(super) fn check(options: &[SqlOption]) -> Result<(), Error> {
    let invalid = |message: String| Error::new(SqlState::INVALID_PARAMETER_VALUE, message);
    for option in options {
        let SqlOption::KeyValue { key, value } = option else {
            return Err(Error::unsupported(format!("the storage parameter {option}")));
        };
        let name = names::fold(key);
        if !KNOWN.contains(&name.as_str()) {
            return Err(invalid(format!("unrecognized parameter \"{name}\"")));
        }
        let text = match value {
            Expr::Value(value) => match &value.value {
                Value::Number(text, _) | Value::SingleQuotedString(text) => text.clone(),
                other => other.to_string(),
            },
            other => other.to_string(),
        };
        match name.as_str() {
            "oids" if !matches!(text.to_ascii_lowercase().as_str(), "false" | "off" | "0") => {
                let message = "tables declared WITH OIDS are not supported";
                return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            "fillfactor" => {
                let number = text.parse::<i32>().map_err(|_| {
                    invalid(format!("invalid value for integer option \"fillfactor\": {text}"))
                })?;
                if !(10..=100).contains(&number) {
                    let message = format!("value {number} out of bounds for option \"fillfactor\"");
                    return Err(invalid(message)
                        .with_detail("Valid values are between \"10\" and \"100\"."));
                }
            }
            _ => {}
        }
    }
    Ok(())
}
