//! ALTER TABLE ... RENAME TO.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AlterTable, AlterTableOperation, ObjectName, RenameTableNameKind, visit_relations_mut,
};
use stillframe_protocol::RelationId;

use super::{Edit, already_exists};
use crate::catalog::Catalog;
use crate::parser::{self, Tree};
use crate::query::QueryContext;
use crate::session::Notice;
use crate::{Error, RelationKind, SqlState, names};

/// Renames a relation. The views that read it store its name, so their queries are written anew;
/// nothing that the engine computes changes.
pub(super) fn table(context: &QueryContext, alter: &AlterTable) -> Result<Edit, Error> {
    let [AlterTableOperation::RenameTable { table_name: RenameTableNameKind::To(new) }] =
        alter.operations.as_slice()
    else {
        let operations = alter.operations.iter().map(ToString::to_string);
        let operations = operations.collect::<Vec<_>>().join(", ");
        return Err(Error::unsupported(format!("ALTER TABLE ... {operations}")));
    };
    if alter.on_cluster.is_some() || alter.location.is_some() || alter.table_type.is_some() {
        return Err(Error::unsupported("this form of ALTER TABLE"));
    }
    let relation = match context.relation(&alter.name) {
        Ok(relation) => relation,
        Err(error) if alter.if_exists && error.state == SqlState::UNDEFINED_TABLE => {
            let message = format!("{}, skipping", error.message);
            return Ok(Edit::Nothing(Notice::of(Error::new(
                SqlState::SUCCESSFUL_COMPLETION,
                message,
            ))));
        }
        Err(error) => return Err(error),
    };
    let (None, new) = names::relation(new)? else {
        return Err(Error::new(SqlState::SYNTAX_ERROR, "syntax error at or near \".\""));
    };
    let (id, schema, old) = (relation.id, relation.schema.clone(), relation.name.clone());
    if context.catalog.find(&schema, &new).is_some() {
        return Err(already_exists(&new));
    }
    let mut catalog = (*context.catalog).clone();
    if let Some(relation) = catalog.relations.get_mut(&id) {
        relation.name.clone_from(&new);
    }
    rewrite_readers(&mut catalog, id, &[&schema, &old], &[&schema, &new])?;
    Ok(Edit::changed(catalog))
}

/// Puts a relation's new name into the queries of the views that read it.
fn rewrite_readers(
    catalog: &mut Catalog,
    id: RelationId,
    old: &[&str; 2],
    new: &[&str; 2],
) -> Result<(), Error> {
    for relation in catalog.relations.values_mut() {
        let (RelationKind::View { query, reads }
        | RelationKind::MaterializedView { query, reads, .. }) = &mut relation.kind
        else {
            continue;
        };
        if !reads.contains(&id) {
            continue;
        }
        let mut statements = parser::parse(query).map_err(|_| {
            Error::internal(format!("the stored query of {} is broken", relation.name))
        })?;
        let Some(parser::Statement { tree: Tree::Sql(tree), .. }) = statements.first_mut() else {
            continue;
        };
        let _ = visit_relations_mut(tree, |name: &mut ObjectName| {
            let parts = name.0.iter().map(|part| part.as_ident().map(|ident| ident.value.as_str()));
            if parts.eq(old.iter().map(|part| Some(*part))) {
                *name = ObjectName::from(new.map(names::exact).to_vec());
            }
            ControlFlow::<()>::Continue(())
        });
        *query = tree.to_string();
    }
    Ok(())
}
