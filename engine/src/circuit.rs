//! Programs into circuits.
//!
//! A worker of every host builds the same operators in the same order from the same [`Program`]:
//! nothing here may depend on the worker or iterate a hash map. Nothing here knows about steps,
//! frames or the network.

mod aggregate;
mod builder;
mod constant;
mod distinct;
mod error_entry;
mod explain;
mod identity;
mod join;
mod keep;
mod linear;
mod output;
mod partition;
mod publish;
mod recursion;
mod relation;
mod semijoin;
mod source;
mod streams;
mod table;
mod temporal;
mod union;
mod unnest;
mod values;

use std::collections::HashMap;

use dbsp::RootCircuit;
use stillframe_protocol::{Program, RelationId};

use builder::Builder;
use publish::Published;

pub use explain::explain;
pub use output::{RelationOutput, ShardSnapshot, Snapshot};
pub use table::TableInput;
pub use temporal::Clock;

use crate::{EngineError, Functions};

/// A host's handles on a running circuit.
#[derive(Clone, Debug, Default)]
pub struct Circuit {
    /// Where changes of each table enter.
    pub inputs: HashMap<RelationId, TableInput>,
    /// What is read of each table and view.
    pub outputs: HashMap<RelationId, RelationOutput>,
    dues: Vec<Published<Option<i64>>>,
}

impl Circuit {
    /// The first moment at which the clock alone changes what one of the host's workers has.
    pub(crate) fn due_us(&self, workers: usize) -> Option<i64> {
        let due = |worker| self.dues.iter().filter_map(move |due| due.get(worker).flatten()).min();
        (0..workers).filter_map(due).min()
    }
}

/// Builds what a program computes. To be called by each worker of each host with the same program.
///
/// # Errors
///
/// [`EngineError::UnsupportedType`] and [`EngineError::InvalidPlan`] for programs that can't be
/// built; the same on every worker.
pub fn construct(
    circuit: &mut RootCircuit,
    program: &Program,
    functions: &Functions,
    clock: &Clock,
) -> Result<Circuit, EngineError> {
    let mut builder = Builder::new(circuit, functions, clock);
    let mut built = Circuit::default();
    for table in &program.tables {
        let (input, output) = builder.table(table)?;
        built.inputs.insert(table.id, input);
        built.outputs.insert(table.id, output);
    }
    for view in &program.views {
        built.outputs.insert(view.id, builder.view(view)?);
    }
    built.dues = builder.dues;
    Ok(built)
}

#[cfg(test)]
mod tests;
