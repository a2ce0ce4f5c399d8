//! Names of objects and their OIDs: what `regclass` and its relatives read and write.

use super::Scope;
use crate::system::pg_catalog;
use crate::{Error, SqlState, Type, names};

/// The parts of a name as SQL text has it: folded, unless quoted.
fn parts(text: &str) -> Option<Vec<String>> {
    let mut parts = vec![];
    let mut part = String::new();
    let mut is_quoted = false;
    let mut characters = text.trim().chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '"' if is_quoted && characters.next_if_eq(&'"').is_some() => part.push('"'),
            '"' => is_quoted = !is_quoted,
            '.' if !is_quoted => parts.push(std::mem::take(&mut part)),
            c if is_quoted => part.push(c),
            c => part.extend(c.to_lowercase()),
        }
    }
    parts.push(part);
    (!is_quoted && parts.iter().all(|part| !part.is_empty())).then_some(parts)
}

/// The schemas that a name without one is looked for in.
fn search_path(scope: &Scope) -> Vec<String> {
    let mut path = scope.settings.search_path();
    if !path.iter().any(|schema| schema == "pg_catalog") {
        path.insert(0, "pg_catalog".to_owned());
    }
    path
}

/// The OID of the relation that a text names.
pub(super) fn relation(scope: &Scope, text: &str) -> Option<u32> {
    let parts = parts(text)?;
    let (schemas, name) = match parts.as_slice() {
        [name] => (search_path(scope), name),
        [schema, name] => (vec![schema.clone()], name),
        [database, schema, name] if crate::database::is_name(database) => {
            (vec![schema.clone()], name)
        }
        _ => return None,
    };
    schemas.iter().find_map(|schema| pg_catalog::relation_oid(&scope.catalog, schema, name))
}

/// The qualified name of the sequence that a column has.
pub(super) fn serial_sequence(
    scope: &Scope,
    table: &str,
    column: &str,
) -> Result<Option<String>, Error> {
    let missing = || {
        let message = format!("relation \"{table}\" does not exist");
        Error::new(SqlState::UNDEFINED_TABLE, message)
    };
    let oid = relation(scope, table).ok_or_else(missing)?;
    let found =
        scope.catalog.relations.get(&stillframe_protocol::RelationId(oid)).ok_or_else(missing)?;
    let place = found.columns.iter().position(|known| known.name == column);
    let place = place.ok_or_else(|| {
        let message = format!("column \"{column}\" of relation \"{}\" does not exist", found.name);
        Error::new(SqlState::UNDEFINED_COLUMN, message)
    })?;
    let mut sequences = scope.catalog.sequences.values();
    let owned = sequences.find(|sequence| sequence.owner == Some((found.id, place)));
    Ok(owned.map(|sequence| {
        format!("{}.{}", names::quote(&sequence.schema), names::quote(&sequence.name))
    }))
}

/// Whether a relation is what its name alone means.
pub(super) fn is_visible(scope: &Scope, oid: u32) -> Option<bool> {
    let (schema, name) = pg_catalog::relation_name(&scope.catalog, oid)?;
    let first = search_path(scope)
        .into_iter()
        .find(|schema| pg_catalog::relation_oid(&scope.catalog, schema, &name).is_some());
    Some(first.as_deref() == Some(schema.as_str()))
}

/// A relation's name as `regclass` shows it: with its schema where it must be.
pub(super) fn shown_relation(scope: &Scope, oid: u32) -> String {
    match pg_catalog::relation_name(&scope.catalog, oid) {
        None if oid == 0 => "-".to_owned(),
        None => oid.to_string(),
        Some((schema, name)) => {
            let bare = names::quote(&name);
            if is_visible(scope, oid) == Some(true) {
                bare
            } else {
                format!("{}.{bare}", names::quote(&schema))
            }
        }
    }
}

/// The OID that a text means to one of the `reg` types: a number, or the name of an object.
pub(super) fn read(scope: &Scope, kind: &Type, text: &str) -> Result<u32, Error> {
    if let Ok(oid) = text.trim().parse() {
        return Ok(oid);
    }
    if text == "-" {
        return Ok(0);
    }
    let (found, state, what) = match kind {
        Type::Regclass => (relation(scope, text), SqlState::UNDEFINED_TABLE, "relation"),
        Type::Regnamespace => {
            let name =
                parts(text).filter(|parts| parts.len() == 1).and_then(|mut parts| parts.pop());
            let found = name.and_then(|name| pg_catalog::schema_oid(&scope.catalog, &name));
            (found, SqlState::INVALID_SCHEMA_NAME, "schema")
        }
        Type::Regtype => (type_oid(text), SqlState::UNDEFINED_OBJECT, "type"),
        Type::Regrole => {
            let name =
                parts(text).filter(|parts| parts.len() == 1).and_then(|mut parts| parts.pop());
            let found = name.and_then(|name| pg_catalog::role_oid(&scope.catalog, &name));
            (found, SqlState::UNDEFINED_OBJECT, "role")
        }
        _ => {
            let name = text.strip_prefix("pg_catalog.").unwrap_or(text);
            let oid = Some(pg_catalog::procedure_oid(name)).filter(|oid| *oid != 0);
            (oid, SqlState::UNDEFINED_FUNCTION, "function")
        }
    };
    found.ok_or_else(|| Error::new(state, format!("{what} \"{text}\" does not exist")))
}

/// The OID of a type by its name.
pub(super) fn type_oid(text: &str) -> Option<u32> {
    let parts = parts(text)?;
    let name = match parts.as_slice() {
        [name] => name,
        [schema, name] if schema == "pg_catalog" => name,
        _ => return None,
    };
    // An array's name in `pg_type`.
    if let Some(Ok(element)) = name.strip_prefix('_').map(str::parse::<Type>) {
        return Some(Type::Array(Box::new(element)).oid());
    }
    // `"char"` means another type in quotes than without; other names are unquoted here.
    let kind = text.trim().parse::<Type>().or_else(|_| name.parse());
    kind.ok().map(|kind| kind.oid())
}

/// An OID as one of the `reg` types shows it.
pub(super) fn write(scope: &Scope, kind: &Type, oid: u32) -> String {
    match kind {
        Type::Regclass => shown_relation(scope, oid),
        Type::Regnamespace => match pg_catalog::schema_name(&scope.catalog, oid) {
            Some(name) => names::quote(name),
            None if oid == 0 => "-".to_owned(),
            None => oid.to_string(),
        },
        Type::Regtype => match Type::from_oid(oid) {
            Some(kind) => kind.to_string(),
            None if oid == 0 => "-".to_owned(),
            None => oid.to_string(),
        },
        Type::Regproc if oid != 0 => match pg_catalog::procedure_name(oid) {
            Some(name) => name.to_owned(),
            None => oid.to_string(),
        },
        Type::Regrole if oid != 0 => match pg_catalog::role_name(&scope.catalog, oid) {
            Some(name) => names::quote(&name),
            None => oid.to_string(),
        },
        _ if oid == 0 => "-".to_owned(),
        _ => oid.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn names_are_folded_unless_quoted() {
        assert_eq!(parts("Public.T").unwrap(), ["public", "t"]);
        assert_eq!(parts("\"Odd.\"\"Name\"").unwrap(), ["Odd.\"Name"]);
        assert_eq!(parts("a..b"), None);
        assert_eq!(parts("\"a"), None);
    }
}
