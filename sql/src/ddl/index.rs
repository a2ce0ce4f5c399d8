//! CREATE INDEX and DROP INDEX. A unique one is a rule for rows; any other only has a name.

use datafusion::sql::sqlparser::ast::{self, CreateIndex};

use super::check_rows::RowCheck;
use super::constraint::{Definer, find_index, is_relation_name, object_name};
use super::{Edit, already_exists, skipped};
use crate::query::QueryContext;
use crate::session::Notice;
use crate::{Constraint, ConstraintKind, Error, RelationKind, SqlState, names};

/// Adds an index to a table or a materialized view.
pub(super) fn create(context: &QueryContext, create: &CreateIndex) -> Result<Edit, Error> {
    let refused = [
        (create.predicate.is_some(), "a partial index"),
        (create.nulls_distinct == Some(false), "NULLS NOT DISTINCT"),
        (create.unique && !create.include.is_empty(), "INCLUDE"),
    ];
    if let Some((_, what)) = refused.iter().find(|(is_there, _)| *is_there) {
        return Err(Error::unsupported(what));
    }
    let relation = context.relation(&create.table_name)?;
    let is_table = match relation.kind {
        RelationKind::Table { .. } => true,
        RelationKind::MaterializedView { .. } => false,
        _ => {
            let message = format!("cannot create index on relation \"{}\"", relation.name);
            return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message)
                .with_detail("This operation is not supported for views."));
        }
    };
    if create.unique && !is_table {
        return Err(Error::unsupported("a unique index of a materialized view"));
    }
    let mut catalog = (*context.catalog).clone();
    let relation = relation.clone();
    let mut definer = Definer { context, catalog: &mut catalog, relation };
    let columns = definer.key_places(&create.columns, "index")?;
    let schema = definer.relation.schema.clone();
    let name = match &create.name {
        Some(name) => {
            let name = names::unquoted(name);
            if is_relation_name(definer.catalog, &schema, &name) {
                return match create.if_not_exists {
                    true => Ok(Edit::Nothing(skipped(&name))),
                    false => Err(already_exists(&name)),
                };
            }
            name
        }
        None => {
            let listed = columns.iter().map(|place| definer.relation.columns[*place].name.as_str());
            let listed = listed.collect::<Vec<_>>().join("_");
            let numbered = (0..).map(|number| match number {
                0 => object_name(&definer.relation.name, &listed, "idx"),
                number => object_name(&definer.relation.name, &listed, &format!("idx{number}")),
            });
            let mut free =
                numbered.filter(|name| !is_relation_name(definer.catalog, &schema, name));
            free.next().unwrap_or_default()
        }
    };
    let (mut locked, mut checks) = (vec![], vec![]);
    if create.unique {
        definer.unique(Some(&names::exact(&name)), columns.clone(), true)?;
        checks.push(RowCheck::unique(&definer.relation, &name, &columns));
        locked.push(definer.relation.id);
    } else {
        let oid = definer.catalog.allocate();
        let kind = ConstraintKind::Index { columns };
        definer.relation.constraints.push(Constraint::new(oid, name, kind));
    }
    let relation = definer.relation;
    catalog.relations.insert(relation.id, relation);
    Ok(Edit::Changed { catalog, locked, notices: vec![], rewrites: vec![], checks })
}

/// Removes indexes.
pub(super) fn drop(context: &QueryContext, statement: &ast::Statement) -> Result<Edit, Error> {
    let ast::Statement::Drop { if_exists, names: listed, cascade, .. } = statement else {
        return Err(Error::unsupported(statement));
    };
    let mut catalog = (*context.catalog).clone();
    let (mut locked, mut notices) = (vec![], vec![]);
    for name in listed {
        let (schema, index) = names::relation(name)?;
        let schemas = match schema {
            Some(schema) => vec![schema],
            None => context.settings.search_path(),
        };
        let found = schemas.iter().find_map(|schema| find_index(&catalog, schema, &index));
        let Some((relation, constraint)) = found else {
            if context.relation(name).is_ok() {
                let message = format!("\"{index}\" is not an index");
                return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message));
            }
            let message = format!("index \"{index}\" does not exist");
            if !if_exists {
                return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
            }
            let message = format!("{message}, skipping");
            notices.push(Notice::of(Error::new(SqlState::SUCCESSFUL_COMPLETION, message)));
            continue;
        };
        let is_constraint = matches!(
            constraint.kind,
            ConstraintKind::PrimaryKey | ConstraintKind::Unique { is_index: false, .. }
        );
        if is_constraint {
            let owner = format!("constraint {index} on table {}", relation.name);
            let message = format!("cannot drop index {index} because {owner} requires it");
            return Err(Error::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
                .with_hint(format!("You can drop {owner} instead.")));
        }
        if let ConstraintKind::Unique { columns, .. } = &constraint.kind {
            let needed = super::drop::referring(&catalog, relation, columns);
            if let Some((child, key)) = needed.first() {
                if *cascade {
                    return Err(Error::unsupported("DROP INDEX ... CASCADE"));
                }
                let child = &catalog.relations[child].name;
                let message =
                    format!("cannot drop index {index} because other objects depend on it");
                return Err(Error::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
                    .with_detail(format!(
                        "constraint {key} on table {child} depends on index {index}"
                    ))
                    .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
            }
        }
        let id = relation.id;
        locked.push(id);
        if let Some(relation) = catalog.relations.get_mut(&id) {
            relation.constraints.retain(|constraint| constraint.name != index);
        }
    }
    if locked.is_empty()
        && let Some(first) = notices.pop()
    {
        return Ok(Edit::Nothing(first));
    }
    Ok(Edit::Changed { catalog, locked, notices, rewrites: vec![], checks: vec![] })
}
