//! The relations that nobody creates: `pg_catalog`, `information_schema` and `stillframe`, and the
//! functions that answer from the catalog.
//!
//! They are tables like others: what `pg_catalog` and `information_schema` show is the catalog of
//! the statement's step, what `stillframe` shows is what the cluster does when it is asked.

mod functions;
mod information_schema;
mod keywords;
mod pg_catalog;
mod status;
mod table;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use datafusion::catalog::TableProvider;

use crate::query::QueryContext;

pub(crate) use functions::register;
pub(crate) use keywords::is_special_word;
pub(crate) use pg_catalog::read_by;

/// The schemas whose relations nobody creates.
pub(crate) const SCHEMAS: &[&str] = &["pg_catalog", "information_schema", "stillframe"];

/// The user who owns everything.
pub(crate) const OWNER: &str = "stillframe";
/// Its OID, which is that of PostgreSQL's first superuser.
pub(crate) const OWNER_OID: u32 = 10;

/// The relation with this schema and name.
pub(crate) fn table(
    context: &QueryContext,
    schema: &str,
    name: &str,
) -> Option<Arc<dyn TableProvider>> {
    match schema {
        "pg_catalog" => pg_catalog::table(context, name).map(table::SystemTable::provider),
        "information_schema" => {
            information_schema::table(&context.catalog, name).map(table::SystemTable::provider)
        }
        "stillframe" => status::table(context, name),
        _ => None,
    }
}
