//! The relations that nobody creates: `pg_catalog`, `information_schema` and `stillframe`.

use std::sync::Arc;

use datafusion::catalog::TableProvider;

use crate::query::QueryContext;

/// The schemas whose relations nobody creates.
pub(crate) const SCHEMAS: &[&str] = &["pg_catalog", "information_schema", "stillframe"];

/// The relation with this schema and name.
pub(crate) fn table(
    _context: &QueryContext,
    _schema: &str,
    _name: &str,
) -> Option<Arc<dyn TableProvider>> {
    None
}
