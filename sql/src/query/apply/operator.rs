//! The operator that computes a subquery for each row.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, ArrayRef, BooleanArray, Scalar, UInt64Array, new_null_array};
use arrow::compute::kernels::cmp;
use arrow::compute::{cast, concat, concat_batches, take};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Column, Result, ScalarValue};
use datafusion::execution::session_state::SessionState;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::expr::SetQuantifier;
use datafusion::logical_expr::{LogicalPlan, Operator};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    PlanProperties, ReplaceChildrenOptions,
};
use futures::{StreamExt, TryStreamExt};

use super::{Apply, Kind, outer, physical};
use crate::query::threads::Operators;
use crate::{Error, SqlState};

/// How many subqueries' rows are kept, in case their columns come again.
const ANSWERS_MAX: usize = 4096;

/// Computes a subquery for each row of its input.
#[derive(Clone)]
pub(super) struct ApplyExec {
    input: Arc<dyn ExecutionPlan>,
    shared: Arc<Shared>,
    properties: Arc<PlanProperties>,
}

/// What does not depend on the input.
struct Shared {
    subquery: LogicalPlan,
    kind: Kind,
    outer: Vec<Column>,
    expressions: Vec<Arc<dyn PhysicalExpr>>,
    schema: SchemaRef,
    state: SessionState,
    answers: Mutex<HashMap<Vec<ScalarValue>, Arc<RecordBatch>>>,
}

impl ApplyExec {
    pub(super) fn new(
        apply: &Apply,
        input: Arc<dyn ExecutionPlan>,
        expressions: Vec<Arc<dyn PhysicalExpr>>,
        state: &SessionState,
    ) -> Self {
        let shared = Shared {
            subquery: apply.subquery.clone(),
            kind: apply.kind.clone(),
            outer: apply.outer.clone(),
            expressions,
            schema: Arc::new(apply.schema.as_arrow().clone()),
            state: state.clone(),
            answers: Mutex::default(),
        };
        Self::over(input, Arc::new(shared))
    }

    fn over(input: Arc<dyn ExecutionPlan>, shared: Arc<Shared>) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&shared.schema)),
            input.output_partitioning().clone(),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        Self { input, shared, properties: Arc::new(properties) }
    }
}

impl fmt::Debug for ApplyExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApplyExec").field("kind", &self.shared.kind).finish_non_exhaustive()
    }
}

impl DisplayAs for ApplyExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApplyExec: {:?}", self.shared.kind)
    }
}

impl ExecutionPlan for ApplyExec {
    fn name(&self) -> &str {
        "ApplyExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for expression in &self.shared.expressions {
            visit(expression)?;
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let [input] = <[_; 1]>::try_from(children)
            .map_err(|_| Error::internal("an Apply needs one input"))?;
        Ok(Arc::new(Self::over(input, Arc::clone(&self.shared))))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(
            children,
            ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute),
        )
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let shared = Arc::clone(&self.shared);
        let input = self.input.execute(partition, context)?;
        let stream = input.then(move |batch| {
            let shared = Arc::clone(&shared);
            async move { shared.batch(batch?).await }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), stream)))
    }
}

impl Shared {
    /// The rows with their outcomes.
    async fn batch(&self, batch: RecordBatch) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let arrays = self.expressions.iter();
        let arrays = arrays.map(|expr| expr.evaluate(&batch)?.into_array(rows));
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        let (outer, operand) = arrays.split_at(self.outer.len());
        let mut answers = vec![];
        for row in 0..rows {
            let key = outer.iter().map(|array| ScalarValue::try_from_array(array, row));
            answers.push(self.answer(key.collect::<Result<_>>()?).await?);
        }
        match &self.kind {
            Kind::Scalar => {
                let kind = self.schema.field(self.schema.fields().len() - 1).data_type();
                let values = answers.iter().map(|answer| match answer.num_rows() {
                    0 => Ok(new_null_array(kind, 1)),
                    1 => Ok(Arc::clone(answer.column(0))),
                    _ => Err(too_many()),
                });
                let values = values.collect::<Result<Vec<_>, Error>>()?;
                self.beside(batch, joined(&values, kind)?)
            }
            Kind::Exists => {
                let found = answers.iter().map(|answer| Some(answer.num_rows() > 0));
                let found: BooleanArray = found.collect();
                self.beside(batch, Arc::new(found))
            }
            Kind::Compared { op, quantifier } => {
                let operand = operand
                    .first()
                    .ok_or_else(|| Error::internal("a comparison without an operand"))?;
                let mut outcomes = vec![];
                for (row, answer) in answers.iter().enumerate() {
                    let operand = operand.slice(row, 1);
                    outcomes.push(compared(&operand, answer.column(0), *op, *quantifier)?);
                }
                self.beside(batch, Arc::new(BooleanArray::from(outcomes)))
            }
            Kind::Lateral { keeps } => self.multiplied(&batch, &answers, *keeps),
        }
    }

    /// The rows with one column more.
    fn beside(&self, batch: RecordBatch, outcome: ArrayRef) -> Result<RecordBatch> {
        let columns = batch.columns().iter().cloned().chain([outcome]).collect();
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }

    /// Each row beside each of its subquery's.
    fn multiplied(
        &self,
        batch: &RecordBatch,
        answers: &[Arc<RecordBatch>],
        keeps: bool,
    ) -> Result<RecordBatch> {
        let added = &self.schema.fields()[batch.num_columns()..];
        let mut rows = vec![];
        let mut columns: Vec<Vec<ArrayRef>> = vec![vec![]; added.len()];
        for (row, answer) in answers.iter().enumerate() {
            let is_kept = keeps && answer.num_rows() == 0;
            let count = if is_kept { 1 } else { answer.num_rows() };
            rows.extend(std::iter::repeat_n(row as u64, count));
            for (place, (column, field)) in columns.iter_mut().zip(added).enumerate() {
                column.push(match is_kept {
                    true => new_null_array(field.data_type(), 1),
                    false => Arc::clone(answer.column(place)),
                });
            }
        }
        let rows = UInt64Array::from(rows);
        let mut all = vec![];
        for column in batch.columns() {
            all.push(take(column, &rows, None)?);
        }
        for (column, field) in columns.iter().zip(added) {
            all.push(joined(column, field.data_type())?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), all, &options)?)
    }

    /// The subquery's rows for these values of its columns.
    async fn answer(&self, key: Vec<ScalarValue>) -> Result<Arc<RecordBatch>> {
        let known = self.answers.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(answer) = known {
            return Ok(answer);
        }
        let values = self.outer.iter().cloned().zip(key.iter().cloned()).collect();
        let plan = outer::replace(self.subquery.clone(), &values)?;
        let physical = Box::pin(physical(&self.state, &plan)).await?;
        let operators = Operators::new(physical)?;
        let schema = operators.plan().schema();
        let stream = operators.compute(self.state.task_ctx(), ());
        let batches: Vec<RecordBatch> = stream.try_collect().await?;
        let answer = Arc::new(concat_batches(&schema, &batches)?);
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= ANSWERS_MAX {
            answers.clear();
        }
        answers.insert(key, Arc::clone(&answer));
        Ok(answer)
    }
}

fn too_many() -> Error {
    let message = "more than one row returned by a subquery used as an expression";
    Error::new(SqlState::CARDINALITY_VIOLATION, message)
}

fn joined(arrays: &[ArrayRef], kind: &arrow::datatypes::DataType) -> Result<ArrayRef> {
    let mut exact = vec![];
    for array in arrays {
        exact.push(if array.data_type() == kind { Arc::clone(array) } else { cast(array, kind)? });
    }
    if exact.is_empty() {
        return Ok(new_null_array(kind, 0));
    }
    let exact: Vec<_> = exact.iter().map(AsRef::as_ref).collect();
    Ok(concat(&exact)?)
}

/// How a value compares with some or all of others, in the logic of three values.
fn compared(
    operand: &ArrayRef,
    values: &ArrayRef,
    op: Operator,
    quantifier: SetQuantifier,
) -> Result<Option<bool>> {
    let operand = match operand.data_type() == values.data_type() {
        true => Arc::clone(operand),
        false => cast(operand, values.data_type())?,
    };
    let operand = Scalar::new(operand);
    let outcomes = match op {
        Operator::Eq => cmp::eq(&operand, values)?,
        Operator::NotEq => cmp::neq(&operand, values)?,
        Operator::Lt => cmp::lt(&operand, values)?,
        Operator::LtEq => cmp::lt_eq(&operand, values)?,
        Operator::Gt => cmp::gt(&operand, values)?,
        Operator::GtEq => cmp::gt_eq(&operand, values)?,
        other => return Err(Error::unsupported(format!("{other} with ANY or ALL")).into()),
    };
    // ANY is decided by what is true, ALL by what is false.
    let decisive = quantifier == SetQuantifier::Any;
    Ok(if outcomes.iter().flatten().any(|outcome| outcome == decisive) {
        Some(decisive)
    } else if outcomes.null_count() > 0 {
        None
    } else {
        Some(!decisive)
    })
}
