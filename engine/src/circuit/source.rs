//! Streams of stored rows, and where their rows are.

use std::sync::Arc;

use arrow::datatypes::DataType;
use dbsp::typed_batch::{Batch, BatchReader};
use dbsp::{OrdIndexedZSet, OrdZSet, RootCircuit, Stream};

use super::output::ErrorCounts;
use super::publish::Published;
use crate::row::{Codec, Row};

/// Changes of a set of whole rows.
pub(crate) type RowStream = Stream<RootCircuit, OrdZSet<Row>>;
/// Changes of rows that are cut into a key and the rest.
pub(crate) type KeyedStream = Stream<RootCircuit, OrdIndexedZSet<Row, Row>>;

/// A stream of stored rows.
#[derive(Clone)]
pub(crate) struct Source {
    /// The changes.
    pub(crate) stream: SourceStream,
    /// The fields of a row: of a keyed one, those of the key first.
    pub(crate) codec: Arc<Codec>,
    /// Which worker has which row.
    pub(crate) placement: Placement,
    /// Whether the rows are spread over all workers, as far as one can tell: those of tables and
    /// of groups are; a join's are where its key is, and some keys have many rows.
    pub(crate) is_spread: bool,
    /// Whether an entry may be an error in the place of a row.
    pub(crate) carries_errors: bool,
    /// The books of errors of all operators that this comes from.
    pub(crate) books: Books,
}

/// The changes of a [`Source`].
#[derive(Clone)]
pub(crate) enum SourceStream {
    /// Whole rows.
    Set(RowStream),
    /// Rows in two parts, with a unique key. The stream's integral exists anyway.
    Keyed {
        /// The changes.
        stream: KeyedStream,
        /// How many leading fields are the key.
        key_columns: usize,
        /// Whether no field of the key is ever NULL.
        key_not_null: bool,
    },
}

/// Which worker has a row.
///
/// Whatever it is, it depends on the row alone: a row is taken away where it was added. So every
/// worker's part of every stream is a proper bag, and errors cancel where they were raised. Two
/// rules keep it so. An integral is attached to a stream only at the place where the stream's rows
/// are made, because dbsp fills new views by replaying integrals into the streams they belong to.
/// And no stream that anybody else reads is ever sharded: dbsp would then let the others read the
/// sharded one too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// The hash of these fields, put together in this order, says which.
    By(Vec<usize>),
    /// One worker has all rows.
    One,
    /// It follows from how the row came about.
    Derived,
}

/// The books of errors of some operators, by the operators' persistent ids.
pub(crate) type Books = std::collections::BTreeMap<String, Published<ErrorCounts>>;

impl Source {
    pub(crate) fn types(&self) -> Vec<DataType> {
        self.codec.schema().fields().iter().map(|field| field.data_type().clone()).collect()
    }
}

/// Moves a stream's rows to the workers that own their keys. Nobody else may read the stream.
///
/// Whatever integrates rows by key reads such a stream: were it left to dbsp to shard, the name of
/// the integral would depend on who asks first, and that of a second one on who asks next.
pub(crate) fn sharded<B: Batch<Time = ()>>(
    stream: &Stream<RootCircuit, B>,
) -> Stream<RootCircuit, B> {
    placed(&stream.shard())
}

/// Tells dbsp that a stream's rows are on the workers that own their keys.
///
/// dbsp keeps that by the type of the stream: it must be told of the dynamically typed one, which
/// its operators read.
pub(crate) fn placed<B: BatchReader>(stream: &Stream<RootCircuit, B>) -> Stream<RootCircuit, B> {
    stream.inner().mark_sharded();
    stream.clone()
}
