//! VALUES of several types.

use datafusion::sql::sqlparser::ast::{self, DataType, Expr, Ident, SetExpr, Value, ValueWithSpan};

use super::bare_select;

/// VALUES whose columns aren't each of one kind that is plain to see as UNION ALL, which lets their
/// types be settled together later. VALUES would settle them by the first that it finds, or refuse.
pub(super) fn separate_values(body: &mut SetExpr) {
    let SetExpr::Values(values) = body else { return };
    let columns = values.rows.first().map_or(0, |row| row.content.len());
    let is_mixed = (0..columns).any(|place| {
        let column = || values.rows.iter().filter_map(|row| row.content.get(place)).map(Look::of);
        let has_null = column().any(|look| look == Look::Null);
        let mut looks = column().filter(|look| *look != Look::Null);
        let first = looks.next();
        // NULL tells no type, and so another one than a cast that says more than its carrier.
        has_null && matches!(first, Some(Look::Cast(_) | Look::Other))
            || looks.any(|look| look == Look::Other || Some(look) != first)
    });
    // Rows of unequal length are an error that VALUES tells best.
    if is_mixed && values.rows.iter().all(|row| row.content.len() == columns) {
        let rows = std::mem::take(&mut values.rows);
        *body = union_of(rows.into_iter().map(|row| select_of(row.content)).collect());
    }
}

/// What tells the type of a value in VALUES.
#[derive(PartialEq)]
enum Look<'a> {
    Null,
    /// Of no type yet.
    Text,
    Integer,
    Boolean,
    Cast(&'a DataType),
    Other,
}

impl<'a> Look<'a> {
    fn of(expr: &'a Expr) -> Self {
        match expr {
            Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => match Self::of(inner) {
                Self::Integer => Self::Integer,
                _ => Self::Other,
            },
            Expr::Value(ValueWithSpan { value, .. }) => match value {
                Value::Null => Self::Null,
                Value::SingleQuotedString(_) => Self::Text,
                Value::Number(digits, _) if digits.parse::<i32>().is_ok() => Self::Integer,
                Value::Boolean(_) => Self::Boolean,
                _ => Self::Other,
            },
            Expr::Cast { data_type, .. } => Self::Cast(data_type),
            _ => Self::Other,
        }
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
