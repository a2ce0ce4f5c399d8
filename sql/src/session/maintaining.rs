//! VACUUM and its like, of which only the names are looked at.

use super::Session;
use crate::ddl::find_index;
use crate::parser::Maintenance;
use crate::{Error, RelationKind, SqlState, names};

impl Session {
    /// Looks for what is to be put in order; returns the tag.
    pub(super) async fn maintain(&mut self, what: &Maintenance) -> Result<&'static str, Error> {
        let Maintenance { tag, names, names_index, is_alone } = what;
        if *is_alone && !self.transaction.is_idle() && !self.transaction.is_implicit() {
            let message = format!("{tag} cannot run inside a transaction block");
            return Err(Error::new(SqlState::ACTIVE_SQL_TRANSACTION, message));
        }
        let context = self.context().await?;
        for name in names {
            if *names_index {
                let (schema, index) = names::relation(name)?;
                let schemas = schema.map_or_else(|| self.settings.search_path(), |one| vec![one]);
                let mut schemas = schemas.iter();
                if schemas.all(|schema| find_index(&context.catalog, schema, &index).is_none()) {
                    let message = format!("relation \"{}\" does not exist", names::unquoted(name));
                    return Err(Error::new(SqlState::UNDEFINED_TABLE, message));
                }
                continue;
            }
            let relation = context.relation(name)?;
            if !matches!(relation.kind, RelationKind::View { .. }) {
                continue;
            }
            let name = &relation.name;
            match *tag {
                "VACUUM" => self.warn(
                    SqlState::WARNING,
                    &format!(
                        "skipping \"{name}\" --- cannot vacuum non-tables or special system tables"
                    ),
                ),
                "ANALYZE" => self.warn(
                    SqlState::WARNING,
                    &format!(
                        "skipping \"{name}\" --- cannot analyze non-tables or special system tables"
                    ),
                ),
                _ => {
                    let message = format!("\"{name}\" is not a table or materialized view");
                    return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message));
                }
            }
        }
        Ok(tag)
    }
}
