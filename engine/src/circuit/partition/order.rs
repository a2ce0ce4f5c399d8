//! The order of a partition's rows.

use arrow::array::ArrayRef;
use arrow::compute::SortOptions;
use arrow::datatypes::Schema;
use arrow::record_batch::RecordBatch;
use arrow_row::{RowConverter, Rows, SortField};
use datafusion::common::DataFusionError;
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_expr::expressions::Column;
use std::sync::Arc;
use stillframe_protocol::SortKey;

use super::Scope;
use crate::EngineError;

/// An order. Rows that are equal in it stay in the order of their bytes.
#[derive(Debug)]
pub(super) struct Order {
    /// By place in the batch.
    keys: Vec<(usize, SortOptions)>,
    converter: RowConverter,
}

impl Order {
    pub(super) fn compile(order: &[SortKey], scope: &Scope<'_>) -> Result<Self, EngineError> {
        let key = |key: &SortKey| {
            let options = SortOptions::new(key.descending, key.nulls_first);
            (scope.place(key.column), options)
        };
        let keys: Vec<(usize, SortOptions)> = order.iter().map(key).collect();
        let fields = keys.iter().map(|(place, options)| {
            SortField::new_with_options(scope.schema.field(*place).data_type().clone(), *options)
        });
        let converter = RowConverter::new(fields.collect())?;
        Ok(Self { keys, converter })
    }

    /// Whether no two rows differ in it.
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The sort keys as DataFusion knows them.
    pub(super) fn physical(&self, schema: &Schema) -> Vec<PhysicalSortExpr> {
        let key = |(place, options): &(usize, SortOptions)| {
            let column = Column::new(schema.field(*place).name(), *place);
            PhysicalSortExpr::new(Arc::new(column), *options)
        };
        self.keys.iter().map(key).collect()
    }

    /// The values by which a batch's rows are sorted.
    pub(super) fn values(&self, batch: &RecordBatch) -> Result<Rows, DataFusionError> {
        let column = |(place, _): &(usize, SortOptions)| Arc::clone(batch.column(*place));
        let columns: Vec<ArrayRef> = self.keys.iter().map(column).collect();
        Ok(self.converter.convert_columns(&columns)?)
    }

    /// The numbers of a batch's rows in order.
    pub(super) fn sorted(&self, batch: &RecordBatch) -> Result<Vec<u32>, DataFusionError> {
        let mut numbers: Vec<u32> = (0..batch.num_rows() as u32).collect();
        if !self.is_empty() {
            let values = self.values(batch)?;
            numbers.sort_by(|a, b| values.row(*a as usize).cmp(&values.row(*b as usize)));
        }
        Ok(numbers)
    }
}
