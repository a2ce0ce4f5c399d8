//! The functions that SQL knows beyond DataFusion's, or instead of them.

use std::sync::Arc;

use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};

use crate::Frame;
use crate::settings::Settings;

/// The functions by name, for an engine that evaluates expressions: what they compute must be the
/// same there and in queries.
pub fn functions() -> Arc<dyn FunctionRegistry + Send + Sync> {
    Arc::new(register(SessionStateBuilder::new().with_default_features()).build())
}

/// Adds what is the same in every session.
pub(crate) fn register(builder: SessionStateBuilder) -> SessionStateBuilder {
    builder
}

/// Adds what answers from the frame or the settings.
pub(crate) fn register_scoped(
    _state: &mut SessionState,
    _frame: &Arc<Frame>,
    _settings: &Settings,
) {
}
