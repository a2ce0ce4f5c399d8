//! How recent transactions ended, so that to ask twice is harmless.

use std::collections::{BTreeMap, VecDeque};

use stillframe_protocol::{Step, TransactionId};

/// So many of the newest outcomes are remembered.
const OUTCOMES_KEPT: usize = 65_536;

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is part of this step, which is common.
    Committed(Step),
    /// It had no effect.
    Aborted,
}

/// The newest outcomes.
#[derive(Debug, Default)]
pub(super) struct Outcomes {
    outcomes: BTreeMap<TransactionId, Outcome>,
    order: VecDeque<TransactionId>,
}

impl Outcomes {
    pub(super) fn get(&self, transaction: TransactionId) -> Option<Outcome> {
        self.outcomes.get(&transaction).copied()
    }

    pub(super) fn insert(&mut self, transaction: TransactionId, outcome: Outcome) {
        if self.outcomes.insert(transaction, outcome).is_some() {
            return;
        }
        self.order.push_back(transaction);
        if self.order.len() > OUTCOMES_KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.outcomes.remove(&oldest);
        }
    }
}
