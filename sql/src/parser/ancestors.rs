//! `pg_partition_ancestors(...) WITH ORDINALITY`, of which psql asks where a trigger comes from:
//! nothing is partitioned, so there are none.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Query, SetExpr, Statement, TableFactor, Value, VisitMut, VisitorMut,
};

use super::{Source, Tree};
use crate::names;

const NAME: &str = "pg_partition_ancestors";

/// Puts a query without rows in its place.
pub(super) fn replace(source: &Source, statement: &mut Statement) {
    if source.text().contains(NAME) {
        let _ = VisitMut::visit(statement, &mut Replacer);
    }
}

struct Replacer;

impl VisitorMut for Replacer {
    type Break = ();

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, with_ordinality: true, alias, .. } = factor
            && names::function(name) == NAME
            && let Some(none) = no_rows()
        {
            let alias = alias.take();
            *factor = TableFactor::Derived { lateral: false, subquery: none, alias, sample: None };
        }
        ControlFlow::Continue(())
    }
}

fn no_rows() -> Option<Box<Query>> {
    let Tree::Sql(tree) = super::parse("SELECT 0, 0").ok()?.pop()?.tree else { return None };
    let Statement::Query(mut query) = *tree else { return None };
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.selection = Some(Expr::value(Value::Boolean(false)));
    }
    Some(query)
}
