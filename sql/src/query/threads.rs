//! Where queries compute: on threads of their own, so that connections are served and the engine
//! steps however long an operator goes without a pause.
//!
//! A query that nobody wants any more stops: its stream's task at the next point where it yields,
//! a nested loop at the next batch that it compares.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, FieldRef, Schema};
use arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Column, Literal};
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{CrossJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, execute_stream};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::Error;
use crate::query::classify;
use crate::scan::FrameScan;

/// Batches that wait for a reader; what computes them waits when there are more.
const AHEAD_BATCHES: usize = 1;
/// Operators and expressions descend as deep as the statement is nested.
const STACK_BYTES: usize = 32 << 20;

/// One thread for each processor, shared by all queries of the process.
static THREADS: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .thread_name("query")
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build()
        .expect("the process may start threads")
});

/// Operators that can be run once and stopped at any time.
#[derive(Debug)]
pub(crate) struct Operators {
    plan: Arc<dyn ExecutionPlan>,
    stopped: Stopped,
}

impl Operators {
    /// Makes operators able to stop.
    pub(in crate::query) fn new(plan: Arc<dyn ExecutionPlan>) -> DataFusionResult<Self> {
        let stopped = Stopped::default();
        let plan = plan.transform_up(|node| interruptible(node, &stopped)).data()?;
        Ok(Self { plan, stopped })
    }

    /// The root of the operators.
    pub(crate) fn plan(&self) -> &Arc<dyn ExecutionPlan> {
        &self.plan
    }

    /// The rows that these operators return, computed on the threads for it. To drop the stream
    /// stops them; `kept` lives until they have stopped.
    pub(in crate::query) fn compute(
        &self,
        context: Arc<TaskContext>,
        kept: impl Send + 'static,
    ) -> BoxStream<'static, Result<RecordBatch, Error>> {
        let (sender, receiver) = mpsc::channel(AHEAD_BATCHES);
        let plan = Arc::clone(&self.plan);
        let compute = async move {
            let _kept = kept;
            // Operators may start tasks as soon as they are started themselves.
            let mut rows = match execute_stream(plan, context) {
                Ok(rows) => rows.boxed(),
                Err(error) => stream::iter([Err(error)]).boxed(),
            };
            while let Some(batch) = rows.next().await {
                if sender.send(batch.map_err(classify)).await.is_err() {
                    break;
                }
            }
        };
        let mut task = JoinSet::new();
        task.spawn_on(compute, THREADS.handle());
        let reading = Reading { receiver, task, stop: StopOnDrop(self.stopped.clone()) };
        stream::unfold(Some(reading), next).boxed()
    }
}

/// The rows that operators return which have next to nothing to do, computed by whoever asks for
/// them; `None` if they may take a while.
pub(in crate::query) fn compute_here(
    plan: &Arc<dyn ExecutionPlan>,
    context: &Arc<TaskContext>,
    kept: impl Send + 'static,
) -> Option<BoxStream<'static, Result<RecordBatch, Error>>> {
    if !is_short(plan) {
        return None;
    }
    let streams = (0..plan.output_partitioning().partition_count())
        .map(|partition| plan.execute(partition, Arc::clone(context)));
    let rows = match streams.collect::<DataFusionResult<Vec<_>>>() {
        Ok(streams) => stream::select_all(streams).boxed(),
        Err(error) => stream::iter([Err(error)]).boxed(),
    };
    let rows = rows.map(move |batch| {
        let _kept = &kept;
        batch.map_err(classify)
    });
    Some(rows.boxed())
}

/// Whether operators only look some keys up, and compute nothing of the rows that can take long.
fn is_short(plan: &Arc<dyn ExecutionPlan>) -> bool {
    if let Some(scan) = plan.downcast_ref::<FrameScan>() {
        return scan.looks_up_few();
    }
    let is_known = plan.is::<ProjectionExec>() || plan.is::<FilterExec>();
    let mut is_short = is_known;
    let visited = plan.apply_expressions(&mut |expression| {
        is_short &= is_quick(expression);
        Ok(TreeNodeRecursion::Continue)
    });
    is_short && visited.is_ok() && plan.children().into_iter().all(self::is_short)
}

fn is_quick(expression: &Arc<dyn PhysicalExpr>) -> bool {
    let itself = expression.is::<Column>()
        || expression.is::<Literal>()
        || expression.is::<BinaryExpr>()
        || expression.is::<CastExpr>();
    itself && expression.children().into_iter().all(is_quick)
}

/// What reads a query's rows. To drop it stops the query.
struct Reading {
    receiver: mpsc::Receiver<Result<RecordBatch, Error>>,
    task: JoinSet<()>,
    #[expect(dead_code, reason = "held for its drop")]
    stop: StopOnDrop,
}

/// The next batch. A query that broke off without an error must not look like one that ended.
async fn next(reading: Option<Reading>) -> Option<(Result<RecordBatch, Error>, Option<Reading>)> {
    let mut reading = reading?;
    if let Some(batch) = reading.receiver.recv().await {
        return Some((batch, Some(reading)));
    }
    match reading.task.join_next().await {
        Some(Err(failed)) => {
            tracing::error!(error = %failed, "a query's task broke off");
            Some((Err(Error::internal("the query broke off")), None))
        }
        Some(Ok(())) | None => None,
    }
}

/// Whether nobody wants the rows any more.
#[derive(Clone, Debug, Default)]
struct Stopped(Arc<AtomicBool>);

struct StopOnDrop(Stopped);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// Joins may pair rows for very long between two batches of their input; each must yield at its own
/// output, and a nested loop, which may have none, look at every batch of pairs whether to stop.
fn interruptible(
    node: Arc<dyn ExecutionPlan>,
    stopped: &Stopped,
) -> DataFusionResult<Transformed<Arc<dyn ExecutionPlan>>> {
    if node.is::<CrossJoinExec>() {
        return Ok(Transformed::yes(Arc::new(CooperativeExec::new(node))));
    }
    let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() else {
        return Ok(Transformed::no(node));
    };
    let filter = join.filter().map(|filter| {
        let inner = Arc::clone(filter.expression());
        JoinFilter::new(
            Arc::new(UnlessStopped { inner, stopped: stopped.clone() }),
            filter.column_indices().to_vec(),
            Arc::clone(filter.schema()),
        )
    });
    let join = NestedLoopJoinExec::try_new(
        Arc::clone(join.left()),
        Arc::clone(join.right()),
        filter,
        join.join_type(),
        join.projection().as_ref().map(|columns| columns.to_vec()),
    )?;
    Ok(Transformed::yes(Arc::new(CooperativeExec::new(Arc::new(join)))))
}

/// An expression that fails once the query is stopped; nobody sees that error.
#[derive(Clone, Debug)]
struct UnlessStopped {
    inner: Arc<dyn PhysicalExpr>,
    stopped: Stopped,
}

impl PhysicalExpr for UnlessStopped {
    fn data_type(&self, schema: &Schema) -> DataFusionResult<DataType> {
        self.inner.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> DataFusionResult<bool> {
        self.inner.nullable(schema)
    }

    fn return_field(&self, schema: &Schema) -> DataFusionResult<FieldRef> {
        self.inner.return_field(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> DataFusionResult<ColumnarValue> {
        if self.stopped.0.load(Ordering::Relaxed) {
            return Err(DataFusionError::Execution("the query was stopped".to_owned()));
        }
        self.inner.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.inner]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> DataFusionResult<Arc<dyn PhysicalExpr>> {
        let inner = children.pop().unwrap_or_else(|| Arc::clone(&self.inner));
        Ok(Arc::new(Self { inner, stopped: self.stopped.clone() }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt_sql(f)
    }
}

impl fmt::Display for UnlessStopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl PartialEq for UnlessStopped {
    fn eq(&self, other: &Self) -> bool {
        self.inner.eq(&other.inner)
    }
}

impl Eq for UnlessStopped {}

impl Hash for UnlessStopped {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}
