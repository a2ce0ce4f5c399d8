//! DROP TABLE, VIEW, MATERIALIZED VIEW and SCHEMA.

use std::collections::BTreeSet;

use datafusion::sql::sqlparser::ast::{self, ObjectName, ObjectType};
use stillframe_protocol::RelationId;

use super::Edit;
use super::constraint::same_columns;
use crate::query::QueryContext;
use crate::session::Notice;
use crate::settings::Settings;
use crate::{Catalog, ConstraintKind, Error, Relation, RelationKind, SqlState, names, system};

/// A DROP.
pub(super) struct Drop {
    kind: Kind,
    names: Vec<ObjectName>,
    if_exists: bool,
    cascade: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Table,
    View,
    MaterializedView,
    Schema,
}

impl Kind {
    fn of(relation: &Relation) -> Self {
        match relation.kind {
            RelationKind::Table { .. } => Self::Table,
            RelationKind::View { .. } => Self::View,
            RelationKind::MaterializedView { .. } => Self::MaterializedView,
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::View => "view",
            Self::MaterializedView => "materialized view",
            Self::Schema => "schema",
        }
    }

    /// With its article, and the command that removes it.
    fn mistaken(self) -> (&'static str, &'static str) {
        match self {
            Self::Table => ("a table", "DROP TABLE"),
            Self::View => ("a view", "DROP VIEW"),
            Self::MaterializedView => ("a materialized view", "DROP MATERIALIZED VIEW"),
            Self::Schema => ("a schema", "DROP SCHEMA"),
        }
    }
}

impl Drop {
    pub(super) fn read(statement: &ast::Statement) -> Result<Self, Error> {
        let ast::Statement::Drop { object_type, if_exists, names, cascade, temporary, .. } =
            statement
        else {
            return Err(Error::unsupported(statement));
        };
        let kind = match object_type {
            ObjectType::Table => Kind::Table,
            ObjectType::View => Kind::View,
            ObjectType::MaterializedView => Kind::MaterializedView,
            ObjectType::Schema => Kind::Schema,
            other => return Err(Error::unsupported(format!("DROP {other}"))),
        };
        if *temporary {
            return Err(Error::unsupported("DROP TEMPORARY"));
        }
        Ok(Self { kind, names: names.clone(), if_exists: *if_exists, cascade: *cascade })
    }

    pub(super) fn tag(&self) -> &'static str {
        self.kind.mistaken().1
    }

    pub(super) fn apply(&self, context: &QueryContext) -> Result<Edit, Error> {
        let (catalog, settings) = (&*context.catalog, &context.settings);
        if self.kind == Kind::Schema {
            return self.schemas(catalog);
        }
        let mut notices = vec![];
        let mut named = BTreeSet::new();
        for name in &self.names {
            match self.find(catalog, settings, name)? {
                Some(relation) => {
                    named.insert(relation.id);
                }
                None => notices.push(self.missing(name)?),
            }
        }
        self.remove(catalog.clone(), &named, &[], notices)
    }

    fn find<'a>(
        &self,
        catalog: &'a Catalog,
        settings: &Settings,
        name: &ObjectName,
    ) -> Result<Option<&'a Relation>, Error> {
        let (schema, relation) = names::relation(name)?;
        let schemas = match schema {
            Some(schema) => vec![schema],
            None => settings.search_path(),
        };
        let found = schemas.iter().find_map(|schema| catalog.find(schema, &relation));
        let Some(found) = found else { return Ok(None) };
        if Kind::of(found) == self.kind {
            return Ok(Some(found));
        }
        let message = format!("\"{}\" is not {}", found.name, self.kind.mistaken().0);
        let (article, command) = Kind::of(found).mistaken();
        Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message)
            .with_hint(format!("Use {command} to remove {article}.")))
    }

    fn missing(&self, name: &ObjectName) -> Result<Notice, Error> {
        let message = format!("{} \"{}\" does not exist", self.kind.noun(), names::unquoted(name));
        let state = match self.kind {
            Kind::Schema => SqlState::INVALID_SCHEMA_NAME,
            Kind::Table | Kind::View | Kind::MaterializedView => SqlState::UNDEFINED_TABLE,
        };
        if self.if_exists {
            let message = format!("{message}, skipping");
            return Ok(Notice::of(Error::new(SqlState::SUCCESSFUL_COMPLETION, message)));
        }
        Err(Error::new(state, message))
    }

    fn schemas(&self, catalog: &Catalog) -> Result<Edit, Error> {
        let mut notices = vec![];
        let mut schemas = vec![];
        for name in &self.names {
            let (_, schema) = names::relation(name)?;
            if system::SCHEMAS.contains(&schema.as_str()) {
                let message = format!(
                    "cannot drop schema {schema} because it is required by the database system"
                );
                return Err(Error::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message));
            }
            if catalog.schemas.contains_key(&schema) {
                schemas.push(schema);
            } else {
                notices.push(self.missing(name)?);
            }
        }
        let inside = catalog.relations.values();
        let inside = inside.filter(|relation| schemas.contains(&relation.schema));
        let named = inside.map(|relation| relation.id).collect();
        let mut catalog = catalog.clone();
        for schema in &schemas {
            catalog.schemas.remove(schema);
        }
        self.remove(catalog, &named, &schemas, notices)
    }

    /// Removes relations, and with CASCADE what depends on them.
    fn remove(
        &self,
        mut catalog: Catalog,
        named: &BTreeSet<RelationId>,
        schemas: &[String],
        mut notices: Vec<Notice>,
    ) -> Result<Edit, Error> {
        if named.is_empty() && schemas.is_empty() {
            let first = notices.pop();
            return match first {
                // One notice for each name that isn't there.
                Some(last) if notices.is_empty() => Ok(Edit::Nothing(last)),
                Some(last) => {
                    notices.push(last);
                    Ok(Edit::Changed {
                        catalog,
                        locked: vec![],
                        notices,
                        rewrites: vec![],
                        checks: vec![],
                    })
                }
                None => Err(Error::internal("a DROP without names")),
            };
        }
        let dependents = catalog.dependents(named);
        let keys = self.foreign_keys(&catalog, named, &dependents);
        let beyond: Vec<_> = if schemas.is_empty() {
            dependents.difference(named).copied().collect()
        } else {
            named.union(&dependents).copied().collect()
        };
        let is_needed = !beyond.is_empty() || !keys.is_empty();
        if is_needed && !self.cascade {
            return Err(self.still_needed(&catalog, named, &beyond, &keys, schemas));
        }
        let lines = beyond.iter().map(|id| describe(&catalog, *id));
        let lines: Vec<_> =
            lines.chain(keys.iter().map(|key| describe_key(&catalog, key))).collect();
        match lines.as_slice() {
            [] => {}
            [one] => {
                let message = format!("drop cascades to {one}");
                notices.push(Notice::of(Error::new(SqlState::SUCCESSFUL_COMPLETION, message)));
            }
            many => {
                let lines = many.iter().map(|line| format!("drop cascades to {line}"));
                let detail = lines.collect::<Vec<_>>().join("\n");
                let message = format!("drop cascades to {} other objects", many.len());
                let error = Error::new(SqlState::SUCCESSFUL_COMPLETION, message);
                notices.push(Notice::of(error.with_detail(detail)));
            }
        }
        let dropped: Vec<_> = named.union(&dependents).copied().collect();
        for id in &dropped {
            catalog.relations.remove(id);
        }
        catalog.sequences.retain(|_, sequence| {
            let is_owned = sequence.owner.is_some_and(|(owner, _)| dropped.contains(&owner));
            !is_owned && !schemas.contains(&sequence.schema)
        });
        for (child, name) in &keys {
            if let Some(child) = catalog.relations.get_mut(child) {
                child.constraints.retain(|constraint| constraint.name != *name);
            }
        }
        Ok(Edit::Changed { catalog, locked: dropped, notices, rewrites: vec![], checks: vec![] })
    }

    /// Foreign keys of tables that stay to tables that go.
    fn foreign_keys(
        &self,
        catalog: &Catalog,
        named: &BTreeSet<RelationId>,
        dependents: &BTreeSet<RelationId>,
    ) -> Vec<(RelationId, String)> {
        let going = named.union(dependents);
        let keys = going
            .flat_map(|id| catalog.children(*id).map(|(child, key)| (child.id, key.name.clone())));
        keys.filter(|(child, _)| !named.contains(child) && !dependents.contains(child)).collect()
    }

    fn still_needed(
        &self,
        catalog: &Catalog,
        named: &BTreeSet<RelationId>,
        beyond: &[RelationId],
        keys: &[(RelationId, String)],
        schemas: &[String],
    ) -> Error {
        let mut lines: Vec<_> = match schemas.first() {
            Some(schema) => {
                let line = |id: &RelationId| {
                    format!("{} depends on schema {schema}", describe(catalog, *id))
                };
                beyond.iter().map(line).collect()
            }
            None => beyond.iter().map(|id| depends_on(catalog, *id, named, beyond)).collect(),
        };
        lines.extend(keys.iter().map(|key| {
            let parent = parent_of(catalog, key).map(|parent| describe(catalog, parent));
            format!("{} depends on {}", describe_key(catalog, key), parent.unwrap_or_default())
        }));
        let subject = match (self.names.as_slice(), schemas.first(), named.first()) {
            ([_], Some(schema), _) => format!("schema {schema}"),
            ([_], None, Some(id)) => describe(catalog, *id),
            _ => "desired object(s)".to_owned(),
        };
        let message = format!("cannot drop {subject} because other objects depend on it");
        Error::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
            .with_detail(lines.join("\n"))
            .with_hint("Use DROP ... CASCADE to drop the dependent objects too.")
    }
}

/// The kind and name of a relation.
pub(super) fn describe(catalog: &Catalog, id: RelationId) -> String {
    match catalog.relations.get(&id) {
        Some(relation) => {
            let schema = match relation.schema.as_str() {
                "public" => String::new(),
                schema => format!("{}.", names::quote(schema)),
            };
            format!("{} {schema}{}", Kind::of(relation).noun(), names::quote(&relation.name))
        }
        None => format!("relation {id}"),
    }
}

/// Which of the relations that go, or that would, this one reads.
pub(super) fn depends_on(
    catalog: &Catalog,
    id: RelationId,
    named: &BTreeSet<RelationId>,
    beyond: &[RelationId],
) -> String {
    let reads = catalog.relations.get(&id).map(Relation::reads);
    let cause = reads.and_then(|reads| {
        reads.iter().find(|read| named.contains(read) || beyond.contains(read)).copied()
    });
    let cause = cause.map_or_else(String::new, |cause| describe(catalog, cause));
    format!("{} depends on {cause}", describe(catalog, id))
}

/// The foreign keys that refer to a key of a table, with the tables that have them.
pub(super) fn referring(
    catalog: &Catalog,
    relation: &Relation,
    columns: &[usize],
) -> Vec<(RelationId, String)> {
    let keys = catalog.children(relation.id).filter(|(_, constraint)| match &constraint.kind {
        ConstraintKind::ForeignKey { parent_columns, .. } => same_columns(parent_columns, columns),
        _ => false,
    });
    keys.map(|(child, constraint)| (child.id, constraint.name.clone())).collect()
}

fn parent_of(catalog: &Catalog, (child, name): &(RelationId, String)) -> Option<RelationId> {
    match &catalog.relations.get(child)?.constraint(name)?.kind {
        ConstraintKind::ForeignKey { parent, .. } => Some(*parent),
        _ => None,
    }
}

pub(super) fn describe_key(catalog: &Catalog, (child, name): &(RelationId, String)) -> String {
    format!("constraint {} on {}", names::quote(name), describe(catalog, *child))
}
