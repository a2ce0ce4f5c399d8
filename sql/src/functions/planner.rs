//! Makes operators in SQL text our functions.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::functions::arithmetic::Operator;
use crate::functions::coercion::is_untyped;
use crate::functions::concat::CONCAT;
use crate::functions::datetime::{self, extract_scale};
use crate::functions::resolve::{Purpose, common};
use crate::functions::scalar::{Definition, Function, no_operator, type_name};
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
        let Some(definition) = definition(&expr, schema) else {
            return Ok(PlannerResult::Original(comparable(expr, schema)?));
        };
        let operands = vec![expr.left, expr.right];
        let call = ScalarFunction::new_udf(Function::udf(definition), operands);
        Ok(PlannerResult::Planned(Expr::ScalarFunction(call)))
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
    if common(&[left.clone(), right.clone()], Purpose::Comparison).is_some() {
        return Ok(expr);
    }
    match (is_text(&expr.left), is_text(&expr.right)) {
        (true, _) if right == DataType::Boolean => expr.left = typed(expr.left, right),
        (_, true) if left == DataType::Boolean => expr.right = typed(expr.right, left),
        (false, false) => return Err(no_operator(&expr.op.to_string(), &[left, right]).into()),
        _ => {}
    }
    Ok(expr)
}

fn definition(expr: &RawBinaryExpr, schema: &DFSchema) -> Option<&'static Definition> {
    let operator = match &expr.op {
        BinaryOperator::Plus => Operator::Add,
        BinaryOperator::Minus => Operator::Subtract,
        BinaryOperator::Multiply => Operator::Multiply,
        BinaryOperator::Divide => Operator::Divide,
        BinaryOperator::Modulo => Operator::Modulo,
        BinaryOperator::StringConcat => {
            // Elements are put to arrays by DataFusion's own function.
            let kind = |operand: &Expr| {
                operand
                    .get_type(schema)
                    .ok()
                    .map(|data_type| (data_type.is_list(), data_type.is_null()))
            };
            return match (kind(&expr.left), kind(&expr.right)) {
                (Some((true, _)), Some((false, false)))
                | (Some((false, false)), Some((true, _))) => None,
                _ => Some(&CONCAT),
            };
        }
        _ => return None,
    };
    Some(operator.definition())
}
