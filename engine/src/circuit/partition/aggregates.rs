//! Aggregates of all rows of a group, by DataFusion's accumulators.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, UInt32Array};
use arrow::compute::{cast, filter_record_batch, take_record_batch};
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use datafusion::common::DataFusionError;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use stillframe_protocol::{AggregateCall, Expression};

use super::Scope;
use super::gather::Partition;
use super::order::Order;
use crate::circuit::relation::schema_of;
use crate::expression::compile;
use crate::row::{Codec, Row};
use crate::{EngineError, Functions};

/// All aggregates of a group.
pub(super) struct Aggregates {
    calls: Vec<Call>,
    codec: Codec,
}

struct Call {
    function: AggregateFunctionExpr,
    /// The arguments, and what it sorts by if it does so itself.
    values: Vec<Arc<dyn PhysicalExpr>>,
    filter: Option<Arc<dyn PhysicalExpr>>,
    order: Order,
    returns: DataType,
}

impl Aggregates {
    pub(super) fn compile(
        calls: &[AggregateCall],
        scope: &Scope<'_>,
        results: &[DataType],
    ) -> Result<Self, EngineError> {
        let calls = calls.iter().zip(results);
        let calls = calls.map(|(call, returns)| Call::compile(call, scope, returns));
        let calls = calls.collect::<Result<_, _>>()?;
        Ok(Self { calls, codec: Codec::new(Arc::new(schema_of(results)))? })
    }

    /// The results as one row.
    pub(super) fn row(&self, partition: &Partition<'_>) -> Result<Row, DataFusionError> {
        let results = self.calls.iter().map(|call| call.result(&partition.batch));
        let results: Vec<ArrayRef> = results.collect::<Result<_, _>>()?;
        let rows = self.codec.encode(&results, 1);
        let mut rows = rows.map_err(|error| DataFusionError::External(Box::new(error)))?;
        Ok(rows.pop().expect("one row was encoded"))
    }
}

impl Call {
    fn compile(
        call: &AggregateCall,
        scope: &Scope<'_>,
        returns: &DataType,
    ) -> Result<Self, EngineError> {
        let arguments = compile_all(&call.arguments, scope)?;
        let order = Order::compile(&call.order, scope)?;
        let sorts = order.physical(scope.schema);
        let mut values = arguments.clone();
        values.extend(sorts.iter().map(|sort| Arc::clone(&sort.expr)));
        let function =
            AggregateExprBuilder::new(scope.functions.aggregate(&call.function)?, arguments)
                .schema(Arc::clone(scope.schema))
                .alias(&call.function)
                .order_by(sorts)
                .with_distinct(call.distinct)
                .with_ignore_nulls(call.ignore_nulls)
                .build()?;
        // What has no accumulator is refused before there are rows.
        function.create_accumulator()?;
        let filter = call.filter.as_ref().map(|filter| compile_one(filter, scope)).transpose()?;
        Ok(Self { function, values, filter, order, returns: returns.clone() })
    }

    fn result(&self, batch: &RecordBatch) -> Result<ArrayRef, DataFusionError> {
        let mut batch = batch.clone();
        if let Some(filter) = &self.filter {
            let passes = filter.evaluate(&batch)?.into_array(batch.num_rows())?;
            batch = filter_record_batch(&batch, passes.as_boolean())?;
        }
        if !self.order.is_empty() {
            let numbers = UInt32Array::from(self.order.sorted(&batch)?);
            batch = take_record_batch(&batch, &numbers)?;
        }
        let mut accumulator = self.function.create_accumulator()?;
        let count = batch.num_rows();
        if count > 0 {
            let values = self.values.iter().map(|value| value.evaluate(&batch)?.into_array(count));
            accumulator.update_batch(&values.collect::<Result<Vec<_>, _>>()?)?;
        }
        let result = accumulator.evaluate()?.to_array_of_size(1)?;
        if result.data_type() == &self.returns {
            return Ok(result);
        }
        Ok(cast(&result, &self.returns)?)
    }
}

/// Compiles an expression over a partition.
pub(super) fn compile_one(
    expression: &Expression,
    scope: &Scope<'_>,
) -> Result<Arc<dyn PhysicalExpr>, EngineError> {
    let functions: &Functions = scope.functions;
    compile(&expression.map_columns(&|column| scope.place(column)), scope.schema, functions)
}

/// Compiles the arguments of a function over a partition.
pub(super) fn compile_all(
    expressions: &[Expression],
    scope: &Scope<'_>,
) -> Result<Vec<Arc<dyn PhysicalExpr>>, EngineError> {
    expressions.iter().map(|expression| compile_one(expression, scope)).collect()
}
