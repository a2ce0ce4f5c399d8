//! CREATE SCHEMA.

use datafusion::sql::sqlparser::ast::{SchemaName, Statement};

use super::Edit;
use crate::catalog::Schema;
use crate::query::QueryContext;
use crate::session::Notice;
use crate::{Error, SqlState, names, system};

/// Adds a schema.
pub(super) fn create(context: &QueryContext, statement: &Statement) -> Result<Edit, Error> {
    let Statement::CreateSchema {
        schema_name,
        if_not_exists,
        with: None,
        options: None,
        default_collate_spec: None,
        clone: None,
    } = statement
    else {
        return Err(Error::unsupported(statement));
    };
    let name = match schema_name {
        SchemaName::Simple(name) => name,
        _ => return Err(Error::unsupported("CREATE SCHEMA ... AUTHORIZATION")),
    };
    let (database, name) = names::relation(name)?;
    if let Some(database) = database
        && !crate::database::is_name(&database)
    {
        let message = "cross-database references are not implemented";
        return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    if context.catalog.schemas.contains_key(&name) || system::SCHEMAS.contains(&name.as_str()) {
        let message = format!("schema \"{name}\" already exists");
        return match if_not_exists {
            true => {
                let message = format!("{message}, skipping");
                Ok(Edit::Nothing(Notice::of(Error::new(SqlState::DUPLICATE_SCHEMA, message))))
            }
            false => Err(Error::new(SqlState::DUPLICATE_SCHEMA, message)),
        };
    }
    if name.starts_with("pg_") {
        let message = format!("unacceptable schema name \"{name}\"");
        return Err(Error::new(SqlState::RESERVED_NAME, message)
            .with_detail("The prefix \"pg_\" is reserved for system schemas."));
    }
    let mut catalog = (*context.catalog).clone();
    let oid = catalog.allocate();
    catalog.schemas.insert(name, Schema { oid, comment: None });
    Ok(Edit::changed(catalog))
}
