//! COMMENT ON.

use datafusion::sql::sqlparser::ast::{CommentObject, ObjectName, Statement};

use super::Edit;
use crate::query::QueryContext;
use crate::{Error, Relation, RelationKind, SqlState, names, system};

/// Sets a comment, or removes it.
pub(super) fn comment(context: &QueryContext, statement: &Statement) -> Result<Edit, Error> {
    let Statement::Comment { object_type, object_name, comment, if_exists: false } = statement
    else {
        return Err(Error::unsupported(statement));
    };
    let text = comment.clone().filter(|text| !text.is_empty());
    let mut catalog = (*context.catalog).clone();
    match object_type {
        CommentObject::Schema => {
            let (_, name) = names::relation(object_name)?;
            if system::SCHEMAS.contains(&name.as_str()) {
                return Err(not_ours(&name));
            }
            match catalog.schemas.get_mut(&name) {
                Some(schema) => schema.comment = text,
                None => {
                    let message = format!("schema \"{name}\" does not exist");
                    return Err(Error::new(SqlState::INVALID_SCHEMA_NAME, message));
                }
            }
        }
        CommentObject::Table | CommentObject::View | CommentObject::MaterializedView => {
            let id = relation(context, object_name, object_type)?.id;
            if let Some(relation) = catalog.relations.get_mut(&id) {
                relation.comment = text;
            }
        }
        CommentObject::Column => {
            let mut table = object_name.clone();
            let Some(column) = table.0.pop().filter(|_| !table.0.is_empty()) else {
                let message = "column name must be qualified";
                return Err(Error::new(SqlState::SYNTAX_ERROR, message));
            };
            let column = column.as_ident().map(names::fold).unwrap_or_default();
            let relation = context.relation(&table)?;
            let place = relation.columns.iter().position(|known| known.name == column);
            let place = place.ok_or_else(|| {
                let message =
                    format!("column \"{column}\" of relation \"{}\" does not exist", relation.name);
                Error::new(SqlState::UNDEFINED_COLUMN, message)
            })?;
            if let Some(relation) = catalog.relations.get_mut(&relation.id) {
                relation.columns[place].comment = text;
            }
        }
        other => return Err(Error::unsupported(format!("COMMENT ON {other}"))),
    }
    Ok(Edit::changed(catalog))
}

fn relation<'a>(
    context: &'a QueryContext,
    name: &ObjectName,
    object: &CommentObject,
) -> Result<&'a Relation, Error> {
    let relation = context.relation(name)?;
    let (fits, what) = match object {
        CommentObject::View => (matches!(relation.kind, RelationKind::View { .. }), "a view"),
        CommentObject::MaterializedView => {
            (matches!(relation.kind, RelationKind::MaterializedView { .. }), "a materialized view")
        }
        _ => (matches!(relation.kind, RelationKind::Table { .. }), "a table"),
    };
    if fits {
        return Ok(relation);
    }
    let message = format!("\"{}\" is not {what}", relation.name);
    Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message))
}

fn not_ours(name: &str) -> Error {
    let message = format!("must be owner of schema {name}");
    Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
}
