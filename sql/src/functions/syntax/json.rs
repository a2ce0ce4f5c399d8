//! Functions that collect rows of JSON, as functions of arrays.

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName,
};

use super::call;
use crate::names;

/// `jsonb_agg(x ...)` as `"jsonb of array"(array_agg(to_jsonb(x) ...))`, and so on.
pub(super) fn collected(function: &Function) -> Option<Expr> {
    let name = names::function(&function.name);
    let (made, outer) = match name.as_str() {
        "json_agg" => ("to_json", "json of array"),
        "jsonb_agg" => ("to_jsonb", "jsonb of array"),
        "json_object_agg" => ("json pair", "json of pairs"),
        "jsonb_object_agg" => ("jsonb pair", "jsonb of pairs"),
        _ => return None,
    };
    let FunctionArguments::List(list) = &function.args else { return None };
    let arguments = list.args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    });
    let arguments = arguments.collect::<Option<Vec<_>>>()?;
    let mut inner = function.clone();
    inner.name = ObjectName::from(vec![Ident::with_quote('"', "array_agg")]);
    let mut list = list.clone();
    let element = call(made, arguments);
    list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(element))];
    inner.args = FunctionArguments::List(list);
    Some(call(outer, vec![Expr::Function(inner)]))
}
