//! Whether a program can be built, without running it.

use std::sync::Arc;
use std::thread;

use dbsp::Runtime;
use stillframe_protocol::{HostError, Program};

use crate::circuit::{Clock, construct};
use crate::{EngineError, Functions};

/// Builds a program for one worker and throws it away. Blocks for some milliseconds.
///
/// What passes here is built by every host alike.
///
/// # Errors
///
/// [`HostError::Unsupported`] and [`HostError::Invalid`] say what is wrong with the program.
pub fn check(program: &Arc<Program>, functions: &Functions) -> Result<(), HostError> {
    let (program, functions) = (Arc::clone(program), functions.clone());
    let build = move || -> Result<(), EngineError> {
        // What is wrong comes out beside the circuit: dbsp would make text of it.
        let build = move |circuit: &mut _| {
            Ok(construct(circuit, &program, &functions, &Clock::default()).map(drop))
        };
        let (handle, built) = Runtime::init_circuit(1, build)?;
        drop(handle);
        built
    };
    // dbsp must not be dropped inside of tokio, where the caller may be.
    match thread::spawn(build).join() {
        Ok(built) => built.map_err(HostError::from),
        Err(_) => Err(HostError::Invalid("the program breaks whoever builds it".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion::execution::SessionStateBuilder;
    use stillframe_protocol::{Plan, RelationId, Table, View};

    #[test]
    fn a_program_is_built_or_refused() {
        let registry = SessionStateBuilder::new().with_default_features().build();
        let functions = Functions::new(Arc::new(registry));
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int32, true)]));
        let id = RelationId(1);
        let table = Table { id, schema: Arc::clone(&schema), key_columns: 1 };
        let view = |reads, schema| {
            let input = Arc::new(Plan::Relation { id: RelationId(reads), schema });
            View { id: RelationId(2), plan: Arc::new(Plan::Distinct { input }) }
        };
        let good =
            Program { tables: vec![table.clone()], views: vec![view(1, Arc::clone(&schema))] };
        check(&Arc::new(good), &functions).unwrap();

        let bad = Program { tables: vec![table], views: vec![view(3, schema)] };
        assert!(matches!(check(&Arc::new(bad), &functions), Err(HostError::Invalid(_))));
    }
}
