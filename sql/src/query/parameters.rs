//! The parameters of a query: which there are, and of which types.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::sql::sqlparser::ast::{Query, Value, ValueWithSpan, Visit, Visitor};

use super::classify;
use crate::{Error, SqlState, Type};

/// The greatest number that a parameter may have, as the protocol counts them.
const NUMBER_MAX: usize = 65535;

/// The numbers of the parameters that a query has.
pub(super) fn used(query: &Query) -> Result<BTreeSet<usize>, Error> {
    struct Finder(BTreeSet<usize>);
    impl Visitor for Finder {
        type Break = Error;

        fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<Error> {
            let Value::Placeholder(name) = &value.value else { return ControlFlow::Continue(()) };
            let number = name.strip_prefix('$').and_then(|number| number.parse().ok());
            match number {
                Some(number) if (1..=NUMBER_MAX).contains(&number) => {
                    self.0.insert(number);
                    ControlFlow::Continue(())
                }
                Some(_) => {
                    let message = format!("there is no parameter {name}");
                    ControlFlow::Break(Error::new(SqlState::UNDEFINED_PARAMETER, message))
                }
                None => {
                    let message = format!("syntax error at or near \"{name}\"");
                    ControlFlow::Break(Error::new(SqlState::SYNTAX_ERROR, message))
                }
            }
        }
    }
    let mut finder = Finder(BTreeSet::new());
    match query.visit(&mut finder) {
        ControlFlow::Continue(()) => Ok(finder.0),
        ControlFlow::Break(error) => Err(error),
    }
}

/// Fills in the types that the client hasn't declared: what the plan makes of them, or text.
pub(super) fn infer(
    plan: &LogicalPlan,
    used: &BTreeSet<usize>,
    types: &mut [Option<Type>],
) -> Result<(), Error> {
    let found = found(plan)?;
    for (place, kind) in types.iter_mut().enumerate().filter(|(_, kind)| kind.is_none()) {
        let number = place + 1;
        if !used.contains(&number) {
            let message = format!("could not determine data type of parameter ${number}");
            return Err(Error::new(SqlState::INDETERMINATE_DATATYPE, message));
        }
        // A name that is to be looked up comes as text.
        let settled = found.get(&number).filter(|kind| !kind.is_name_of_object());
        *kind = Some(settled.cloned().unwrap_or(Type::Text));
    }
    Ok(())
}

/// The types that a plan has settled, by number. Where it takes a parameter for several, the first
/// holds, and the others must go with it.
fn found(plan: &LogicalPlan) -> Result<BTreeMap<usize, Type>, Error> {
    let mut found = BTreeMap::new();
    plan.apply_with_subqueries(|plan| {
        plan.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::Placeholder(Placeholder { id, field: Some(field) }) = expr
                    && let Some(number) = id.strip_prefix('$').and_then(|id| id.parse().ok())
                    && let Some(kind) = Type::of(field).filter(|kind| *kind != Type::Unknown)
                {
                    found.entry(number).or_insert(kind);
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })
    .map_err(classify)?;
    Ok(found)
}
