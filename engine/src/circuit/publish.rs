//! What workers leave for their host after each step.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use dbsp::circuit::operator_traits::{Data, Operator, SinkOperator};
use dbsp::circuit::{LocalStoreMarker, Scope};
use dbsp::{Circuit, RootCircuit, Runtime, Stream};
use typedmap::TypedMapKey;

/// The newest value of each of the host's workers.
pub(crate) struct Published<T> {
    slots: Arc<[Mutex<Option<T>>]>,
}

impl<T: Clone + Send + 'static> Published<T> {
    /// The place that all workers of the host share. Called by each worker while it builds its
    /// circuit, in the same order by all.
    pub(crate) fn shared() -> Self {
        let Some(runtime) = Runtime::runtime() else { return Self::with_slots(1) };
        let key = PublishedKey::<T> { number: runtime.sequence_next(), of: PhantomData };
        let workers = runtime.layout().local_workers().len();
        let store = runtime.local_store();
        store.entry(key).or_insert_with(|| Self::with_slots(workers)).value().clone()
    }

    fn with_slots(workers: usize) -> Self {
        Self { slots: (0..workers).map(|_| Mutex::new(None)).collect() }
    }

    /// Publishes a value of the worker that calls.
    pub(crate) fn set(&self, value: T) {
        let slot = &self.slots[Runtime::local_worker_offset()];
        let old = slot.lock().unwrap_or_else(PoisonError::into_inner).replace(value);
        drop(old);
    }

    /// The newest value of a worker of the host; none before its first step.
    pub(crate) fn get(&self, worker: usize) -> Option<T> {
        self.slots.get(worker)?.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<T> Clone for Published<T> {
    fn clone(&self) -> Self {
        Self { slots: Arc::clone(&self.slots) }
    }
}

impl<T> fmt::Debug for Published<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Published").field("workers", &self.slots.len()).finish()
    }
}

struct PublishedKey<T> {
    number: usize,
    of: PhantomData<fn() -> T>,
}

impl<T> PartialEq for PublishedKey<T> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl<T> Eq for PublishedKey<T> {}

impl<T> std::hash::Hash for PublishedKey<T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

impl<T: Clone + Send + 'static> TypedMapKey<LocalStoreMarker> for PublishedKey<T> {
    type Value = Published<T>;
}

/// Publishes a view of every value of a stream.
pub(crate) fn publish<I: Data, T: Clone + Send + 'static>(
    stream: &Stream<RootCircuit, I>,
    view: impl Fn(&I) -> T + 'static,
) -> Published<T> {
    let published = Published::shared();
    let sink = Publish { published: published.clone(), view, of: PhantomData };
    stream.circuit().add_sink(sink, stream);
    published
}

/// Stateless: what it publishes is gone with the process, and the first step publishes it again.
struct Publish<I, T, F> {
    published: Published<T>,
    view: F,
    of: PhantomData<fn(I)>,
}

impl<I: 'static, T: 'static, F: 'static> Operator for Publish<I, T, F> {
    fn name(&self) -> Cow<'static, str> {
        "Publish".into()
    }

    fn fixedpoint(&self, _: Scope) -> bool {
        true
    }
}

impl<I, T, F> SinkOperator<I> for Publish<I, T, F>
where
    I: Data,
    T: Clone + Send + 'static,
    F: Fn(&I) -> T + 'static,
{
    async fn eval(&mut self, input: &I) {
        self.published.set((self.view)(input));
    }
}
