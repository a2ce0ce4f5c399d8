//! What is said differently in PostgreSQL's SQL and in what DataFusion plans, put right on the
//! syntax tree before it is planned.
//!
//! - A number is an `integer`, a `bigint` or a `numeric` by its looks; DataFusion would take the
//!   widest.
//! - `pg_catalog.f(x)`, `OPERATOR(pg_catalog.~)` and `COLLATE "C"` are `f(x)`, `~` and nothing.
//! - `ARRAY(SELECT ...)`, `ARRAY[column]`, `AT TIME ZONE` and `INTERVAL '...'` are functions and casts.

use std::ops::ControlFlow;
use std::sync::LazyLock;

use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, CastKind, DataType, ExactNumberInfo, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArgumentClause, FunctionArgumentList, FunctionArguments, Ident,
    LimitClause, ObjectName, Query, SetExpr, TableFactor, UnaryOperator, Value, ValueWithSpan,
    VisitMut, VisitorMut, WindowFrameBound, WindowType,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Span;

use crate::text::MAX_PRECISION;
use crate::{Error, SqlState, Type, names};

/// Rewrites a query, a statement or an expression in place.
pub(crate) fn rewrite(tree: &mut impl VisitMut) -> Result<(), Error> {
    match tree.visit(&mut Rewriter) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// Functions that return rows; the functions of these names here return them as an array.
const RETURNS_ROWS: &[&str] = &["generate_subscripts", "information_schema._pg_expandarray"];

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
        separate_values(&mut query.body);
        if let Some(LimitClause::LimitOffset { limit, offset, .. }) = &mut query.limit_clause {
            limit.iter_mut().for_each(untype);
            offset.iter_mut().for_each(|offset| untype(&mut offset.value));
        }
        if let Some(fetch) = &mut query.fetch {
            fetch.quantity.iter_mut().for_each(untype);
        }
        if let Some(order_by) = &mut query.order_by
            && let ast::OrderByKind::Expressions(expressions) = &mut order_by.kind
        {
            expressions.iter_mut().for_each(|order| untype(&mut order.expr));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<Error> {
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
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Rewriter {
    fn expr(&mut self, expr: &mut Expr) -> Result<(), Error> {
        match expr {
            Expr::Value(ValueWithSpan { value: Value::Number(digits, _), span }) => {
                if let Some(typed) = typed_number(digits, *span)? {
                    *expr = typed;
                }
            }
            Expr::BinaryOp { op, .. } => {
                if let BinaryOperator::PGCustomBinaryOperator(parts) = op {
                    *op = operator(parts)?;
                }
            }
            Expr::Collate { expr: operand, collation } => {
                check_collation(collation)?;
                *expr = std::mem::replace(operand.as_mut(), Expr::value(Value::Null));
            }
            Expr::AtTimeZone { timestamp, time_zone } => {
                let take = |part: &mut Box<Expr>| {
                    std::mem::replace(part.as_mut(), Expr::value(Value::Null))
                };
                let (zone, timestamp) = (take(time_zone), take(timestamp));
                *expr = call("timezone", vec![zone, timestamp]);
            }
            // The planner looks for columns of the query around in a function's arguments only.
            Expr::Array(array) if array.elem.iter().any(is_column) => {
                *expr = call("make_array", std::mem::take(&mut array.elem));
            }
            Expr::Interval(interval) => *expr = interval_cast(interval)?,
            Expr::Cast { expr: operand, data_type, array: false, format: None, .. } => {
                if let Some(name) = name_cast(operand, data_type) {
                    let operand = std::mem::replace(operand.as_mut(), Expr::value(Value::Null));
                    *expr = call(&name, vec![operand]);
                }
            }
            Expr::Function(function) => {
                strip_catalog(&mut function.name);
                untype_frame(function);
                if let FunctionArguments::Subquery(query) = &mut function.args
                    && names::function(&function.name) == "array"
                {
                    *expr = array_of(query.as_ref().clone())?;
                } else if let Expr::Function(function) = expr
                    && RETURNS_ROWS.contains(&names::function(&function.name).as_str())
                {
                    let array = std::mem::replace(expr, Expr::value(Value::Null));
                    *expr = call("unnest", vec![array]);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn is_column(expr: &Expr) -> bool {
    let found = ast::visit_expressions(expr, |expr| match expr {
        Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

/// VALUES whose columns mix texts with something else as UNION ALL, in which texts take the type of
/// the others; VALUES would make texts of all.
fn separate_values(body: &mut SetExpr) {
    let SetExpr::Values(values) = body else { return };
    let is_text = |expr: &Expr| {
        matches!(expr, Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(_), .. }))
    };
    let is_null =
        |expr: &Expr| matches!(expr, Expr::Value(ValueWithSpan { value: Value::Null, .. }));
    let columns = values.rows.first().map_or(0, |row| row.content.len());
    let is_mixed = (0..columns).any(|place| {
        let column = || values.rows.iter().filter_map(|row| row.content.get(place));
        column().any(is_text) && column().any(|expr| !is_text(expr) && !is_null(expr))
    });
    // Rows of unequal length are an error that VALUES tells best.
    if is_mixed && values.rows.iter().all(|row| row.content.len() == columns) {
        let rows = std::mem::take(&mut values.rows);
        *body = union_of(rows.into_iter().map(|row| select_of(row.content)).collect());
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

/// The number with its type, unless its type is the one that DataFusion gives it.
fn typed_number(digits: &str, span: Span) -> Result<Option<Expr>, Error> {
    if digits.parse::<i32>().is_ok() {
        let number = Value::Number(digits.to_owned(), false);
        return Ok(Some(cast(ValueWithSpan { value: number, span }, DataType::Int4(None))));
    }
    if digits.parse::<i64>().is_ok() {
        return Ok(None);
    }
    let plain = without_exponent(digits)?;
    let unsigned = plain.trim_start_matches('-');
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let whole = whole.trim_start_matches('0').len();
    let precision = (whole + fraction.len()).max(1);
    if precision > usize::from(MAX_PRECISION) {
        let what = format!("a number of more than {MAX_PRECISION} digits");
        return Err(Error::unsupported(what));
    }
    let digits = ExactNumberInfo::PrecisionAndScale(precision as u64, fraction.len() as i64);
    let value = Value::SingleQuotedString(plain);
    Ok(Some(cast(ValueWithSpan { value, span }, DataType::Numeric(digits))))
}

/// `1.5e3` as `1500`.
fn without_exponent(digits: &str) -> Result<String, Error> {
    let syntax = || {
        Error::new(
            SqlState::SYNTAX_ERROR,
            format!("trailing junk after numeric literal at or near \"{digits}\""),
        )
    };
    let Some((mantissa, exponent)) = digits.split_once(['e', 'E']) else {
        return Ok(digits.to_owned());
    };
    let exponent: i32 = exponent.parse().map_err(|_| syntax())?;
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => ("-", mantissa),
        None => ("", mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if exponent.unsigned_abs() > 2 * u32::from(MAX_PRECISION) {
        return Err(Error::unsupported(format!("a number of more than {MAX_PRECISION} digits")));
    }
    let point = whole.len() as i32 + exponent;
    let mut all = format!("{whole}{fraction}");
    if point <= 0 {
        all.insert_str(0, &"0".repeat((1 - point) as usize));
    }
    let point = point.max(1) as usize;
    while all.len() < point {
        all.push('0');
    }
    let (whole, fraction) = all.split_at(point);
    let dot = if fraction.is_empty() { "" } else { "." };
    Ok(format!("{sign}{whole}{dot}{fraction}"))
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

/// The number without the type that was given to it.
fn untype(expr: &mut Expr) {
    if let Expr::Cast { expr: operand, data_type: DataType::Int4(None), .. } = expr
        && matches!(operand.as_ref(), Expr::Value(ValueWithSpan { value: Value::Number(..), .. }))
    {
        *expr = std::mem::replace(operand.as_mut(), Expr::value(Value::Null));
    }
}

/// The same for the numbers that an argument of a function in FROM is computed of.
fn untype_argument(argument: &mut FunctionArg) {
    if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument {
        untype_operands(expr);
    }
}

fn untype_operands(expr: &mut Expr) {
    match expr {
        Expr::BinaryOp { left, right, .. } => {
            untype_operands(left);
            untype_operands(right);
        }
        Expr::UnaryOp { expr, .. } | Expr::Nested(expr) => untype_operands(expr),
        other => untype(other),
    }
}

fn untype_frame(function: &mut Function) {
    let Some(WindowType::WindowSpec(window)) = &mut function.over else { return };
    let Some(frame) = &mut window.window_frame else { return };
    for bound in std::iter::once(&mut frame.start_bound).chain(&mut frame.end_bound) {
        if let WindowFrameBound::Preceding(Some(rows)) | WindowFrameBound::Following(Some(rows)) =
            bound
        {
            untype(rows);
        }
    }
    window.order_by.iter_mut().for_each(|order| untype(&mut order.expr));
}

/// The function that a cast to or from a type of names is: `'t'::regclass` is `"regclass in"('t')`,
/// and that `::text` is `"regclass out"` of it.
fn name_cast(operand: &Expr, data_type: &DataType) -> Option<String> {
    let kind = Type::of_syntax(data_type).ok()?;
    if kind.is_name_of_object() {
        // What is unknown takes its type later.
        let is_parameter =
            matches!(operand, Expr::Value(ValueWithSpan { value: Value::Placeholder(_), .. }));
        return (!is_parameter).then(|| format!("{kind} in"));
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

/// `OPERATOR(pg_catalog.~)` as `~`.
fn operator(parts: &[String]) -> Result<BinaryOperator, Error> {
    let symbol = match parts {
        [symbol] => symbol,
        [schema, symbol] if schema.eq_ignore_ascii_case("pg_catalog") => symbol,
        _ => {
            let message = format!("operator does not exist: {}", parts.join("."));
            return Err(Error::new(SqlState::UNDEFINED_FUNCTION, message));
        }
    };
    Ok(match symbol.as_str() {
        "=" => BinaryOperator::Eq,
        "<>" | "!=" => BinaryOperator::NotEq,
        "<" => BinaryOperator::Lt,
        "<=" => BinaryOperator::LtEq,
        ">" => BinaryOperator::Gt,
        ">=" => BinaryOperator::GtEq,
        "+" => BinaryOperator::Plus,
        "-" => BinaryOperator::Minus,
        "*" => BinaryOperator::Multiply,
        "/" => BinaryOperator::Divide,
        "%" => BinaryOperator::Modulo,
        "||" => BinaryOperator::StringConcat,
        "~" => BinaryOperator::PGRegexMatch,
        "~*" => BinaryOperator::PGRegexIMatch,
        "!~" => BinaryOperator::PGRegexNotMatch,
        "!~*" => BinaryOperator::PGRegexNotIMatch,
        "~~" => BinaryOperator::PGLikeMatch,
        "~~*" => BinaryOperator::PGILikeMatch,
        "!~~" => BinaryOperator::PGNotLikeMatch,
        "!~~*" => BinaryOperator::PGNotILikeMatch,
        other => return Err(Error::unsupported(format!("the operator {other}"))),
    })
}

/// Texts compare by their bytes: that is one of these.
fn check_collation(collation: &ObjectName) -> Result<(), Error> {
    let last = collation.0.last().and_then(|part| part.as_ident());
    let known = ["default", "C", "POSIX", "C.UTF-8", "C.utf8", "ucs_basic"];
    if last.is_some_and(|name| known.contains(&name.value.as_str())) {
        return Ok(());
    }
    Err(Error::unsupported(format!("the collation {collation}")))
}

fn interval_cast(interval: &ast::Interval) -> Result<Expr, Error> {
    let Expr::Value(ValueWithSpan { value, span }) = interval.value.as_ref() else {
        return Err(Error::new(SqlState::SYNTAX_ERROR, "syntax error at INTERVAL"));
    };
    let text = match value {
        Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => text.clone(),
        _ => return Err(Error::new(SqlState::SYNTAX_ERROR, "syntax error at INTERVAL")),
    };
    if interval.last_field.is_some()
        || interval.leading_precision.is_some()
        || interval.fractional_seconds_precision.is_some()
    {
        return Err(Error::unsupported("an interval of several fields"));
    }
    let text = match &interval.leading_field {
        // The field is the unit of a bare number.
        Some(field) if text.trim().parse::<f64>().is_ok() => format!("{text} {field}"),
        Some(field) => {
            return Err(Error::unsupported(format!("an interval limited to {field}")));
        }
        None => text,
    };
    let value = ValueWithSpan { value: Value::SingleQuotedString(text), span: *span };
    Ok(cast(value, DataType::Interval { fields: None, precision: None }))
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

/// `ARRAY(SELECT x ...)` as `array_or_empty((SELECT array_agg(x) ...))`.
fn array_of(mut query: Query) -> Result<Expr, Error> {
    let unsupported = || Error::unsupported("an ARRAY of such a subquery");
    let order = query.order_by.take();
    if query.limit_clause.is_some() || query.fetch.is_some() {
        return Err(unsupported());
    }
    let SetExpr::Select(select) = query.body.as_mut() else { return Err(unsupported()) };
    let is_grouped =
        !matches!(&select.group_by, ast::GroupByExpr::Expressions(keys, _) if keys.is_empty());
    if is_grouped || select.having.is_some() || select.distinct.is_some() {
        return Err(unsupported());
    }
    let element = match select.projection.as_slice() {
        [ast::SelectItem::UnnamedExpr(element)] => element.clone(),
        [ast::SelectItem::ExprWithAlias { expr, .. }] => expr.clone(),
        _ => {
            let message = "subquery must return only one column";
            return Err(Error::new(SqlState::SYNTAX_ERROR, message));
        }
    };
    let clauses = match order {
        None => vec![],
        Some(ast::OrderBy { kind: ast::OrderByKind::Expressions(mut keys), .. }) => {
            for key in &mut keys {
                // The only column, by its place.
                if matches!(&key.expr, Expr::Value(ValueWithSpan { value: Value::Number(..), .. }))
                {
                    key.expr = element.clone();
                }
            }
            vec![FunctionArgumentClause::OrderBy(keys)]
        }
        Some(_) => return Err(unsupported()),
    };
    let argument = FunctionArg::Unnamed(FunctionArgExpr::Expr(element));
    let elements = function("array_agg", vec![argument], clauses);
    select.projection = vec![ast::SelectItem::UnnamedExpr(elements)];
    Ok(call("array_or_empty", vec![Expr::Subquery(Box::new(query))]))
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
        assert_eq!(rewritten("SELECT .05"), "SELECT '.05'::NUMERIC(2,2)");
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
            rewritten("SELECT t AT TIME ZONE 'UTC', INTERVAL '5' DAY"),
            "SELECT \"timezone\"('UTC', t), '5 DAY'::INTERVAL"
        );
        assert_eq!(
            rewritten("SELECT ARRAY(SELECT a FROM t ORDER BY 1)"),
            "SELECT \"array_or_empty\"((SELECT \"array_agg\"(a ORDER BY a) FROM t))"
        );
    }
}
