//! ROLLUP and CUBE of several columns at once, and inside GROUPING SETS, as the sets that they stand
//! for.

use datafusion::sql::sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, FunctionArguments};

use crate::names;

/// The group as DataFusion knows it.
pub(super) fn spell_out(group: &mut Expr) {
    let sets = match group {
        Expr::Rollup(lists) if lists.iter().any(|list| list.len() != 1) => rollup(lists),
        Expr::Cube(lists) if lists.iter().any(|list| list.len() != 1) => cube(lists),
        Expr::GroupingSets(sets) => sets.drain(..).flat_map(nested).collect(),
        _ => return,
    };
    *group = Expr::GroupingSets(sets);
}

/// The sets of a member of GROUPING SETS.
fn nested(set: Vec<Expr>) -> Vec<Vec<Expr>> {
    let [Expr::Function(call)] = set.as_slice() else { return vec![set] };
    let FunctionArguments::List(list) = &call.args else { return vec![set] };
    let list = list.args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Tuple(fields))) => Some(fields.clone()),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(vec![expr.clone()]),
        _ => None,
    });
    let Some(lists) = list.collect::<Option<Vec<_>>>() else { return vec![set] };
    match names::function(&call.name).as_str() {
        "rollup" => rollup(&lists),
        "cube" => cube(&lists),
        _ => vec![set],
    }
}

fn rollup(lists: &[Vec<Expr>]) -> Vec<Vec<Expr>> {
    (0..=lists.len()).rev().map(|length| lists[..length].concat()).collect()
}

fn cube(lists: &[Vec<Expr>]) -> Vec<Vec<Expr>> {
    let Some((first, rest)) = lists.split_first() else { return vec![vec![]] };
    let without = cube(rest);
    let with = without.iter().map(|set| [first.as_slice(), set].concat());
    with.chain(without.iter().cloned()).collect()
}
