//! The newest steps, for the system tables.

use std::collections::VecDeque;

use stillframe_protocol::StepStatus;

/// So many of the newest steps are remembered.
const STEPS_SHOWN: usize = 1000;

/// The newest steps, ascending.
#[derive(Debug, Default)]
pub(super) struct Steps {
    newest: VecDeque<StepStatus>,
}

impl Steps {
    pub(super) fn push(&mut self, step: StepStatus) {
        if self.newest.len() == STEPS_SHOWN {
            self.newest.pop_front();
        }
        self.newest.push_back(step);
    }

    pub(super) fn status(&self) -> Vec<StepStatus> {
        self.newest.iter().cloned().collect()
    }
}
