//! From rows to the weights of their groups, and from weights to results.

use std::marker::PhantomData;
use std::mem::take;
use std::sync::Arc;

use dbsp::Timestamp;
use dbsp::algebra::Semigroup;
use dbsp::dynamic::{DataTrait, DynUnit, DynWeight, Erase, WeightTrait};
use dbsp::operator::Aggregator;
use dbsp::trace::Cursor;
use dbsp::typed_batch::OrdWSet;
use dbsp::utils::Tup2;
use stillframe_protocol::numeric::{DigitSum, Numeric};

use super::finish::Finish;
use super::layout::{COUNT, Layout, SumKind};
use crate::EngineError;
use crate::circuit::linear::{Chunk, Cutter, Emission, Fields};
use crate::circuit::relation::Relation;
use crate::row::{Row, bytes, float32, float64, int16, int32, int64, int128, value};
use crate::weight::{Accumulator, add_float};

/// Gives each group of a batch the weight of its rows.
pub(super) struct Weigh<W> {
    cutter: Cutter,
    layout: Arc<Layout>,
    groups: Vec<Tup2<Row, W>>,
}

impl<W: Accumulator> Weigh<W> {
    /// Weights of groups by some registers.
    pub(super) fn new(
        input: &Relation,
        key: &[usize],
        layout: Arc<Layout>,
    ) -> Result<Self, EngineError> {
        let arguments: Vec<[usize; 1]> =
            layout.arguments().iter().map(|argument| [argument.register]).collect();
        let mut lists = vec![key];
        lists.extend(arguments.iter().map(|argument| &argument[..]));
        let cutter = Cutter::new(&input.source.codec, &input.types, &lists)?;
        Ok(Self { cutter, layout, groups: vec![] })
    }
}

impl<W: Accumulator> Emission<OrdWSet<Row, W, DynWeight>> for Weigh<W> {
    fn push(&mut self, chunk: &Chunk<'_>) {
        let weights = chunk.weights();
        let (layout, groups) = (&self.layout, &mut self.groups);
        groups.reserve(weights.len());
        self.cutter.for_each(chunk, |number, fields| {
            let mut weight = W::zero();
            add_row(layout, fields, weights[number], &mut weight);
            groups.push(Tup2(fields.row(0), weight));
        });
    }

    fn finish(&mut self) -> OrdWSet<Row, W, DynWeight> {
        OrdWSet::from_keys((), take(&mut self.groups))
    }
}

/// Adds what a row that is there `times` times contributes.
fn add_row<W: Accumulator>(layout: &Layout, fields: &Fields<'_>, times: i64, weight: &mut W) {
    let wide_times = i128::from(times);
    weight.add(COUNT, wide_times);
    for (number, argument) in layout.arguments().iter().enumerate() {
        let field = fields.field(number + 1);
        let Some(value) = value(field) else { continue };
        weight.add(argument.count, wide_times);
        let Some((kind, position)) = argument.sum else { continue };
        match kind {
            SumKind::Integer(2) => weight.add(position, i128::from(int16(value)) * wide_times),
            SumKind::Integer(4) => weight.add(position, i128::from(int32(value)) * wide_times),
            SumKind::Integer(_) => weight.add(position, i128::from(int64(value)) * wide_times),
            SumKind::Decimal => weight.add(position, int128(value).wrapping_mul(wide_times)),
            SumKind::WideDecimal => {
                let value = int128(value);
                let low = i128::from(value as u64);
                weight.add(position, low.wrapping_mul(wide_times));
                weight.add(position + 1, (value >> 64).wrapping_mul(wide_times));
            }
            SumKind::Numeric => {
                // What isn't one was never encoded.
                let Some(value) = Numeric::decode(&bytes(field)) else { continue };
                DigitSum::parts(&value, |part, amount| {
                    weight.add(position + part, amount.wrapping_mul(wide_times));
                });
            }
            SumKind::Float(4) => add_float(weight, position, f64::from(float32(value)), times),
            SumKind::Float(_) => add_float(weight, position, float64(value), times),
        }
    }
}

/// Makes a group's results of its weight.
#[derive(Clone)]
pub(super) struct WeightOfGroup<W> {
    finish: Finish,
    weighs: PhantomData<fn() -> W>,
}

impl<W> WeightOfGroup<W> {
    pub(super) fn new(finish: Finish) -> Self {
        Self { finish, weighs: PhantomData }
    }
}

impl<T: Timestamp, W: Accumulator> Aggregator<(), T, W> for WeightOfGroup<W> {
    type Accumulator = Row;
    type Semigroup = Never;
    type Output = Row;

    fn aggregate<K, R>(&self, cursor: &mut dyn Cursor<K, DynUnit, T, R>) -> Option<Row>
    where
        K: DataTrait + ?Sized,
        R: WeightTrait + ?Sized,
        (): Erase<K>,
        W: Erase<R>,
    {
        if !cursor.key_valid() {
            return None;
        }
        let mut total = W::zero();
        // SAFETY: the cursor's weights are of type W.
        cursor.map_times(&mut |_, weight| total.add_assign_by_ref(unsafe { weight.downcast() }));
        if total.is_zero() { None } else { Some(self.finish.row(&total)) }
    }

    fn finalize(&self, row: Row) -> Row {
        row
    }
}

/// Results can't be combined; only windows would ask for it.
pub(in crate::circuit) struct Never;

impl Semigroup<Row> for Never {
    fn combine(_: &Row, _: &Row) -> Row {
        unreachable!("results of groups are never combined")
    }
}
