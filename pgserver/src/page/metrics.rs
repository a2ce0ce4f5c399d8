//! `/metrics` in Prometheus' text format.

use std::fmt::Write as _;
use std::sync::Arc;

use stillframe_sql::{Database, Error};

use crate::table::Table;

/// Of Prometheus' text format.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A family of metrics: its name, type and help, and a query whose last column is the value and whose
/// others are labels.
struct Family {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    sql: &'static str,
}

const FAMILIES: [Family; 8] = [
    Family {
        name: "stillframe_step",
        kind: "counter",
        help: "The newest step that every host has completed.",
        sql: "SELECT stillframe.current_step() AS step",
    },
    Family {
        name: "stillframe_step_microseconds",
        kind: "gauge",
        help: "How long the newest step took.",
        sql: "SELECT took_us FROM stillframe.steps ORDER BY step DESC LIMIT 1",
    },
    Family {
        name: "stillframe_host_step",
        kind: "counter",
        help: "The newest step of each host.",
        sql: "SELECT host, step FROM stillframe.hosts ORDER BY host",
    },
    Family {
        name: "stillframe_host_frames",
        kind: "gauge",
        help: "How many frames each host keeps.",
        sql: "SELECT host, frames FROM stillframe.hosts ORDER BY host",
    },
    Family {
        name: "stillframe_worker_entries",
        kind: "gauge",
        help: "Entries of all relations on each worker.",
        sql: "SELECT host, worker, entries FROM stillframe.workers ORDER BY host, worker",
    },
    Family {
        name: "stillframe_leases",
        kind: "gauge",
        help: "How many leases are held.",
        sql: "SELECT count(*) FROM stillframe.leases",
    },
    Family {
        name: "stillframe_jobs",
        kind: "gauge",
        help: "Changes of the catalog that are under way or wait.",
        sql: "SELECT count(*) FROM stillframe.jobs",
    },
    Family {
        name: "stillframe_relation_entries",
        kind: "gauge",
        help: "Entries of each view.",
        sql: "SELECT schema, name, entries FROM stillframe.views ORDER BY schema, name",
    },
];

/// All metrics as they are now.
pub(super) async fn exposition(database: &Arc<Database>) -> Result<String, Error> {
    let mut text = String::new();
    for Family { name, kind, help, sql } in FAMILIES {
        let table = Table::read(database, sql).await?;
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for row in &table.rows {
            let Some((Some(value), labels)) = row.split_last() else { continue };
            let labels = table.columns.iter().zip(labels).map(|(column, label)| {
                format!("{column}=\"{}\"", escaped(label.as_deref().unwrap_or_default()))
            });
            let labels = labels.collect::<Vec<_>>().join(",");
            let labels = if labels.is_empty() { labels } else { format!("{{{labels}}}") };
            let _ = writeln!(text, "{name}{labels} {value}");
        }
    }
    Ok(text)
}

fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        assert_eq!(escaped("a\"b\\c\nd"), r#"a\"b\\c\nd"#);
    }
}
