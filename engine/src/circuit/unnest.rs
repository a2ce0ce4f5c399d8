//! A row for each element of lists.

use std::mem::take;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, UInt64Array};
use arrow::compute::take as gather;
use arrow::datatypes::{DataType, Schema};
use dbsp::utils::Tup2;
use dbsp::{OrdZSet, ZWeight};
use stillframe_protocol::{Expression, Fingerprint};

use super::builder::Builder;
use super::linear::{Chunk, Cutter, Emission};
use super::relation::{Relation, schema_of};
use super::source::{Source, SourceStream};
use crate::EngineError;
use crate::row::{Codec, Row};

impl Builder<'_> {
    /// The rows of a relation, each beside every element of its lists.
    pub(super) fn unnest(
        &mut self,
        fingerprint: Fingerprint,
        mut input: Relation,
        lists: &[(Expression, DataType)],
        schema: &Schema,
    ) -> Result<Relation, EngineError> {
        let columns = input.columns.clone();
        let registers = lists.iter().map(|(list, data_type)| input.compute(list, data_type));
        let registers = registers.collect::<Result<Vec<_>, _>>()?;
        let kept: Vec<DataType> = input.column_types();
        let all: Vec<DataType> =
            schema.fields().iter().map(|field| field.data_type().clone()).collect();
        let elements = all.get(kept.len()..).unwrap_or_default().to_vec();
        let is_list = |((_, list), element): (&(Expression, DataType), &DataType)| matches!(list, DataType::List(field) if field.data_type() == element);
        if elements.len() != lists.len()
            || all[..kept.len()] != kept
            || !lists.iter().zip(&elements).all(is_list)
        {
            let message = "unnest returns its input's columns and the elements of lists";
            return Err(EngineError::InvalidPlan(message.to_owned()));
        }
        self.notes.note("stores nothing");
        let emission = Box::new(Unnested {
            cutter: Cutter::new(&input.source.codec, &input.types, &[&columns])?,
            lists: registers,
            codec: Codec::new(Arc::new(schema_of(&elements)))?,
            rows: vec![],
        });
        let id = self.identity.of(fingerprint, "unnest")?;
        let placement = input.placement_of(&columns);
        let is_spread = input.source.is_spread;
        let (stream, books) = self.linear("Unnest", &input, emission, &id)?;
        let source = Source {
            stream: SourceStream::Set(stream),
            codec: Arc::new(Codec::new(Arc::new(schema_of(&all)))?),
            placement,
            is_spread,
            carries_errors: false,
            books,
        };
        Ok(Relation::stored(fingerprint, source, (0..all.len()).collect()))
    }
}

/// Rows of some registers and the elements of lists.
struct Unnested {
    cutter: Cutter,
    /// Registers.
    lists: Vec<usize>,
    /// Of the elements.
    codec: Codec,
    rows: Vec<Tup2<Row, ZWeight>>,
}

impl Emission<OrdZSet<Row>> for Unnested {
    fn push(&mut self, chunk: &Chunk<'_>) {
        let weights = chunk.weights();
        let lists: Vec<_> =
            self.lists.iter().map(|list| chunk.computed(*list).as_list::<i32>()).collect();
        let length = |row: usize| {
            let lengths = lists.iter().map(|list| match list.is_null(row) {
                true => 0,
                false => list.value_length(row) as usize,
            });
            lengths.max().unwrap_or(0)
        };
        let lengths: Vec<usize> = (0..weights.len()).map(length).collect();
        let elements: Vec<ArrayRef> = lists
            .iter()
            .map(|list| {
                let places = lengths.iter().enumerate().flat_map(|(row, length)| {
                    let own = if list.is_null(row) { 0 } else { list.value_length(row) as usize };
                    let first = list.value_offsets()[row] as usize;
                    (0..*length).map(move |place| (place < own).then(|| (first + place) as u64))
                });
                gather(list.values(), &UInt64Array::from_iter(places), None)
                    .expect("the places are those of elements")
            })
            .collect();
        let encoded = self.codec.encode(&elements, lengths.iter().sum());
        let encoded = encoded.expect("elements have the types of their lists");
        let rows = &mut self.rows;
        let mut encoded = encoded.iter();
        self.cutter.for_each(chunk, |number, fields| {
            let kept = fields.row(0);
            for element in encoded.by_ref().take(lengths[number]) {
                let row = Row::concatenate([kept.as_bytes(), element.as_bytes()]);
                rows.push(Tup2(row, weights[number]));
            }
        });
    }

    fn finish(&mut self) -> OrdZSet<Row> {
        OrdZSet::from_keys((), take(&mut self.rows))
    }
}
