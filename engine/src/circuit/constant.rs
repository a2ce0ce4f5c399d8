//! Rows that don't change: they enter once, in the first step of a circuit's state.

use std::borrow::Cow;
use std::sync::Arc;

use dbsp::circuit::operator_traits::{Data, Operator, SourceOperator};
use dbsp::circuit::{GlobalNodeId, Scope};
use dbsp::storage::backend::{StorageError, StoragePath};
use dbsp::storage::file::to_bytes;
use dbsp::{Circuit, RootCircuit, Runtime, Stream};
use feldera_storage::FileCommitter;

/// The worker that has all constants.
const WORKER: usize = 0;

/// A stream of one batch, which the first of all workers emits once, and of empty ones after it.
pub(crate) fn constant<T: Data + Default>(
    circuit: &RootCircuit,
    id: &str,
    batch: T,
) -> Stream<RootCircuit, T> {
    let constant = Constant { node: GlobalNodeId::root(), batch, phase: Phase::first() };
    circuit.add_source(constant).set_persistent_id(Some(id))
}

struct Constant<T> {
    node: GlobalNodeId,
    batch: T,
    phase: Phase,
}

/// Whether the batch has entered: the operator's state.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Due,
    Emitted,
}

impl Phase {
    fn first() -> Self {
        if Runtime::worker_index() == WORKER { Self::Due } else { Self::Emitted }
    }
}

impl<T> Constant<T> {
    fn file(&self, base: &StoragePath, id: Option<&str>) -> Result<StoragePath, StorageError> {
        let id = id.ok_or_else(|| StorageError::NoPersistentId(self.node.to_string()))?;
        Ok(base.clone().join(format!("constant-{id}.dat")))
    }
}

impl<T: Data> Operator for Constant<T> {
    fn name(&self) -> Cow<'static, str> {
        "Constant".into()
    }

    fn init(&mut self, node: &GlobalNodeId) {
        self.node = node.clone();
    }

    fn is_input(&self) -> bool {
        true
    }

    /// A copy of the circuit that fills new views runs it again.
    fn is_deterministic_source(&self) -> bool {
        true
    }

    fn fixedpoint(&self, _: Scope) -> bool {
        self.phase == Phase::Emitted
    }

    fn checkpoint(
        &mut self,
        base: &StoragePath,
        id: Option<&str>,
        files: &mut Vec<Arc<dyn FileCommitter>>,
    ) -> Result<(), dbsp::Error> {
        let emitted = u8::from(self.phase == Phase::Emitted);
        let bytes = to_bytes(&emitted).expect("a number is serialisable");
        files.push(Runtime::storage_backend()?.write(&self.file(base, id)?, bytes)?);
        Ok(())
    }

    fn restore(&mut self, base: &StoragePath, id: Option<&str>) -> Result<(), dbsp::Error> {
        let bytes = Runtime::storage_backend()?.read(&self.file(base, id)?)?;
        let emitted: u8 = dbsp::trace::aligned_deserialize(&bytes);
        self.phase = if emitted == 0 { Phase::Due } else { Phase::Emitted };
        Ok(())
    }

    fn clear_state(&mut self) -> Result<(), dbsp::Error> {
        self.phase = Phase::first();
        Ok(())
    }

    fn swap_state(&mut self, other: &mut Self) -> Result<(), dbsp::Error> {
        std::mem::swap(&mut self.phase, &mut other.phase);
        Ok(())
    }
}

impl<T: Data + Default> SourceOperator<T> for Constant<T> {
    async fn eval(&mut self) -> T {
        match self.phase {
            Phase::Due => {
                self.phase = Phase::Emitted;
                self.batch.clone()
            }
            Phase::Emitted => T::default(),
        }
    }
}
