//! A stored query as `pg_get_viewdef` shows it: without the quotes and the names that say nothing.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, ObjectNamePart, Query, Select, SelectItem, TableAlias, TableFactor,
    VisitMut, VisitorMut,
};

use crate::names;
use crate::parser::{self, Statement, Tree};

/// The text of a view's query.
pub(in crate::system) fn definition(query: &str) -> String {
    let Ok(mut statements) = parser::parse(query) else { return format!(" {query};") };
    let Some(Statement { tree: Tree::Sql(tree), .. }) = statements.first_mut() else {
        return format!(" {query};");
    };
    let _ = tree.visit(&mut Plain);
    format!(" {tree};")
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
            definition(query),
            " SELECT t.id, count(*) AS n, t.\"Odd\" FROM public.t GROUP BY t.id;"
        );
    }
}
