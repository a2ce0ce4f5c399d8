//! Where numbers meet: what is compared, put together or left apart because of their scales.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::{InSubquery, WindowFunction};
use datafusion::logical_expr::{
    BinaryExpr, Case, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, Projection,
    Subquery,
};
use stillframe_protocol::numeric::Numeric;

use super::operands::{Mix, Operands, exactly, stripped};
use super::{alike, is_untyped, is_untyped_parameter};
use crate::Type;
use crate::functions::identity::known_as;
use crate::functions::numeric::{is_carried, key_of, order_of};
use crate::functions::resolve::{Purpose, Rank, common, decimal, rank};
use crate::functions::scalar::Function;
use crate::functions::typed::{common_kind, kind_of};
use crate::text::{decimal_digits, numeric};

impl Operands<'_> {
    /// Numerics as what orders them.
    pub(super) fn ordered(&self, mut window: WindowFunction) -> Result<WindowFunction> {
        for order in &mut window.params.order_by {
            if is_carried(&order.expr.get_type(self.schema)?) {
                order.expr = order_of(std::mem::take(&mut order.expr));
            }
        }
        Ok(window)
    }

    /// Literals beside numerics as the numbers that they are.
    pub(super) fn numbered(&self, operands: Vec<Expr>, mix: &Mix<'_>) -> Result<Vec<Expr>> {
        if !operands.iter().any(is_untyped) {
            return Ok(operands);
        }
        let mut types = vec![];
        for operand in operands.iter().filter(|operand| !is_untyped(operand)) {
            types.push(operand.get_type(self.schema)?);
        }
        types.retain(|data_type| !data_type.is_null());
        let target = common(&types, mix.purpose());
        if target.as_ref().and_then(rank) != Some(Rank::Numeric) {
            return Ok(operands);
        }
        let operands = operands.into_iter().map(|operand| match &operand {
            Expr::Literal(ScalarValue::Utf8(Some(text)), _) if is_untyped(&operand) => {
                Ok(number_literal(&numeric(text)?))
            }
            _ if is_untyped_parameter(&operand) => self.casts().to(operand, &Type::Numeric(None)),
            _ => Ok(operand),
        });
        operands.collect()
    }

    /// All in one type, and in a form in which equal values are the same.
    pub(super) fn comparable(&self, operands: Vec<Expr>, operator: &str) -> Result<Vec<Expr>> {
        let operands = self.unify(operands, &Mix::Comparison(operator))?;
        let mut are_carried = false;
        for operand in &operands {
            are_carried |= is_carried(&operand.get_type(self.schema)?);
        }
        let key = |operand| match are_carried {
            true => self.key(operand),
            false => alike::key(operand, self.schema),
        };
        operands.into_iter().map(key).collect()
    }

    /// The key of an exact number.
    pub(super) fn key(&self, operand: Expr) -> Result<Expr> {
        let operand = match operand.get_type(self.schema)? {
            data_type if is_carried(&data_type) => operand,
            _ => self.casts().to(operand, &Type::Numeric(None))?,
        };
        Ok(key_of(operand))
    }

    /// The arguments of `nullif`; or what does the same, where those are compared otherwise than they
    /// come out.
    pub(super) fn nullif(&self, args: Vec<Expr>) -> Result<std::result::Result<Vec<Expr>, Expr>> {
        let Some(first) = args.first().filter(|first| !is_untyped(first)).cloned() else {
            return Ok(Ok(self.unify(args, &Mix::Comparison("="))?));
        };
        let kind = self.kind(&first)?;
        if alike::has_key(&kind) {
            let [first, second] = exactly(self.unify(args, &Mix::Comparison("="))?)?;
            let left = Box::new(alike::key(first.clone(), self.schema)?);
            let right = Box::new(alike::key(second, self.schema)?);
            let equal = Expr::BinaryExpr(BinaryExpr::new(left, Operator::Eq, right));
            let null = Expr::Literal(ScalarValue::try_from(kind.arrow())?, None);
            let case = Case {
                expr: None,
                when_then_expr: vec![(Box::new(equal), Box::new(null))],
                else_expr: Some(Box::new(first)),
            };
            return Ok(Err(known_as(Expr::Case(case), &kind)));
        }
        let data_type = first.get_type(self.schema)?;
        let operands = self.comparable(args, "=")?;
        let [left, right] = operands.as_slice() else { return Ok(Ok(operands)) };
        let compared = left.get_type(self.schema)?;
        if rank(&data_type).is_none()
            || compared == data_type
            || rank(&compared) > Some(Rank::Numeric)
        {
            return Ok(Ok(operands));
        }
        // As the operator's left operand: an integer beside a numeric is one.
        let is_numeric = rank(&compared).is_none_or(|rank| rank == Rank::Numeric);
        let value = match decimal(&data_type) {
            Some((precision, scale)) if is_numeric => {
                self.casts().to(first, &Type::Numeric(Some((precision, scale))))?
            }
            _ => first,
        };
        let equal = BinaryExpr::new(Box::new(left.clone()), Operator::Eq, Box::new(right.clone()));
        let null = Expr::Literal(ScalarValue::try_from(&value.get_type(self.schema)?)?, None);
        Ok(Err(Expr::Case(Case {
            expr: None,
            when_then_expr: vec![(Box::new(Expr::BinaryExpr(equal)), Box::new(null))],
            else_expr: Some(Box::new(value)),
        })))
    }

    /// An expression among the rows of a subquery.
    pub(super) fn in_subquery(&self, in_subquery: InSubquery) -> Result<InSubquery> {
        let InSubquery { expr, mut subquery, negated } = in_subquery;
        let column = Arc::clone(&subquery.subquery.schema().fields()[0]);
        let expr = self.beside(*expr, &column, "=")?;
        if alike::has_key(&kind_of(&column)) {
            let plan = subquery.subquery.as_ref().clone();
            let column = Expr::Column(plan.schema().columns().swap_remove(0));
            let key = alike::key(column, plan.schema())?.alias("key");
            let plan = LogicalPlanBuilder::from(plan).project(vec![key])?.build()?;
            subquery.subquery = Arc::new(plan);
        }
        let expr = alike::key(expr, self.schema)?;
        let (expr, subquery) = self.keyed(expr, subquery)?;
        Ok(InSubquery { expr: Box::new(expr), subquery, negated })
    }

    /// An expression and the rows that it is compared with, as keys where they are numerics, and
    /// without the blanks that pad a `char(n)` where one of them is.
    pub(super) fn keyed(&self, expr: Expr, mut subquery: Subquery) -> Result<(Expr, Subquery)> {
        let inner = Arc::clone(&subquery.subquery);
        let (relation, field) = inner.schema().qualified_field(0);
        let within = Operands { schema: inner.schema(), format: self.format };
        let column = Expr::Column((relation, field.as_ref()).into());
        let types = [expr.get_type(self.schema)?, field.data_type().clone()];
        let are_exact =
            types.iter().all(|data_type| rank(data_type).is_some_and(|rank| rank <= Rank::Numeric));
        let kinds = [self.kind(&expr)?, kind_of(field)];
        let is_padded = kinds[0] != kinds[1]
            && common_kind(&kinds, Purpose::Comparison) == Some(Type::Char(None));
        let (expr, key) = if are_exact && types.iter().any(is_carried) {
            (self.key(expr)?, within.key(column)?)
        } else if is_padded {
            (stripped(expr), stripped(column))
        } else {
            return Ok((expr, subquery));
        };
        let key = key.alias_qualified(relation.cloned(), field.name());
        let projection = Projection::try_new(vec![key], Arc::clone(&inner))?;
        subquery.subquery = Arc::new(LogicalPlan::Projection(projection));
        Ok((expr, subquery))
    }

    /// The arguments of `round` and `trunc`: only a constant number of digits that a decimal has
    /// leaves it one.
    pub(super) fn scaled(&self, function: &Function, mut args: Vec<Expr>) -> Result<Vec<Expr>> {
        let ("round" | "trunc", [number, digits]) = (function.name(), args.as_slice()) else {
            return Ok(args);
        };
        let scale = match number.get_type(self.schema)? {
            DataType::Decimal128(_, scale) => scale,
            _ => return Ok(args),
        };
        let constant = match digits {
            Expr::Literal(ScalarValue::Int32(Some(digits)), _) => Some(*digits),
            _ => None,
        };
        if constant.is_none_or(|digits| digits > i32::from(scale)) && !is_untyped(&args[1]) {
            args[0] = self.casts().to(args[0].clone(), &Type::Numeric(None))?;
        }
        Ok(args)
    }
}

/// A number as a decimal with its own precision and scale, if one has room for it.
pub(super) fn number_literal(value: &Numeric) -> Expr {
    let scalar = match decimal_digits(value) {
        Some((units, precision, scale)) => ScalarValue::Decimal128(Some(units), precision, scale),
        None => ScalarValue::LargeBinary(Some(value.to_bytes())),
    };
    Expr::Literal(scalar, None)
}
