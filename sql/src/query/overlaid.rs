//! Materialized views over tables that the transaction has changed itself: no host has their rows,
//! so they are what their stored queries give over the changed tables.
//!
//! Where PostgreSQL leaves open which answer is right, the engine has chosen one and a query may
//! choose another; then it is refused, so that a view never changes by being committed.

use std::ops::ControlFlow;

use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, Query, Visit, Visitor, WindowFrameUnits, WindowType,
};

use super::QueryContext;
use crate::{Error, Relation, names};

/// Functions whose value depends on the order of rows that may be equal in order.
const CHOOSING: &[&str] = &[
    "row_number",
    "ntile",
    "lag",
    "lead",
    "first_value",
    "last_value",
    "nth_value",
    "array_agg",
    "string_agg",
];

impl QueryContext {
    /// Plans the query that a view stores, as it is.
    pub(crate) fn plan_query_of(&self, view: &Relation, text: &str) -> Result<LogicalPlan, Error> {
        self.plan_view(view, text)
    }
}

/// Refuses a view that a query may answer otherwise than the engine.
pub(super) fn check(view: &Relation, query: &Query) -> Result<(), Error> {
    match query.visit(&mut Choices) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(what) => Err(Error::unsupported(format!(
            "reading \"{}\", a materialized view with {what}, in a transaction that has changed what \
             it reads",
            view.name
        ))
        .with_hint("Read it before the changes or after the commit.")),
    }
}

/// Finds where a query may choose.
struct Choices;

impl Visitor for Choices {
    type Break = &'static str;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<&'static str> {
        // With an ORDER BY it is settled which of equal rows are taken.
        let is_limited = query.limit_clause.is_some() || query.fetch.is_some();
        if is_limited && query.order_by.is_none() {
            return ControlFlow::Break("LIMIT without ORDER BY");
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<&'static str> {
        let Expr::Function(Function { name, over, .. }) = expr else {
            return ControlFlow::Continue(());
        };
        let counts_rows = match over {
            Some(WindowType::WindowSpec(window)) => window
                .window_frame
                .as_ref()
                .is_some_and(|frame| frame.units == WindowFrameUnits::Rows),
            // It may be anything.
            Some(WindowType::NamedWindow(_)) => true,
            None => false,
        };
        if counts_rows || CHOOSING.contains(&names::function(name).as_str()) {
            return ControlFlow::Break("an order among equal rows");
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::ast::Statement;
    use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    #[test]
    fn a_choice_is_found_wherever_it_is() {
        for (text, choice) in [
            ("select a, sum(b) over (order by a), rank() over (order by a) from t", None),
            ("select distinct a from t order by a", None),
            ("select a from (select a from t order by a limit 1) as s", None),
            (
                "select a from t where a in (select a from t fetch first row only)",
                Some("LIMIT without ORDER BY"),
            ),
            ("select 1 union all select distinct on (a) b from t", None),
            (
                "with s as (select Row_Number() over (order by a) from t) select * from s",
                Some("an order among equal rows"),
            ),
            (
                "select 1 + sum(b) over (order by a rows unbounded preceding) from t",
                Some("an order among equal rows"),
            ),
            ("select array_agg(a) from t", Some("an order among equal rows")),
        ] {
            let statement = Parser::parse_sql(&PostgreSqlDialect {}, text).unwrap().remove(0);
            let Statement::Query(query) = statement else { panic!("{text}") };
            assert_eq!(query.visit(&mut Choices).break_value(), choice, "{text}");
        }
    }
}
