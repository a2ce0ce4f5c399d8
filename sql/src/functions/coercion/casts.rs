//! Makes every cast PostgreSQL's.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Placeholder, ScalarFunction};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable};

use crate::functions::arithmetic::NEGATE;
use crate::functions::cast::{self, literal, settled};
use crate::functions::coercion::is_untyped_parameter;
use crate::functions::marker::Recursive;
use crate::functions::scalar::Function;
use crate::functions::typed::is_text;
use crate::text::{Excess, TextFormat};
use crate::{Error, Type};

pub(super) struct Casts<'a> {
    pub(super) schema: &'a DFSchema,
    pub(super) format: &'a TextFormat,
}

impl Casts<'_> {
    /// One node, whose operands are done.
    pub(super) fn expr(&self, expr: Expr) -> Result<Transformed<Expr>> {
        Ok(match expr {
            Expr::Cast(cast) => Transformed::yes(self.cast(cast)?),
            Expr::ScalarFunction(mut function) if function.func.inner().is::<Recursive>() => {
                let operand = function.args.pop();
                Transformed::yes(operand.ok_or_else(|| Error::internal("an empty mark"))?)
            }
            Expr::TryCast(_) => return Err(Error::unsupported("TRY_CAST").into()),
            Expr::Negative(operand) => {
                let call = ScalarFunction::new_udf(Function::udf(&NEGATE), vec![*operand]);
                Transformed::yes(Expr::ScalarFunction(call))
            }
            other => Transformed::no(other),
        })
    }

    /// The cast as PostgreSQL makes it.
    pub(super) fn cast(&self, cast: Cast) -> Result<Expr> {
        let Cast { expr, field } = cast;
        let source = expr.to_field(self.schema)?.1;
        let unsupported = |data_type: &DataType| Error::unsupported(format!("type {data_type}"));
        let to = Type::of(&field).ok_or_else(|| unsupported(field.data_type()))?;
        if let Expr::Placeholder(Placeholder { id, .. }) = expr.as_ref()
            && is_untyped_parameter(&expr)
        {
            return self.parameter(id, &to);
        }
        if let Expr::Literal(value, _) = expr.as_ref()
            && Type::of(&source).is_none_or(|kind| is_text(&kind))
            && let Some(constant) = self.constant(value, &to)?
        {
            return Ok(constant);
        }
        // Casts that only change how a type is carried are Arrow's.
        let from = Type::of(&source).ok_or_else(|| unsupported(source.data_type()))?;
        if from == to && source.data_type() != field.data_type() {
            return Ok(Expr::Cast(Cast::new_from_field(expr, field)));
        }
        if source.data_type().is_null() {
            let null = ScalarValue::try_from(field.data_type())?;
            return Ok(match *expr {
                Expr::Literal(..) => settled(null, &to),
                other => Expr::Cast(Cast::new_from_field(Box::new(other), field)),
            });
        }
        Ok(cast::cast(*expr, &from, &to, self.format.time_zone)?)
    }

    /// A parameter that takes a type, and its modifier only later.
    fn parameter(&self, id: &str, to: &Type) -> Result<Expr> {
        let kind = match to {
            Type::Numeric(_) => Type::Numeric(None),
            Type::Varchar(_) => Type::Varchar(None),
            Type::Char(_) => Type::Char(None),
            other => other.clone(),
        };
        let field = Some(Arc::new(kind.field("", true)));
        let typed = Expr::Placeholder(Placeholder { id: id.to_owned(), field });
        if kind == *to {
            return Ok(typed);
        }
        Ok(cast::cast(typed, &kind, to, self.format.time_zone)?)
    }

    /// What a literal is in a type, where that is plain to see.
    fn constant(&self, value: &ScalarValue, to: &Type) -> Result<Option<Expr>> {
        let constant = match (value, to) {
            (ScalarValue::Int64(Some(value)), Type::Integer) => {
                i32::try_from(*value).ok().map(|value| ScalarValue::Int32(Some(value)))
            }
            (ScalarValue::Int64(Some(_)), Type::BigInt) => Some(value.clone()),
            _ => None,
        };
        if let Some(constant) = constant {
            return Ok(Some(Expr::Literal(constant, None)));
        }
        let is_text = matches!(
            to,
            Type::Text | Type::Varchar(_) | Type::Name | Type::InternalChar | Type::Unknown
        );
        match value {
            // From now on it is known to be text.
            ScalarValue::Utf8(_) if *to == Type::Text => Ok(Some(settled(value.clone(), to))),
            ScalarValue::Utf8(text) if !is_text => {
                // What can't be read here, a cast says.
                match literal(text.as_deref(), to, self.format, Excess::Cut) {
                    Ok(constant) => Ok(Some(constant)),
                    Err(error) if error.state == crate::SqlState::FEATURE_NOT_SUPPORTED => Ok(None),
                    Err(error) => Err(error.into()),
                }
            }
            _ => Ok(None),
        }
    }

    /// An expression in a type.
    pub(super) fn to(&self, expr: Expr, kind: &Type) -> Result<Expr> {
        let field = Arc::new(kind.field("cast", true));
        self.cast(Cast::new_from_field(Box::new(expr), field))
    }
}
