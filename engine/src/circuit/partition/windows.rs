//! Window functions, by DataFusion's window expressions.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::compute::{cast, take, take_record_batch};
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use datafusion::common::{DataFusionError, ScalarValue};
use datafusion::logical_expr::{
    WindowFrame, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition,
};
use datafusion::physical_expr::window::WindowExpr;
use datafusion::physical_plan::windows::create_window_expr;
use stillframe_protocol::{
    Frame, FrameBound, FrameUnits, Literal, SortKey, WindowCall, WindowFunction,
};

use super::Scope;
use super::aggregates::{compile_all, compile_one};
use super::gather::Partition;
use super::order::Order;
use super::sheet::Sheet;
use crate::EngineError;
use crate::circuit::relation::schema_of;
use crate::expression::scalar;
use crate::row::Codec;

/// All windows over a partition.
pub(super) struct Windows {
    /// Windows of one order together.
    ordered: Vec<Ordered>,
    results: usize,
    codec: Codec,
}

struct Ordered {
    order: Order,
    /// Each with its place among the results and its type.
    windows: Vec<(usize, Arc<dyn WindowExpr>, DataType)>,
}

impl Windows {
    pub(super) fn compile(
        calls: &[WindowCall],
        scope: &Scope<'_>,
        results: &[DataType],
    ) -> Result<Self, EngineError> {
        let mut orders: Vec<&[SortKey]> = vec![];
        let mut ordered: Vec<Ordered> = vec![];
        for (place, (call, returns)) in calls.iter().zip(results).enumerate() {
            let known = orders.iter().position(|order| *order == call.order);
            let number = match known {
                Some(number) => number,
                None => {
                    orders.push(&call.order);
                    let order = Order::compile(&call.order, scope)?;
                    ordered.push(Ordered { order, windows: vec![] });
                    ordered.len() - 1
                }
            };
            let window = window(call, &ordered[number].order, scope)?;
            ordered[number].windows.push((place, window, returns.clone()));
        }
        let codec = Codec::new(Arc::new(schema_of(results)))?;
        Ok(Self { ordered, results: calls.len(), codec })
    }

    /// Each row with its windows' values.
    pub(super) fn sheet(&self, partition: &Partition<'_>) -> Result<Sheet, DataFusionError> {
        let mut results: Vec<Option<ArrayRef>> = vec![None; self.results];
        for ordered in &self.ordered {
            ordered.evaluate(&partition.batch, &mut results)?;
        }
        let results: Vec<ArrayRef> = results.into_iter().flatten().collect();
        let encoded = self.codec.encode_contiguous(&results);
        let encoded = encoded.map_err(|error| DataFusionError::External(Box::new(error)))?;
        let mut sheet = Sheet::new();
        for (row, values) in partition.rows.iter().zip(encoded.iter()) {
            sheet.push(row, values.data());
        }
        Ok(sheet)
    }
}

impl Ordered {
    /// Fills in the results of the windows of this order.
    fn evaluate(
        &self,
        batch: &RecordBatch,
        results: &mut [Option<ArrayRef>],
    ) -> Result<(), DataFusionError> {
        if self.order.is_empty() {
            for (place, window, returns) in &self.windows {
                results[*place] = Some(typed(window.evaluate(batch)?, returns)?);
            }
            return Ok(());
        }
        let numbers = self.order.sorted(batch)?;
        let mut places = vec![0u32; numbers.len()];
        for (place, number) in numbers.iter().enumerate() {
            places[*number as usize] = place as u32;
        }
        let sorted = take_record_batch(batch, &UInt32Array::from(numbers))?;
        let places = UInt32Array::from(places);
        for (place, window, returns) in &self.windows {
            let values = typed(window.evaluate(&sorted)?, returns)?;
            results[*place] = Some(take(&values, &places, None)?);
        }
        Ok(())
    }
}

fn typed(values: ArrayRef, data_type: &DataType) -> Result<ArrayRef, DataFusionError> {
    if values.data_type() == data_type {
        return Ok(values);
    }
    Ok(cast(&values, data_type)?)
}

fn window(
    call: &WindowCall,
    order: &Order,
    scope: &Scope<'_>,
) -> Result<Arc<dyn WindowExpr>, EngineError> {
    let (name, function) = match &call.function {
        WindowFunction::Aggregate(name) => {
            let function = scope.functions.aggregate(name)?;
            (name, WindowFunctionDefinition::AggregateUDF(function))
        }
        WindowFunction::Window(name) => {
            (name, WindowFunctionDefinition::WindowUDF(scope.functions.window(name)?))
        }
    };
    let filter = call.filter.as_ref().map(|filter| compile_one(filter, scope)).transpose()?;
    let window = create_window_expr(
        &function,
        name.clone(),
        &compile_all(&call.arguments, scope)?,
        &[],
        &order.physical(scope.schema),
        Arc::new(frame(&call.frame)),
        Arc::clone(scope.schema),
        call.ignore_nulls,
        call.distinct,
        filter,
    )?;
    // What can't move over a partition is refused before there are rows.
    window.create_window_fn()?;
    Ok(window)
}

fn frame(frame: &Frame) -> WindowFrame {
    let units = match frame.units {
        FrameUnits::Rows => WindowFrameUnits::Rows,
        FrameUnits::Range => WindowFrameUnits::Range,
        FrameUnits::Groups => WindowFrameUnits::Groups,
    };
    let distance = |distance: &Option<Literal>| match (distance, frame.units) {
        (None, FrameUnits::Range) => ScalarValue::Null,
        (None, _) => ScalarValue::UInt64(None),
        (Some(Literal::Int64(count)), FrameUnits::Rows | FrameUnits::Groups) => {
            ScalarValue::UInt64(u64::try_from(*count).ok())
        }
        (Some(distance), _) => scalar(distance),
    };
    let bound = |bound: &FrameBound| match bound {
        FrameBound::Preceding(before) => WindowFrameBound::Preceding(distance(before)),
        FrameBound::CurrentRow => WindowFrameBound::CurrentRow,
        FrameBound::Following(after) => WindowFrameBound::Following(distance(after)),
    };
    WindowFrame::new_bounds(units, bound(&frame.start), bound(&frame.end))
}
