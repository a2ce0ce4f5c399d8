//! ALTER TABLE ... RENAME: of tables, views and columns.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, ObjectName, Statement, TableFactor, Visit, VisitMut, Visitor, VisitorMut,
    visit_expressions_mut, visit_relations_mut,
};
use stillframe_protocol::RelationId;

use super::constraint::is_relation_name;
use super::{Edit, already_exists};
use crate::catalog::Catalog;
use crate::parser::{self, Tree};
use crate::query::QueryContext;
use crate::{ConstraintKind, Error, Generated, Relation, RelationKind, SqlState, names};

/// Renames a relation. The views that read it store its name, so their queries are written anew;
/// nothing that the engine computes changes.
pub(super) fn table(
    context: &QueryContext,
    relation: &Relation,
    new: &ObjectName,
) -> Result<Edit, Error> {
    let (None, new) = names::relation(new)? else {
        return Err(Error::new(SqlState::SYNTAX_ERROR, "syntax error at or near \".\""));
    };
    let (id, schema, old) = (relation.id, relation.schema.clone(), relation.name.clone());
    if is_relation_name(&context.catalog, &schema, &new) {
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

/// Renames a column of a table, in what is stored of it as well: the queries of the views that read
/// it, and the expressions of its own constraints.
pub(super) fn column(
    catalog: &mut Catalog,
    id: RelationId,
    old: &str,
    new: &str,
) -> Result<(), Error> {
    let Some(relation) = catalog.relations.get_mut(&id) else {
        return Err(Error::internal("the table is gone"));
    };
    let table = relation.name.clone();
    let schema = relation.schema.clone();
    let place = relation.columns.iter().position(|column| column.name == old);
    let place = place.ok_or_else(|| {
        let message = format!("column \"{old}\" does not exist");
        Error::new(SqlState::UNDEFINED_COLUMN, message)
    })?;
    if relation.columns.iter().any(|column| column.name == new) {
        let message = format!("column \"{new}\" of relation \"{table}\" already exists");
        return Err(Error::new(SqlState::DUPLICATE_COLUMN, message));
    }
    new.clone_into(&mut relation.columns[place].name);
    for constraint in &mut relation.constraints {
        if let ConstraintKind::Check { expression } = &mut constraint.kind {
            *expression = renamed(expression, old, new)?;
        }
    }
    for column in &mut relation.columns {
        if let Some(Generated::Stored { expression }) = &mut column.generated {
            *expression = renamed(expression, old, new)?;
        }
    }
    for relation in catalog.relations.values_mut() {
        let (RelationKind::View { query, reads }
        | RelationKind::MaterializedView { query, reads, .. }) = &mut relation.kind
        else {
            continue;
        };
        if reads.contains(&id) {
            let name = [schema.as_str(), table.as_str()];
            *query = in_query(query, &relation.name, name, old, new)?;
        }
    }
    Ok(())
}

/// An expression of a row with a column renamed.
fn renamed(expression: &str, old: &str, new: &str) -> Result<String, Error> {
    let text = format!("SELECT {expression}");
    let broken = || Error::internal(format!("the expression {expression} is broken"));
    let mut statements = parser::parse(&text).map_err(|_| broken())?;
    let Some(parser::Statement { tree: Tree::Sql(tree), .. }) = statements.first_mut() else {
        return Err(broken());
    };
    let _ = visit_expressions_mut(tree.as_mut(), |expr| {
        let name = match expr {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(parts) => parts.last_mut(),
            _ => None,
        };
        if let Some(name) = name
            && names::fold(name) == old
        {
            *name = names::exact(new);
            if names::quote(new) == new {
                name.quote_style = None;
            }
        }
        ControlFlow::<()>::Continue(())
    });
    let text = tree.to_string();
    text.strip_prefix("SELECT ").map(str::to_owned).ok_or_else(broken)
}

/// The query of a view with a column of a table renamed. In a stored query every relation has an
/// alias, and every column one before it.
fn in_query(
    query: &str,
    view: &str,
    table: [&str; 2],
    old: &str,
    new: &str,
) -> Result<String, Error> {
    let broken = || Error::internal(format!("the stored query of {view} is broken"));
    let mut statements = parser::parse(query).map_err(|_| broken())?;
    let Some(parser::Statement { tree: Tree::Sql(tree), .. }) = statements.first_mut() else {
        return Err(broken());
    };
    let mut aliases = Aliases { table, own: BTreeSet::new(), others: BTreeSet::new() };
    let _ = Visit::visit(tree.as_ref(), &mut aliases);
    let Aliases { own, others, .. } = aliases;
    if own.intersection(&others).next().is_some() {
        let what = format!("renaming a column that \"{view}\" reads by an ambiguous alias");
        return Err(Error::unsupported(what));
    }
    let _ = VisitMut::visit::<Columns<'_>>(tree.as_mut(), &mut Columns { own: &own, old, new });
    let statement: &Statement = tree;
    Ok(statement.to_string())
}

/// The aliases of a table, and those of everything else.
struct Aliases<'a> {
    table: [&'a str; 2],
    own: BTreeSet<String>,
    others: BTreeSet<String>,
}

impl Visitor for Aliases<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        let (name, alias) = match factor {
            TableFactor::Table { name, alias: Some(alias), .. } => (Some(name), alias),
            TableFactor::Derived { alias: Some(alias), .. }
            | TableFactor::Function { alias: Some(alias), .. }
            | TableFactor::UNNEST { alias: Some(alias), .. } => (None, alias),
            _ => return ControlFlow::Continue(()),
        };
        let is_own = name.is_some_and(|name| {
            let parts = name.0.iter().map(|part| part.as_ident().map(|ident| ident.value.as_str()));
            parts.eq(self.table.iter().map(|part| Some(*part)))
        });
        let names = if is_own { &mut self.own } else { &mut self.others };
        names.insert(alias.name.value.clone());
        ControlFlow::Continue(())
    }
}

/// Renames columns behind aliases.
struct Columns<'a> {
    own: &'a BTreeSet<String>,
    old: &'a str,
    new: &'a str,
}

impl VisitorMut for Columns<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(parts) = expr
            && let [alias, column] = parts.as_mut_slice()
            && self.own.contains(&alias.value)
            && column.value == self.old
        {
            self.new.clone_into(&mut column.value);
        }
        ControlFlow::Continue(())
    }
}
