//! VALUES of several types.

use datafusion::sql::sqlparser::ast::{self, DataType, Expr, Ident, SetExpr, Value, ValueWithSpan};

use super::bare_select;

/// VALUES whose columns mix texts with something else, or numerics with and without a scale in their
/// type, as UNION ALL: there all take one type. VALUES would make texts of all, or refuse.
pub(super) fn separate_values(body: &mut SetExpr) {
    let SetExpr::Values(values) = body else { return };
    let is_text = |expr: &Expr| {
        matches!(
            expr,
            Expr::Value(ValueWithSpan {
                value: Value::SingleQuotedString(_) | Value::Placeholder(_),
                ..
            })
        )
    };
    let is_null =
        |expr: &Expr| matches!(expr, Expr::Value(ValueWithSpan { value: Value::Null, .. }));
    let columns = values.rows.first().map_or(0, |row| row.content.len());
    let is_mixed = (0..columns).any(|place| {
        let column = || values.rows.iter().filter_map(|row| row.content.get(place));
        let is_other = |expr: &Expr| !is_text(expr) && !is_null(expr);
        let has_others = column().any(is_other);
        column().any(is_text) && has_others
            || column().any(is_decimal) && column().any(|expr| is_other(expr) && !is_number(expr))
    });
    // Rows of unequal length are an error that VALUES tells best.
    if is_mixed && values.rows.iter().all(|row| row.content.len() == columns) {
        let rows = std::mem::take(&mut values.rows);
        *body = union_of(rows.into_iter().map(|row| select_of(row.content)).collect());
    }
}

/// A literal with a fraction, or a cast to `numeric`.
fn is_decimal(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => is_decimal(inner),
        Expr::Cast { data_type, .. } => {
            matches!(data_type, DataType::Numeric(_) | DataType::Decimal(_))
        }
        other => is_number(other) && other.to_string().parse::<i64>().is_err(),
    }
}

/// A literal number, of which the type is plain.
fn is_number(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => is_number(inner),
        Expr::Value(ValueWithSpan { value: Value::Number(..), .. }) => true,
        _ => false,
    }
}

/// A balanced UNION ALL.
fn union_of(mut selects: Vec<SetExpr>) -> SetExpr {
    if selects.len() == 1
        && let Some(select) = selects.pop()
    {
        return select;
    }
    let right = selects.split_off(selects.len() / 2);
    SetExpr::SetOperation {
        op: ast::SetOperator::Union,
        set_quantifier: ast::SetQuantifier::All,
        left: Box::new(union_of(selects)),
        right: Box::new(union_of(right)),
    }
}

fn select_of(row: Vec<Expr>) -> SetExpr {
    let projection = row.into_iter().zip(1..).map(|(expr, place)| ast::SelectItem::ExprWithAlias {
        expr,
        alias: Ident::new(format!("column{place}")),
    });
    let mut select = bare_select();
    select.projection = projection.collect();
    SetExpr::Select(Box::new(select))
}
