//! The parameters of a query: which there are, and of which types.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use datafusion::logical_expr::LogicalPlan;
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
    let found = plan.get_parameter_fields().map_err(classify)?;
    for (place, kind) in types.iter_mut().enumerate().filter(|(_, kind)| kind.is_none()) {
        let number = place + 1;
        if !used.contains(&number) {
            let message = format!("could not determine data type of parameter ${number}");
            return Err(Error::new(SqlState::INDETERMINATE_DATATYPE, message));
        }
        let field = found.get(&format!("${number}")).and_then(Option::as_ref);
        *kind = Some(field.and_then(|field| Type::of(field)).unwrap_or(Type::Text));
    }
    Ok(())
}
