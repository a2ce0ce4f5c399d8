//! What workers leave for their host after each step.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use dbsp::circuit::operator_traits::{Data, Operator, SinkOperator};
use dbsp::circuit::{CircuitBase as _, GlobalNodeId, LocalStoreMarker, Scope};
use dbsp::storage::backend::{StorageError, StoragePath};
use dbsp::storage::buffer_cache::FBuf;
use dbsp::{Circuit, RootCircuit, Runtime, Stream};
use feldera_storage::FileCommitter;
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
///
/// `id` is the operator's persistent id. What it publishes is gone with the circuit; but when a new
/// circuit takes over the state of an old one and fills what is new, only operators that the old one
/// did not have take part, and this one must if its stream is new.
pub(crate) fn publish<I: Data, T: Clone + Send + 'static>(
    stream: &Stream<RootCircuit, I>,
    id: &str,
    view: impl Fn(&I) -> T + 'static,
) -> Published<T> {
    let published = Published::shared();
    let sink =
        Publish { node: GlobalNodeId::root(), published: published.clone(), view, of: PhantomData };
    let node = stream.circuit().add_sink(sink, stream);
    stream.circuit().set_persistent_node_id(&node, Some(id));
    published
}

struct Publish<I, T, F> {
    node: GlobalNodeId,
    published: Published<T>,
    view: F,
    of: PhantomData<fn(I)>,
}

impl<I, T, F> Publish<I, T, F> {
    /// The file that says in a checkpoint that the operator was there.
    fn file(&self, base: &StoragePath, id: Option<&str>) -> Result<StoragePath, StorageError> {
        let id = id.ok_or_else(|| StorageError::NoPersistentId(self.node.to_string()))?;
        Ok(base.clone().join(format!("publish-{id}.dat")))
    }
}

impl<I: 'static, T: 'static, F: 'static> Operator for Publish<I, T, F> {
    fn name(&self) -> Cow<'static, str> {
        "Publish".into()
    }

    fn init(&mut self, node: &GlobalNodeId) {
        self.node = node.clone();
    }

    fn fixedpoint(&self, _: Scope) -> bool {
        true
    }

    fn checkpoint(
        &mut self,
        base: &StoragePath,
        id: Option<&str>,
        files: &mut Vec<Arc<dyn FileCommitter>>,
    ) -> Result<(), dbsp::Error> {
        let file = self.file(base, id)?;
        files.push(Runtime::storage_backend()?.write(&file, FBuf::new())?);
        Ok(())
    }

    fn restore(&mut self, base: &StoragePath, id: Option<&str>) -> Result<(), dbsp::Error> {
        Runtime::storage_backend()?.read(&self.file(base, id)?)?;
        Ok(())
    }

    fn clear_state(&mut self) -> Result<(), dbsp::Error> {
        Ok(())
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
