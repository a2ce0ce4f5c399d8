//! Functions that collect or return rows of JSON, as functions of arrays.

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName,
};

use super::call;
use crate::names;

/// Functions of one value that return rows.
pub(crate) const RETURNS_ROWS: &[&str] = &[
    "json_array_elements",
    "json_array_elements_text",
    "json_object_keys",
    "jsonb_array_elements",
    "jsonb_array_elements_text",
    "jsonb_object_keys",
];

/// Functions that return rows of a key and a value.
pub(crate) const RETURNS_PAIRS: &[&str] =
    &["json_each", "json_each_text", "jsonb_each", "jsonb_each_text"];

/// The functions that return their keys and their values as arrays.
pub(crate) fn pair_names(function: &str) -> [String; 2] {
    let keys = function.trim_end_matches("_text");
    [list_name(keys), format!("{function} values")]
}

/// The function that returns the same as an array.
pub(crate) fn list_name(function: &str) -> String {
    format!("{function} list")
}

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

/// Whether an expression returns the keys of pairs.
pub(crate) fn is_pairs(expr: &Expr) -> bool {
    let Expr::Function(function) = expr else { return false };
    let name = names::function(&function.name);
    name.strip_suffix(" list").is_some_and(|name| RETURNS_PAIRS.contains(&name))
}
