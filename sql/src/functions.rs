//! SQL's functions, operators and casts with PostgreSQL's meaning.
//!
//! Ad-hoc queries and hosts compute with the same functions: a plan names them, and hosts find them
//! by name in [`functions()`]. So a function that views may use is nothing but its name and its
//! arguments; what it needs to know beyond (the time zone, a cast's target) is an argument.

mod aggregate;
mod arithmetic;
mod array;
mod bits;
mod bytea;
mod cast;
mod choice;
mod clock;
mod coalesce;
mod coercion;
mod concat;
mod correlation;
mod datetime;
mod extreme;
mod identity;
mod interval;
mod json;
mod list;
mod marker;
mod math;
mod no_row;
mod nullif;
mod numeric;
mod pattern;
mod picture;
mod planner;
mod regex;
mod resolve;
mod row;
mod scalar;
mod scales;
mod series;
mod set_operation;
mod string;
mod syntax;
#[cfg(test)]
mod tests;
mod ties;
mod typed;
mod uuid;

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field};
use datafusion::common::{Column, Result};
use datafusion::execution::registry::{FunctionRegistry, MemoryFunctionRegistry};
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::functions_aggregate::bool_and_or::bool_and_udaf;
use datafusion::logical_expr::expr::{FieldMetadata, ScalarFunction};
use datafusion::logical_expr::{AggregateUDF, Expr, LogicalPlan, LogicalPlanBuilder, ScalarUDF};
use datafusion::optimizer::analyzer::resolve_grouping_function::ResolveGroupingFunction;
use datafusion::optimizer::single_distinct_to_groupby::SingleDistinctToGroupBy;
use datafusion::optimizer::{AnalyzerRule, Optimizer, OptimizerRule};

pub(crate) use aggregate::ONLY_ROW_OF;
pub(crate) use clock::moments_rounded;
pub(crate) use correlation::is_single;
pub(crate) use set_operation::is_of_all_rows;
pub(crate) use syntax::clock::unname;
pub(crate) use syntax::{is_spelling, rewrite, set_returning};

use crate::Type;
use crate::query::Purpose;
use crate::settings::Settings;
use crate::types::Types;
use crate::{Frame, system};
pub(crate) use aggregate::NARROW_PRECISION;
use scalar::Function;
pub(crate) use scalar::no_function;
use typed::Typed;

/// Our scalar functions.
fn scalars() -> Vec<Arc<ScalarUDF>> {
    let operators = [
        &arithmetic::ADD,
        &arithmetic::SUBTRACT,
        &arithmetic::MULTIPLY,
        &arithmetic::DIVIDE,
        &arithmetic::MODULO,
        &arithmetic::NEGATE,
        &arithmetic::MOD,
        &numeric::KEY,
        &numeric::ORDER,
        &concat::CONCAT,
        &pattern::LIKE,
        &pattern::ILIKE,
        &bits::SHIFT_LEFT,
        &bits::SHIFT_RIGHT,
    ];
    let definitions = operators
        .into_iter()
        .chain(math::definitions())
        .chain(bits::DEFINITIONS)
        .chain(scales::DEFINITIONS)
        .chain(scales::extremes())
        .chain(datetime::DEFINITIONS)
        .chain(string::DEFINITIONS)
        .chain(list::DEFINITIONS)
        .chain(pattern::DEFINITIONS);
    definitions
        .map(Function::udf)
        .chain(typed_definitions().map(Typed::udf))
        .chain([cast::function(), list::array_or_empty(), nullif::nullif(), identity::of_type()])
        .chain([coalesce::coalesce(), aggregate::only_row_of()])
        .collect()
}

/// Those that are settled by SQL types.
fn typed_definitions() -> impl Iterator<Item = &'static Typed> {
    array::definitions()
        .chain(json::definitions())
        .chain(interval::definitions())
        .chain(clock::definitions())
        .chain(bytea::definitions())
        .chain(series::DEFINITIONS)
        .chain(picture::DEFINITIONS)
        .chain(regex::definitions())
        .chain(string::typed_definitions())
        .chain(&extreme::DEFINITIONS)
}

/// Our aggregate functions.
fn aggregates() -> Vec<Arc<AggregateUDF>> {
    let every = bool_and_udaf().as_ref().clone().with_aliases(["every"]);
    aggregate::functions().into_iter().chain([Arc::new(every)]).collect()
}

/// DataFusion's functions of these names mean something else in PostgreSQL.
const DIFFERENT: &[&str] = &[
    "to_char",
    "to_date",
    "to_time",
    "to_timestamp",
    "to_timestamp_seconds",
    "to_timestamp_millis",
    "to_timestamp_micros",
    "to_timestamp_nanos",
    "to_unixtime",
    "from_unixtime",
    "to_local_time",
    "date_bin",
    "version",
];

/// The functions that plans may name, for an engine that evaluates expressions: what they compute
/// must be the same there and in queries.
pub fn functions() -> Arc<dyn FunctionRegistry + Send + Sync> {
    static REGISTRY: LazyLock<Arc<MemoryFunctionRegistry>> = LazyLock::new(|| {
        let mut registry = MemoryFunctionRegistry::new();
        let standard = datafusion::functions::all_default_functions();
        let nested = datafusion::functions_nested::all_default_nested_functions();
        let kept = standard
            .into_iter()
            .chain(nested)
            .filter(|function| !DIFFERENT.contains(&function.name()));
        for function in kept.chain(scalars()) {
            registry.register_udf(function).expect("a registry in memory takes every function");
        }
        let standard = datafusion::functions_aggregate::all_default_aggregate_functions();
        for function in standard.into_iter().chain(aggregates()) {
            registry.register_udaf(function).expect("a registry in memory takes every function");
        }
        for function in datafusion::functions_window::all_default_window_functions() {
            registry.register_udwf(function).expect("a registry in memory takes every function");
        }
        Arc::new(registry)
    });
    Arc::clone(&*REGISTRY) as Arc<dyn FunctionRegistry + Send + Sync>
}

/// Makes a session plan SQL as PostgreSQL would. The builder must have DataFusion's defaults.
pub(crate) fn register(mut builder: SessionStateBuilder) -> SessionStateBuilder {
    let rules: Vec<Arc<dyn AnalyzerRule + Send + Sync>> = vec![
        Arc::new(ties::Ties),
        Arc::new(correlation::Correlation),
        Arc::new(ResolveGroupingFunction::new()),
        Arc::new(coercion::Coercion),
    ];
    builder.expr_planners().get_or_insert_default().insert(0, Arc::new(planner::Operators));
    builder
        .scalar_functions()
        .get_or_insert_default()
        .retain(|function| !DIFFERENT.contains(&function.name()));
    builder.scalar_functions().get_or_insert_default().extend(scalars());
    builder.scalar_functions().get_or_insert_default().extend(marker::functions());
    builder.scalar_functions().get_or_insert_default().extend(choice::functions());
    builder.scalar_functions().get_or_insert_default().push(uuid::random());
    builder.aggregate_functions().get_or_insert_default().extend(aggregates());
    // It adds up sums, and a sum of ours has another type than what it adds up.
    let mut optimizer = Optimizer::new();
    optimizer.rules.retain(|rule| rule.name() != SingleDistinctToGroupBy::new().name());
    builder
        .with_analyzer_rules(rules)
        .with_optimizer_rules(optimizer.rules)
        .with_type_planner(Arc::new(Types))
}

/// Adds what answers from the frame or the settings.
pub(crate) fn register_scoped(state: &mut SessionState, frame: &Arc<Frame>, settings: &Settings) {
    system::register(state, frame, settings);
}

/// Settles all types of a plan. To settle them again changes nothing.
///
/// It isn't checked whether DataFusion could run it: see `query::apply`.
pub(crate) fn analyze(
    state: &SessionState,
    plan: LogicalPlan,
    purpose: Purpose,
) -> Result<LogicalPlan> {
    let plan = match purpose {
        Purpose::Run => set_operation::numbered(plan)?,
        Purpose::Compile => plan,
    };
    // What is compiled has subqueries of every form.
    let is_needed = |rule: &&Arc<dyn AnalyzerRule + Send + Sync>| {
        purpose == Purpose::Run || rule.name() != correlation::NAME
    };
    let rules = state.analyzer().rules.iter().filter(is_needed);
    let settle = |plan, rule: &Arc<dyn AnalyzerRule + Send + Sync>| {
        rule.analyze(plan, state.config_options())
    };
    let plan = rules.into_iter().try_fold(plan, settle)?;
    let plan = match purpose {
        Purpose::Run => no_row::with_nullable_subqueries(plan)?,
        Purpose::Compile => plan,
    };
    shown(state, plan)
}

/// The plan with names in place of the OIDs that a client would otherwise be shown.
fn shown(state: &SessionState, plan: LogicalPlan) -> Result<LogicalPlan> {
    let is_hidden = |field: &Field| {
        field.data_type() == &DataType::Int64
            && Type::of(field).is_some_and(|kind| kind.is_name_of_object())
    };
    if !plan.schema().fields().iter().any(|field| is_hidden(field)) {
        return Ok(plan);
    }
    let columns = plan.schema().iter().map(|(relation, field)| {
        let column = Expr::Column(Column::new(relation.cloned(), field.name()));
        let kind = Type::of(field).filter(|_| is_hidden(field));
        let Some(kind) = kind else { return column };
        let Some(out) = state.scalar_functions().get(&format!("{kind} out")) else {
            return column;
        };
        let shown = ScalarFunction::new_udf(Arc::clone(out), vec![column]);
        let metadata = FieldMetadata::from(field.as_ref());
        Expr::ScalarFunction(shown).alias_qualified_with_metadata(
            relation.cloned(),
            field.name(),
            Some(metadata),
        )
    });
    let columns = columns.collect::<Vec<_>>();
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}
