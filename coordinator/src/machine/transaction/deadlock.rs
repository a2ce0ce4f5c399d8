//! Finding circles of transactions that wait for each other.
//!
//! Whoever begins to wait looks. All new edges of the graph begin or end there (those behind an
//! upgrade begin to wait for it), so every new circle goes through it.

use std::collections::BTreeSet;

use stillframe_protocol::TransactionId;

use super::locks::Locks;

impl Locks {
    /// Whether a waiting transaction waits, over others, for itself.
    pub(super) fn waits_for_itself(&self, transaction: TransactionId) -> bool {
        if !self.blocks_somebody(transaction) {
            return false;
        }
        let mut seen = BTreeSet::new();
        let mut open = self.blockers(transaction);
        while let Some(blocker) = open.pop() {
            if blocker == transaction {
                return true;
            }
            if seen.insert(blocker) {
                open.extend(self.blockers(blocker));
            }
        }
        false
    }
}
