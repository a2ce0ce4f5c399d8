//! `pg_prepared_statements` and `pg_cursors`: what the session that asks has.

use crate::query::QueryContext;
use crate::system::table::Cell;

/// The statements that are kept under a name.
pub(super) fn prepared_statements(context: &QueryContext) -> Vec<Vec<Cell>> {
    let row = |name: &str, fact: &crate::facts::Statement| {
        let types = fact.types.iter().map(|kind| i64::from(kind.oid())).collect();
        vec![
            name.into(),
            fact.text.as_str().into(),
            Cell::Time(fact.since_us),
            Cell::List(types),
            fact.is_from_sql.into(),
            0.into(),
            0.into(),
        ]
    };
    context.settings.facts().statements(row)
}

/// The cursors that are open.
pub(super) fn cursors(context: &QueryContext) -> Vec<Vec<Cell>> {
    let row = |name: &str, fact: &crate::facts::Cursor| {
        vec![
            name.into(),
            fact.text.as_str().into(),
            fact.is_held.into(),
            false.into(),
            fact.goes_back.into(),
            Cell::Time(fact.since_us),
        ]
    };
    context.settings.facts().cursors(row)
}
