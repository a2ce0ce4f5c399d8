//! Functions of moments whose arguments are left out or named.

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Value,
};

use super::call;
use crate::{Error, SqlState, names};

/// What `make_interval` calls its arguments.
const UNITS: [&str; 7] = ["years", "months", "weeks", "days", "hours", "mins", "secs"];

/// `age(x)` as `age(current_date, x)`.
pub(super) fn plain(function: &Function) -> Option<Expr> {
    let FunctionArguments::List(list) = &function.args else { return None };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(from))]
            if names::function(&function.name) == "age" =>
        {
            let today = call("current_date", vec![]);
            Some(call("age", vec![today, from.clone()]))
        }
        _ => None,
    }
}

/// Puts the arguments that a call of `make_interval` names in their places.
pub(crate) fn unname(function: &mut Function) -> Result<(), Error> {
    let FunctionArguments::List(list) = &mut function.args else { return Ok(()) };
    let is_plain = |argument: &FunctionArg| matches!(argument, FunctionArg::Unnamed(_));
    if list.args.iter().all(is_plain) {
        return Ok(());
    }
    let zero = || Expr::value(Value::SingleQuotedString("0".to_owned()));
    let mut ordered: Vec<_> = UNITS.iter().map(|_| zero()).collect();
    let of_name = |name: &Ident| {
        let name = names::fold(name);
        UNITS.iter().position(|unit| *unit == name)
    };
    for (place, argument) in list.args.iter().enumerate() {
        let (place, value) = match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => (Some(place), value),
            FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => {
                (of_name(name), value)
            }
            FunctionArg::ExprNamed {
                name: Expr::Identifier(name),
                arg: FunctionArgExpr::Expr(value),
                ..
            } => (of_name(name), value),
            _ => return Err(Error::unsupported("such an argument of make_interval")),
        };
        let Some(slot) = place.and_then(|place| ordered.get_mut(place)) else {
            let message = "function make_interval with such arguments does not exist";
            return Err(Error::new(SqlState::UNDEFINED_FUNCTION, message));
        };
        *slot = value.clone();
    }
    let ordered = ordered.into_iter();
    list.args = ordered.map(|value| FunctionArg::Unnamed(FunctionArgExpr::Expr(value))).collect();
    Ok(())
}
