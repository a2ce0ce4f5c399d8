//! Whether the statement under way can still be stopped, for whoever would stop it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A session's progress, as seen by those who may want to stop its statement.
///
/// From the moment its commit is sent a statement may take effect, whatever happens to its future:
/// to stop it then and to say that it was canceled would be a lie.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    committing: Arc<AtomicBool>,
}

impl Progress {
    /// Whether the statement's effect is on its way. Whoever drops its future now doesn't know the
    /// outcome.
    pub fn is_committing(&self) -> bool {
        self.committing.load(Ordering::Acquire)
    }

    /// Marks the effect as under way until the answer drops.
    #[must_use]
    pub fn commit(&self) -> Committing {
        self.committing.store(true, Ordering::Release);
        Committing { committing: Arc::clone(&self.committing) }
    }
}

/// Lives while a commit waits for its outcome.
#[derive(Debug)]
pub struct Committing {
    committing: Arc<AtomicBool>,
}

impl Drop for Committing {
    fn drop(&mut self) {
        self.committing.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_committing_as_long_as_the_guard_lives() {
        let progress = Progress::default();
        let seen = progress.clone();
        assert!(!seen.is_committing());
        let guard = progress.commit();
        assert!(seen.is_committing());
        drop(guard);
        assert!(!seen.is_committing());
    }
}
