//! What is said differently in PostgreSQL's SQL and in what DataFusion plans, put right on the
//! syntax tree before it is planned.
//!
//! - A number is an `integer`, a `bigint` or a `numeric` by its looks; DataFusion would take the
//!   widest.
//! - `pg_catalog.f(x)`, `OPERATOR(pg_catalog.~)` and `COLLATE "C"` are `f(x)`, `~` and nothing.
//! - `ARRAY(SELECT ...)`, `ARRAY[column]`, `AT TIME ZONE` and `INTERVAL '...'` are functions and casts,
//!   and so are `ESCAPE` and `SIMILAR TO`.
//! - Rows are compared by their fields, and conditions are marked as such.

mod arrays;
mod calls;
mod casts;
pub(crate) mod clock;
mod conditions;
mod intervals;
mod json;
mod numbers;
mod operators;
mod ordered_set;
mod rows;
pub(crate) mod set_returning;
mod values;

use std::ops::ControlFlow;
use std::sync::LazyLock;

use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, CastKind, DataType, Expr, Fetch, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArgumentList, FunctionArguments, Ident, LimitClause,
    ObjectName, Query, SetExpr, TableFactor, UnaryOperator, Value, ValueWithSpan, VisitMut,
    VisitorMut,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

use crate::functions::marker::{DISTINCT, NOT_DISTINCT, RECURSIVE, WITH_TIES};
use crate::functions::pattern;
use crate::resolve::references;
use crate::{Error, Type, names};
pub(crate) use calls::is_spelling;
use conditions::{mark, mark_joins, mark_operands};
use numbers::{read_as_float, typed_number, untype, untype_argument, untype_frame};
use operators::{check_collation, operator, prefixed};

/// Rewrites a query, a statement or an expression in place.
pub(crate) fn rewrite(tree: &mut impl VisitMut) -> Result<(), Error> {
    match tree.visit(&mut Rewriter) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// It returns rows of two columns; that of this name here returns them as an array.
const EXPANDED: &str = "information_schema._pg_expandarray";

struct Rewriter;

impl VisitorMut for Rewriter {
    type Break = Error;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        // The sign belongs to the number: -2147483648 is an integer.
        if let Expr::UnaryOp { op: UnaryOperator::Minus, expr: operand } = expr
            && let Expr::Value(ValueWithSpan { value: Value::Number(digits, _), span }) =
                operand.as_ref()
            && !digits.starts_with('-')
        {
            let number = Value::Number(format!("-{digits}"), false);
            *expr = Expr::Value(ValueWithSpan { value: number, span: *span });
        }
        read_as_float(expr);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        match self.expr(expr) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }

    // Where a number is a count or a place it stays as it is.

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        values::separate_values(&mut query.body);
        query.with.iter_mut().for_each(mark_recursion);
        if let Some(LimitClause::LimitOffset { limit, offset, .. }) = &mut query.limit_clause {
            limit.iter_mut().for_each(untype);
            offset.iter_mut().for_each(|offset| untype(&mut offset.value));
        }
        mark_ties(query);
        if let Some(order_by) = &mut query.order_by
            && let ast::OrderByKind::Expressions(expressions) = &mut order_by.kind
        {
            expressions.iter_mut().for_each(|order| untype(&mut order.expr));
        }
        // What is a place by now has no cast.
        casts::tell_apart(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<Error> {
        match select.selection.as_mut().map_or(Ok(()), rows::rewrite_conjuncts) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn post_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<Error> {
        select.selection.iter_mut().for_each(|condition| mark(condition, "WHERE"));
        select.having.iter_mut().for_each(|condition| mark(condition, "HAVING"));
        select.from.iter_mut().for_each(|tree| mark_joins(&mut tree.joins));
        if let ast::GroupByExpr::Expressions(expressions, _) = &mut select.group_by {
            expressions.iter_mut().for_each(untype);
        }
        if let Some(ast::Distinct::On(expressions)) = &mut select.distinct {
            expressions.iter_mut().for_each(untype);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Error> {
        match table {
            TableFactor::Table { name, args: Some(arguments), .. } => {
                strip_catalog(name);
                arguments.args.iter_mut().for_each(untype_argument);
            }
            TableFactor::Function { name, args, .. } => {
                strip_catalog(name);
                args.iter_mut().for_each(untype_argument);
            }
            TableFactor::NestedJoin { table_with_joins, .. } => {
                mark_joins(&mut table_with_joins.joins);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// FETCH FIRST ... WITH TIES as a LIMIT that is marked. No other FETCH is left by then.
fn mark_ties(query: &mut Query) {
    let Some(Fetch { quantity: Some(mut quantity), .. }) = query.fetch.take() else { return };
    untype(&mut quantity);
    let marked = call(WITH_TIES, vec![quantity]);
    match &mut query.limit_clause {
        Some(LimitClause::LimitOffset { limit, .. }) => *limit = Some(marked),
        clause => {
            let limit = Some(marked);
            *clause = Some(LimitClause::LimitOffset { limit, offset: None, limit_by: vec![] });
        }
    }
}

impl Rewriter {
    fn expr(&mut self, expr: &mut Expr) -> Result<(), Error> {
        rows::rewrite(expr)?;
        mark_operands(expr);
        match expr {
            Expr::Value(ValueWithSpan { value: Value::Number(digits, _), span }) => {
                if let Some(typed) = typed_number(digits, *span)? {
                    *expr = typed;
                }
            }
            Expr::Value(ValueWithSpan { value: Value::HexStringLiteral(_), .. }) => {
                return Err(Error::unsupported("a bit string"));
            }
            Expr::BinaryOp { left, op, right } => {
                if let BinaryOperator::PGCustomBinaryOperator(parts) = op {
                    *op = operator(parts)?;
                }
                if let Some(like) = operators::like(left, op, right) {
                    *expr = like;
                } else if *op == BinaryOperator::PGStartsWith {
                    *expr = call("starts_with", vec![take(left), take(right)]);
                }
            }
            Expr::IsDistinctFrom(left, right) => {
                *expr = call(DISTINCT, vec![take(left), take(right)]);
            }
            Expr::IsNotDistinctFrom(left, right) => {
                *expr = call(NOT_DISTINCT, vec![take(left), take(right)]);
            }
            Expr::UnaryOp { op, expr: operand } => {
                if let Some(called) = prefixed(*op, operand) {
                    *expr = called;
                }
            }
            Expr::Collate { expr: operand, collation } => {
                check_collation(collation)?;
                *expr = take(operand);
            }
            Expr::AtTimeZone { timestamp, time_zone } => {
                let (zone, timestamp) = (take(time_zone), take(timestamp));
                *expr = call("timezone", vec![zone, timestamp]);
            }
            // The planner looks for columns of the query around in a function's arguments only.
            Expr::Array(array) if !array.elem.is_empty() => {
                if array.elem.iter().any(arrays::is_constructor) {
                    return Err(Error::unsupported("an array of more than one dimension"));
                }
                *expr = call(arrays::CONSTRUCTOR, std::mem::take(&mut array.elem));
            }
            Expr::CompoundFieldAccess { root, access_chain } => {
                if let Some(sliced) = arrays::sliced(root, access_chain)? {
                    *expr = sliced;
                }
            }
            Expr::AnyOp { left, compare_op, right, .. }
                if !matches!(right.as_ref(), Expr::Subquery(_)) =>
            {
                *expr = arrays::quantified("any", take(left), compare_op, take(right))?;
            }
            Expr::AllOp { left, compare_op, right }
                if !matches!(right.as_ref(), Expr::Subquery(_)) =>
            {
                *expr = arrays::quantified("all", take(left), compare_op, take(right))?;
            }
            Expr::Interval(interval) => *expr = intervals::literal(interval)?,
            Expr::Cast { expr: operand, .. } if matches!(operand.as_ref(), Expr::Array(array) if array.elem.is_empty()) =>
            {
                **operand = Expr::value(Value::SingleQuotedString("{}".to_owned()));
            }
            Expr::Cast { expr: operand, data_type, array: false, format: None, .. } => {
                if let Some(limited) = intervals::interval_cast(operand, data_type)? {
                    *expr = limited;
                } else if let Some(rounded) = intervals::moment_cast(operand, data_type) {
                    *expr = rounded;
                } else if let Some(name) = name_cast(operand, data_type) {
                    let operand = take(operand);
                    *expr = call(&name, vec![operand]);
                }
            }
            Expr::TypedString(typed) => {
                let mut literal = Expr::Value(typed.value.clone());
                if let Some(rounded) = intervals::moment_cast(&mut literal, &typed.data_type) {
                    *expr = rounded;
                }
            }
            Expr::Between { .. } => {
                if let Some(symmetric) = calls::symmetric(expr) {
                    *expr = symmetric;
                }
            }
            Expr::Like { any: false, negated, expr: operand, pattern, escape_char: None }
                if calls::quantified(pattern).is_some() =>
            {
                if let Some((quantifier, array)) = calls::quantified(pattern) {
                    let op = match negated {
                        true => BinaryOperator::PGNotLikeMatch,
                        false => BinaryOperator::PGLikeMatch,
                    };
                    *expr = arrays::quantified(quantifier, take(operand), &op, array)?;
                }
            }
            Expr::ILike { any: false, negated, expr: operand, pattern, escape_char: None }
                if calls::quantified(pattern).is_some() =>
            {
                if let Some((quantifier, array)) = calls::quantified(pattern) {
                    let op = match negated {
                        true => BinaryOperator::PGNotILikeMatch,
                        false => BinaryOperator::PGILikeMatch,
                    };
                    *expr = arrays::quantified(quantifier, take(operand), &op, array)?;
                }
            }
            Expr::Like { any: true, negated, expr: operand, pattern, escape_char: None } => {
                let op = if *negated {
                    BinaryOperator::PGNotLikeMatch
                } else {
                    BinaryOperator::PGLikeMatch
                };
                *expr = arrays::quantified("any", take(operand), &op, take(pattern))?;
            }
            Expr::ILike { any: true, negated, expr: operand, pattern, escape_char: None } => {
                let op = if *negated {
                    BinaryOperator::PGNotILikeMatch
                } else {
                    BinaryOperator::PGILikeMatch
                };
                *expr = arrays::quantified("any", take(operand), &op, take(pattern))?;
            }
            Expr::Like { any: true, .. } | Expr::ILike { any: true, .. } => {
                return Err(Error::unsupported("LIKE ANY with ESCAPE"));
            }
            Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. } => {
                if let Some(escape) = escape_char.take() {
                    **pattern = escaped(take(pattern), escape)?;
                }
            }
            Expr::SimilarTo { negated, expr: operand, pattern, escape_char } => {
                let default = || Value::SingleQuotedString("\\".to_owned()).with_empty_span();
                let escape = Expr::Value(escape_char.take().unwrap_or_else(default));
                let op = match negated {
                    true => BinaryOperator::PGRegexNotMatch,
                    false => BinaryOperator::PGRegexMatch,
                };
                let pattern = call("similar_to_escape", vec![take(pattern), escape]);
                let left = Box::new(take(operand));
                *expr = Expr::BinaryOp { left, op, right: Box::new(pattern) };
            }
            Expr::Function(function) => {
                strip_catalog(&mut function.name);
                untype_frame(function);
                function.filter.iter_mut().for_each(|condition| mark(condition, "FILTER"));
                if let Some(path) = calls::spread(function)? {
                    *expr = path;
                } else if let FunctionArguments::Subquery(query) = &mut function.args
                    && names::function(&function.name) == "array"
                {
                    *expr = arrays::array_of(query.as_ref().clone())?;
                } else if let Some(mut plain) =
                    clock::plain(function).or_else(|| calls::plain(function))
                {
                    if matches!(plain, Expr::Cast { .. }) {
                        self.expr(&mut plain)?;
                    }
                    *expr = plain;
                } else if let Some(counted) = calls::as_integer(function) {
                    *expr = counted;
                } else if let Some(collected) = json::collected(function) {
                    *expr = collected;
                } else if let Some(place) = ordered_set::plain(function)? {
                    *expr = place;
                } else if let Expr::Function(function) = expr {
                    let name = names::function(&function.name);
                    let array = match set_returning::columns(&name).as_deref() {
                        Some([column]) => column.list.clone(),
                        Some(_) => {
                            let what = format!("{name} outside FROM");
                            let hint = format!("Write SELECT ... FROM {name}(...).");
                            return Err(Error::unsupported(what).with_hint(hint));
                        }
                        None if name == EXPANDED => name,
                        None => return Ok(()),
                    };
                    function.name = ObjectName::from(vec![Ident::with_quote('"', array)]);
                    *expr = call("unnest", vec![take(expr)]);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Marks the columns of the parts of recursive queries that name them.
fn mark_recursion(with: &mut ast::With) {
    for cte in with.cte_tables.iter_mut().filter(|_| with.recursive) {
        let name = names::fold(&cte.alias.name);
        let SetExpr::SetOperation { right, .. } = cte.query.body.as_mut() else { continue };
        if references(&**right, &name) == 0 {
            continue;
        }
        let SetExpr::Select(select) = right.as_mut() else { continue };
        for item in &mut select.projection {
            if let ast::SelectItem::ExprWithAlias { expr, .. } = item {
                *expr = call(RECURSIVE, vec![take(expr)]);
            }
        }
    }
}

fn take(part: &mut Expr) -> Expr {
    std::mem::replace(part, Expr::value(Value::Null))
}

/// The pattern of LIKE in which the backslash escapes.
fn escaped(pattern: Expr, escape: ValueWithSpan) -> Result<Expr, Error> {
    let text = |expr: &Expr| match expr {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => {
            Some(text.clone())
        }
        _ => None,
    };
    let escape = Expr::Value(escape);
    Ok(match (text(&pattern), text(&escape)) {
        (Some(pattern), Some(escape)) => {
            Expr::value(Value::SingleQuotedString(pattern::like_pattern(&pattern, &escape)?))
        }
        _ => call("like_escape", vec![pattern, escape]),
    })
}

fn cast(value: ValueWithSpan, data_type: DataType) -> Expr {
    Expr::Cast {
        kind: CastKind::DoubleColon,
        expr: Box::new(Expr::Value(value)),
        data_type,
        array: false,
        format: None,
    }
}

/// The function that a cast to or from a type of names is: `'t'::regclass` is `"regclass in"('t')`,
/// and that `::text` is `"regclass out"` of it.
fn name_cast(operand: &Expr, data_type: &DataType) -> Option<String> {
    let kind = Type::of_syntax(data_type).ok()?;
    if kind.is_name_of_object() {
        return Some(format!("{kind} in"));
    }
    if !matches!(kind, Type::Text | Type::Varchar(_) | Type::Name) {
        return None;
    }
    let mut operand = operand;
    while let Expr::Nested(inner) = operand {
        operand = inner;
    }
    let Expr::Function(function) = operand else { return None };
    let name = function.name.0.first()?.as_ident()?.value.clone();
    Some(format!("{} out", name.strip_suffix(" in").filter(|name| name.starts_with("reg"))?))
}

/// `pg_catalog.f` as `f`.
fn strip_catalog(name: &mut ObjectName) {
    let is_catalog = name.0.len() == 2
        && name.0[0]
            .as_ident()
            .is_some_and(|schema| schema.value.eq_ignore_ascii_case("pg_catalog"));
    if is_catalog {
        name.0.remove(0);
    }
}

fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let arguments = arguments
        .into_iter()
        .map(|argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)))
        .collect();
    function(name, arguments, vec![])
}

fn function(name: &str, args: Vec<FunctionArg>, clauses: Vec<FunctionArgumentClause>) -> Expr {
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::with_quote('"', name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args,
            clauses,
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: vec![],
    })
}

/// `SELECT` and nothing else.
fn bare_select() -> ast::Select {
    static SELECT: LazyLock<ast::Select> = LazyLock::new(|| {
        let statements = Parser::parse_sql(&PostgreSqlDialect {}, "SELECT 1");
        match statements.ok().and_then(|mut statements| statements.pop()) {
            Some(ast::Statement::Query(query)) => match *query.body {
                SetExpr::Select(select) => *select,
                _ => unreachable!("it was parsed from a SELECT"),
            },
            _ => unreachable!("it was parsed from a query"),
        }
    });
    SELECT.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(sql: &str) -> String {
        let mut statements = Parser::parse_sql(&PostgreSqlDialect {}, sql).unwrap();
        rewrite(&mut statements[0]).unwrap();
        statements[0].to_string()
    }

    #[test]
    fn numbers_have_the_types_they_look_like() {
        assert_eq!(rewritten("SELECT 1"), "SELECT 1::INT4");
        assert_eq!(rewritten("SELECT -2147483648"), "SELECT -2147483648::INT4");
        assert_eq!(rewritten("SELECT 2147483648"), "SELECT 2147483648");
        assert_eq!(
            rewritten("SELECT 9223372036854775808"),
            "SELECT '9223372036854775808'::NUMERIC(19,0)"
        );
        assert_eq!(rewritten("SELECT 1.50"), "SELECT '1.50'::NUMERIC(3,2)");
        assert_eq!(rewritten("SELECT .05"), "SELECT '0.05'::NUMERIC(2,2)");
        assert_eq!(rewritten("SELECT 1.5e3"), "SELECT '1500'::NUMERIC(4,0)");
        assert_eq!(rewritten("SELECT -1.5e-3"), "SELECT '-0.0015'::NUMERIC(4,4)");
    }

    #[test]
    fn counts_and_places_stay_numbers() {
        let sql = "SELECT a, sum(b) OVER (ORDER BY a ROWS 2 PRECEDING) FROM t GROUP BY 1 \
                   ORDER BY 2 LIMIT 3 OFFSET 4";
        assert_eq!(rewritten(sql), sql);
        let sql = "SELECT * FROM generate_series(1, 10 + 5)";
        assert_eq!(rewritten(sql), sql);
    }

    #[test]
    fn values_of_texts_and_numbers_are_a_union() {
        assert_eq!(
            rewritten("VALUES (1, 'a'), (2, NULL)"),
            "VALUES (1::INT4, 'a'), (2::INT4, NULL)"
        );
        assert_eq!(
            rewritten("VALUES (1), ('2')"),
            "SELECT 1::INT4 AS column1 UNION ALL SELECT '2' AS column1"
        );
    }

    #[test]
    fn what_only_postgresql_says_is_said_plainly() {
        assert_eq!(
            rewritten(
                "SELECT pg_catalog.f(a) FROM t WHERE a OPERATOR(pg_catalog.~) 'x' COLLATE pg_catalog.default"
            ),
            "SELECT f(a) FROM t WHERE a ~ 'x'"
        );
        assert_eq!(
            rewritten("SELECT t AT TIME ZONE 'UTC', INTERVAL '5' DAY, @ -5"),
            "SELECT \"timezone\"('UTC', t), \"interval limited\"('5', 'day', '6'::INT4), \
             \"operator @\"(-5::INT4)"
        );
        assert_eq!(
            rewritten("SELECT ARRAY(SELECT a FROM t ORDER BY 1)"),
            "SELECT \"array_or_empty\"((SELECT \"array_agg\"(a ORDER BY a) FROM t))"
        );
    }
}
