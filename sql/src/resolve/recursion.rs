//! What a query that names itself can't be.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Cte, Expr, Join, JoinOperator, Query, SelectItem, SetExpr, TableFactor, TableWithJoins, Visit,
    Visitor,
};

use super::Resolver;
use crate::{Error, SqlState, names};

/// How often a query or a part of one names a relation, bare.
pub(crate) fn references(part: &impl Visit, name: &str) -> usize {
    struct Counter<'a> {
        name: &'a str,
        found: usize,
    }
    impl Visitor for Counter<'_> {
        type Break = ();

        fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
            self.found += usize::from(is_reference(table, self.name));
            ControlFlow::Continue(())
        }
    }
    let mut counter = Counter { name, found: 0 };
    let _ = part.visit(&mut counter);
    counter.found
}

fn is_reference(table: &TableFactor, name: &str) -> bool {
    let TableFactor::Table { name: found, args: None, .. } = table else { return false };
    match found.0.as_slice() {
        [part] => part.as_ident().is_some_and(|ident| names::fold(ident) == name),
        _ => false,
    }
}

/// Puts queries, each of which may name any other, after those that they name.
pub(super) fn order(queries: &mut Vec<Cte>) -> Result<(), Error> {
    let names: Vec<String> = queries.iter().map(|cte| names::fold(&cte.alias.name)).collect();
    if (0..names.len()).any(|place| names[..place].contains(&names[place])) {
        // Said elsewhere.
        return Ok(());
    }
    let mut waiting: Vec<(usize, Cte)> = std::mem::take(queries).into_iter().enumerate().collect();
    while !waiting.is_empty() {
        let is_ready = |(own, cte): &(usize, Cte)| {
            let mut others = waiting.iter().filter(|(other, _)| other != own);
            others.all(|(other, _)| references(&cte.query, &names[*other]) == 0)
        };
        let Some(next) = waiting.iter().position(is_ready) else {
            let message = "mutual recursion between WITH items is not implemented";
            return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        };
        queries.push(waiting.remove(next).1);
    }
    Ok(())
}

fn refused(message: String) -> Error {
    Error::new(SqlState::INVALID_RECURSION, message)
}

/// A query that isn't of two parts may not name itself.
pub(super) fn check_form(query: &Query, name: &str) -> Result<(), Error> {
    if references(query, name) == 0 {
        return Ok(());
    }
    if let (SetExpr::SetOperation { .. }, true) = (query.body.as_ref(), has_order(query)) {
        let what = if query.order_by.is_some() { "ORDER BY" } else { "LIMIT" };
        let message = format!("{what} in a recursive query is not implemented");
        return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    Err(refused(format!(
        "recursive query \"{name}\" does not have the form non-recursive-term UNION [ALL] \
         recursive-term"
    )))
}

fn has_order(query: &Query) -> bool {
    query.order_by.is_some() || query.limit_clause.is_some() || query.fetch.is_some()
}

impl Resolver<'_> {
    /// What the parts of a recursive query can't be.
    pub(super) fn check_parts(
        &self,
        left: &SetExpr,
        right: &SetExpr,
        name: &str,
    ) -> Result<(), Error> {
        if references(left, name) > 0 {
            return Err(refused(format!(
                "recursive reference to query \"{name}\" must not appear within its non-recursive \
                 term"
            )));
        }
        if references(right, name) > 1 {
            return Err(refused(format!(
                "recursive reference to query \"{name}\" must not appear more than once"
            )));
        }
        if references(right, name) == 0 {
            return Ok(());
        }
        let mut walk = Walk { name };
        if let ControlFlow::Break(error) = right.visit(&mut walk) {
            return Err(error);
        }
        let SetExpr::Select(select) = right else { return Ok(()) };
        if select.from.iter().any(|tree| is_optional(tree, name)) {
            return Err(refused(format!(
                "recursive reference to query \"{name}\" must not appear within an outer join"
            )));
        }
        let exprs = select.projection.iter().filter_map(|item| match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
            _ => None,
        });
        for expr in exprs.chain(&select.having) {
            if let Err(error) = super::refuse_grouped(self.context, expr, "")
                && error.state == SqlState::GROUPING_ERROR
            {
                return Err(refused(
                    "aggregate functions are not allowed in a recursive query's recursive term"
                        .to_owned(),
                ));
            }
        }
        Ok(())
    }
}

/// Looks for references in the subqueries of expressions.
struct Walk<'a> {
    name: &'a str,
}

impl Visitor for Walk<'_> {
    type Break = Error;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Error> {
        let holds_query =
            matches!(expr, Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. });
        if holds_query && references(expr, self.name) > 0 {
            return ControlFlow::Break(refused(format!(
                "recursive reference to query \"{}\" must not appear within a subquery",
                self.name
            )));
        }
        ControlFlow::Continue(())
    }
}

/// Whether a relation is on a side of an outer join that may have no partner.
fn is_optional(tree: &TableWithJoins, name: &str) -> bool {
    let mut left = references(&tree.relation, name) > 0;
    for Join { relation, join_operator, .. } in &tree.joins {
        let right = references(relation, name) > 0;
        let is_lost = match join_operator {
            JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => right,
            JoinOperator::Right(_) | JoinOperator::RightOuter(_) => left,
            JoinOperator::FullOuter(_) => left || right,
            _ => false,
        };
        if is_lost {
            return true;
        }
        left |= right;
    }
    false
}
