//! What PostgreSQL calls a result column that has no alias.

use datafusion::sql::sqlparser::ast::{
    AccessExpr, DataType, Expr, Ident, ObjectName, ObjectNamePart, SelectItem, SetExpr,
    TrimWhereField,
};

use crate::{Type, names};

/// How much a name says: a column's or function's is kept by CASE and casts, a type's is not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Strength {
    Weak,
    Strong,
}

/// The name of an expression's column.
pub(super) fn name(expr: &Expr) -> String {
    find(expr).map_or_else(|| "?column?".to_owned(), |(name, _)| name)
}

fn strong(name: &str) -> Option<(String, Strength)> {
    Some((name.to_owned(), Strength::Strong))
}

fn find(expr: &Expr) -> Option<(String, Strength)> {
    match expr {
        Expr::Identifier(identifier) => Some((names::fold(identifier), Strength::Strong)),
        Expr::CompoundIdentifier(parts) => last(parts),
        Expr::CompoundFieldAccess { root, access_chain } => {
            let field = access_chain.iter().rev().find_map(|access| match access {
                AccessExpr::Dot(Expr::Identifier(field)) => {
                    Some((names::fold(field), Strength::Strong))
                }
                _ => None,
            });
            field.or_else(|| find(root))
        }
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => find(inner),
        Expr::Function(function) => of_function(&function.name),
        Expr::Cast { expr, data_type, .. } => or_type(find(expr), data_type),
        Expr::TypedString(typed) => or_type(None, &typed.data_type),
        Expr::Interval(_) => Some(("interval".to_owned(), Strength::Weak)),
        Expr::Case { else_result, .. } => {
            let otherwise = else_result.as_deref().and_then(find);
            let strong = otherwise.filter(|(_, strength)| *strength == Strength::Strong);
            strong.or_else(|| Some(("case".to_owned(), Strength::Weak)))
        }
        Expr::Subquery(query) => match query.body.as_ref() {
            SetExpr::Select(select) => match select.projection.as_slice() {
                [SelectItem::ExprWithAlias { alias, .. }] => {
                    Some((names::fold(alias), Strength::Strong))
                }
                [SelectItem::UnnamedExpr(expr)] => Some((name(expr), Strength::Strong)),
                _ => None,
            },
            SetExpr::Values(_) => strong("column1"),
            _ => None,
        },
        Expr::Exists { negated: false, .. } => strong("exists"),
        Expr::Array(_) => strong("array"),
        Expr::Tuple(_) => strong("row"),
        Expr::Extract { .. } => strong("extract"),
        Expr::Position { .. } => strong("position"),
        Expr::Substring { shorthand: true, .. } => strong("substr"),
        Expr::Substring { .. } => strong("substring"),
        Expr::Overlay { .. } => strong("overlay"),
        Expr::Ceil { .. } => strong("ceil"),
        Expr::Floor { .. } => strong("floor"),
        Expr::AtTimeZone { .. } => strong("timezone"),
        Expr::Trim { trim_where, .. } => strong(match trim_where {
            Some(TrimWhereField::Leading) => "ltrim",
            Some(TrimWhereField::Trailing) => "rtrim",
            Some(TrimWhereField::Both) | None => "btrim",
        }),
        _ => None,
    }
}

fn last(parts: &[Ident]) -> Option<(String, Strength)> {
    parts.last().map(|part| (names::fold(part), Strength::Strong))
}

fn of_function(name: &ObjectName) -> Option<(String, Strength)> {
    match name.0.last()? {
        ObjectNamePart::Identifier(identifier) => Some((names::fold(identifier), Strength::Strong)),
        ObjectNamePart::Function(_) => None,
    }
}

fn or_type(inner: Option<(String, Strength)>, data_type: &DataType) -> Option<(String, Strength)> {
    let strong = inner.filter(|(_, strength)| *strength == Strength::Strong);
    strong.or_else(|| {
        let kind = Type::of_syntax(data_type).ok()?;
        Some((internal_name(&kind), Strength::Weak))
    })
}

/// The name in `pg_type`, without an array's underscore.
fn internal_name(kind: &Type) -> String {
    let name = match kind {
        Type::Boolean => "bool",
        Type::SmallInt => "int2",
        Type::Integer => "int4",
        Type::BigInt => "int8",
        Type::Real => "float4",
        Type::Double => "float8",
        Type::Numeric(_) => "numeric",
        Type::Varchar(_) => "varchar",
        Type::Char(_) => "bpchar",
        Type::Time => "time",
        Type::Timestamp => "timestamp",
        Type::Timestamptz => "timestamptz",
        Type::InternalChar => "char",
        Type::Array(element) => return internal_name(element),
        other => return other.to_string(),
    };
    name.to_owned()
}
