//! What DataFusion's planner asks about names: relations come from the frame's catalog.

use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::catalog::{TableFunctionArgs, TableProvider};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue, TableReference};
use datafusion::config::ConfigOptions;
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::logical_expr::planner::{
    ContextProvider, ExprPlanner, RelationPlanner, TypePlanner,
};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{
    AggregateUDF, Expr, HigherOrderUDF, LogicalPlanBuilder, ScalarUDF, TableSource, WindowUDF, cast,
};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;

use super::{Purpose, QueryContext};
use crate::scan::StoredTable;
use crate::types::Types;
use crate::{Error, Relation, RelationKind, SqlState, system};

/// Answers the planner from one frame.
pub(super) struct FrameProvider<'a> {
    pub(super) context: &'a QueryContext,
}

impl FrameProvider<'_> {
    fn table(&self, name: &TableReference) -> std::result::Result<Arc<dyn TableProvider>, Error> {
        let schemas = match name.schema() {
            Some(schema) => vec![schema.to_owned()],
            None => self.context.settings.search_path(),
        };
        for schema in &schemas {
            if let Some(given) = self.context.given(schema, name.table()) {
                return given.provider();
            }
            if let Some(table) = system::table(self.context, schema, name.table()) {
                return Ok(table);
            }
            if let Some(relation) = self.context.catalog.find(schema, name.table()) {
                return self.relation(relation);
            }
        }
        let name = match name.schema() {
            Some(schema) => format!("{schema}.{}", name.table()),
            None => name.table().to_owned(),
        };
        let message = format!("relation \"{name}\" does not exist");
        Err(Error::new(SqlState::UNDEFINED_TABLE, message))
    }

    fn relation(&self, relation: &Relation) -> std::result::Result<Arc<dyn TableProvider>, Error> {
        if let RelationKind::View { query, .. } = &relation.kind {
            let plan = self.context.plan_view(relation, query)?;
            return Ok(Arc::new(ViewTable::new(plan, None)));
        }
        if let RelationKind::MaterializedView { query, .. } = &relation.kind
            && self.context.purpose == Purpose::Run
            && self.context.frame.is_changed(relation.id)
        {
            let plan = self.context.plan_changed_view(relation, query)?;
            return Ok(Arc::new(ViewTable::new(plan, None)));
        }
        Ok(Arc::new(StoredTable::new(relation)))
    }
}

impl FrameProvider<'_> {
    /// A series as an array that is unnested, which can be compiled.
    fn unnested_series(
        &self,
        arguments: Vec<Expr>,
        is_integers: bool,
    ) -> Result<Arc<dyn TableSource>> {
        const NAME: &str = "generate_series";
        let function = self.context.state().scalar_functions().get(NAME).cloned();
        let function = function.ok_or_else(|| external(Error::internal("no series")))?;
        let value = Expr::Column(datafusion::common::Column::new_unqualified(NAME));
        let value = if is_integers { cast(value, DataType::Int32) } else { value };
        let plan = LogicalPlanBuilder::empty(true)
            .project(vec![function.call(arguments).alias(NAME)])?
            .unnest_column(NAME)?
            .project(vec![value.alias(NAME)])?
            .build()?;
        Ok(provider_as_source(Arc::new(ViewTable::new(plan, None))))
    }
}

/// PostgreSQL's `generate_series` of integers returns integers; DataFusion's returns bigints.
fn integers(name: &str, table: Arc<dyn TableProvider>) -> Result<Arc<dyn TableSource>> {
    let plan = LogicalPlanBuilder::scan(name, provider_as_source(table), None)?.build()?;
    let columns = plan.schema().columns().into_iter().map(|column| {
        let name = column.name.clone();
        cast(Expr::Column(column), DataType::Int32).alias(name)
    });
    let columns = columns.collect::<Vec<_>>();
    let plan = LogicalPlanBuilder::from(plan).project(columns)?.build()?;
    Ok(provider_as_source(Arc::new(ViewTable::new(plan, None))))
}

fn is_cast_to_bigint(argument: &Expr) -> bool {
    let found = argument.exists(|expr| {
        Ok(matches!(expr, Expr::Cast(cast) if cast.field.data_type() == &DataType::Int64))
    });
    found.unwrap_or(false)
}

fn is_integer(argument: &Expr) -> bool {
    matches!(argument, Expr::Literal(ScalarValue::Int64(Some(value)), _) if i32::try_from(*value).is_ok())
}

/// DataFusion's functions take integers of one size.
fn widened(argument: Expr) -> Expr {
    match argument {
        Expr::Literal(ScalarValue::Int32(Some(value)), metadata) => {
            Expr::Literal(ScalarValue::Int64(Some(value.into())), metadata)
        }
        Expr::Literal(ScalarValue::Int32(None), metadata) => {
            Expr::Literal(ScalarValue::Int64(None), metadata)
        }
        other => other,
    }
}

fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

impl ContextProvider for FrameProvider<'_> {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        self.table(&name).map(provider_as_source).map_err(external)
    }

    fn get_table_function_source(
        &self,
        name: &str,
        arguments: Vec<Expr>,
    ) -> Result<Arc<dyn TableSource>> {
        let state = self.context.state();
        // DataFusion hands the name over as it is written.
        let name = name.trim_matches('"');
        let function = state.table_functions().get(name);
        let function = function.cloned().ok_or_else(|| {
            let message = format!("function {name} does not exist");
            external(Error::new(SqlState::UNDEFINED_FUNCTION, message))
        })?;
        let simplify = SimplifyContext::builder()
            .with_config_options(Arc::clone(state.config_options()))
            .with_query_execution_start_time(state.execution_props().query_execution_start_time)
            .build();
        let simplifier = ExprSimplifier::new(simplify);
        let schema = DFSchema::empty();
        let is_bigint = arguments.iter().any(is_cast_to_bigint);
        let arguments = arguments.into_iter().map(|argument| {
            simplifier.coerce(argument, &schema).and_then(|argument| simplifier.simplify(argument))
        });
        let arguments = arguments.map(|argument| argument.map(widened));
        let arguments = arguments.collect::<Result<Vec<_>>>()?;
        let is_integers =
            name == "generate_series" && !is_bigint && arguments.iter().all(is_integer);
        let is_zero = |step: &Expr| matches!(step, Expr::Literal(ScalarValue::Int64(Some(0)), _));
        if name == "generate_series" && arguments.get(2).is_some_and(is_zero) {
            let message = "step size cannot equal zero";
            return Err(external(Error::new(SqlState::INVALID_PARAMETER_VALUE, message)));
        }
        if name == "generate_series" && self.context.purpose == Purpose::Compile {
            return self.unnested_series(arguments, is_integers);
        }
        let table =
            function.create_table_provider_with_args(TableFunctionArgs::new(&arguments, state))?;
        if is_integers {
            return integers(name, table);
        }
        Ok(provider_as_source(table))
    }

    fn create_cte_work_table(&self, name: &str, schema: SchemaRef) -> Result<Arc<dyn TableSource>> {
        Ok(provider_as_source(Arc::new(CteWorkTable::new(name, schema))))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        self.context.state().expr_planners()
    }

    fn get_relation_planners(&self) -> &[Arc<dyn RelationPlanner>] {
        self.context.state().relation_planners()
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        Some(Arc::new(Types))
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        self.context.state().scalar_functions().get(name).cloned()
    }

    fn get_higher_order_meta(&self, name: &str) -> Option<Arc<HigherOrderUDF>> {
        self.context.state().higher_order_functions().get(name).cloned()
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.context.state().aggregate_functions().get(name).cloned()
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.context.state().window_functions().get(name).cloned()
    }

    fn get_variable_type(&self, _names: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        self.context.state().config_options()
    }

    fn udf_names(&self) -> Vec<String> {
        self.context.state().scalar_functions().keys().cloned().collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        self.context.state().higher_order_functions().keys().cloned().collect()
    }

    fn udaf_names(&self) -> Vec<String> {
        self.context.state().aggregate_functions().keys().cloned().collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        self.context.state().window_functions().keys().cloned().collect()
    }
}
