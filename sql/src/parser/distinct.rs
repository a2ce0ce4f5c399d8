//! IS [NOT] DISTINCT FROM binds tighter than NOT, AND and OR, whereas the parser library takes all
//! that follows for its right side.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Statement, UnaryOperator, Value, VisitMut, VisitorMut,
};

/// Puts the conditions of a statement together as PostgreSQL reads them.
pub(super) fn rebind(statement: &mut Statement) {
    let _ = statement.visit(&mut Conditions);
}

struct Conditions;

impl VisitorMut for Conditions {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let is_condition = matches!(
            expr,
            Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. }
                | Expr::UnaryOp { op: UnaryOperator::Not, .. }
                | Expr::IsDistinctFrom(..)
                | Expr::IsNotDistinctFrom(..)
        );
        if is_condition {
            let whole = std::mem::replace(expr, Expr::value(Value::Null));
            *expr = Conjunctions::of(whole).into_expr();
        }
        ControlFlow::Continue(())
    }
}

/// Conditions in the order in which they are written: OR between the lists, AND between their members.
struct Conjunctions(Vec<Vec<Expr>>);

impl Conjunctions {
    fn of(expr: Expr) -> Self {
        match expr {
            Expr::BinaryOp { left, op: BinaryOperator::Or, right } => {
                let (Self(mut lists), Self(right)) = (Self::of(*left), Self::of(*right));
                lists.extend(right);
                Self(lists)
            }
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
                let (Self(mut lists), Self(right)) = (Self::of(*left), Self::of(*right));
                let mut right = right.into_iter();
                if let Some(last) = lists.last_mut() {
                    last.extend(right.next().into_iter().flatten());
                }
                lists.extend(right);
                Self(lists)
            }
            Expr::UnaryOp { op: op @ UnaryOperator::Not, expr } => {
                Self::of(*expr).with_first(|expr| Expr::UnaryOp { op, expr })
            }
            Expr::IsDistinctFrom(left, right) => {
                Self::of(*right).with_first(|right| Expr::IsDistinctFrom(left, right))
            }
            Expr::IsNotDistinctFrom(left, right) => {
                Self::of(*right).with_first(|right| Expr::IsNotDistinctFrom(left, right))
            }
            other => Self(vec![vec![other]]),
        }
    }

    /// The first condition alone is an operand of what stands before it.
    fn with_first(mut self, operation: impl FnOnce(Box<Expr>) -> Expr) -> Self {
        if let Some(first) = self.0.first_mut().and_then(|list| list.first_mut()) {
            let operand = std::mem::replace(first, Expr::value(Value::Null));
            *first = operation(Box::new(operand));
        }
        self
    }

    fn into_expr(self) -> Expr {
        let joined = |op: BinaryOperator| {
            move |left: Expr, right: Expr| Expr::BinaryOp {
                left: Box::new(left),
                op: op.clone(),
                right: Box::new(right),
            }
        };
        let lists = self.0.into_iter();
        let conjunctions =
            lists.filter_map(|list| list.into_iter().reduce(joined(BinaryOperator::And)));
        conjunctions.reduce(joined(BinaryOperator::Or)).unwrap_or(Expr::value(Value::Null))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::ast::{Expr, SetExpr, Statement};
    use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    /// An expression with brackets around each operation.
    fn shown(expr: &Expr) -> String {
        match expr {
            Expr::Nested(inner) => shown(inner),
            Expr::BinaryOp { left, op, right } => {
                format!("({} {op} {})", shown(left), shown(right))
            }
            Expr::UnaryOp { op, expr } => format!("({op} {})", shown(expr)),
            Expr::IsDistinctFrom(left, right) => format!("({} != {})", shown(left), shown(right)),
            Expr::IsNotDistinctFrom(left, right) => {
                format!("({} == {})", shown(left), shown(right))
            }
            other => other.to_string(),
        }
    }

    #[test]
    fn distinctness_binds_tighter_than_not_and_and_or() {
        for (written, meant) in [
            ("a is distinct from b and c", "((a != b) AND c)"),
            ("x and a is distinct from b or c", "((x AND (a != b)) OR c)"),
            (
                "a is not distinct from b and c is distinct from d or e",
                "(((a == b) AND (c != d)) OR e)",
            ),
            ("not a is distinct from b and c", "((NOT (a != b)) AND c)"),
            ("a is distinct from (b and c) or d", "((a != (b AND c)) OR d)"),
            ("a is distinct from b = c and d", "((a != (b = c)) AND d)"),
            ("a or b and not c or d", "((a OR (b AND (NOT c))) OR d)"),
            ("a and (b or c is distinct from d and e)", "(a AND (b OR ((c != d) AND e)))"),
        ] {
            let text = format!("SELECT 1 WHERE {written}");
            let mut statement = Parser::parse_sql(&PostgreSqlDialect {}, &text).unwrap().remove(0);
            super::rebind(&mut statement);
            let Statement::Query(query) = &statement else { panic!("{text} is no query") };
            let SetExpr::Select(select) = query.body.as_ref() else { panic!("{text} has no list") };
            assert_eq!(shown(select.selection.as_ref().unwrap()), meant, "{written}");
        }
    }
}
