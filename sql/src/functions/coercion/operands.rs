//! PostgreSQL's rules for operands of several types.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::{
    FieldMetadata, InList, Like, ScalarFunction, SetComparison, WindowFunction,
};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    Between, BinaryExpr, Case, Cast, Expr, ExprSchemable, Join, LogicalPlan, LogicalPlanBuilder,
    Operator, ScalarUDF, WindowFrameBound, WindowFrameUnits,
};

use crate::functions::bytea;
use crate::functions::cast::numeric_for;
use crate::functions::choice::Choice;
use crate::functions::coercion::casts::Casts;
use crate::functions::coercion::numbers::number_literal;
use crate::functions::coercion::{alike, is_untyped, is_untyped_parameter};
use crate::functions::extreme;
use crate::functions::identity::known_as;
use crate::functions::marker::{Condition, Distinctness, Recursive, Typed};
use crate::functions::numeric::is_carried;
use crate::functions::pattern;
use crate::functions::resolve::{Purpose, decimal, rank};
use crate::functions::scalar::{Function, no_function, no_operator, type_name};
use crate::functions::scales;
use crate::functions::set_operation::is_set_operation;
use crate::functions::string;
use crate::functions::typed::{TypedFunction, bare_name, common_kind, is_text, kind_of};
use crate::text::{MAX_PRECISION, TextFormat, TimeZone, numeric};
use crate::{Error, SqlState, Type};

pub(super) struct Operands<'a> {
    pub(super) schema: &'a DFSchema,
    pub(super) format: &'a TextFormat,
}

impl Operands<'_> {
    /// One node, whose operands are done.
    pub(super) fn expr(&self, expr: Expr) -> Result<Expr> {
        Ok(match expr {
            Expr::BinaryExpr(binary) if is_comparison(binary.op) => self.comparison(binary)?,
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: op @ (Operator::And | Operator::Or),
                right,
            }) => {
                let side = |side: Box<Expr>| self.boolean(*side, &op.to_string()).map(Box::new);
                Expr::BinaryExpr(BinaryExpr { left: side(left)?, op, right: side(right)? })
            }
            Expr::Between(Between { expr, negated, low, high }) => {
                let operands = vec![*expr, *low, *high];
                let [expr, low, high] = exactly(self.comparable(operands, "BETWEEN")?)?;
                Expr::Between(Between {
                    expr: Box::new(expr),
                    negated,
                    low: Box::new(low),
                    high: Box::new(high),
                })
            }
            Expr::InList(InList { expr, list, negated }) => {
                let operands = std::iter::once(*expr).chain(list).collect();
                let mut operands = self.comparable(operands, "=")?.into_iter();
                let expr = operands.next().ok_or_else(|| Error::internal("IN without operand"))?;
                Expr::InList(InList { expr: Box::new(expr), list: operands.collect(), negated })
            }
            Expr::InSubquery(in_subquery) => Expr::InSubquery(self.in_subquery(in_subquery)?),
            Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
                let (expr, subquery) = self.keyed(*expr, subquery)?;
                Expr::SetComparison(SetComparison::new(Box::new(expr), subquery, op, quantifier))
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_match(op) => {
                let [left] = exactly(self.all_shown(vec![*left])?)?;
                Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right })
            }
            Expr::Like(mut like) => {
                let [expr] = exactly(self.all_shown(vec![*like.expr])?)?;
                like.expr = Box::new(expr);
                self.like(like)?
            }
            Expr::Case(case) => self.case(case)?,
            Expr::ScalarFunction(function) => self.function(function)?,
            Expr::Cast(cast) => self.cast(cast)?,
            Expr::WindowFunction(window) => {
                let window = self.window(*window)?;
                Expr::WindowFunction(Box::new(self.ordered(window)?))
            }
            other => other,
        })
    }

    /// What plans compare or put together outside of expressions.
    pub(super) fn plan(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        match plan {
            LogicalPlan::Join(join) if is_set_operation(&join) => {
                self.set_operation(join).map(LogicalPlan::Join)
            }
            LogicalPlan::Join(join) => self.join(join).map(LogicalPlan::Join),
            LogicalPlan::Union(union) => self.union(union).map(LogicalPlan::Union),
            LogicalPlan::Values(values) => self.values(values).map(LogicalPlan::Values),
            LogicalPlan::RecursiveQuery(query) => {
                self.recursion(query).map(LogicalPlan::RecursiveQuery)
            }
            LogicalPlan::Limit(mut limit) => {
                limit.skip = self.count(limit.skip, "OFFSET")?;
                limit.fetch = self.count(limit.fetch, "LIMIT")?;
                Ok(LogicalPlan::Limit(limit))
            }
            other => Ok(other),
        }
    }

    /// How many rows LIMIT or OFFSET are given.
    fn count(&self, count: Option<Box<Expr>>, clause: &str) -> Result<Option<Box<Expr>>> {
        let Some(count) = count else { return Ok(None) };
        let data_type = count.get_type(self.schema)?;
        if is_untyped(&count) || rank(&data_type).is_some() {
            return Ok(Some(Box::new(self.casts().to(*count, &Type::BigInt)?)));
        }
        if data_type.is_null() {
            return Ok(Some(count));
        }
        let name = type_name(&data_type);
        let message = format!("argument of {clause} must be type bigint, not type {name}");
        Err(Error::new(SqlState::DATATYPE_MISMATCH, message).into())
    }

    pub(super) fn casts(&self) -> Casts<'_> {
        Casts { schema: self.schema, format: self.format }
    }

    fn comparison(&self, binary: BinaryExpr) -> Result<Expr> {
        let BinaryExpr { left, op, right } = binary;
        let operands = self.comparable(vec![*left, *right], &op.to_string())?;
        let [left, right] = exactly(operands)?;
        Ok(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))))
    }

    /// A condition: a literal of no type is read as one.
    fn boolean(&self, expr: Expr, what: &str) -> Result<Expr> {
        if is_untyped(&expr) {
            return self.casts().to(expr, &Type::Boolean);
        }
        let data_type = expr.get_type(self.schema)?;
        if matches!(data_type, DataType::Boolean | DataType::Null) {
            return Ok(expr);
        }
        let name = type_name(&data_type);
        let message = format!("argument of {what} must be type boolean, not type {name}");
        Err(Error::new(SqlState::DATATYPE_MISMATCH, message).into())
    }

    /// Both sides are texts. A pattern that may fail is matched by our own function.
    fn like(&self, like: Like) -> Result<Expr> {
        let Like { negated, expr, pattern, case_insensitive, .. } = &like;
        let mut types = vec![];
        for operand in [expr, pattern] {
            types.push(match is_untyped(operand) {
                true => DataType::Null,
                false => operand.get_type(self.schema)?,
            });
        }
        if !types.iter().all(|data_type| data_type.is_string() || data_type.is_null()) {
            let operator = match (negated, case_insensitive) {
                (false, false) => "~~",
                (false, true) => "~~*",
                (true, false) => "!~~",
                (true, true) => "!~~*",
            };
            return Err(no_operator(operator, &types).into());
        }
        match pattern.as_ref() {
            Expr::Literal(ScalarValue::Utf8(Some(text)), _) if pattern::dangles(text) => {}
            Expr::Literal(..) => return Ok(Expr::Like(like)),
            _ => {}
        }
        let matched = pattern::matched(*case_insensitive, *like.expr, *like.pattern);
        let matched = self.function(matched)?;
        Ok(if like.negated { Expr::Not(Box::new(matched)) } else { matched })
    }

    fn case(&self, case: Case) -> Result<Expr> {
        let Case { expr, when_then_expr, else_expr } = case;
        let (whens, thens): (Vec<_>, Vec<_>) =
            when_then_expr.into_iter().map(|(when, then)| (*when, *then)).unzip();
        let (expr, whens) = match expr {
            Some(expr) => {
                let operands = std::iter::once(*expr).chain(whens).collect();
                let mut operands = self.comparable(operands, "=")?.into_iter();
                (operands.next().map(Box::new), operands.collect())
            }
            None => {
                let whens = whens.into_iter().map(|when| self.boolean(when, "CASE/WHEN"));
                (None, whens.collect::<Result<Vec<_>>>()?)
            }
        };
        let has_else = else_expr.is_some();
        // ELSE counts as the first.
        let values = else_expr.map(|otherwise| *otherwise).into_iter().chain(thens).collect();
        let values = self.unify(values, &Mix::Column("CASE"))?;
        let kind = self.kind_of_all(&values)?;
        let mut values = values.into_iter();
        let else_expr = if has_else { values.next().map(Box::new) } else { None };
        let when_then_expr = whens
            .into_iter()
            .zip(values)
            .map(|(when, then)| (Box::new(when), Box::new(then)))
            .collect();
        Ok(match kind {
            Some(kind) => known_as(Expr::Case(Case { expr, when_then_expr, else_expr }), &kind),
            None => Expr::Case(Case { expr, when_then_expr, else_expr }),
        })
    }

    /// The one SQL type that all have but those that are NULL.
    pub(super) fn kind_of_all(&self, exprs: &[Expr]) -> Result<Option<Type>> {
        let kinds = exprs.iter().map(|expr| self.kind(expr)).collect::<Result<Vec<_>>>()?;
        let is_known = kinds.iter().any(|kind| *kind != Type::Unknown);
        Ok(common_kind(&kinds, Purpose::Column).filter(|_| is_known))
    }

    fn function(&self, function: ScalarFunction) -> Result<Expr> {
        let ScalarFunction { func, args } = function;
        if func.name() == "pg_typeof" {
            return self.type_of(&args);
        }
        if let Some(condition) = func.inner().downcast_ref::<Condition>() {
            let [operand] = exactly(args)?;
            let operand = self.boolean(operand, condition.of)?;
            if operand.get_type(self.schema)?.is_null() {
                return self.casts().to(operand, &Type::Boolean);
            }
            return Ok(operand);
        }
        if let Some(distinctness) = func.inner().downcast_ref::<Distinctness>() {
            let operator = distinctness.operator;
            let [left, right] = exactly(args)?;
            return self.comparison(BinaryExpr::new(Box::new(left), operator, Box::new(right)));
        }
        if func.inner().is::<Typed>() {
            let [operand, _] = exactly(args)?;
            return Ok(operand);
        }
        if let Some(typed) = func.inner().downcast_ref::<TypedFunction>() {
            let args = self.typed_arguments(typed, args)?;
            return Ok(Expr::ScalarFunction(ScalarFunction { func, args }));
        }
        if let Some(ours) = func.inner().downcast_ref::<Function>() {
            let args = match ours.name() {
                "concat" | "concat_ws" => self.all_shown(args)?,
                _ => self.scaled(ours, args)?,
            };
            let args = self.arguments(ours, args)?;
            return self.narrowed(ScalarFunction { func, args });
        }
        let func = match func.inner().downcast_ref::<Choice>() {
            Some(choice) => Arc::clone(&choice.standard),
            None => func,
        };
        if let Some(construct) = match func.name() {
            "coalesce" => Some("COALESCE"),
            "greatest" => Some("GREATEST"),
            "least" => Some("LEAST"),
            _ => None,
        } {
            let args = self.unify(args, &Mix::Column(construct))?;
            let kind = self.kind_of_all(&args)?;
            if construct != "COALESCE" && kind.as_ref().is_some_and(alike::has_key) {
                let by_keys = &extreme::DEFINITIONS[usize::from(construct == "LEAST")];
                let mut pairs = vec![];
                for arg in args {
                    pairs.push(self.casts().to(arg, kind.as_ref().unwrap_or(&Type::Text))?);
                    pairs.push(alike::key(pairs[pairs.len() - 1].clone(), self.schema)?);
                }
                let call = ScalarFunction::new_udf(by_keys.udf(), pairs);
                return Ok(Expr::ScalarFunction(call));
            }
            if let Some(chooses) = scales::extreme(func.name())
                && is_carried(&args[0].get_type(self.schema)?)
            {
                let call = ScalarFunction::new_udf(Function::udf(chooses), args);
                return Ok(Expr::ScalarFunction(call));
            }
            let call = Expr::ScalarFunction(ScalarFunction { func, args });
            return Ok(kind.map_or(call.clone(), |kind| known_as(call, &kind)));
        }
        let args = match func.name() {
            "nullif" => match self.nullif(args)? {
                Ok(args) => args,
                Err(case) => return Ok(case),
            },
            _ => self.parameters(&func, args)?,
        };
        Ok(Expr::ScalarFunction(ScalarFunction { func, args }))
    }

    /// The arguments of a function of DataFusion's: parameters of no type take the types that it
    /// asks for.
    fn parameters(&self, function: &ScalarUDF, args: Vec<Expr>) -> Result<Vec<Expr>> {
        if !args.iter().any(is_untyped_parameter) {
            return Ok(args);
        }
        let mut fields = vec![];
        for arg in &args {
            fields.push(match is_untyped(arg) {
                true => Arc::new(Field::new("", DataType::Null, true)),
                false => arg.to_field(self.schema)?.1,
            });
        }
        let Ok(wanted) = fields_with_udf(&fields, function) else { return Ok(args) };
        let casts = self.casts();
        args.into_iter()
            .zip(wanted)
            .map(|(arg, field)| match Type::of(&field) {
                Some(kind) if is_untyped_parameter(&arg) && !field.data_type().is_null() => {
                    casts.to(arg, &kind)
                }
                _ => Ok(arg),
            })
            .collect()
    }

    /// The arguments of one of our functions, in the types that it settles on.
    fn arguments(&self, function: &Function, mut args: Vec<Expr>) -> Result<Vec<Expr>> {
        let mut types = vec![];
        for arg in &args {
            types.push(if is_untyped(arg) { DataType::Null } else { arg.get_type(self.schema)? });
        }
        if depends_on_zone(function.name(), &types) {
            let zone = self.format.time_zone.to_string();
            args.push(Expr::Literal(ScalarValue::Utf8(Some(zone)), None));
            types.push(DataType::Utf8);
        }
        let resolved = function.resolve(&types)?;
        let casts = self.casts();
        args.into_iter()
            .zip(resolved.arguments)
            .map(|(arg, wanted)| {
                let kind = Type::from_arrow(&wanted)
                    .ok_or_else(|| Error::unsupported(format!("type {wanted}")))?;
                let source = arg.to_field(self.schema)?.1;
                if source.data_type() == &wanted && !is_untyped(&arg) {
                    return Ok(arg);
                }
                casts.to(arg, &kind)
            })
            .collect()
    }

    /// The name of the type that `pg_typeof` is asked for.
    fn type_of(&self, args: &[Expr]) -> Result<Expr> {
        let [arg] = args else { return Err(no_function("pg_typeof", &[]).into()) };
        let name = if is_untyped(arg) {
            Type::Unknown.to_string()
        } else {
            let field = arg.to_field(self.schema)?.1;
            match Type::of(&field) {
                _ if field.data_type().is_null() => Type::Unknown.to_string(),
                Some(Type::Numeric(_)) => Type::Numeric(None).to_string(),
                Some(Type::Varchar(_)) => Type::Varchar(None).to_string(),
                Some(Type::Char(_)) => "character".to_owned(),
                Some(Type::Array(element)) => match element.as_ref() {
                    Type::Char(_) => "character[]".to_owned(),
                    element => format!("{}[]", element.without_limit()),
                },
                Some(kind) => kind.to_string(),
                None => type_name(field.data_type()),
            }
        };
        let metadata = Type::Regtype.field("", true).metadata().clone();
        let metadata = FieldMetadata::new(metadata.into_iter().collect());
        Ok(Expr::Literal(ScalarValue::Utf8(Some(name)), Some(metadata)))
    }

    /// `round(x, 2)` has two digits after the point.
    fn narrowed(&self, function: ScalarFunction) -> Result<Expr> {
        let digits = match (function.name(), function.args.as_slice()) {
            ("round" | "trunc", [_, Expr::Literal(ScalarValue::Int32(Some(digits)), _)]) => *digits,
            _ => return Ok(Expr::ScalarFunction(function)),
        };
        let expr = Expr::ScalarFunction(function);
        let DataType::Decimal128(precision, scale) = expr.get_type(self.schema)? else {
            return Ok(expr);
        };
        let digits = digits.clamp(0, i32::from(MAX_PRECISION)) as i8;
        let precision = i32::from(precision) - i32::from(scale) + i32::from(digits);
        let precision = precision.clamp(1, i32::from(MAX_PRECISION)) as u8;
        self.casts().to(expr, &Type::Numeric(Some((precision, digits))))
    }

    /// `x::numeric` has the scale that x has.
    fn cast(&self, mut cast: Cast) -> Result<Expr> {
        if let Expr::ScalarFunction(function) = cast.expr.as_ref()
            && function.func.inner().is::<Recursive>()
        {
            let [operand] = exactly(function.args.clone())?;
            self.check_recursion(&operand, &cast.field)?;
            cast.expr = Box::new(operand);
        }
        // A date has no fractions of a second.
        if let Expr::ScalarFunction(function) = cast.expr.as_ref()
            && function.func.name() == "extract"
            && let Some(date) = function.args.get(1)
            && date.get_type(self.schema)? == DataType::Date32
        {
            let whole = Type::Numeric(Some((MAX_PRECISION, 0)));
            cast.field = Arc::new(whole.field(cast.field.name(), true));
        }
        if Type::of(&cast.field) != Some(Type::Numeric(None)) {
            return match cast.expr.as_ref() {
                Expr::Literal(..) => self.casts().cast(cast),
                expr if is_untyped(expr) => self.casts().cast(cast),
                _ => Ok(Expr::Cast(cast)),
            };
        }
        if is_untyped_parameter(&cast.expr) {
            return self.casts().cast(cast);
        }
        if let Expr::Literal(ScalarValue::Utf8(Some(text)), _) = cast.expr.as_ref()
            && is_text(&self.kind(&cast.expr)?)
        {
            return Ok(number_literal(&numeric(text)?));
        }
        let kind = numeric_for(&cast.expr.get_type(self.schema)?);
        self.casts().to(*cast.expr, &kind)
    }

    /// The distances of a frame are read as what is ordered by, which must have room for them.
    fn window(&self, mut window: WindowFunction) -> Result<WindowFunction> {
        let params = &mut window.params;
        let is_range = params.window_frame.units == WindowFrameUnits::Range;
        let has_key = |expr: &Expr| Ok::<_, DataFusionError>(alike::has_key(&self.kind(expr)?));
        for sort in &mut params.order_by {
            if has_key(&sort.expr)? {
                let is_distance = |bound: &WindowFrameBound| {
                    matches!(bound, WindowFrameBound::Preceding(value)
                        | WindowFrameBound::Following(value) if !value.is_null())
                };
                let frame = &params.window_frame;
                if is_range && (is_distance(&frame.start_bound) || is_distance(&frame.end_bound)) {
                    return Err(Error::unsupported("RANGE with an offset over an interval").into());
                }
                sort.expr = alike::key(std::mem::take(&mut sort.expr), self.schema)?;
            }
            // DataFusion orders RANGE frames by texts, but not by bytes.
            if is_range && sort.expr.get_type(self.schema)? == DataType::Binary {
                let bytes = std::mem::take(&mut sort.expr);
                sort.expr = bytea::hexadecimal(bytes);
            }
        }
        for expr in &mut params.partition_by {
            if has_key(expr)? {
                *expr = alike::key(std::mem::take(expr), self.schema)?;
            }
        }
        let params = &window.params;
        let [order] = params.order_by.as_slice() else { return Ok(window) };
        if params.window_frame.units != WindowFrameUnits::Range {
            return Ok(window);
        }
        let data_type = order.expr.get_type(self.schema)?;
        for bound in [&params.window_frame.start_bound, &params.window_frame.end_bound] {
            let (WindowFrameBound::Preceding(ScalarValue::Utf8(Some(distance)))
            | WindowFrameBound::Following(ScalarValue::Utf8(Some(distance)))) = bound
            else {
                continue;
            };
            let digits = distance.split_once('.').map_or(0, |(_, digits)| digits.len());
            let is_exact = match decimal(&data_type) {
                Some((_, scale)) => digits <= scale.max(0) as usize,
                None => !is_carried(&data_type),
            };
            let is_zoned = matches!(data_type, DataType::Timestamp(_, Some(_)))
                && self.format.time_zone != TimeZone::default();
            if !is_exact || is_zoned {
                let kind = type_name(&data_type);
                let what = format!("RANGE with the offset {distance} for column type {kind}");
                return Err(Error::unsupported(what).into());
            }
        }
        Ok(window)
    }

    /// All in one type.
    pub(super) fn unify(&self, operands: Vec<Expr>, mix: &Mix<'_>) -> Result<Vec<Expr>> {
        let operands = self.numbered(operands, mix)?;
        let mut fields = vec![];
        for operand in &operands {
            fields.push(operand.to_field(self.schema)?.1);
        }
        let known = fields
            .iter()
            .zip(&operands)
            .filter(|(field, operand)| !is_untyped(operand) && !field.data_type().is_null());
        let known: Vec<_> = known.map(|(field, _)| Arc::clone(field)).collect();
        let Some(kind) = mix.common(&known)? else { return Ok(operands) };
        let casts = self.casts();
        let unified =
            operands.into_iter().zip(fields).map(|(operand, field)| match is_untyped(&operand) {
                true => casts.to(operand, &kind.without_limit()),
                false if is_carried_as(&field, &kind) => Ok(operand),
                false if matches!(mix, Mix::Comparison(_)) && kind == Type::Char(None) => {
                    Ok(stripped(operand))
                }
                false => casts.to(operand, &kind),
            });
        unified.collect()
    }

    /// An expression that is compared with a subquery's column.
    pub(super) fn beside(&self, expr: Expr, column: &FieldRef, operator: &str) -> Result<Expr> {
        let mix = Mix::Comparison(operator);
        if is_untyped(&expr) {
            let kind = mix.common(&[Arc::clone(column)])?.unwrap_or(Type::Text);
            return self.casts().to(expr, &kind.without_limit());
        }
        let field = expr.to_field(self.schema)?.1;
        if field.data_type().is_null() || column.data_type().is_null() {
            return Ok(expr);
        }
        match mix.common(&[Arc::clone(&field), Arc::clone(column)])? {
            Some(kind) if !is_carried_as(&field, &kind) && !is_carried(&kind.arrow()) => {
                self.casts().to(expr, &kind)
            }
            _ => Ok(expr),
        }
    }

    fn join(&self, mut join: Join) -> Result<Join> {
        let mut on = vec![];
        for (left, right) in join.on {
            let operands = self.comparable(vec![left, right], "=")?;
            let [left, right] = exactly(operands)?;
            on.push((left, right));
        }
        join.on = on;
        Ok(join)
    }
}

/// The elements of arrays in rows of their own, which the plan takes for values of their carriers, as
/// the values that they are.
pub(super) fn elements_known(plan: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Unnest(unnest) = &plan else { return Ok(plan) };
    let below = unnest.input.schema();
    let mut is_plain = true;
    let mut columns = vec![];
    for (place, column) in unnest.schema.columns().into_iter().enumerate() {
        let (relation, name) = (column.relation.clone(), column.name.clone());
        let input = unnest.dependency_indices.get(place).map(|input| below.field(*input));
        let found = unnest.schema.field(place).data_type();
        let column = Expr::Column(column);
        columns.push(match input.map(|field| kind_of(field)) {
            Some(Type::Array(element)) if element.arrow() == *found => {
                let known = known_as(column, &element);
                is_plain &= matches!(known, Expr::Column(_));
                known.alias_qualified(relation, name)
            }
            _ => column,
        });
    }
    if is_plain {
        return Ok(plan);
    }
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}

fn is_match(operator: Operator) -> bool {
    matches!(
        operator,
        Operator::RegexMatch
            | Operator::RegexIMatch
            | Operator::RegexNotMatch
            | Operator::RegexNotIMatch
    )
}

/// Whether a function must be told the session's zone: days and months are those of its clocks.
fn depends_on_zone(function: &str, types: &[DataType]) -> bool {
    let is_moment = |data_type: &DataType| matches!(data_type, DataType::Timestamp(_, Some(_)));
    let [first, second] = types else { return false };
    match function {
        "operator +" | "operator -" => {
            let is_span =
                |data_type: &DataType| matches!(data_type, DataType::Interval(_) | DataType::Null);
            (is_moment(first) && is_span(second)) || (is_span(first) && is_moment(second))
        }
        "extract" | "date_part" => is_moment(second),
        "date_trunc" => is_moment(second) || second == &DataType::Date32,
        _ => false,
    }
}

/// Why operands are put together.
pub(super) enum Mix<'a> {
    /// By an operator.
    Comparison(&'a str),
    /// In a construct.
    Column(&'a str),
}

impl Mix<'_> {
    pub(super) fn purpose(&self) -> Purpose {
        match self {
            Self::Comparison(_) => Purpose::Comparison,
            Self::Column(_) => Purpose::Column,
        }
    }

    /// The one type of columns or values of known types; none if there are none.
    pub(super) fn common(&self, fields: &[FieldRef]) -> Result<Option<Type>, Error> {
        if fields.is_empty() {
            return Ok(None);
        }
        let kinds: Vec<_> = fields.iter().map(|field| kind_of(field)).collect();
        if kinds.contains(&Type::Unknown) {
            let types: Vec<_> = fields.iter().map(|field| field.data_type().to_string()).collect();
            return Err(Error::unsupported(format!("a value of one of {}", types.join(", "))));
        }
        match (common_kind(&kinds, self.purpose()), self) {
            (Some(kind), _) => Ok(Some(kind)),
            (None, Self::Comparison(operator)) => {
                let types: Vec<_> = fields.iter().map(|field| field.data_type().clone()).collect();
                Err(no_operator(operator, &types))
            }
            (None, Self::Column(construct)) => Err(cannot_match(construct, &kinds)),
        }
    }
}

/// 42804.
fn cannot_match(construct: &str, kinds: &[Type]) -> Error {
    let names: Vec<_> = kinds.iter().map(bare_name).collect();
    let other = names.iter().find(|name| **name != names[0]).unwrap_or(&names[0]);
    let message = format!("{construct} types {} and {other} cannot be matched", names[0]);
    Error::new(SqlState::DATATYPE_MISMATCH, message)
}

/// A text beside a `char(n)`.
pub(super) fn stripped(expr: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(string::STRIPPED.udf(), vec![expr]))
}

/// Whether values are carried as those of a type are: blanks that pad a `char(n)` aren't kept.
fn is_carried_as(field: &Field, kind: &Type) -> bool {
    let is_stripped = |kind: &Type| matches!(kind, Type::Char(_));
    field.data_type().is_null()
        || *field.data_type() == kind.arrow()
            && (!is_stripped(kind) || is_stripped(&kind_of(field)))
}

fn is_comparison(operator: Operator) -> bool {
    matches!(
        operator,
        Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom
    )
}

pub(super) fn exactly<const N: usize>(operands: Vec<Expr>) -> Result<[Expr; N]> {
    operands.try_into().map_err(|_| Error::internal("operands have got lost").into())
}
