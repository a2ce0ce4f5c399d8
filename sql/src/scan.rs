//! Reads a stored relation of a frame: one partition for each shard, filters and limits done by the
//! hosts. What the transaction has changed itself is added on the way.

mod pushdown;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::compute::filter_record_batch;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DFSchema, DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use futures::{StreamExt, TryStreamExt};
use stillframe_protocol::{HostError, RelationId, ScanPart, ScanRequest, ScanStream, Shard};

use crate::query::{BATCH_ROWS, frame_of};
use crate::write::{Difference, Gone, keep};
use crate::{Error, Frame, Relation, RelationKind};

pub(crate) use pushdown::is_widening;

/// A table or materialized view. Which frame's rows they are is told by the session that scans it,
/// so that a plan can be kept for frames to come.
#[derive(Debug)]
pub(crate) struct StoredTable {
    relation: Relation,
    schema: SchemaRef,
}

impl StoredTable {
    pub(crate) fn new(relation: &Relation) -> Self {
        let schema = relation.defined_schema();
        Self { relation: relation.clone(), schema }
    }

    /// Fails if a row that the view reads makes one of its expressions fail: then what the view has
    /// isn't its answer, on whatever shard the row may be, and whatever the query wants of it.
    async fn raise_errors(&self, frame: &Frame) -> std::result::Result<(), Error> {
        if !matches!(self.relation.kind, RelationKind::MaterializedView { .. })
            || !frame.stores(self.relation.stored_id())
        {
            return Ok(());
        }
        let (epoch, step) = (frame.epoch(), frame.step());
        let hosts = frame.database().hosts.iter();
        let asked = hosts.map(|host| host.view_errors(epoch, step, self.relation.stored_id()));
        let errors = futures::future::try_join_all(asked).await?;
        errors.into_iter().flatten().min().map_or(Ok(()), |error| Err(error.into()))
    }

    /// The relation.
    pub(crate) fn relation(&self) -> &Relation {
        &self.relation
    }
}

#[async_trait]
impl TableProvider for StoredTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match pushdown::condition_once_bound(filter, &self.relation)
        {
            Some(_) => TableProviderFilterPushDown::Exact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let frame = frame_of(session.config())?;
        self.raise_errors(&frame).await.map_err(external)?;
        let filters = filters.iter().map(pushdown::folded).collect::<Result<Vec<_>>>()?;
        let conditions = filters.iter().map(|filter| {
            pushdown::condition(filter, &self.relation).ok_or_else(|| {
                DataFusionError::Internal(format!("hosts were not asked for the filter {filter}"))
            })
        });
        let all = (0..self.schema.fields().len()).collect();
        let projection = projection.cloned().unwrap_or(all);
        let order = self.relation.stored_order();
        let stored = projection.iter().map(|defined| {
            order.iter().position(|place| place == defined).expect("every column is stored")
        });
        let stored: Vec<usize> = stored.collect();
        let keys = pushdown::keys(&filters, &self.relation);
        let schema = Arc::new(self.schema.project(&projection)?);
        let id = self.relation.stored_id();
        let changes = frame.overlay().table(id);
        let is_stored = frame.stores(id);
        if !is_stored && changes.is_none() {
            return Ok(Arc::new(EmptyExec::new(schema)));
        }
        let changes = match changes {
            None => None,
            Some(changes) => {
                let Difference { gone, come } =
                    changes.difference(keys.as_ref()).map_err(external)?;
                let come = self.passing(session, come, &filters)?.project(&projection)?;
                Some(Arc::new(Changed { gone, come: renamed(come, &schema)? }))
            }
        };
        let told_apart = changes.as_ref().map_or(0, |changes| changes.told_apart());
        let request = ScanRequest {
            epoch: frame.epoch(),
            step: frame.step(),
            relation: id,
            worker: 0,
            keys,
            filters: conditions.collect::<Result<_>>()?,
            // Some of the first rows may be gone.
            limit: limit.filter(|_| told_apart == 0),
            projection: (0..told_apart).chain(stored).collect(),
            batch_rows: BATCH_ROWS,
        };
        let shards = frame.database().shards().filter(|_| is_stored).collect();
        Ok(Arc::new(FrameScan::new(&frame, &self.relation, request, shards, changes, schema)))
    }
}

impl StoredTable {
    /// Those of some rows, given as stored, that pass the filters, in the order of the definition.
    fn passing(
        &self,
        session: &dyn Session,
        rows: RecordBatch,
        filters: &[Expr],
    ) -> Result<RecordBatch> {
        let order = self.relation.stored_order();
        let mut places: Vec<_> = (0..order.len()).collect();
        places.sort_unstable_by_key(|place| order[*place]);
        let rows = renamed(rows.project(&places)?, &self.schema)?;
        let Some(filter) = conjunction(filters.iter().cloned()) else { return Ok(rows) };
        let schema = DFSchema::try_from(Arc::clone(&self.schema))?;
        let filter = session.create_physical_expr(filter, &schema)?;
        let passes = filter.evaluate(&rows)?.into_array(rows.num_rows())?;
        Ok(filter_record_batch(&rows, passes.as_boolean())?)
    }
}

/// What the transaction that reads a table has changed of it.
#[derive(Debug)]
struct Changed {
    gone: Gone,
    /// As the scan returns rows.
    come: RecordBatch,
}

impl Changed {
    /// How many leading columns are asked of the hosts only to tell which rows are gone.
    fn told_apart(&self) -> usize {
        if self.gone.is_empty() { 0 } else { self.gone.columns() }
    }
}

/// Scans some shards of a relation.
#[derive(Debug)]
pub(crate) struct FrameScan {
    frame: Arc<Frame>,
    name: String,
    /// How many columns the relation's key has.
    key_columns: usize,
    request: ScanRequest,
    shards: Vec<Shard>,
    /// What the transaction has changed; its new rows are a partition more.
    changes: Option<Arc<Changed>>,
    properties: Arc<PlanProperties>,
}

impl FrameScan {
    fn new(
        frame: &Arc<Frame>,
        relation: &Relation,
        request: ScanRequest,
        shards: Vec<Shard>,
        changes: Option<Arc<Changed>>,
        schema: SchemaRef,
    ) -> Self {
        let name = format!("{}.{}", relation.schema, relation.name);
        let key_columns = match &relation.kind {
            RelationKind::Table { key } => key.len(),
            _ => 0,
        };
        let distinct: BTreeSet<_> = shards.iter().collect();
        assert_eq!(distinct.len(), shards.len(), "a shard must be read once");
        let partitions = shards.len() + usize::from(changes.is_some());
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            // Never by hash: the engine's hash isn't DataFusion's.
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        let (frame, properties) = (Arc::clone(frame), Arc::new(properties));
        Self { frame, name, key_columns, request, shards, changes, properties }
    }

    /// Whether at most a few rows are asked for, by their keys.
    pub(crate) fn looks_up_few(&self) -> bool {
        const FEW: usize = 16;
        let has_all = |keys: &RecordBatch| keys.num_columns() == self.key_columns;
        self.request.keys.as_ref().is_some_and(|keys| has_all(keys) && keys.num_rows() <= FEW)
    }
}

impl DisplayAs for FrameScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FrameScan: {}, step={}", self.name, self.request.step)?;
        let fields = self.schema();
        let columns: Vec<_> = fields.fields().iter().map(|field| field.name().as_str()).collect();
        write!(f, ", columns=[{}]", columns.join(", "))?;
        if let Some(keys) = &self.request.keys {
            write!(f, ", keys={}", keys.num_rows())?;
        }
        if !self.request.filters.is_empty() {
            write!(f, ", filters={}", self.request.filters.len())?;
        }
        if let Some(limit) = self.request.limit {
            write!(f, ", limit={limit}")?;
        }
        if self.changes.is_some() {
            write!(f, ", changed")?;
        }
        write!(f, ", shards={}", self.shards.len())
    }
}

impl ExecutionPlan for FrameScan {
    fn name(&self) -> &str {
        "FrameScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let changes = self.changes.clone();
        if let Some(changes) = &changes
            && partition == self.shards.len()
        {
            let schema = self.schema();
            let come = futures::stream::iter([Ok(changes.come.clone())]);
            return Ok(Box::pin(RecordBatchStreamAdapter::new(schema, come)));
        }
        let shard = *self.shards.get(partition).ok_or_else(|| {
            DataFusionError::Internal(format!("there is no shard number {partition}"))
        })?;
        let host = Arc::clone(self.frame.database().host(shard.host));
        let request = ScanRequest { worker: shard.worker, ..self.request.clone() };
        let schema = self.schema();
        let relation = request.relation;
        let frame = Arc::clone(&self.frame);
        let opened = async move {
            frame.check()?;
            let stream = host.scan(request).await?;
            Ok::<_, Error>(whole(stream, relation, shard))
        };
        let stream = {
            let schema = Arc::clone(&schema);
            let mut counted = HashMap::new();
            futures::stream::once(opened).try_flatten().map(move |batch| {
                let mut batch = batch.map_err(external)?;
                if let Some(changes) = changes.as_ref().filter(|c| c.told_apart() > 0) {
                    let stays = changes.gone.stay(&batch, &mut counted).map_err(external)?;
                    batch = keep(&batch, stays, changes.told_apart()).map_err(external)?;
                }
                renamed(batch, &schema)
            })
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream)))
    }
}

fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// The same columns under the names and with the metadata that the plan knows.
fn renamed(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = batch.columns().to_vec();
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

/// The batches of a scan. An answer that stops without its end, or whose end counts other rows than
/// have come, is an error.
fn whole(
    stream: ScanStream,
    relation: RelationId,
    shard: Shard,
) -> impl futures::Stream<Item = std::result::Result<RecordBatch, Error>> + Send {
    let start = Reading::Open { stream, rows: 0 };
    futures::stream::unfold(start, move |reading| async move {
        let Reading::Open { mut stream, rows } = reading else { return None };
        let broken = |what: &str| {
            let message = format!("scan of relation {relation} on shard {shard} {what}");
            Error::from(HostError::Unreachable(message))
        };
        match stream.next().await {
            Some(Ok(ScanPart::Batch(batch))) => {
                let rows = rows + batch.num_rows() as u64;
                Some((Ok(batch), Reading::Open { stream, rows }))
            }
            Some(Ok(ScanPart::End { rows: sent })) if sent == rows => None,
            Some(Ok(ScanPart::End { .. })) => Some((Err(broken("lost rows")), Reading::Over)),
            Some(Err(error)) => Some((Err(error.into()), Reading::Over)),
            None => Some((Err(broken("stopped without its end")), Reading::Over)),
        }
    })
}

/// Where the reading of a scan stands.
enum Reading {
    Open { stream: ScanStream, rows: u64 },
    Over,
}
