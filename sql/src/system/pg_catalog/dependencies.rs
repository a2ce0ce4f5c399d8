//! `pg_depend`: which columns of which relations a view reads.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, TableFactor, Visit, Visitor};
use stillframe_protocol::RelationId;

use super::{definitions, relations};
use crate::parser::{self, Tree};
use crate::system::table::Cell;
use crate::{Catalog, Relation, RelationKind};

/// The rows.
pub(super) fn rows(catalog: &Catalog) -> Vec<Vec<Cell>> {
    let oid = |name: &str| definitions::find(name).map(|table| table.oid);
    let (rule, class) = (oid("pg_rewrite"), oid("pg_class"));
    let row = |view: &Relation, (relation, place): (RelationId, u32), kind: &str| {
        vec![
            rule.into(),
            relations::rule_oid(view).into(),
            0.into(),
            class.into(),
            relation.0.into(),
            place.into(),
            kind.into(),
        ]
    };
    let views = catalog.relations.values();
    let views = views.filter(|relation| !matches!(relation.kind, RelationKind::Table { .. }));
    let rows = views.flat_map(|view| {
        let own = ["i", "n"].map(|kind| row(view, (view.id, 0), kind));
        let reads = read_by(catalog, view).into_iter().map(move |read| row(view, read, "n"));
        own.into_iter().chain(reads)
    });
    rows.collect()
}

/// What a view reads: relations with the numbers of their columns, 0 for one of which it names none.
pub(crate) fn read_by(catalog: &Catalog, view: &Relation) -> BTreeSet<(RelationId, u32)> {
    let mut names = Names { catalog, aliases: BTreeMap::new(), columns: vec![] };
    if let RelationKind::View { query, .. } | RelationKind::MaterializedView { query, .. } =
        &view.kind
        && let Ok(statements) = parser::parse(query)
        && let Some(parser::Statement { tree: Tree::Sql(tree), .. }) = statements.first()
    {
        let _ = tree.visit(&mut names);
    }
    let mut found = BTreeSet::new();
    for (alias, column) in &names.columns {
        for id in names.aliases.get(alias).into_iter().flatten() {
            let columns = catalog.relations.get(id).map(|relation| &relation.columns);
            let place = columns.and_then(|columns| columns.iter().position(|c| c.name == *column));
            found.extend(place.map(|place| (*id, place as u32 + 1)));
        }
    }
    for id in view.reads() {
        if !found.iter().any(|(known, _)| known == id) {
            found.insert((*id, 0));
        }
    }
    found
}

/// The names in a resolved query: every relation has an alias, and every column one before it.
struct Names<'a> {
    catalog: &'a Catalog,
    aliases: BTreeMap<String, BTreeSet<RelationId>>,
    columns: Vec<(String, String)>,
}

impl Visitor for Names<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, alias: Some(alias), .. } = factor {
            let parts = name.0.iter().filter_map(|part| part.as_ident());
            let parts: Vec<_> = parts.map(|part| part.value.as_str()).collect();
            if let [schema, name] = parts.as_slice()
                && let Some(relation) = self.catalog.find(schema, name)
            {
                self.aliases.entry(alias.name.value.clone()).or_default().insert(relation.id);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(parts) = expr
            && let [alias, column] = parts.as_slice()
        {
            self.columns.push((alias.value.clone(), column.value.clone()));
        }
        ControlFlow::Continue(())
    }
}
