//! GROUP BY.
//!
//! Counts, sums and averages are linear: each row has a weight, and a group's weight says all there
//! is to say ([`layout`], [`finish`]). One pass over a batch makes the weights of its groups; no
//! index of rows by group is stored. The least and the greatest need the group's values in order
//! ([`extremes`]): one index per argument. What a plan wants of one kind and another is put together
//! by a join on the group.
//!
//! Without group columns there is one group, that of the empty key. It has a row before there is
//! any data: a constant gives it a weight, and a NULL to choose the least of.

mod extremes;
mod finish;
mod layout;
mod weigh;

use std::sync::Arc;

use arrow::array::new_null_array;
use arrow::datatypes::{DataType, Schema};
use dbsp::circuit::WithClock;
use dbsp::dynamic::{DynData, DynUnit, DynWeight};
use dbsp::operator::Sum;
use dbsp::operator::dynamic::aggregate::{DynAggregatorImpl, IncAggregateFactories};
use dbsp::typed_batch::{Batch, DynOrdIndexedZSet, DynOrdWSet, OrdWSet};
use dbsp::utils::Tup2;
use dbsp::{Circuit, OrdIndexedZSet, RootCircuit, Stream};
use stillframe_protocol::{Aggregate, AggregateFunction, Fingerprint};

use super::builder::Builder;
use super::constant::constant;
use super::linear::KeyedRows;
use super::relation::{Relation, schema_of};
use super::source::{Books, KeyedStream, Placement, Source, SourceStream, placed, sharded};
use super::streams::role_of;
use crate::EngineError;
use crate::row::{Codec, Row};
use crate::weight::{Accumulator, Cells, Sparse};

use extremes::Extremes;
use finish::Finish;
use layout::{Layout, argument};
pub(super) use weigh::Never;
use weigh::{Weigh, WeightOfGroup};

/// What is aggregated.
pub(super) struct Grouping<'a> {
    /// Of the whole plan.
    pub(super) fingerprint: Fingerprint,
    /// The rows.
    pub(super) input: &'a Relation,
    /// The input's columns to group by.
    pub(super) groups: &'a [usize],
    /// What is computed of each group.
    pub(super) aggregates: &'a [Aggregate],
    /// The columns that come out.
    pub(super) schema: &'a Schema,
}

/// One of the streams that are put together: groups with the values of some aggregates.
struct Part {
    stream: KeyedStream,
    /// The types of the values.
    fields: Vec<DataType>,
    /// Which of the plan's aggregates has which of the values.
    values: Vec<(usize, usize)>,
    carries_errors: bool,
}

impl Grouping<'_> {
    fn key(&self) -> Result<Vec<usize>, EngineError> {
        self.groups.iter().map(|column| self.input.column(*column)).collect()
    }

    fn result_type(&self, aggregate: usize) -> &DataType {
        self.schema.field(self.groups.len() + aggregate).data_type()
    }

    /// The aggregates that need a group's values in order, or the others.
    fn places(&self, ordered: bool) -> Vec<usize> {
        let is_ordered = |aggregate: &Aggregate| {
            matches!(aggregate.function, AggregateFunction::Min | AggregateFunction::Max)
        };
        (0..self.aggregates.len())
            .filter(|place| is_ordered(&self.aggregates[*place]) == ordered)
            .collect()
    }
}

impl Builder<'_> {
    /// Builds an aggregation.
    pub(super) fn aggregate(&mut self, grouping: &Grouping<'_>) -> Result<Relation, EngineError> {
        let columns = grouping.groups.len() + grouping.aggregates.len();
        if grouping.schema.fields().len() != columns {
            let message = "an aggregation has a column per group and aggregate".to_owned();
            return Err(EngineError::InvalidPlan(message));
        }
        let key = grouping.key()?;
        let mut books = Books::new();
        let mut parts = vec![];
        let linear = grouping.places(false);
        let ordered = grouping.places(true);
        if !linear.is_empty() || ordered.is_empty() {
            parts.push(self.linear_part(grouping, &key, linear, &mut books)?);
        }
        let mut columns: Vec<usize> = vec![];
        for place in &ordered {
            let (column, _) = argument(grouping.input, &grouping.aggregates[*place])?;
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        for column in columns {
            let same = |place: &usize| grouping.aggregates[*place].argument == Some(column);
            let places = ordered.iter().copied().filter(same).collect();
            parts.push(self.extremes_part(grouping, &key, column, places, &mut books)?);
        }
        let whole = self.combine(grouping, parts)?;

        let group_types = key.iter().map(|register| grouping.input.types[*register].clone());
        let fields: Vec<DataType> = group_types.chain(whole.fields).collect();
        let place_of = |aggregate: usize| {
            let value = whole.values.iter().find(|(of, _)| *of == aggregate);
            key.len() + value.expect("every aggregate is in a part").1
        };
        let columns = (0..key.len()).chain((0..grouping.aggregates.len()).map(place_of)).collect();
        let source = Source {
            stream: SourceStream::Keyed {
                stream: whole.stream,
                key_columns: key.len(),
                key_not_null: false,
            },
            codec: Arc::new(Codec::new(Arc::new(schema_of(&fields)))?),
            is_spread: true,
            placement: Placement::By((0..key.len()).collect()),
            carries_errors: whole.carries_errors,
            books,
        };
        Ok(Relation::stored(grouping.fingerprint, source, columns))
    }

    /// All counts, sums and averages, by a weight that has room for them.
    fn linear_part(
        &mut self,
        grouping: &Grouping<'_>,
        key: &[usize],
        places: Vec<usize>,
        books: &mut Books,
    ) -> Result<Part, EngineError> {
        let results = places.iter().map(|place| grouping.result_type(*place)).collect::<Vec<_>>();
        let fields = results.iter().map(|data_type| (*data_type).clone()).collect();
        let aggregates = places.iter().map(|place| &grouping.aggregates[*place]);
        let layout = Layout::new(grouping.input, aggregates.zip(results), key.is_empty())?;
        let carries_errors = layout.can_fail();
        let travel = if grouping.input.is_placed_by(key) { "" } else { ", moved to its worker" };
        self.notes.note(format!(
            "stores one weight of {} numbers per group{travel}, a change costs a seek per group",
            layout.positions()
        ));
        let layout = Arc::new(layout);
        let stream = match layout.positions() {
            1 => self.weighed::<Cells<1>>(grouping, key, layout, books),
            2 => self.weighed::<Cells<2>>(grouping, key, layout, books),
            3..=4 => self.weighed::<Cells<4>>(grouping, key, layout, books),
            5..=8 => self.weighed::<Cells<8>>(grouping, key, layout, books),
            _ => self.weighed::<Sparse>(grouping, key, layout, books),
        }?;
        let values = places.into_iter().enumerate().map(|(value, place)| (place, value)).collect();
        Ok(Part { stream, fields, values, carries_errors })
    }

    fn weighed<W: Accumulator>(
        &mut self,
        grouping: &Grouping<'_>,
        key: &[usize],
        layout: Arc<Layout>,
        books: &mut Books,
    ) -> Result<KeyedStream, EngineError> {
        let fingerprint = grouping.fingerprint;
        let id = self.identity.of(fingerprint, "weigh")?;
        let weigh = Box::new(Weigh::<W>::new(grouping.input, key, Arc::clone(&layout))?);
        let (mut weighed, book) = self.linear("Weigh", grouping.input, weigh, &id)?;
        books.extend(book);
        if key.is_empty() {
            let mut presence = W::zero();
            layout.mark_present(&mut presence);
            let batch: OrdWSet<Row, W, DynWeight> =
                OrdWSet::from_keys((), vec![Tup2(Row::default(), presence)]);
            let id = self.identity.of(fingerprint, "present")?;
            let present = constant(self.circuit, &id, batch);
            // Not dbsp's `plus`, which takes a sharded stream where there is one.
            let id = self.identity.of(fingerprint, "weights")?;
            weighed = self
                .circuit
                .add_nary_operator(Sum::new(), [&weighed, &present])
                .set_persistent_id(Some(&id));
        }
        let weighed = placed_or_sharded(&weighed, grouping.input, key);
        // Spelled out because `Stream::aggregate_generic` has a bound that no type meets.
        type Weights = DynOrdWSet<DynData, DynWeight>;
        type Groups = DynOrdIndexedZSet<DynData, DynData>;
        type Time = <RootCircuit as WithClock>::Time;
        let factories: IncAggregateFactories<Weights, Groups, Time> =
            IncAggregateFactories::new::<Row, (), W, Row>();
        let aggregator =
            DynAggregatorImpl::<DynUnit, (), Time, DynWeight, W, _, DynData, DynData>::new(
                WeightOfGroup::<W>::new(Finish::new(layout)),
            );
        let id = self.identity.of(fingerprint, "linear")?;
        let weighed: Stream<RootCircuit, Weights> = weighed.inner();
        let groups: KeyedStream =
            weighed.dyn_aggregate_generic(Some(&id), &factories, &aggregator).typed();
        Ok(groups.set_persistent_id(Some(&id)))
    }

    /// The least and the greatest of one column. Plans that group the same input alike share it.
    fn extremes_part(
        &mut self,
        grouping: &Grouping<'_>,
        key: &[usize],
        column: usize,
        places: Vec<usize>,
        books: &mut Books,
    ) -> Result<Part, EngineError> {
        let argument = grouping.input.column(column)?;
        let data_type = &grouping.input.types[argument];
        for place in &places {
            if grouping.result_type(*place) != data_type {
                let message = format!("the least of {data_type} is of another type");
                return Err(EngineError::InvalidPlan(message));
            }
        }
        self.notes.note(format!(
            "stores the values of column {column} by group, a change costs a seek per group"
        ));
        let (index, book) = self.value_index(grouping, key, column, argument)?;
        books.extend(book);
        let function = |place: usize| grouping.aggregates[place].function;
        let wants = |wanted| places.iter().any(|place| function(*place) == wanted);
        let extremes = Extremes {
            least: wants(AggregateFunction::Min),
            greatest: wants(AggregateFunction::Max),
        };
        let role = format!("{extremes}{}-of-{column}", role_of(grouping.groups));
        let input = grouping.input.fingerprint;
        let (stream, _) = self.keyed(input, &role, |_, id| {
            let stream = index.aggregate_persistent(Some(id), extremes);
            Ok((stream.set_persistent_id(Some(id)), Books::new()))
        })?;
        let value = |place: usize| match function(place) {
            AggregateFunction::Max if extremes.least => (place, 1),
            _ => (place, 0),
        };
        let fields =
            vec![data_type.clone(); usize::from(extremes.least) + usize::from(extremes.greatest)];
        let values = places.into_iter().map(value).collect();
        Ok(Part { stream, fields, values, carries_errors: false })
    }

    /// The values of a column by group.
    fn value_index(
        &mut self,
        grouping: &Grouping<'_>,
        key: &[usize],
        column: usize,
        argument: usize,
    ) -> Result<(KeyedStream, Books), EngineError> {
        let input = grouping.input;
        let role = format!("values{}-of-{column}", role_of(grouping.groups));
        self.keyed(input.fingerprint, &role, |builder, id| {
            let rows = Box::new(KeyedRows::new(input, key, &[argument], false)?);
            let (mut index, books) = builder.linear("Index", input, rows, id)?;
            if key.is_empty() {
                let null = null_field(&input.types[argument])?;
                let batch: OrdIndexedZSet<Row, Row> =
                    OrdIndexedZSet::from_tuples((), vec![Tup2(Tup2(Row::default(), null), 1)]);
                let id = builder.identity.of(input.fingerprint, &format!("null-{column}"))?;
                let present = constant(builder.circuit, &id, batch);
                let id = builder.identity.of(input.fingerprint, &format!("present-{column}"))?;
                index = builder
                    .circuit
                    .add_nary_operator(Sum::new(), [&index, &present])
                    .set_persistent_id(Some(&id));
            }
            Ok((placed_or_sharded(&index, input, key), books))
        })
    }

    /// Puts the values of all parts side by side. All have the same groups.
    fn combine(&mut self, grouping: &Grouping<'_>, parts: Vec<Part>) -> Result<Part, EngineError> {
        let mut parts = parts.into_iter();
        let mut whole = parts.next().expect("an aggregation has at least one part");
        for (number, part) in parts.enumerate() {
            self.notes.note("joins the groups' results");
            let id = self.identity.of(grouping.fingerprint, &format!("combine-{number}"))?;
            let joined = whole.stream.join_index(&part.stream, |group, left, right| {
                let values = Row::concatenate([left.as_bytes(), right.as_bytes()]);
                Some((group.clone(), values))
            });
            // The join copies its key, so that each group stays where it is.
            whole.stream = placed(&joined.set_persistent_id(Some(&id)));
            let first = whole.fields.len();
            whole.fields.extend(part.fields);
            whole.values.extend(part.values.iter().map(|(place, value)| (*place, first + value)));
        }
        Ok(whole)
    }
}

/// A stream by group on the workers that own the groups. Where groups are always present, what
/// makes them so comes from another worker.
pub(super) fn placed_or_sharded<B: Batch<Time = ()>>(
    stream: &Stream<RootCircuit, B>,
    input: &Relation,
    key: &[usize],
) -> Stream<RootCircuit, B> {
    if input.is_placed_by(key) && !key.is_empty() { placed(stream) } else { sharded(stream) }
}

/// NULL of a type, encoded.
fn null_field(data_type: &DataType) -> Result<Row, EngineError> {
    let codec = Codec::new(Arc::new(schema_of(std::slice::from_ref(data_type))))?;
    let mut rows = codec.encode(&[new_null_array(data_type, 1)], 1)?;
    Ok(rows.pop().expect("one row was encoded"))
}
