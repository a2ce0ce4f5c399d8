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
mod union;
mod unnest;
mod values;

use std::collections::HashMap;

use dbsp::RootCircuit;
use stillframe_protocol::{Program, RelationId};

use builder::Builder;

pub use explain::explain;
pub use output::{RelationOutput, ShardSnapshot, Snapshot};
pub use table::TableInput;

use crate::{EngineError, Functions};

/// A host's handles on a running circuit.
#[derive(Clone, Debug, Default)]
pub struct Circuit {
    /// Where changes of each table enter.
    pub inputs: HashMap<RelationId, TableInput>,
    /// What is read of each table and view.
    pub outputs: HashMap<RelationId, RelationOutput>,
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
) -> Result<Circuit, EngineError> {
    let mut builder = Builder::new(circuit, functions);
    let mut built = Circuit::default();
    for table in &program.tables {
        let (input, output) = builder.table(table)?;
        built.inputs.insert(table.id, input);
        built.outputs.insert(table.id, output);
    }
    for view in &program.views {
        built.outputs.insert(view.id, builder.view(view)?);
    }
    Ok(built)
}

#[cfg(test)]
mod tests;
