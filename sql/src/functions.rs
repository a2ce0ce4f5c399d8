//! The functions that SQL knows beyond DataFusion's, or instead of them.

use std::sync::Arc;

use datafusion::execution::session_state::{SessionState, SessionStateBuilder};

use crate::Frame;
use crate::settings::Settings;

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
