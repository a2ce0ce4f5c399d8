//! DataFusion's sessions for one statement: PostgreSQL's settings, our functions, bounded memory, and
//! the frame that is read.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use datafusion::catalog::{CatalogProviderList, Session};
use datafusion::common::{DFSchema, Result};
use datafusion::config::{Dialect, TableOptions};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::registry::ExtensionTypeRegistryRef;
use datafusion::logical_expr::{
    AggregateUDF, Expr, HigherOrderUDF, LogicalPlan, ScalarUDF, WindowUDF,
};
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionConfig;

use crate::settings::Settings;
use crate::{Error, Frame, functions};

/// The memory that all queries of a process may use together before they spill.
const MEMORY_BYTES_MAX: usize = 2 << 30;
/// Rows to a batch.
pub(crate) const BATCH_ROWS: usize = 8192;
/// Into how many streams an operator may split its work.
const PARTITIONS: usize = 2;

/// What all statements share. Building it costs far more than copying it.
static BASE: LazyLock<SessionState> = LazyLock::new(|| {
    let mut config = SessionConfig::new()
        .with_target_partitions(PARTITIONS)
        .with_batch_size(BATCH_ROWS)
        .with_information_schema(false)
        .with_create_default_catalog_and_schema(false);
    // Functions like `now` return times with a zone then; which zone is the session's matter.
    config.options_mut().execution.time_zone = Some("+00:00".to_owned());
    let parser = &mut config.options_mut().sql_parser;
    parser.dialect = Dialect::PostgreSQL;
    parser.parse_float_as_decimal = true;
    parser.map_string_types_to_utf8view = false;
    // What reads an ordered subquery sees its order, as everybody expects of PostgreSQL.
    parser.enable_subquery_sort_elimination = false;
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(FairSpillPool::new(MEMORY_BYTES_MAX)))
        .build_arc()
        .expect("only a disk manager that was configured can fail to start");
    let builder = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_default_features();
    functions::register(builder).build()
});

/// The state in which one statement is planned and run.
pub(crate) fn session_state(frame: &Arc<Frame>, settings: &Settings) -> SessionState {
    let mut state = BASE.clone();
    *state.config_mut() = config(frame, settings);
    functions::register_scoped(&mut state, frame, settings);
    state.mark_start_execution();
    let properties = state.execution_props_mut();
    properties.query_execution_start_time = Some(settings.began());
    state
}

fn config(frame: &Arc<Frame>, settings: &Settings) -> SessionConfig {
    let mut config = BASE.config().clone();
    let zone = Some(settings.time_zone());
    if config.options().execution.time_zone.as_deref() != zone {
        config.options_mut().execution.time_zone = zone.map(str::to_owned);
    }
    config.set_extension(Arc::new(Read(Arc::clone(frame))));
    config
}

/// What the scans of a session read.
struct Read(Arc<Frame>);

/// The frame that a session's scans read.
pub(crate) fn frame_of(config: &SessionConfig) -> Result<Arc<Frame>> {
    let read = config.get_extension::<Read>();
    let read = read.ok_or_else(|| Error::internal("a scan outside of a frame"))?;
    Ok(Arc::clone(&read.0))
}

/// The session in which a plan that is optimized becomes operators and runs: no names are looked up
/// any more, so it costs next to nothing.
pub(super) struct Running {
    config: SessionConfig,
    properties: ExecutionProps,
    /// Whether the operators of the plan can't be put together better than they are.
    is_plain: bool,
    options: TableOptions,
}

impl Running {
    pub(super) fn new(frame: &Arc<Frame>, settings: &Settings, is_plain: bool) -> Self {
        let config = config(frame, settings);
        let mut properties = ExecutionProps::new();
        properties.mark_start_execution(Arc::clone(config.options()));
        properties.query_execution_start_time = Some(settings.began());
        Self { config, properties, is_plain, options: TableOptions::new() }
    }
}

#[async_trait]
impl Session for Running {
    fn session_id(&self) -> &str {
        BASE.session_id()
    }

    fn config(&self) -> &SessionConfig {
        &self.config
    }

    fn catalog_list(&self) -> Arc<dyn CatalogProviderList> {
        Arc::clone(BASE.catalog_list())
    }

    fn physical_optimizers(&self) -> &[Arc<dyn PhysicalOptimizerRule + Send + Sync>] {
        if self.is_plain { &[] } else { BASE.physical_optimizers() }
    }

    async fn create_physical_plan(&self, _: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
        Err(Error::internal("a plan within operators").into())
    }

    fn create_physical_expr(&self, expr: Expr, schema: &DFSchema) -> Result<Arc<dyn PhysicalExpr>> {
        let planning = PhysicalPlanningContext::default();
        create_physical_expr(&expr, schema, &self.properties, &planning)
    }

    fn scalar_functions(&self) -> &HashMap<String, Arc<ScalarUDF>> {
        BASE.scalar_functions()
    }

    fn higher_order_functions(&self) -> &HashMap<String, Arc<HigherOrderUDF>> {
        BASE.higher_order_functions()
    }

    fn aggregate_functions(&self) -> &HashMap<String, Arc<AggregateUDF>> {
        BASE.aggregate_functions()
    }

    fn window_functions(&self) -> &HashMap<String, Arc<WindowUDF>> {
        BASE.window_functions()
    }

    fn extension_type_registry(&self) -> &ExtensionTypeRegistryRef {
        BASE.extension_type_registry()
    }

    fn runtime_env(&self) -> &Arc<RuntimeEnv> {
        BASE.runtime_env()
    }

    fn execution_props(&self) -> &ExecutionProps {
        &self.properties
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn table_options(&self) -> &TableOptions {
        &self.options
    }

    fn table_options_mut(&mut self) -> &mut TableOptions {
        &mut self.options
    }

    fn task_ctx(&self) -> Arc<TaskContext> {
        Arc::new(TaskContext::new(
            None,
            self.session_id().to_owned(),
            self.config.clone(),
            HashMap::new(),
            HashMap::new(),
            HashMap::new(),
            HashMap::new(),
            Arc::clone(self.runtime_env()),
        ))
    }
}
