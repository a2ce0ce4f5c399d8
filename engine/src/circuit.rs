//! Programs into circuits.
//!
//! A worker of every host builds the same operators in the same order from the same [`Program`]:
//! nothing here may depend on the worker or iterate a hash map. Nothing here knows about steps,
//! frames or the network.

mod identity;
mod output;
mod publish;
#[allow(dead_code, reason = "for views")]
mod table;

use std::collections::HashMap;

use dbsp::RootCircuit;
use stillframe_protocol::{Program, RelationId};

use identity::Identity;

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
    _functions: &Functions,
) -> Result<Circuit, EngineError> {
    let mut identity = Identity::default();
    let mut built = Circuit::default();
    for table in &program.tables {
        let table_id = table.id;
        let table = table::build(circuit, table, &mut identity)?;
        built.inputs.insert(table_id, table.input);
        built.outputs.insert(table_id, table.output);
    }
    if let Some(view) = program.views.first() {
        return Err(EngineError::InvalidPlan(format!("view {} cannot be built", view.id)));
    }
    Ok(built)
}

#[cfg(test)]
mod tests;
