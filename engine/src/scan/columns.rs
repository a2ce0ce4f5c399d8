//! From stored rows to the columns that a scan returns.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray as _};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::reassign_expr_columns;
use stillframe_protocol::{Expression, HostError, ScanRequest};

use super::rows::Rows;
use crate::row::Codec;
use crate::{EngineError, Functions, compile, row_error};

/// Which columns are decoded, what is asked of them, and which are returned.
pub(super) struct Columns {
    codec: Arc<Codec>,
    /// The stored columns that are needed, ascending.
    decoded: Vec<usize>,
    /// What they are, named by their places.
    decoded_schema: SchemaRef,
    /// Over the decoded columns. Each must be true.
    filters: Vec<Arc<dyn PhysicalExpr>>,
    /// Where the returned columns are among the decoded ones.
    returned: Vec<usize>,
    schema: SchemaRef,
}

impl Columns {
    /// Checks what a request wants to see.
    pub(super) fn new(
        codec: &Arc<Codec>,
        request: &ScanRequest,
        functions: &Functions,
    ) -> Result<Self, HostError> {
        let stored = codec.schema();
        let mut needed: BTreeSet<usize> = request.projection.iter().copied().collect();
        for filter in &request.filters {
            filter.columns(&mut |column| {
                needed.insert(column);
            });
        }
        let columns = stored.fields().len();
        if let Some(column) = needed.iter().find(|column| **column >= columns) {
            let message = format!("no column {column} in relation {}", request.relation);
            return Err(HostError::Invalid(message));
        }
        let decoded: Vec<usize> = needed.into_iter().collect();
        let place = |column: &usize| {
            decoded.binary_search(column).expect("every returned column is decoded")
        };
        let returned: Vec<usize> = request.projection.iter().map(place).collect();
        let schema = stored.project(&request.projection).map_err(internal)?;
        let numbered = numbered(stored);
        let decoded_schema = Arc::new(numbered.project(&decoded).map_err(internal)?);
        let compile = |filter| compile_filter(filter, &numbered, &decoded_schema, functions);
        let filters = request.filters.iter().map(compile).collect::<Result<_, _>>();
        Ok(Self {
            codec: Arc::clone(codec),
            decoded,
            filters: filters.map_err(internal)?,
            decoded_schema,
            returned,
            schema: Arc::new(schema),
        })
    }

    /// Whether some rows may not be returned.
    pub(super) fn has_filters(&self) -> bool {
        !self.filters.is_empty()
    }

    /// Whether rows must be looked at, and not just counted.
    pub(super) fn needs_bytes(&self) -> bool {
        !self.decoded.is_empty() || self.has_filters()
    }

    /// Those of the rows that pass the filters, at most `limit` of them.
    pub(super) fn batch(&self, rows: &Rows, limit: usize) -> Result<RecordBatch, HostError> {
        let columns = match rows {
            Rows::Bytes(rows) => {
                self.codec.decode(&rows.rows(), &self.decoded).map_err(internal)?
            }
            Rows::Count(_) => vec![],
        };
        let mut batch = assemble(&self.decoded_schema, columns, rows.len())?;
        for filter in &self.filters {
            batch = apply(filter, batch)?;
        }
        if batch.num_rows() > limit {
            batch = batch.slice(0, limit);
        }
        let returned = self.returned.iter().map(|place| Arc::clone(batch.column(*place))).collect();
        assemble(&self.schema, returned, batch.num_rows())
    }
}

fn assemble(
    schema: &SchemaRef,
    columns: Vec<ArrayRef>,
    rows: usize,
) -> Result<RecordBatch, HostError> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options).map_err(internal)
}

/// Only the rows for which a filter is true. What one filter has taken out, the next one never
/// sees: it can't fail for it.
fn apply(filter: &Arc<dyn PhysicalExpr>, batch: RecordBatch) -> Result<RecordBatch, HostError> {
    let passed = filter
        .evaluate(&batch)
        .and_then(|value| value.into_array(batch.num_rows()))
        .map_err(|error| HostError::Row(row_error(&error)))?;
    filter_record_batch(&batch, passed.as_boolean()).map_err(internal)
}

/// A filter over the decoded columns, from one over the stored ones.
fn compile_filter(
    filter: &Expression,
    stored: &Schema,
    decoded: &Schema,
    functions: &Functions,
) -> Result<Arc<dyn PhysicalExpr>, EngineError> {
    let compiled = compile(filter, stored, functions)?;
    match compiled.data_type(stored)? {
        DataType::Boolean => Ok(reassign_expr_columns(compiled, decoded)?),
        other => Err(EngineError::InvalidPlan(format!("a filter of type {other}"))),
    }
}

/// The same columns, named by their places: names need not be unique.
fn numbered(schema: &Schema) -> Schema {
    let field = |(place, field): (usize, &FieldRef)| {
        Field::new(place.to_string(), field.data_type().clone(), true)
    };
    Schema::new(schema.fields().iter().enumerate().map(field).collect::<Vec<_>>())
}

/// Only our own bug can make it fail.
fn internal(error: impl std::fmt::Display) -> HostError {
    HostError::Invalid(error.to_string())
}
