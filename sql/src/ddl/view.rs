//! CREATE VIEW and CREATE MATERIALIZED VIEW.

use std::collections::BTreeSet;

use datafusion::sql::sqlparser::ast::{CreateTableOptions, CreateView};
use stillframe_protocol::RelationId;

use super::{Edit, already_exists, skipped, table::COLUMNS_MAX, target};
use crate::query::QueryContext;
use crate::session::Notice;
use crate::{Column, Error, OutputColumn, Relation, RelationKind, SqlState, names, view};

/// Adds a view, or replaces one.
pub(super) fn create(context: &QueryContext, create: &CreateView) -> Result<Edit, Error> {
    refuse(create)?;
    let (schema, name) = target(&context.catalog, &context.settings, &create.name)?;
    let old = context.catalog.find(&schema, &name);
    if let Some(old) = old {
        if create.if_not_exists {
            return Ok(Edit::Nothing(skipped(&name)));
        }
        if !create.or_replace {
            return Err(already_exists(&name));
        }
        if !matches!(old.kind, RelationKind::View { .. }) {
            let message = format!("\"{name}\" is not a view");
            return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
    }
    let planned = context.plan(&create.query, &[])?;
    if !planned.parameters.is_empty() {
        let message = "there is no parameter $1";
        return Err(Error::new(SqlState::UNDEFINED_PARAMETER, message));
    }
    let (columns, notices) = columns(create, &planned.columns)?;
    let kind = RelationKind::View { query: planned.text.clone(), reads: planned.reads.clone() };
    let mut catalog = (*context.catalog).clone();
    let id = match old {
        Some(old) => {
            keeps_columns(old, &columns)?;
            reads_itself(&catalog.dependents(&BTreeSet::from([old.id])), &planned.reads, old)?;
            old.id
        }
        None => RelationId(catalog.allocate()),
    };
    let comment = catalog.relations.get(&id).and_then(|old| old.comment.clone());
    catalog.relations.insert(
        id,
        Relation { id, schema, name, columns, kind, storage: None, constraints: vec![], comment },
    );
    Ok(Edit::Changed { catalog, locked: vec![], notices, rewrites: vec![], checks: vec![] })
}

/// Adds a materialized view.
pub(super) fn create_materialized(
    context: &QueryContext,
    create: &CreateView,
) -> Result<Edit, Error> {
    refuse(create)?;
    if create.or_replace {
        return Err(Error::unsupported("CREATE OR REPLACE MATERIALIZED VIEW"));
    }
    let (schema, name) = target(&context.catalog, &context.settings, &create.name)?;
    if context.catalog.find(&schema, &name).is_some() {
        return match create.if_not_exists {
            true => Ok(Edit::Nothing(skipped(&name))),
            false => Err(already_exists(&name)),
        };
    }
    let (planned, plan) = view::compile(context, &create.query)?;
    let (columns, notices) = columns(create, &planned.columns)?;
    if columns.is_empty() {
        return Err(Error::unsupported("a materialized view without columns"));
    }
    let kind = RelationKind::MaterializedView {
        query: planned.text.clone(),
        reads: planned.reads.clone(),
        plan,
    };
    let mut catalog = (*context.catalog).clone();
    let id = RelationId(catalog.allocate());
    catalog.relations.insert(
        id,
        Relation {
            id,
            schema,
            name,
            columns,
            kind,
            storage: None,
            constraints: vec![],
            comment: None,
        },
    );
    Ok(Edit::Changed { catalog, locked: vec![], notices, rewrites: vec![], checks: vec![] })
}

/// What we don't have is refused by name.
fn refuse(create: &CreateView) -> Result<(), Error> {
    let refused = [
        (create.temporary, "CREATE TEMPORARY VIEW"),
        (create.options != CreateTableOptions::None, "a view's option"),
        (
            create.or_alter
                || create.secure
                || !create.cluster_by.is_empty()
                || create.comment.is_some()
                || create.with_no_schema_binding
                || create.copy_grants
                || create.to.is_some()
                || create.params.is_some(),
            "this form of CREATE VIEW",
        ),
    ];
    match refused.into_iter().find(|(present, _)| *present) {
        Some((_, what)) => Err(Error::unsupported(what)),
        None => Ok(()),
    }
}

/// The view's columns: those of the query, under the names that the statement gives the first.
fn columns(
    create: &CreateView,
    planned: &[OutputColumn],
) -> Result<(Vec<Column>, Vec<Notice>), Error> {
    if create.columns.len() > planned.len() {
        let message = "CREATE VIEW specifies more column names than columns";
        return Err(Error::new(SqlState::SYNTAX_ERROR, message));
    }
    if planned.len() > COLUMNS_MAX {
        let message = format!("tables can have at most {COLUMNS_MAX} columns");
        return Err(Error::new(SqlState::TOO_MANY_COLUMNS, message));
    }
    if create.columns.iter().any(|c| c.data_type.is_some() || c.options.is_some()) {
        return Err(Error::unsupported("a column option of a view"));
    }
    let mut given = create.columns.iter();
    let mut seen = BTreeSet::new();
    let mut columns = vec![];
    for column in planned {
        let name =
            given.next().map_or_else(|| column.name.clone(), |given| names::fold(&given.name));
        if !seen.insert(name.clone()) {
            let message = format!("column \"{name}\" specified more than once");
            return Err(Error::new(SqlState::DUPLICATE_COLUMN, message));
        }
        columns.push(Column::new(name, column.kind.clone()));
    }
    Ok((columns, vec![]))
}

/// A view may be replaced by one that has its columns and perhaps more after them.
fn keeps_columns(old: &Relation, new: &[Column]) -> Result<(), Error> {
    let refused = |message: String| Err(Error::new(SqlState::INVALID_TABLE_DEFINITION, message));
    if new.len() < old.columns.len() {
        return refused("cannot drop columns from view".to_owned());
    }
    for (old, new) in old.columns.iter().zip(new) {
        if old.name != new.name {
            return refused(format!(
                "cannot change name of view column \"{}\" to \"{}\"",
                old.name, new.name
            ));
        }
        if old.kind != new.kind {
            return refused(format!(
                "cannot change data type of view column \"{}\" from {} to {}",
                old.name, old.kind, new.kind
            ));
        }
    }
    Ok(())
}

/// A relation only reads relations with lower ids, and never itself.
fn reads_itself(
    dependents: &BTreeSet<RelationId>,
    reads: &BTreeSet<RelationId>,
    old: &Relation,
) -> Result<(), Error> {
    if reads.contains(&old.id) || reads.iter().any(|read| dependents.contains(read)) {
        let message = format!("infinite recursion detected in rules for relation \"{}\"", old.name);
        return Err(Error::new(SqlState::INVALID_OBJECT_DEFINITION, message));
    }
    if reads.iter().any(|read| *read > old.id) {
        return Err(Error::unsupported(
            "to replace a view by one that reads relations made after it",
        ));
    }
    if !dependents.is_empty() {
        return Err(Error::unsupported("to replace a view that other views read"));
    }
    Ok(())
}
