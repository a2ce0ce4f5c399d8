//! Room for recursion: a statement's tree is walked as deep as it is nested or chained, on threads
//! whose stacks may be as small as a program that embeds the server made them.

use std::future::poll_fn;

/// What must be free on the stack before a statement is worked at: enough for the deepest that the
/// parser lets through, also in a build that isn't optimised.
const FREE_BYTES: usize = 24 << 20;
/// A stack that is made where less is free.
const STACK_BYTES: usize = 32 << 20;

/// Runs this with enough stack.
pub(crate) fn deep<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(FREE_BYTES, STACK_BYTES, work)
}

/// Polls this with enough stack.
pub(crate) async fn deep_future<F: Future>(future: F) -> F::Output {
    let mut future = Box::pin(future);
    poll_fn(move |context| deep(|| future.as_mut().poll(context))).await
}
