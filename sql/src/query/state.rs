//! DataFusion's session for one statement: PostgreSQL's settings, our functions, bounded memory.

use std::sync::{Arc, LazyLock};

use datafusion::config::Dialect;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::prelude::SessionConfig;

use crate::settings::Settings;
use crate::{Frame, functions};

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
    let options = state.config_mut().options_mut();
    options.execution.time_zone = Some(settings.time_zone().to_owned());
    functions::register_scoped(&mut state, frame, settings);
    state.mark_start_execution();
    state
}
