//! Base tables: where changes enter the circuit.
//!
//! Changes are exact: what is retracted is there. So there is no upsert operator and no look-up on
//! the way in; a table's only state is its integral, by which frames are read, joins on its primary
//! key work and new views are filled. For the last, everything downstream must read the very stream
//! that is integrated: the sharded one.

use std::sync::Arc;

use dbsp::operator::{IndexedZSetHandle, ZSetHandle};
use dbsp::utils::Tup2;
use dbsp::{RootCircuit, ZWeight};
use stillframe_protocol::{Plan, Table};

use super::identity::Identity;
use super::output::{RelationOutput, Snapshot};
use super::publish::publish;
use super::source::{Books, Placement, Source, SourceStream, placed};
use crate::EngineError;
use crate::row::{Codec, Row};

/// Where a table's changes enter, on one host. Any host takes changes of any key.
#[derive(Clone, Debug)]
pub struct TableInput {
    codec: Arc<Codec>,
    key_columns: usize,
    handle: Handle,
}

#[derive(Clone)]
enum Handle {
    Keyed(IndexedZSetHandle<Row, Row>),
    Bag(ZSetHandle<Row>),
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Keyed(_) => "Keyed",
            Self::Bag(_) => "Bag",
        })
    }
}

impl TableInput {
    /// How the table's rows are encoded.
    pub fn codec(&self) -> &Arc<Codec> {
        &self.codec
    }

    /// How many leading columns are the primary key; 0 for a bag.
    pub fn key_columns(&self) -> usize {
        self.key_columns
    }

    /// Puts changes of stored rows into the next step. To be called between transactions only.
    pub fn append(&self, changes: impl IntoIterator<Item = (Row, ZWeight)>) {
        match &self.handle {
            Handle::Keyed(handle) => {
                let cut = |(row, weight): (Row, ZWeight)| {
                    let length = self.codec.prefix_len(row.as_bytes(), self.key_columns);
                    let (key, rest) = row.as_bytes().split_at(length);
                    Tup2(Row::new(key), Tup2(Row::new(rest), weight))
                };
                handle.append(&mut changes.into_iter().map(cut).collect());
            }
            Handle::Bag(handle) => {
                let pair = |(row, weight)| Tup2(row, weight);
                handle.append(&mut changes.into_iter().map(pair).collect());
            }
        }
    }
}

/// A table in the circuit.
pub(crate) struct BuiltTable {
    pub(crate) input: TableInput,
    pub(crate) source: Source,
    pub(crate) output: RelationOutput,
}

/// Adds a table to the circuit.
pub(crate) fn build(
    circuit: &RootCircuit,
    table: &Table,
    identity: &mut Identity,
) -> Result<BuiltTable, EngineError> {
    let codec = Arc::new(Codec::new(Arc::clone(&table.schema))?);
    let key_columns = table.key_columns;
    let columns = table.schema.fields().len();
    if key_columns > columns {
        let message = format!("table {} has a key of {key_columns} of {columns} columns", table.id);
        return Err(EngineError::InvalidPlan(message));
    }
    let fingerprint =
        Plan::Relation { id: table.id, schema: Arc::clone(&table.schema) }.fingerprint();
    let id = identity.of(fingerprint, &format!("table{key_columns}"))?;
    let frame_id = identity.of(fingerprint, &format!("frame{}", table.id))?;
    // dbsp's inputs shard by key, respectively by row, before anything else.
    let (handle, stream, rows) = if key_columns > 0 {
        let (stream, handle) = circuit.add_input_indexed_zset::<Row, Row>();
        let stream = placed(&stream.set_persistent_id(Some(&id)));
        let rows = publish(&stream.accumulate_integrate_trace(), &frame_id, |trace| {
            Snapshot::Keyed(trace.ro_snapshot())
        });
        (
            Handle::Keyed(handle),
            SourceStream::Keyed { stream, key_columns, key_not_null: true },
            rows,
        )
    } else {
        let (stream, handle) = circuit.add_input_zset::<Row>();
        let stream = placed(&stream.set_persistent_id(Some(&id)));
        let rows = publish(&stream.accumulate_integrate_trace(), &frame_id, |trace| {
            Snapshot::Set(trace.ro_snapshot())
        });
        (Handle::Bag(handle), SourceStream::Set(stream), rows)
    };
    let placed_by = if key_columns > 0 { key_columns } else { columns };
    let source = Source {
        stream,
        codec: Arc::clone(&codec),
        placement: Placement::By((0..placed_by).collect()),
        carries_errors: false,
        is_spread: true,
        books: Books::new(),
    };
    let output = RelationOutput::new(Arc::clone(&codec), key_columns, rows, vec![]);
    Ok(BuiltTable { input: TableInput { codec, key_columns, handle }, source, output })
}
