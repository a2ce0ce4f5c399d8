//! Rows that come and go by the clock.
//!
//! Every row says between which moments it is there. Those that are to come, and those that are
//! there and are to go, are kept by that moment; when a step's clock has passed it they come or go,
//! whether or not the step changes anything else. The clock of a step is part of its command, so
//! that all hosts, and whoever replays it, see the same. A row whose time is over is forgotten.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::mem::take;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Int64Type};
use dbsp::circuit::operator_traits::{Operator, UnaryOperator};
use dbsp::circuit::{GlobalNodeId, Scope};
use dbsp::storage::backend::{StorageError, StoragePath};
use dbsp::storage::buffer_cache::FBuf;
use dbsp::utils::Tup2;
use dbsp::{Circuit, OrdIndexedZSet, OrdZSet, Runtime, ZWeight};
use feldera_storage::FileCommitter;
use stillframe_protocol::{Fingerprint, Moment};

use super::builder::Builder;
use super::linear::{Changes, KeyedRows};
use super::publish::Published;
use super::relation::{Relation, schema_of};
use super::source::{Source, SourceStream};
use crate::EngineError;
use crate::row::{Codec, Row};

/// What a step's clock shows, in microseconds since 1970-01-01 UTC. It never goes back.
#[derive(Clone, Debug, Default)]
pub struct Clock(Arc<AtomicI64>);

impl Clock {
    /// Sets it for the next step.
    pub fn set(&self, now_us: i64) {
        self.0.store(now_us, Ordering::Release);
    }

    fn now_us(&self) -> i64 {
        self.0.load(Ordering::Acquire)
    }
}

/// A temporal filter that is being built.
pub(super) struct Temporal<'a> {
    pub(super) fingerprint: Fingerprint,
    pub(super) input: Relation,
    pub(super) from: &'a [Moment],
    pub(super) until: &'a [Moment],
}

impl Builder<'_> {
    /// Builds a temporal filter.
    pub(super) fn temporal(&mut self, temporal: Temporal<'_>) -> Result<Relation, EngineError> {
        let Temporal { fingerprint, mut input, from, until } = temporal;
        let columns = input.columns.clone();
        let moments: Vec<&Moment> = from.iter().chain(until).collect();
        let key = moments.iter().map(|moment| input.compute(&moment.expression, &DataType::Int64));
        let key = key.collect::<Result<Vec<_>, _>>()?;
        self.notes.note(
            "stores the rows that are to come or to go, by when; a change costs a row, and so does \
             the clock when it passes one",
        );
        let emission = Box::new(KeyedRows::new(&input, &key, &columns, &key)?);
        let id = self.identity.of(fingerprint, "moments")?;
        let (stream, books) = self.linear("Moments", &input, emission, &id)?;
        let due = Published::shared();
        self.dues.push(due.clone());
        let operator = Pass {
            node: GlobalNodeId::root(),
            codec: Codec::new(Arc::new(schema_of(&vec![DataType::Int64; key.len()])))?,
            moments: moments.into_iter().cloned().collect(),
            from: from.len(),
            clock: self.clock.clone(),
            due,
            timetable: Timetable::default(),
        };
        let id = self.identity.of(fingerprint, "temporal")?;
        let stream = self.circuit.add_unary_operator(operator, &stream);
        let stream = stream.set_persistent_id(Some(&id));
        // What is built later of these rows is filled from here.
        let _ = stream.accumulate_integrate_trace();
        let placement = input.placement_of(&columns);
        let types: Vec<DataType> =
            columns.iter().map(|register| input.types[*register].clone()).collect();
        let source = Source {
            stream: SourceStream::Set(stream),
            codec: Arc::new(Codec::new(Arc::new(schema_of(&types)))?),
            placement,
            is_spread: input.source.is_spread,
            carries_errors: false,
            books,
        };
        Ok(Relation::stored(fingerprint, source, (0..types.len()).collect()))
    }
}

/// The operator.
struct Pass {
    node: GlobalNodeId,
    /// Of the moments.
    codec: Codec,
    moments: Vec<Moment>,
    /// How many of the moments are those that rows come at.
    from: usize,
    clock: Clock,
    due: Published<Option<i64>>,
    timetable: Timetable,
}

/// What is to come and to go.
#[derive(Debug, Default, PartialEq, Eq)]
struct Timetable {
    /// By when they come: when they go, and how often they are there.
    coming: BTreeMap<i64, BTreeMap<(i64, Row), ZWeight>>,
    /// By when they go.
    going: BTreeMap<i64, BTreeMap<Row, ZWeight>>,
}

/// A moment that never comes.
const NEVER: i64 = i64::MAX;

impl Timetable {
    /// Lets come and go what the clock has passed.
    fn pass(&mut self, now_us: i64, show: &mut impl FnMut(Row, ZWeight)) {
        while let Some(entry) = self.coming.first_entry().filter(|entry| *entry.key() <= now_us) {
            for ((until, row), weight) in entry.remove() {
                self.come(now_us, until, row, weight, show);
            }
        }
        while let Some(entry) = self.going.first_entry().filter(|entry| *entry.key() <= now_us) {
            for (row, weight) in entry.remove() {
                show(row, -weight);
            }
        }
    }

    /// Takes up a change of a row.
    fn change(
        &mut self,
        now_us: i64,
        (from, until): (i64, i64),
        row: Row,
        weight: ZWeight,
        show: &mut impl FnMut(Row, ZWeight),
    ) {
        if from > now_us {
            if until > from && from != NEVER {
                add(&mut self.coming, from, (until, row), weight);
            }
        } else {
            self.come(now_us, until, row, weight, show);
        }
    }

    fn come(
        &mut self,
        now_us: i64,
        until: i64,
        row: Row,
        weight: ZWeight,
        show: &mut impl FnMut(Row, ZWeight),
    ) {
        if until <= now_us {
            return;
        }
        show(row.clone(), weight);
        if until != NEVER {
            add(&mut self.going, until, row, weight);
        }
    }

    /// When the next row comes or goes.
    fn due_us(&self) -> Option<i64> {
        let coming = self.coming.keys().next();
        coming.into_iter().chain(self.going.keys().next()).min().copied()
    }

    fn write(&self, to: &mut FBuf) {
        let mut entry = |from: i64, until: i64, row: &Row, weight: ZWeight| {
            for number in [from, until, weight, row.len() as i64] {
                to.extend_from_slice(&number.to_be_bytes());
            }
            to.extend_from_slice(row.as_bytes());
        };
        for (from, rows) in &self.coming {
            rows.iter().for_each(|((until, row), weight)| entry(*from, *until, row, *weight));
        }
        for (until, rows) in &self.going {
            rows.iter().for_each(|(row, weight)| entry(i64::MIN, *until, row, *weight));
        }
    }

    /// What [`Self::write`] has written; none of anything else.
    fn read(mut from: &[u8]) -> Option<Self> {
        let mut timetable = Self::default();
        while !from.is_empty() {
            let mut number = || {
                let (number, rest) = from.split_first_chunk()?;
                from = rest;
                Some(i64::from_be_bytes(*number))
            };
            let (comes, goes, weight, length) = (number()?, number()?, number()?, number()?);
            let (row, rest) = from.split_at_checked(usize::try_from(length).ok()?)?;
            from = rest;
            match comes {
                i64::MIN => add(&mut timetable.going, goes, Row::new(row), weight),
                comes => add(&mut timetable.coming, comes, (goes, Row::new(row)), weight),
            }
        }
        Some(timetable)
    }
}

fn add<K: Ord>(
    rows: &mut BTreeMap<i64, BTreeMap<K, ZWeight>>,
    moment: i64,
    row: K,
    weight: ZWeight,
) {
    use std::collections::btree_map::Entry;
    let at = rows.entry(moment).or_default();
    match at.entry(row) {
        Entry::Vacant(entry) => {
            entry.insert(weight);
        }
        Entry::Occupied(mut entry) => {
            *entry.get_mut() += weight;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }
    if at.is_empty() {
        rows.remove(&moment);
    }
}

impl Pass {
    fn file(&self, base: &StoragePath, id: Option<&str>) -> Result<StoragePath, StorageError> {
        let id = id.ok_or_else(|| StorageError::NoPersistentId(self.node.to_string()))?;
        Ok(base.clone().join(format!("temporal-{id}.dat")))
    }

    /// Between which moments rows are there, by their keys.
    fn spans(&self, keys: &[Row]) -> Vec<(i64, i64)> {
        let bytes: Vec<&[u8]> = keys.iter().map(Row::as_bytes).collect();
        let all: Vec<usize> = (0..self.moments.len()).collect();
        let columns = self.codec.decode(&bytes, &all).expect("what was encoded is intact");
        let span = |row: usize| {
            let at = |place: usize| {
                let values = columns[place].as_primitive::<Int64Type>();
                debug_assert!(values.is_valid(row), "rows without a moment were left out");
                self.moments[place].us(values.value(row))
            };
            let from = (0..self.from).map(at).max().unwrap_or(i64::MIN);
            let until = (self.from..self.moments.len()).map(at).min().unwrap_or(NEVER);
            (from, until)
        };
        (0..keys.len()).map(span).collect()
    }
}

impl Operator for Pass {
    fn name(&self) -> Cow<'static, str> {
        "Temporal".into()
    }

    fn init(&mut self, node: &GlobalNodeId) {
        self.node = node.clone();
    }

    fn fixedpoint(&self, _: Scope) -> bool {
        true
    }

    fn checkpoint(
        &mut self,
        base: &StoragePath,
        id: Option<&str>,
        files: &mut Vec<Arc<dyn FileCommitter>>,
    ) -> Result<(), dbsp::Error> {
        let mut bytes = FBuf::new();
        self.timetable.write(&mut bytes);
        files.push(Runtime::storage_backend()?.write(&self.file(base, id)?, bytes)?);
        Ok(())
    }

    fn restore(&mut self, base: &StoragePath, id: Option<&str>) -> Result<(), dbsp::Error> {
        let bytes = Runtime::storage_backend()?.read(&self.file(base, id)?)?;
        self.timetable = Timetable::read(&bytes).expect("the file is whole");
        Ok(())
    }

    fn clear_state(&mut self) -> Result<(), dbsp::Error> {
        self.timetable = Timetable::default();
        Ok(())
    }

    fn swap_state(&mut self, other: &mut Self) -> Result<(), dbsp::Error> {
        std::mem::swap(&mut self.timetable, &mut other.timetable);
        Ok(())
    }
}

impl UnaryOperator<OrdIndexedZSet<Row, Row>, OrdZSet<Row>> for Pass {
    async fn eval(&mut self, changes: &OrdIndexedZSet<Row, Row>) -> OrdZSet<Row> {
        let now_us = self.clock.now_us();
        let (mut keys, mut rows) = (vec![], vec![]);
        changes.for_each(&mut |key, row, weight| {
            keys.push(Row::new(key));
            rows.push((Row::new(row), weight));
        });
        let spans = self.spans(&keys);
        let mut timetable = take(&mut self.timetable);
        let mut shown = vec![];
        let mut show = |row: Row, weight: ZWeight| shown.push(Tup2(row, weight));
        timetable.pass(now_us, &mut show);
        for (span, (row, weight)) in spans.into_iter().zip(rows) {
            timetable.change(now_us, span, row, weight, &mut show);
        }
        self.due.set(timetable.due_us());
        self.timetable = timetable;
        OrdZSet::from_keys((), shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_and_go_at_their_moments() {
        let row = |text: &str| Row::new(text.as_bytes());
        let mut timetable = Timetable::default();
        let mut there = BTreeMap::new();
        let mut at = |timetable: &mut Timetable, now, changes: &[(i64, i64, &str, i64)]| {
            let mut show = |row: Row, weight| {
                let count = there.entry(row.clone()).or_insert(0);
                *count += weight;
                if *count == 0 {
                    there.remove(&row);
                }
            };
            timetable.pass(now, &mut show);
            for (from, until, text, weight) in changes {
                timetable.change(now, (*from, *until), row(text), *weight, &mut show);
            }
            let text = |(row, count): (&Row, &i64)| {
                format!("{}x{count}", String::from_utf8_lossy(row.as_bytes()))
            };
            there.iter().map(text).collect::<Vec<_>>().join(" ")
        };
        let first = [
            (i64::MIN, 12, "a", 2),
            (15, 20, "b", 1),
            (11, NEVER, "c", 1),
            (i64::MIN, NEVER, "d", 1),
            (5, 9, "over", 1),
            (14, 14, "never", 1),
            (NEVER, NEVER, "never", 1),
        ];
        assert_eq!(at(&mut timetable, 10, &first), "ax2 dx1");
        assert_eq!(timetable.due_us(), Some(11));
        assert_eq!(at(&mut timetable, 11, &[(i64::MIN, 12, "a", -1)]), "ax1 cx1 dx1");
        assert_eq!(timetable.due_us(), Some(12));
        let mut bytes = FBuf::new();
        timetable.write(&mut bytes);
        assert_eq!(Timetable::read(&bytes), Some(take(&mut timetable)));
        assert_eq!(Timetable::read(&bytes[1..]), None);
        timetable = Timetable::read(&bytes).unwrap();
        // What is over can't be taken away again.
        let changes = [(i64::MIN, 12, "a", -1), (15, 20, "b", -1), (11, NEVER, "c", -1)];
        assert_eq!(at(&mut timetable, 12, &changes), "dx1");
        assert_eq!(timetable.due_us(), None);
        let changes = [(13, 20, "e", 1), (14, 15, "f", 1)];
        assert_eq!(at(&mut timetable, 12, &changes), "dx1");
        assert_eq!(at(&mut timetable, 17, &[]), "dx1 ex1");
        assert_eq!(at(&mut timetable, 20, &[]), "dx1");
        assert_eq!(timetable, Timetable::default());
    }
}
