//! Work that needs a runtime of dbsp of its own.
//!
//! A circuit must not be built, run or dropped where another runtime runs one, nor may a runtime be
//! dropped where futures run.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use dbsp::Runtime;
use dbsp::circuit::CircuitConfig;

/// Runs some work as the only worker of a runtime, and ends the runtime when it is done. Whoever
/// wants a result lets the work send it.
pub(super) fn run_apart(work: impl FnOnce() + Send + 'static) {
    let work = Arc::new(Mutex::new(Some(work)));
    let run = move |_| {
        let work = work.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(work) = work {
            work();
        }
    };
    let keep = move || {
        let runtime = Runtime::run(CircuitConfig::with_workers(1), run);
        // If it couldn't start or has failed, its work is gone, and with it who would send.
        drop(runtime.map(|runtime| runtime.join()));
    };
    let thread = thread::Builder::new().name("recursion".to_owned()).spawn(keep);
    drop(thread.expect("the system has a thread for a recursion"));
}
