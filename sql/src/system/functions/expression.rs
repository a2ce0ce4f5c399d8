//! Stored expressions as PostgreSQL writes them: every operator in parentheses, or only where they
//! are needed; literals with their types.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, SelectItem, SetExpr,
    Statement, UnaryOperator, Value, visit_expressions,
};

use crate::parser::{self, Tree};
use crate::{Column, Relation, Type, names};

/// The text of an expression over the columns of a relation.
pub(in crate::system) fn shown(text: &str, columns: &[Column], is_pretty: bool) -> String {
    match parsed(text) {
        Some(expr) => Writer { columns, is_pretty }.node(&expr),
        None => text.to_owned(),
    }
}

/// The places of the columns that an expression names, ascending.
pub(in crate::system) fn columns(text: &str, relation: &Relation) -> Vec<usize> {
    let Some(expr) = parsed(text) else { return vec![] };
    let mut places = BTreeSet::new();
    let _ = visit_expressions(&expr, |expr| {
        if let Some(name) = column_name(expr) {
            places.extend(relation.columns.iter().position(|column| column.name == name));
        }
        ControlFlow::<()>::Continue(())
    });
    places.into_iter().collect()
}

fn parsed(text: &str) -> Option<Expr> {
    let statement = parser::parse(&format!("SELECT {text}")).ok()?.pop()?;
    let Tree::Sql(tree) = statement.tree else { return None };
    let Statement::Query(query) = *tree else { return None };
    let SetExpr::Select(mut select) = *query.body else { return None };
    match select.projection.pop()? {
        SelectItem::UnnamedExpr(expr) => Some(expr),
        _ => None,
    }
}

fn column_name(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(name) => Some(names::fold(name)),
        Expr::CompoundIdentifier(parts) => parts.last().map(names::fold),
        _ => None,
    }
}

/// What an expression is to the one around it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Simple,
    Operator(Rank),
    And,
    Or,
    Not,
    Test,
    List,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rank {
    Sum,
    Product,
    Other,
}

struct Writer<'a> {
    columns: &'a [Column],
    is_pretty: bool,
}

impl Writer<'_> {
    fn node(&self, expr: &Expr) -> String {
        match expr {
            Expr::Nested(expr) => self.node(expr),
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => match column_name(expr) {
                Some(name) => names::quote(&name),
                None => expr.to_string(),
            },
            Expr::BinaryOp { op: op @ (BinaryOperator::And | BinaryOperator::Or), .. } => {
                let mut operands = vec![];
                flatten(expr, op, &mut operands);
                let operands = operands.into_iter().map(|operand| self.inside(operand, expr));
                self.around(operands.collect::<Vec<_>>().join(&format!(" {op} ")))
            }
            Expr::BinaryOp { left, op, right } => {
                let (left, right) =
                    (self.operand(left, right, expr), self.operand(right, left, expr));
                let op = match op {
                    BinaryOperator::NotEq => "<>".to_owned(),
                    op => op.to_string(),
                };
                self.around(format!("{left} {op} {right}"))
            }
            Expr::UnaryOp { op: UnaryOperator::Not, expr: operand } => {
                self.around(format!("NOT {}", self.inside(operand, expr)))
            }
            Expr::UnaryOp { op: UnaryOperator::Minus, expr: operand } => match operand.as_ref() {
                Expr::Value(value) => match &value.value {
                    Value::Number(digits, _) => format!("'-{digits}'::{}", kind_of_number(digits)),
                    _ => expr.to_string(),
                },
                _ => self.around(format!("- {}", self.inside(operand, expr))),
            },
            Expr::IsNull(operand) => self.around(format!("{} IS NULL", self.inside(operand, expr))),
            Expr::IsNotNull(operand) => {
                self.around(format!("{} IS NOT NULL", self.inside(operand, expr)))
            }
            Expr::Between { expr: operand, negated, low, high } => {
                let (first, second, op) = match negated {
                    false => (BinaryOperator::GtEq, BinaryOperator::LtEq, BinaryOperator::And),
                    true => (BinaryOperator::Lt, BinaryOperator::Gt, BinaryOperator::Or),
                };
                let bound = |op, bound: &Expr| Expr::BinaryOp {
                    left: operand.clone(),
                    op,
                    right: Box::new(bound.clone()),
                };
                let (low, high) = (Box::new(bound(first, low)), Box::new(bound(second, high)));
                self.node(&Expr::BinaryOp { left: low, op, right: high })
            }
            Expr::InList { expr: operand, list, negated } => {
                let (op, any) = if *negated { ("<>", "ALL") } else { ("=", "ANY") };
                let kind = self.kind(operand);
                let items = list.iter().map(|item| match (item, &kind) {
                    (Expr::Value(value), Some(kind)) => match &value.value {
                        Value::SingleQuotedString(_) => match kind {
                            Type::Varchar(_) => format!("{item}::character varying"),
                            kind => format!("{item}::{}", bare(kind)),
                        },
                        _ => self.node(item),
                    },
                    _ => self.node(item),
                });
                let items = items.collect::<Vec<_>>().join(", ");
                let (operand, array) = match kind {
                    Some(Type::Varchar(_)) => (
                        self.cast(&self.node(operand), "text"),
                        self.cast(&format!("ARRAY[{items}]"), "text[]"),
                    ),
                    _ => (self.inside(operand, expr), format!("ARRAY[{items}]")),
                };
                self.around(format!("{operand} {op} {any} ({array})"))
            }
            Expr::Like { negated, expr: operand, pattern, .. } => {
                let op = if *negated { "!~~" } else { "~~" };
                let (left, right) =
                    (self.operand(operand, pattern, expr), self.operand(pattern, operand, expr));
                self.around(format!("{left} {op} {right}"))
            }
            Expr::Cast { expr: operand, data_type, .. } => {
                let kind = Type::of_syntax(data_type).map(|kind| kind.to_string());
                let kind = kind.unwrap_or_else(|_| data_type.to_string());
                match operand.as_ref() {
                    Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_)) => {
                        format!("{operand}::{kind}")
                    }
                    operand => self.cast(&self.node(operand), &kind),
                }
            }
            Expr::Function(function) => {
                let FunctionArguments::List(list) = &function.args else { return expr.to_string() };
                let arguments = list.args.iter().map(|argument| match argument {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => {
                        let text = self.node(argument);
                        let kind = self.kind(argument).filter(|_| column_name(argument).is_some());
                        match (argument, kind) {
                            (_, Some(Type::Varchar(_))) => self.cast(&text, "text"),
                            (Expr::Value(value), _)
                                if matches!(value.value, Value::SingleQuotedString(_)) =>
                            {
                                format!("{text}::text")
                            }
                            _ => text,
                        }
                    }
                    argument => argument.to_string(),
                });
                let arguments = arguments.collect::<Vec<_>>().join(", ");
                format!("{}({arguments})", names::function(&function.name))
            }
            expr => expr.to_string(),
        }
    }

    /// An operand, as the other one makes it: a literal gets its type, and a varchar is text.
    fn operand(&self, operand: &Expr, other: &Expr, parent: &Expr) -> String {
        if let Expr::Nested(operand) = operand {
            return self.operand(operand, other, parent);
        }
        let is_column = column_name(operand).is_some();
        match (operand, self.kind(other)) {
            (Expr::Value(value), Some(kind)) => match (&value.value, &kind) {
                (Value::SingleQuotedString(_), kind) => format!("{operand}::{}", bare(kind)),
                (Value::Number(digits, _), Type::Numeric(_)) if is_integer(digits) => {
                    self.cast(digits, "numeric")
                }
                (Value::Number(digits, _), Type::Double | Type::Real) => {
                    self.cast(digits, "double precision")
                }
                _ => self.node(operand),
            },
            _ if is_column && matches!(self.kind(operand), Some(Type::Varchar(_))) => {
                self.cast(&self.node(operand), "text")
            }
            _ => self.inside(operand, parent),
        }
    }

    /// A part of an expression, in parentheses where it needs them.
    fn inside(&self, expr: &Expr, parent: &Expr) -> String {
        let text = self.node(expr);
        if !self.is_pretty || is_simple(expr, parent) { text } else { format!("({text})") }
    }

    fn around(&self, text: String) -> String {
        if self.is_pretty { text } else { format!("({text})") }
    }

    fn cast(&self, text: &str, kind: &str) -> String {
        if self.is_pretty { format!("{text}::{kind}") } else { format!("({text})::{kind}") }
    }

    /// The type of a column, or of what is computed of one.
    fn kind(&self, expr: &Expr) -> Option<Type> {
        match expr {
            Expr::Nested(expr) => self.kind(expr),
            Expr::BinaryOp {
                left,
                op:
                    BinaryOperator::Plus
                    | BinaryOperator::Minus
                    | BinaryOperator::Multiply
                    | BinaryOperator::Divide
                    | BinaryOperator::Modulo,
                right,
            } => self.kind(left).or_else(|| self.kind(right)),
            Expr::Function(function) => match names::function(&function.name).as_str() {
                "lower" | "upper" | "trim" | "btrim" | "substr" | "replace" => Some(Type::Text),
                _ => None,
            },
            expr => {
                let name = column_name(expr)?;
                let column = self.columns.iter().find(|column| column.name == name)?;
                Some(column.kind.clone())
            }
        }
    }
}

fn flatten<'a>(expr: &'a Expr, op: &BinaryOperator, operands: &mut Vec<&'a Expr>) {
    match expr {
        Expr::Nested(inner) => match inner.as_ref() {
            Expr::BinaryOp { op: found, .. } if found == op => flatten(inner, op, operands),
            _ => operands.push(inner),
        },
        Expr::BinaryOp { left, op: found, right } if found == op => {
            flatten(left, op, operands);
            flatten(right, op, operands);
        }
        expr => operands.push(expr),
    }
}

fn kind_of(expr: &Expr) -> Kind {
    match expr {
        Expr::Nested(expr) => kind_of(expr),
        Expr::BinaryOp { op, .. } => match op {
            BinaryOperator::And => Kind::And,
            BinaryOperator::Or => Kind::Or,
            BinaryOperator::Plus | BinaryOperator::Minus => Kind::Operator(Rank::Sum),
            BinaryOperator::Multiply | BinaryOperator::Divide | BinaryOperator::Modulo => {
                Kind::Operator(Rank::Product)
            }
            _ => Kind::Operator(Rank::Other),
        },
        Expr::Between { negated: false, .. } => Kind::And,
        Expr::Between { .. } => Kind::Or,
        Expr::Like { .. } => Kind::Operator(Rank::Other),
        Expr::UnaryOp { op: UnaryOperator::Not, .. } => Kind::Not,
        Expr::IsNull(_) | Expr::IsNotNull(_) => Kind::Test,
        Expr::InList { .. } => Kind::List,
        _ => Kind::Simple,
    }
}

/// Whether an expression needs no parentheses inside another, as PostgreSQL decides it.
fn is_simple(expr: &Expr, parent: &Expr) -> bool {
    let (kind, around) = (kind_of(expr), kind_of(parent));
    match kind {
        Kind::Simple => true,
        Kind::Operator(Rank::Product) if around == Kind::Operator(Rank::Sum) => true,
        Kind::Operator(rank @ (Rank::Product | Rank::Sum)) if around == Kind::Operator(rank) => {
            true
        }
        Kind::Operator(_) | Kind::Test => matches!(around, Kind::And | Kind::Or | Kind::Not),
        Kind::And | Kind::Not => matches!(around, Kind::And | Kind::Or),
        Kind::Or => around == Kind::Or,
        Kind::List => false,
    }
}

fn is_integer(digits: &str) -> bool {
    digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn kind_of_number(digits: &str) -> &'static str {
    match (is_integer(digits), digits.parse::<i32>()) {
        (false, _) => "numeric",
        (true, Ok(_)) => "integer",
        (true, Err(_)) => "bigint",
    }
}

/// What a literal beside a value of a type is shown as.
fn bare(kind: &Type) -> String {
    match kind {
        Type::Varchar(_) => "text".to_owned(),
        Type::Char(_) => "bpchar".to_owned(),
        Type::Numeric(_) => "numeric".to_owned(),
        kind => kind.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_as_postgresql_writes_them() {
        let columns = [
            Column::new("x".to_owned(), Type::Integer),
            Column::new("y".to_owned(), Type::Integer),
            Column::new("t".to_owned(), Type::Text),
            Column::new("v".to_owned(), Type::Varchar(Some(9))),
            Column::new("p".to_owned(), Type::Numeric(Some((8, 2)))),
        ];
        for (text, full, pretty) in [
            ("x > 0", "(x > 0)", "x > 0"),
            ("x + y > 3", "((x + y) > 3)", "(x + y) > 3"),
            ("x + y * 2 - 1 > 3", "(((x + (y * 2)) - 1) > 3)", "(x + y * 2 - 1) > 3"),
            (
                "x > 0 and y > 0 and t <> ''",
                "((x > 0) AND (y > 0) AND (t <> ''::text))",
                "x > 0 AND y > 0 AND t <> ''::text",
            ),
            (
                "x > 0 or y > 0 and x < 9",
                "((x > 0) OR ((y > 0) AND (x < 9)))",
                "x > 0 OR y > 0 AND x < 9",
            ),
            (
                "not (x > 0 or y is null)",
                "(NOT ((x > 0) OR (y IS NULL)))",
                "NOT (x > 0 OR y IS NULL)",
            ),
            ("x between 1 and 9", "((x >= 1) AND (x <= 9))", "x >= 1 AND x <= 9"),
            ("x in (1, 2)", "(x = ANY (ARRAY[1, 2]))", "x = ANY (ARRAY[1, 2])"),
            (
                "t in ('a', 'b')",
                "(t = ANY (ARRAY['a'::text, 'b'::text]))",
                "t = ANY (ARRAY['a'::text, 'b'::text])",
            ),
            ("v <> 'q'", "((v)::text <> 'q'::text)", "v::text <> 'q'::text"),
            ("length(t) > 3", "(length(t) > 3)", "length(t) > 3"),
            ("p > 0", "(p > (0)::numeric)", "p > 0::numeric"),
            ("p > 0.5", "(p > 0.5)", "p > 0.5"),
            ("x > -1", "(x > '-1'::integer)", "x > '-1'::integer"),
            (
                "v in ('a')",
                "((v)::text = ANY ((ARRAY['a'::character varying])::text[]))",
                "v::text = ANY (ARRAY['a'::character varying]::text[])",
            ),
            (
                "x is not null and (y > 0) = true",
                "((x IS NOT NULL) AND ((y > 0) = true))",
                "x IS NOT NULL AND (y > 0) = true",
            ),
            (
                "t in ('a') and x > 0",
                "((t = ANY (ARRAY['a'::text])) AND (x > 0))",
                "(t = ANY (ARRAY['a'::text])) AND x > 0",
            ),
            ("t like 'a%'", "(t ~~ 'a%'::text)", "t ~~ 'a%'::text"),
        ] {
            assert_eq!(shown(text, &columns, false), full, "{text}");
            assert_eq!(shown(text, &columns, true), pretty, "{text}");
        }
    }
}
