//! Makes operators in SQL text our functions.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::{
    ExprPlanner, PlannerResult, RawBinaryExpr, RawFieldAccessExpr,
};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, GetFieldAccess};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::functions::arithmetic::Operator;
use crate::functions::coercion::is_untyped;
use crate::functions::concat::CONCAT;
use crate::functions::datetime::{self, extract_scale};
use crate::functions::numeric::{is_carried, key_of};
use crate::functions::resolve::{Purpose, common};
use crate::functions::scalar::{Definition, Function, no_operator, type_name};
use crate::functions::typed::{Typed, is_text, kind_of};
use crate::functions::{array, bits, bytea, json, regex};
use crate::text::MAX_PRECISION;
use crate::{Error, SqlState, Type};

/// Plans the operators that are functions of ours.
#[derive(Debug)]
pub(super) struct Operators;

impl ExprPlanner for Operators {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        if let Some(typed) = typed(&expr, schema) {
            let operands = vec![expr.left, expr.right];
            let call = ScalarFunction::new_udf(typed.udf(), operands);
            return Ok(PlannerResult::Planned(Expr::ScalarFunction(call)));
        }
        let Some(definition) = definition(&expr) else {
            return Ok(PlannerResult::Original(comparable(expr, schema)?));
        };
        let operands = vec![expr.left, expr.right];
        let call = ScalarFunction::new_udf(Function::udf(definition), operands);
        Ok(PlannerResult::Planned(Expr::ScalarFunction(call)))
    }

    fn plan_field_access(
        &self,
        access: RawFieldAccessExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        let kind = kind_of(&access.expr.to_field(schema)?.1);
        let is_json = matches!(kind, Type::Json | Type::Jsonb);
        let (function, index) = match &access.field_access {
            GetFieldAccess::ListIndex { key } if is_json => {
                (&json::SUBSCRIPT, key.as_ref().clone())
            }
            GetFieldAccess::NamedStructField { name } if is_json => {
                (&json::SUBSCRIPT, Expr::Literal(name.clone(), None))
            }
            GetFieldAccess::ListIndex { key }
                if matches!(kind, Type::Int2Vector | Type::OidVector) =>
            {
                (&array::VECTOR_SUBSCRIPT, key.as_ref().clone())
            }
            GetFieldAccess::ListIndex { key } => (&array::SUBSCRIPT, key.as_ref().clone()),
            _ => return Ok(PlannerResult::Original(access)),
        };
        let call = ScalarFunction::new_udf(function.udf(), vec![access.expr, index]);
        Ok(PlannerResult::Planned(Expr::ScalarFunction(call)))
    }

    fn plan_array_literal(&self, _: Vec<Expr>, _: &DFSchema) -> Result<PlannerResult<Vec<Expr>>> {
        // One with elements is a call by now.
        let message = "cannot determine type of empty array";
        Err(Error::new(SqlState::INDETERMINATE_DATATYPE, message)
            .with_hint("Explicitly cast to the desired type, for example ARRAY[]::integer[].")
            .into())
    }

    fn plan_substring(&self, arguments: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(planned(&bytea::SUBSTRING, arguments))
    }

    fn plan_position(&self, arguments: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(planned(&bytea::POSITION, arguments))
    }

    fn plan_overlay(&self, arguments: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(planned(&bytea::OVERLAY, arguments))
    }

    fn plan_extract(&self, arguments: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        let extract = datetime::DEFINITIONS.iter().find(|definition| definition.name == "extract");
        let Some(extract) = extract else { return Ok(PlannerResult::Original(arguments)) };
        let scale = match arguments.first() {
            Some(Expr::Literal(ScalarValue::Utf8(Some(field)), _)) => extract_scale(field),
            _ => None,
        };
        let call = ScalarFunction::new_udf(Function::udf(extract), arguments);
        let call = Expr::ScalarFunction(call);
        // How many digits there are depends on the field.
        Ok(PlannerResult::Planned(match scale {
            Some(scale) => {
                let kind = Type::Numeric(Some((MAX_PRECISION, scale)));
                Expr::Cast(Cast::new_from_field(Box::new(call), Arc::new(kind.field("", true))))
            }
            None => call,
        }))
    }
}

/// The same, if DataFusion takes such operands; otherwise as `Coercion` would settle them, which comes
/// too late for what DataFusion refuses at once.
fn comparable(mut expr: RawBinaryExpr, schema: &DFSchema) -> Result<RawBinaryExpr> {
    let is_comparison = matches!(
        expr.op,
        BinaryOperator::Eq
            | BinaryOperator::NotEq
            | BinaryOperator::Lt
            | BinaryOperator::LtEq
            | BinaryOperator::Gt
            | BinaryOperator::GtEq
    );
    let is_logical = matches!(expr.op, BinaryOperator::And | BinaryOperator::Or);
    if !is_comparison && !is_logical {
        return Ok(expr);
    }
    let (Ok(left), Ok(right)) = (expr.left.get_type(schema), expr.right.get_type(schema)) else {
        return Ok(expr);
    };
    let is_text = is_untyped;
    let typed =
        |operand: Expr, data_type: DataType| Expr::Cast(Cast::new(Box::new(operand), data_type));
    if is_logical {
        for (side, data_type) in [(&mut expr.left, left), (&mut expr.right, right)] {
            if is_text(side) {
                *side = typed(std::mem::take(side), DataType::Boolean);
            } else if !matches!(data_type, DataType::Boolean | DataType::Null) {
                let (op, name) = (expr.op.to_string(), type_name(&data_type));
                let message = format!("argument of {op} must be type boolean, not type {name}");
                return Err(Error::new(SqlState::DATATYPE_MISMATCH, message).into());
            }
        }
        return Ok(expr);
    }
    if let Some(common) = common(&[left.clone(), right.clone()], Purpose::Comparison) {
        if left != right && (is_carried(&left) || is_carried(&right)) {
            let settled = |operand| match is_carried(&common) {
                true => key_of(operand),
                false => typed(operand, common.clone()),
            };
            expr.left = settled(expr.left);
            expr.right = settled(expr.right);
        }
        return Ok(expr);
    }
    match (is_text(&expr.left), is_text(&expr.right)) {
        (true, _) if has_literals(&right) => expr.left = typed(expr.left, right),
        (_, true) if has_literals(&left) => expr.right = typed(expr.right, left),
        (false, false) => return Err(no_operator(&expr.op.to_string(), &[left, right]).into()),
        _ => {}
    }
    Ok(expr)
}

/// Whether DataFusion refuses to compare values of this type with texts.
fn has_literals(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Boolean | DataType::Interval(_) | DataType::List(_))
}

fn planned(function: &'static Typed, arguments: Vec<Expr>) -> PlannerResult<Vec<Expr>> {
    let call = ScalarFunction::new_udf(function.udf(), arguments);
    PlannerResult::Planned(Expr::ScalarFunction(call))
}

/// The operators of JSON, arrays and bytes.
fn typed(expr: &RawBinaryExpr, schema: &DFSchema) -> Option<&'static Typed> {
    let kind = |operand: &Expr| match operand.to_field(schema) {
        _ if is_untyped(operand) => Type::Unknown,
        Ok((_, field)) => kind_of(&field),
        Err(_) => Type::Unknown,
    };
    let (left, right) = (kind(&expr.left), kind(&expr.right));
    let is_jsonb = left == Type::Jsonb || right == Type::Jsonb;
    let is_array = matches!(left, Type::Array(_)) || matches!(right, Type::Array(_));
    let is_bytea = left == Type::Bytea || right == Type::Bytea;
    Some(match &expr.op {
        BinaryOperator::Arrow if left == Type::Jsonb => &json::GET_JSONB,
        BinaryOperator::LongArrow if left == Type::Jsonb => &json::GET_JSONB_TEXT,
        BinaryOperator::Arrow => &json::GET,
        BinaryOperator::LongArrow => &json::GET_TEXT,
        BinaryOperator::HashArrow => &json::GET_PATH,
        BinaryOperator::HashLongArrow => &json::GET_PATH_TEXT,
        BinaryOperator::HashMinus => &json::DELETE_PATH,
        BinaryOperator::Question => &json::HAS,
        BinaryOperator::QuestionAnd => &json::HAS_ALL,
        BinaryOperator::QuestionPipe => &json::HAS_ANY,
        BinaryOperator::PGRegexMatch => &regex::MATCHES,
        BinaryOperator::PGRegexIMatch => &regex::MATCHES_ANY_CASE,
        BinaryOperator::PGRegexNotMatch => &regex::MISMATCHES,
        BinaryOperator::PGRegexNotIMatch => &regex::MISMATCHES_ANY_CASE,
        BinaryOperator::AtArrow if is_jsonb => &json::CONTAINS,
        BinaryOperator::ArrowAt if is_jsonb => &json::CONTAINED,
        BinaryOperator::AtArrow => &array::CONTAINS,
        BinaryOperator::ArrowAt => &array::CONTAINED,
        BinaryOperator::PGOverlap => &array::OVERLAPS,
        BinaryOperator::Lt if is_array => &array::ORDERED[0],
        BinaryOperator::LtEq if is_array => &array::ORDERED[1],
        BinaryOperator::Gt if is_array => &array::ORDERED[2],
        BinaryOperator::GtEq if is_array => &array::ORDERED[3],
        BinaryOperator::StringConcat
            if left == Type::Jsonb && (is_jsonb && !is_text_kind(&right)) =>
        {
            &json::CONCATENATED
        }
        BinaryOperator::StringConcat if right == Type::Jsonb && left == Type::Unknown => {
            &json::CONCATENATED
        }
        BinaryOperator::StringConcat if is_array => &array::CONCATENATED,
        BinaryOperator::StringConcat if is_bytea => &bytea::CONCATENATED,
        BinaryOperator::Minus if left == Type::Jsonb => &json::DELETE,
        _ => return None,
    })
}

/// A text that is one already.
fn is_text_kind(kind: &Type) -> bool {
    *kind != Type::Unknown && is_text(kind)
}

fn definition(expr: &RawBinaryExpr) -> Option<&'static Definition> {
    let operator = match &expr.op {
        BinaryOperator::Plus => Operator::Add,
        BinaryOperator::Minus => Operator::Subtract,
        BinaryOperator::Multiply => Operator::Multiply,
        BinaryOperator::Divide => Operator::Divide,
        BinaryOperator::Modulo => Operator::Modulo,
        BinaryOperator::StringConcat => return Some(&CONCAT),
        BinaryOperator::PGBitwiseShiftLeft => return Some(&bits::SHIFT_LEFT),
        BinaryOperator::PGBitwiseShiftRight => return Some(&bits::SHIFT_RIGHT),
        _ => return None,
    };
    Some(operator.definition())
}
