//! A stored query as `pg_get_viewdef` shows it: without the quotes and the names that say nothing.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, Expr, Ident, ObjectName, ObjectNamePart, Query, Select, SelectItem, SetExpr, TableAlias,
    TableFactor, VisitMut, VisitorMut,
};

use crate::parser::{self, Statement, Tree};
use crate::{Column, names};

/// The text of a view's query, whose results have the names of the view's columns.
pub(in crate::system) fn definition(query: &str, columns: &[Column]) -> String {
    let Ok(mut statements) = parser::parse(query) else { return format!(" {query};") };
    let Some(Statement { tree: Tree::Sql(tree), .. }) = statements.first_mut() else {
        return format!(" {query};");
    };
    if let ast::Statement::Query(query) = tree.as_mut() {
        name_results(&mut query.body, columns);
    }
    let _ = tree.visit(&mut Plain);
    format!(" {tree};")
}

/// The first SELECT of a set operation has the names of all.
fn name_results(body: &mut SetExpr, columns: &[Column]) {
    match body {
        SetExpr::SetOperation { left, .. } => name_results(left, columns),
        SetExpr::Query(query) => name_results(&mut query.body, columns),
        SetExpr::Select(select) => {
            for (item, column) in select.projection.iter_mut().zip(columns) {
                if let SelectItem::ExprWithAlias { alias, .. } = item {
                    alias.value.clone_from(&column.name);
                }
            }
        }
        _ => {}
    }
}

struct Plain;

fn plain(ident: &mut Ident) {
    if ident.quote_style.is_some() && names::quote(&ident.value) == ident.value {
        ident.quote_style = None;
    }
}

fn plain_name(name: &mut ObjectName) {
    for part in &mut name.0 {
        if let ObjectNamePart::Identifier(ident) = part {
            plain(ident);
        }
    }
}

fn plain_alias(alias: &mut TableAlias) {
    plain(&mut alias.name);
    alias.columns.iter_mut().for_each(|column| plain(&mut column.name));
}

impl VisitorMut for Plain {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        for cte in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            plain_alias(&mut cte.alias);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for item in &mut select.projection {
            let SelectItem::ExprWithAlias { expr, alias } = item else { continue };
            plain(alias);
            // A column has its own name anyway.
            if let Expr::CompoundIdentifier(parts) = expr
                && parts.last().is_some_and(|part| part.value == alias.value)
            {
                *item = SelectItem::UnnamedExpr(expr.clone());
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table { name, alias, .. } => {
                plain_name(name);
                alias.iter_mut().for_each(plain_alias);
                let last = name.0.last().and_then(|part| part.as_ident());
                if alias.as_ref().is_some_and(|alias| {
                    alias.columns.is_empty() && last.is_some_and(|l| l.value == alias.name.value)
                }) {
                    *alias = None;
                }
            }
            TableFactor::Derived { alias, .. } | TableFactor::UNNEST { alias, .. } => {
                alias.iter_mut().for_each(plain_alias);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(ident) => plain(ident),
            Expr::CompoundIdentifier(parts) => parts.iter_mut().for_each(plain),
            Expr::Function(function) => plain_name(&mut function.name),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::definition;

    #[test]
    fn quotes_and_names_that_say_nothing_are_left_out() {
        let query = "SELECT \"t\".\"id\" AS \"id\", \"count\"(*) AS \"n\", \"t\".\"Odd\" AS \"Odd\" \
                     FROM \"public\".\"t\" AS \"t\" GROUP BY \"t\".\"id\"";
        assert_eq!(
            definition(query, &[]),
            " SELECT t.id, count(*) AS n, t.\"Odd\" FROM public.t GROUP BY t.id;"
        );
    }
}
