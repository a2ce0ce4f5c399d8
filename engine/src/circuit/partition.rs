//! What needs all rows of a partition: aggregates that no weight of a group can tell, window
//! functions, the first rows in an order.
//!
//! The rows are stored by the partition's key. When a step changes some rows of a partition, all of
//! its rows are gathered ([`gather`]), and what they come to is computed anew with the kernels that
//! a query has for it ([`aggregates`], [`windows`], [`limit`]): a view and its query can't disagree.
//! So a change costs as much as its partition is large. But a limited number of first rows is read out
//! of an index that is in their order ([`sorted`]).
//!
//! dbsp's aggregation knows which partitions a step touches, and what each came to before; it wants
//! one value for each. Where a partition comes to many rows that value is a sheet of them
//! ([`sheet`]), and an operator behind takes the rows that differ out of the old sheet and the new
//! one ([`unfold`]).

mod aggregates;
mod gather;
mod limit;
mod order;
mod sheet;
mod sorted;
mod unfold;
mod windows;

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use dbsp::operator::Sum;
use dbsp::utils::Tup2;
use dbsp::{Circuit, OrdIndexedZSet};
use stillframe_protocol::{Computation, Fingerprint, SortKey};

use super::aggregate::placed_or_sharded;
use super::builder::Builder;
use super::constant::constant;
use super::linear::{ErrorBook, KeyedRows};
use super::relation::{Relation, schema_of};
use super::source::{Books, KeyedStream, Placement, Source, SourceStream, placed};
use super::streams::role_of;
use crate::EngineError;
use crate::row::{Codec, Row};

use aggregates::Aggregates;
use gather::{Gather, Kernel, PRESENT};
use limit::FirstRows;
use sorted::{SortedLimit, SortedRows};
use unfold::Unfold;
use windows::Windows;

/// What is computed of which partitions.
pub(super) struct Partitioning<'a> {
    /// Of the whole plan.
    pub(super) fingerprint: Fingerprint,
    /// The rows.
    pub(super) input: &'a Relation,
    /// The input's columns that make a partition.
    pub(super) keys: &'a [usize],
    /// What a partition comes to.
    pub(super) computation: &'a Computation,
    /// The columns that come out.
    pub(super) schema: &'a Schema,
}

/// The columns of an input that a partition's index stores beside the key.
struct Rest {
    /// The columns.
    columns: Vec<usize>,
    /// Their registers.
    registers: Vec<usize>,
    types: Vec<DataType>,
}

impl Partitioning<'_> {
    fn key(&self) -> Result<Vec<usize>, EngineError> {
        self.keys.iter().map(|column| self.input.column(*column)).collect()
    }

    /// What the computation reads, sorted.
    fn read(&self) -> Vec<usize> {
        let mut read = vec![];
        self.computation.columns(&mut |column| read.push(column));
        read.sort_unstable();
        read.dedup();
        read
    }

    /// What is computed can't see the key, so what it reads is stored, and what comes out again.
    fn rest(&self) -> Result<Rest, EngineError> {
        let mut columns = self.read();
        if !matches!(self.computation, Computation::Aggregates(_)) {
            let passed = 0..self.input.columns.len();
            columns.extend(passed.filter(|column| !self.keys.contains(column)));
            columns.sort_unstable();
            columns.dedup();
        }
        let mut rest = Rest { columns: vec![], registers: vec![], types: vec![] };
        for column in columns {
            let register = self.input.column(column)?;
            rest.columns.push(column);
            rest.registers.push(register);
            rest.types.push(self.input.types[register].clone());
        }
        Ok(rest)
    }

    /// The limit and its order, if an index can be in that order.
    fn sorted(&self) -> Option<(SortedLimit, &[SortKey])> {
        match self.computation {
            Computation::Limit(limit) => Some((SortedLimit::of(limit)?, &limit.order)),
            _ => None,
        }
    }

    /// The types of the columns that are computed.
    fn results(&self, passed: usize) -> Result<Vec<DataType>, EngineError> {
        let fields = self.schema.fields();
        let computed = match self.computation {
            Computation::Aggregates(calls) => calls.len(),
            Computation::Windows(calls) => calls.len(),
            Computation::Limit(_) => 0,
        };
        if fields.len() != passed + computed {
            let message = "a partition's schema has other columns than come out".to_owned();
            return Err(EngineError::InvalidPlan(message));
        }
        Ok(fields[passed..].iter().map(|field| field.data_type().clone()).collect())
    }
}

impl Builder<'_> {
    /// Builds what is computed of partitions.
    pub(super) fn partition(
        &mut self,
        partitioning: &Partitioning<'_>,
    ) -> Result<Relation, EngineError> {
        let key = partitioning.key()?;
        let rest = partitioning.rest()?;
        let key_types: Vec<DataType> =
            key.iter().map(|register| partitioning.input.types[*register].clone()).collect();
        let is_aggregate = matches!(partitioning.computation, Computation::Aggregates(_));
        let passed = if is_aggregate { key.len() } else { partitioning.input.columns.len() };
        let results = partitioning.results(passed)?;
        let rows = if key.is_empty() { "all rows" } else { "its rows by partition" };
        let travel = match partitioning.input.is_placed_by(&key) {
            _ if key.is_empty() => " on one worker",
            true => "",
            false => ", moved to its worker",
        };
        let id = self.identity.of(partitioning.fingerprint, "partition")?;
        let (stream, mut books): (KeyedStream, Books) = match partitioning.sorted() {
            Some((limit, order)) => {
                self.notes.note(format!(
                    "stores {rows} in order{travel}, and the first of each partition; a change \
                     reads those"
                ));
                let (index, books) = self.sorted_index(partitioning, &key, &rest, order)?;
                (index.aggregate_persistent(Some(&id), limit), books)
            }
            None => {
                self.notes.note(format!(
                    "stores {rows}{travel}, and what each partition comes to; a change computes \
                     its whole partition anew"
                ));
                let gather = self.gather(partitioning, &rest, &results)?;
                let (index, books) = self.partition_index(partitioning, &key, &rest)?;
                (index.aggregate_persistent(Some(&id), gather), books)
            }
        };
        let stream = placed(&stream.set_persistent_id(Some(&id)));

        let placement = Placement::By((0..key.len()).collect());
        let is_spread = !key.is_empty();
        if is_aggregate {
            let fields: Vec<DataType> = key_types.into_iter().chain(results).collect();
            let columns = (0..fields.len()).collect();
            let source = Source {
                stream: SourceStream::Keyed { stream, key_columns: key.len(), key_not_null: false },
                codec: Arc::new(Codec::new(Arc::new(schema_of(&fields)))?),
                placement,
                is_spread,
                carries_errors: true,
                books,
            };
            return Ok(Relation::stored(partitioning.fingerprint, source, columns));
        }

        let id = self.identity.of(partitioning.fingerprint, "unfold")?;
        let (book, published) = ErrorBook::new();
        books.insert(id.clone(), published);
        let stream = self.circuit.add_unary_operator(Unfold::new(book), &stream);
        let stream = stream.set_persistent_id(Some(&id));
        let place_of = |column: usize| {
            let in_key = partitioning.keys.iter().position(|known| *known == column);
            in_key.unwrap_or_else(|| {
                let place = rest.columns.iter().position(|known| *known == column);
                key.len() + place.expect("a column is in the key or in the rest")
            })
        };
        let first_result = key.len() + rest.columns.len();
        let computed = (0..results.len()).map(|place| first_result + place);
        let columns = (0..passed).map(place_of).chain(computed).collect();
        let fields: Vec<DataType> =
            key_types.into_iter().chain(rest.types).chain(results).collect();
        let source = Source {
            stream: SourceStream::Set(stream),
            codec: Arc::new(Codec::new(Arc::new(schema_of(&fields)))?),
            placement,
            is_spread,
            carries_errors: false,
            books,
        };
        Ok(Relation::stored(partitioning.fingerprint, source, columns))
    }

    /// What computes a partition of its rows.
    fn gather(
        &self,
        partitioning: &Partitioning<'_>,
        rest: &Rest,
        results: &[DataType],
    ) -> Result<Gather, EngineError> {
        let read = partitioning.read();
        let place = |column: usize| {
            rest.columns.binary_search(&column).expect("what is read is stored, in order")
        };
        let decoded: Vec<usize> = read.iter().map(|column| place(*column)).collect();
        let types: Vec<DataType> = decoded.iter().map(|place| rest.types[*place].clone()).collect();
        let schema = Arc::new(schema_of(&types));
        let scope = Scope { read: &read, schema: &schema, functions: self.functions };
        let kernel = match partitioning.computation {
            Computation::Aggregates(calls) => {
                Kernel::Aggregates(Aggregates::compile(calls, &scope, results)?)
            }
            Computation::Windows(calls) => {
                Kernel::Windows(Windows::compile(calls, &scope, results)?)
            }
            Computation::Limit(limit) => Kernel::Limit(FirstRows::compile(limit, &scope)?),
        };
        let codec = Codec::new(Arc::new(schema_of(&rest.types)))?;
        Ok(Gather::new(codec, decoded, schema, kernel))
    }

    /// The rows by partition, each partition in order. Limits of the same rows in the same order
    /// share it.
    fn sorted_index(
        &mut self,
        partitioning: &Partitioning<'_>,
        key: &[usize],
        rest: &Rest,
        order: &[SortKey],
    ) -> Result<(KeyedStream, Books), EngineError> {
        let input = partitioning.input;
        let by: String = order.iter().map(sort_key_name).collect();
        let keys = role_of(partitioning.keys);
        let role = format!("sorted-partition{keys}-by{by}-of{}", role_of(&rest.columns));
        self.keyed(input.fingerprint, &role, |builder, id| {
            let rows = Box::new(SortedRows::new(input, key, &rest.registers, order)?);
            let (index, books) = builder.linear("Index", input, rows, id)?;
            Ok((placed_or_sharded(&index, input, key), books))
        })
    }

    /// The rows by partition. Plans that partition the same input alike share it.
    fn partition_index(
        &mut self,
        partitioning: &Partitioning<'_>,
        key: &[usize],
        rest: &Rest,
    ) -> Result<(KeyedStream, Books), EngineError> {
        let input = partitioning.input;
        // Without a key an aggregate has a row before there is any data.
        let is_present =
            key.is_empty() && matches!(partitioning.computation, Computation::Aggregates(_));
        let kind = if is_present { "present-partition" } else { "partition" };
        let role = format!("{kind}{}-of{}", role_of(partitioning.keys), role_of(&rest.columns));
        self.keyed(input.fingerprint, &role, |builder, id| {
            let rows = Box::new(KeyedRows::new(input, key, &rest.registers, &[])?);
            let (mut index, books) = builder.linear("Index", input, rows, id)?;
            if is_present {
                let present = Tup2(Tup2(Row::default(), Row::new(PRESENT)), 1);
                let batch: OrdIndexedZSet<Row, Row> =
                    OrdIndexedZSet::from_tuples((), vec![present]);
                let of = |what| format!("{what}-of{}", role_of(&rest.columns));
                let id = builder.identity.of(input.fingerprint, &of("present"))?;
                let present = constant(builder.circuit, &id, batch);
                let id = builder.identity.of(input.fingerprint, &of("rows-or-present"))?;
                index = builder
                    .circuit
                    .add_nary_operator(Sum::new(), [&index, &present])
                    .set_persistent_id(Some(&id));
            }
            Ok((placed_or_sharded(&index, input, key), books))
        })
    }
}

fn sort_key_name(key: &SortKey) -> String {
    let direction = if key.descending { "d" } else { "a" };
    let nulls = if key.nulls_first { "f" } else { "l" };
    format!("-{}{direction}{nulls}", key.column)
}

/// What expressions over a partition may name.
struct Scope<'a> {
    /// The input's columns that are read, sorted; their places here are those in `schema`.
    read: &'a [usize],
    schema: &'a Arc<Schema>,
    functions: &'a crate::Functions,
}

impl Scope<'_> {
    fn place(&self, column: usize) -> usize {
        self.read.binary_search(&column).expect("every column that is read was collected")
    }
}
