//! Conditions on the clock: `now()` and its relatives in WHERE and HAVING.
//!
//! A row is there from one moment until another, both of which are computed of the row alone: `ts >
//! now() - interval '1 hour'` is true until an hour after `ts`. Hosts let the rows come and go
//! ([`Plan::Temporal`]). So the clock may only be compared, and only shifted by what is as long at
//! any time: nothing is a month.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Date32Type, Field, Int64Type, Schema, TimeUnit};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result as DataFusionResult, ScalarValue};
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator};
use datafusion::physical_expr::create_physical_expr;
use stillframe_protocol::{Moment, MomentUnit, Plan};

use super::{Compiler, Rows, build, refused};
use crate::query::classify;
use crate::text::TimeZone;
use crate::{Error, SqlState, Type};

/// What stands for the step's clock, and for its day.
const CLOCK: &str = "$stillframe clock";
const TODAY: &str = "$stillframe today";

/// Functions that tell the clock of a statement.
const NOW: [&str; 4] = ["now", "transaction_timestamp", "statement_timestamp", "current_timestamp"];
const CURRENT_DATE: &str = "current_date";

const DAY_US: i64 = 86_400_000_000;

/// Moments at which a shift is measured: ends of months of every length and of years, around
/// midnight, within hours.
const PROBES_US: [i64; 8] = [
    1_706_704_496_789_012,
    1_709_251_199_999_999,
    1_709_251_200_000_000,
    1_711_846_800_500_000,
    1_721_023_628_000_009,
    1_730_073_599_000_001,
    1_735_689_599_999_999,
    1_677_628_799_999_999,
];

/// Whether a function tells the clock.
pub(super) fn is_clock(function: &str) -> bool {
    NOW.contains(&function) || function == CURRENT_DATE
}

/// What a view is refused with that reads the clock elsewhere, or in another way.
pub(super) fn misplaced(function: &str) -> Error {
    let message = format!("function {function}() is not supported here in a materialized view");
    Error::new(SqlState::FEATURE_NOT_SUPPORTED, message).with_hint(
        "In WHERE and HAVING something that is computed of the row may be compared with it, plus or \
         minus an interval without months: ts > now() - interval '1 hour'. Elsewhere, apply the \
         function in the query that reads the view.",
    )
}

/// A query with a mark in the place of the clock where that may be read: in conditions.
pub(super) fn marked(query: LogicalPlan) -> DataFusionResult<LogicalPlan> {
    let marked = query.transform_up_with_subqueries(|node| {
        if !matches!(node, LogicalPlan::Filter(_)) {
            return Ok(Transformed::no(node));
        }
        node.map_expressions(|expr| expr.transform_up(|expr| Ok(mark(expr))))
    })?;
    Ok(marked.data)
}

fn mark(expr: Expr) -> Transformed<Expr> {
    let Expr::ScalarFunction(function) = &expr else { return Transformed::no(expr) };
    let (id, kind) = match function.name() {
        name if NOW.contains(&name) => (CLOCK, Type::Timestamptz),
        CURRENT_DATE => (TODAY, Type::Date),
        _ => return Transformed::no(expr),
    };
    let field = Arc::new(Field::new(id, kind.arrow(), false));
    Transformed::yes(Expr::Placeholder(Placeholder::new_with_field(id.to_owned(), Some(field))))
}

fn is_mark(expr: &Expr) -> bool {
    matches!(expr, Expr::Placeholder(mark) if mark.id == CLOCK || mark.id == TODAY)
}

/// Whether an expression reads the clock.
pub(super) fn reads_clock(expr: &Expr) -> bool {
    expr.exists(|expr| Ok(is_mark(expr))).unwrap_or(true)
}

/// How far something that is computed of the clock is from it.
enum Shift {
    /// So many microseconds.
    Moment(i64),
    /// Its day, and so many days.
    Day(i64),
}

impl Compiler<'_> {
    /// The rows for which conditions on the clock are true, while they are.
    pub(super) fn passing_now(
        &self,
        rows: Rows,
        schema: &DFSchema,
        conditions: &[&Expr],
    ) -> Result<Rows, Error> {
        if conditions.is_empty() {
            return Ok(rows);
        }
        if self.iterated.is_some() {
            return Err(refused("now() in a recursive query's recursive term"));
        }
        let (mut from, mut until) = (vec![], vec![]);
        // The other bound of a BETWEEN.
        let mut always = vec![];
        for condition in conditions {
            let mut comparisons = vec![];
            match condition {
                Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                    comparisons.push((left, *op, right));
                }
                Expr::Between(between) if !between.negated => {
                    comparisons.push((&between.expr, Operator::GtEq, &between.low));
                    comparisons.push((&between.expr, Operator::LtEq, &between.high));
                }
                _ => return Err(misplaced("now")),
            }
            for (left, operator, right) in comparisons {
                let (own, operator, clock) = match (reads_clock(left), reads_clock(right)) {
                    (false, true) => (left, operator, right),
                    (true, false) => match operator.swap() {
                        Some(swapped) => (right, swapped, left),
                        None => return Err(misplaced("now")),
                    },
                    (false, false) => {
                        let (left, right) = (Box::clone(left), Box::clone(right));
                        always.push(Expr::BinaryExpr(BinaryExpr::new(left, operator, right)));
                        continue;
                    }
                    (true, true) => return Err(misplaced("now")),
                };
                let shift = self.shift(clock)?;
                let moment = |later| self.moment(own, &shift, later, schema, &rows);
                // A condition is true from or until the moment itself, or right after it.
                match operator {
                    Operator::Gt => until.push(moment(false)?),
                    Operator::GtEq => until.push(moment(true)?),
                    Operator::Lt => from.push(moment(true)?),
                    Operator::LtEq => from.push(moment(false)?),
                    Operator::Eq => {
                        from.push(moment(false)?);
                        until.push(moment(true)?);
                    }
                    _ => return Err(misplaced("now")),
                }
            }
        }
        let rows = self.passing_always(rows, schema, &always.iter().collect::<Vec<_>>())?;
        let plan = Arc::new(Plan::Temporal { input: Arc::clone(&rows.plan), from, until });
        Ok(Rows { plan, ..rows })
    }

    /// When the clock, shifted, shows a value; if `later`, when it first shows a later one.
    fn moment(
        &self,
        value: &Expr,
        shift: &Shift,
        later: bool,
        schema: &DFSchema,
        rows: &Rows,
    ) -> Result<Moment, Error> {
        let found = value.get_type(schema).map_err(classify)?;
        let expression = self.convert(value, schema, rows)?;
        let later = i64::from(later);
        match (shift, &found) {
            (Shift::Moment(us), DataType::Timestamp(TimeUnit::Microsecond, _)) => Ok(Moment {
                expression: build::cast(expression, &found, &DataType::Int64),
                unit: MomentUnit::Microsecond,
                offset_us: later - us,
            }),
            (Shift::Day(days), DataType::Date32) => {
                let number = build::cast(expression, &found, &DataType::Int32);
                Ok(Moment {
                    expression: build::cast(number, &DataType::Int32, &DataType::Int64),
                    unit: MomentUnit::Day,
                    offset_us: (later - days) * DAY_US,
                })
            }
            _ => Err(misplaced("now")),
        }
    }

    /// Measures how far an expression is from the clock that it reads, which must be as far always.
    fn shift(&self, clock: &Expr) -> Result<Shift, Error> {
        let zone = TimeZone::parse(self.context.settings.time_zone()).unwrap_or_default();
        if clock.any_column_refs() || clock.contains_outer() {
            return Err(misplaced("now"));
        }
        let is_utc = PROBES_US.iter().all(|us| zone.offset_at(*us) == 0);
        if !is_utc && !is_mark(clock) {
            return Err(misplaced("now").with_detail(
                "The session's time zone is not UTC: days are not equally long in every other.",
            ));
        }
        let mut shift = None;
        for us in PROBES_US {
            let (found, is_day) = value_at(clock, us).map_err(classify)?;
            let own = if is_day { found - us.div_euclid(DAY_US) } else { found.saturating_sub(us) };
            if shift.replace((own, is_day)).is_some_and(|before| before != (own, is_day)) {
                return Err(misplaced("now"));
            }
        }
        match shift {
            Some((us, false)) => Ok(Shift::Moment(us)),
            Some((days, true)) if is_utc => Ok(Shift::Day(days)),
            _ => Err(misplaced("now")),
        }
    }
}

/// What an expression over the clock comes to at a moment, and whether that is a day.
fn value_at(expr: &Expr, us: i64) -> DataFusionResult<(i64, bool)> {
    let at = expr.clone().transform_up(|expr| {
        let Expr::Placeholder(mark) = &expr else { return Ok(Transformed::no(expr)) };
        let value = match mark.id.as_str() {
            CLOCK => ScalarValue::TimestampMicrosecond(Some(us), Some("+00:00".into()))
                .cast_to(&Type::Timestamptz.arrow())?,
            TODAY => ScalarValue::Date32(i32::try_from(us.div_euclid(DAY_US)).ok()),
            _ => return Ok(Transformed::no(expr)),
        };
        Ok(Transformed::yes(Expr::Literal(value, None)))
    })?;
    let physical = create_physical_expr(
        &at.data,
        &DFSchema::empty(),
        &ExecutionProps::new(),
        &PhysicalPlanningContext::default(),
    )?;
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let row = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options)?;
    let value = physical.evaluate(&row)?.into_array(1)?;
    let missing = || Error::internal("a clock that shows nothing");
    match value.data_type() {
        DataType::Date32 => {
            let days = value.as_primitive_opt::<Date32Type>().ok_or_else(missing)?;
            Ok((i64::from(days.value(0)), true))
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            let number = arrow::compute::cast(&value, &DataType::Int64)?;
            let number = number.as_primitive_opt::<Int64Type>().ok_or_else(missing)?;
            Ok((number.value(0), false))
        }
        _ => Err(misplaced("now").into()),
    }
}
