//! Calls that differ in their casts alone get different names.
//!
//! DataFusion finds the results of aggregates by name, and its name of a cast is that of the
//! operand: `sum(a::int)` and `sum(a::bigint)` would be one.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, Expr, GroupByExpr, OrderByKind, Query, Select, SetExpr, Value, Visit, VisitMut, Visitor,
    VisitorMut,
};

use super::call;
use crate::functions::marker::TYPED;

/// Marks the casts of a query if some of its calls or groups differ in nothing else.
pub(super) fn tell_apart(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    let mut calls = Calls::default();
    let orders = match &mut query.order_by {
        Some(ast::OrderBy { kind: OrderByKind::Expressions(orders), .. }) => orders.as_mut_slice(),
        _ => &mut [],
    };
    each(select, orders, |expr, is_group| {
        if is_group {
            calls.add(expr);
        }
        let _ = Visit::visit(&*expr, &mut calls);
    });
    if calls.0.values().any(|written| written.len() > 1) {
        each(select, orders, |expr, _| {
            let _ = VisitMut::visit(expr, &mut Marker { queries: 0 });
        });
    }
}

/// Visits the expressions that stand beside aggregates; the second argument tells groups.
fn each(
    select: &mut Select,
    orders: &mut [ast::OrderByExpr],
    mut visit: impl FnMut(&mut Expr, bool),
) {
    for item in &mut select.projection {
        if let ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. } =
            item
        {
            visit(expr, false);
        }
    }
    if let GroupByExpr::Expressions(groups, _) = &mut select.group_by {
        groups.iter_mut().for_each(|expr| visit(expr, true));
    }
    select.having.iter_mut().for_each(|expr| visit(expr, false));
    orders.iter_mut().for_each(|order| visit(&mut order.expr, false));
}

/// The calls, by what they are without casts.
#[derive(Default)]
struct Calls(BTreeMap<String, BTreeSet<String>>);

impl Calls {
    fn add(&mut self, expr: &Expr) {
        let mut bare = expr.clone();
        let _ = ast::visit_expressions_mut(&mut bare, |expr| {
            while let Expr::Cast { expr: operand, .. } = expr {
                *expr = std::mem::replace(operand.as_mut(), Expr::value(Value::Null));
            }
            ControlFlow::<()>::Continue(())
        });
        self.0.entry(bare.to_string()).or_default().insert(expr.to_string());
    }
}

impl Visitor for Calls {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if matches!(expr, Expr::Function(_)) {
            self.add(expr);
        }
        ControlFlow::Continue(())
    }
}

struct Marker {
    /// How many queries are around the current place: theirs are done.
    queries: usize,
}

impl VisitorMut for Marker {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.queries == 0
            && let Expr::Cast { data_type, .. } = &*expr
        {
            let name = Expr::value(Value::SingleQuotedString(data_type.to_string()));
            let cast = std::mem::replace(expr, Expr::value(Value::Null));
            *expr = call(TYPED, vec![cast, name]);
        }
        ControlFlow::Continue(())
    }
}
