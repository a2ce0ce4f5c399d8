//! DEFAULT of a column: an expression that is kept as text, in the form in which PostgreSQL shows
//! it.

use datafusion::sql::sqlparser::ast::{self, Expr, UnaryOperator, Value};

use crate::dml;
use crate::query::QueryContext;
use crate::{Column, Error, SqlState, Type};

/// The text of a column's DEFAULT; none for NULL.
///
/// # Errors
///
/// 0A000 for what may not be in a DEFAULT, 42804 if the column can't take it, and what reading it
/// as the column's type raises.
pub(super) fn text(
    context: &QueryContext,
    column: &Column,
    expr: &Expr,
) -> Result<Option<String>, Error> {
    check(context, expr)?;
    if let Some(sequence) = sequence_of(context, expr)? {
        return Ok(Some(nextval(sequence)));
    }
    let text = match expr {
        Expr::Value(value) if value.value == Value::Null => return Ok(None),
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(_) | Value::EscapedStringLiteral(_) => {
                format!("{expr}::{}", bare(&column.kind))
            }
            _ => expr.to_string(),
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr: operand }
            if matches!(operand.as_ref(), Expr::Value(_)) =>
        {
            let kind = context.plan(&dml::select_one(expr)?, &[])?.columns.pop();
            let kind = kind.map_or(Type::Numeric(None), |column| column.kind);
            format!("'-{operand}'::{}", bare(&kind))
        }
        Expr::BinaryOp { .. } => format!("({expr})"),
        expr if is_value(&expr.to_string()) => expr.to_string().to_ascii_uppercase(),
        expr => expr.to_string(),
    };
    let column = Column { default: Some(text.clone()), ..column.clone() };
    dml::check_default(context, &column)?;
    Ok(Some(text))
}

/// The call that gives a sequence's next number. Sequences are kept by their OIDs.
pub(super) fn nextval(sequence: u32) -> String {
    format!("nextval({sequence}::regclass)")
}

/// The sequence whose next number an expression is, if it names one.
fn sequence_of(context: &QueryContext, expr: &Expr) -> Result<Option<u32>, Error> {
    let Expr::Function(function) = expr else { return Ok(None) };
    if crate::names::function(&function.name) != "nextval" {
        return Ok(None);
    }
    let ast::FunctionArguments::List(list) = &function.args else { return Ok(None) };
    let [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(argument))] = list.args.as_slice()
    else {
        return Ok(None);
    };
    let argument = match argument {
        Expr::Cast { expr, .. } => expr.as_ref(),
        argument => argument,
    };
    let Expr::Value(value) = argument else { return Ok(None) };
    let Value::SingleQuotedString(name) = &value.value else { return Ok(None) };
    let missing = || {
        let message = format!("relation \"{name}\" does not exist");
        Error::new(SqlState::UNDEFINED_TABLE, message)
    };
    let parts = name.split('.').map(|part| crate::names::list(part)?.pop());
    let mut parts = parts.collect::<Option<Vec<_>>>().ok_or_else(missing)?;
    let sequence = parts.pop().ok_or_else(missing)?;
    let schemas = match parts.pop() {
        Some(schema) => vec![schema],
        None => context.settings.search_path(),
    };
    let mut found = schemas.iter();
    let found = found.find_map(|schema| context.catalog.find_sequence(schema, &sequence));
    found.map(|(oid, _)| Some(oid)).ok_or_else(missing)
}

fn bare(kind: &Type) -> String {
    match kind {
        Type::Numeric(_) => "numeric".to_owned(),
        Type::Varchar(_) => "character varying".to_owned(),
        Type::Char(_) => "bpchar".to_owned(),
        kind => kind.to_string(),
    }
}

/// What may not be in it.
fn check(context: &QueryContext, expr: &Expr) -> Result<(), Error> {
    let found = ast::visit_expressions(expr, |expr| {
        let error = match expr {
            Expr::Identifier(name) if name.quote_style.is_none() && is_value(&name.value) => None,
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => Some(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot use column reference in DEFAULT expression",
            )),
            Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => Some(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot use subquery in DEFAULT expression",
            )),
            Expr::Function(function) => {
                let name = crate::names::function(&function.name);
                if context.is_aggregate(&name) {
                    let message = "aggregate functions are not allowed in DEFAULT expressions";
                    Some(Error::new(SqlState::GROUPING_ERROR, message))
                } else {
                    None
                }
            }
            _ => None,
        };
        match error {
            Some(error) => std::ops::ControlFlow::Break(error),
            None => std::ops::ControlFlow::Continue(()),
        }
    });
    match found {
        std::ops::ControlFlow::Break(error) => Err(error),
        std::ops::ControlFlow::Continue(()) => Ok(()),
    }
}

/// Words that are functions without parentheses.
fn is_value(word: &str) -> bool {
    let words = [
        "current_date",
        "current_time",
        "current_timestamp",
        "localtime",
        "localtimestamp",
        "current_user",
        "session_user",
        "current_role",
        "user",
        "current_catalog",
        "current_schema",
    ];
    words.iter().any(|known| word.eq_ignore_ascii_case(known))
}
