//! Waiting for a condition, with a deadline: the only way a test may wait.

use std::future::Future;
use std::time::{Duration, Instant};

/// The time a statement, a start or an end may take before a test calls it a hang. Far above what
/// any of them takes on a slow and busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

const PAUSE: Duration = Duration::from_millis(10);

/// Asks again until there is an answer; `None` if there is none by the deadline.
pub fn poll<T>(patience: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        if Instant::now() > deadline {
            return None;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Asks again until the answer is as it should be; panics with the last one at the deadline.
pub async fn eventually<F>(what: &str, mut ask: impl FnMut() -> F)
where
    F: Future<Output = Result<(), String>>,
{
    let deadline = Instant::now() + PATIENCE;
    loop {
        match ask().await {
            Ok(()) => return,
            Err(last) if Instant::now() > deadline => panic!("{what}: still {last}"),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}
