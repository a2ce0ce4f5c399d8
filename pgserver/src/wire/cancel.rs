//! Which session a cancel request means. A request comes on a connection of its own and proves by a
//! secret that it comes from the session's client.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// The keys of all sessions.
#[derive(Clone, Debug, Default)]
pub(crate) struct CancelKeys {
    sessions: Arc<Mutex<Sessions>>,
}

#[derive(Debug, Default)]
struct Sessions {
    last: i32,
    by_process: HashMap<i32, Entry>,
}

#[derive(Debug)]
struct Entry {
    secret: i32,
    canceled: watch::Sender<()>,
}

/// A session's key, registered for as long as it lives.
#[derive(Debug)]
pub(super) struct CancelKey {
    /// Stands in for PostgreSQL's process id: not 0, and different for each live session.
    pub(super) process: i32,
    /// Only the session's client knows it.
    pub(super) secret: i32,
    keys: CancelKeys,
}

impl CancelKeys {
    /// Makes a key for a session, which hears of its cancel requests by the receiver.
    pub(super) fn register(&self) -> (CancelKey, watch::Receiver<()>) {
        let (canceled, hears) = watch::channel(());
        let secret = rand::random();
        let mut sessions = self.lock();
        let mut process = sessions.last;
        loop {
            process = if process == i32::MAX { 1 } else { process + 1 };
            if !sessions.by_process.contains_key(&process) {
                break;
            }
        }
        sessions.last = process;
        sessions.by_process.insert(process, Entry { secret, canceled });
        (CancelKey { process, secret, keys: self.clone() }, hears)
    }

    /// Stops what the session with this key does; a wrong key means nothing.
    pub(super) fn cancel(&self, process: i32, secret: i32) {
        match self.lock().by_process.get(&process) {
            Some(entry) if entry.secret == secret => {
                entry.canceled.send_replace(());
            }
            _ => tracing::debug!(conn = process, "cancel request with a wrong key"),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CancelKey {
    fn drop(&mut self) {
        self.keys.lock().by_process.remove(&self.process);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_key_cancels_and_only_while_it_lives() {
        let keys = CancelKeys::default();
        let (one, hears_one) = keys.register();
        let (two, hears_two) = keys.register();
        keys.cancel(one.process, one.secret.wrapping_add(1));
        assert!(!hears_one.has_changed().unwrap());
        keys.cancel(one.process, one.secret);
        assert!(hears_one.has_changed().unwrap());
        assert!(!hears_two.has_changed().unwrap());
        let (process, secret) = (two.process, two.secret);
        drop(two);
        keys.cancel(process, secret);
        assert!(hears_two.has_changed().is_err(), "the key is gone");
    }
}
