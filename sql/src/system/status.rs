//! `stillframe.hosts`, `workers`, `steps`, `leases`, `views` and `jobs`: what the cluster does.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{MemTable, Session, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use stillframe_protocol::{JobKind, JobPhase, RelationId, RelationStatistics, Statistics};

use super::table::{Cell, SystemTable, schema};
use crate::query::QueryContext;
use crate::{Catalog, Error, Frame, RelationKind, Type};

/// Which table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Hosts,
    Workers,
    Steps,
    Leases,
    Views,
    Jobs,
}

impl Kind {
    fn columns(self) -> Vec<(&'static str, Type)> {
        match self {
            Self::Hosts => vec![
                ("host", Type::Integer),
                ("workers", Type::Integer),
                ("active", Type::Boolean),
                ("step", Type::BigInt),
                ("frames", Type::Integer),
            ],
            Self::Workers => vec![
                ("host", Type::Integer),
                ("worker", Type::Integer),
                ("relations", Type::Integer),
                ("entries", Type::BigInt),
            ],
            Self::Steps => vec![
                ("step", Type::BigInt),
                ("clock", Type::Timestamptz),
                ("transactions", Type::Integer),
                ("took_us", Type::BigInt),
                ("catalog_version", Type::BigInt),
            ],
            Self::Leases => vec![
                ("lease", Type::Uuid),
                ("step", Type::BigInt),
                ("age_ms", Type::BigInt),
                ("expires_in_ms", Type::BigInt),
            ],
            Self::Views => vec![
                ("schema", Type::Text),
                ("name", Type::Text),
                ("oid", Type::Oid),
                ("step", Type::BigInt),
                ("lag_steps", Type::BigInt),
                ("entries", Type::BigInt),
                ("shards", Type::Integer),
                ("sqlstate", Type::Text),
                ("error", Type::Text),
            ],
            Self::Jobs => vec![
                ("job", Type::BigInt),
                ("kind", Type::Text),
                ("relations", Type::Integer),
                ("phase", Type::Text),
                ("pumps", Type::BigInt),
                ("hosts_done", Type::Integer),
                ("recorded", Type::BigInt),
            ],
        }
    }
}

/// The table with this name, asked for when it is scanned.
pub(super) fn table(context: &QueryContext, name: &str) -> Option<Arc<dyn TableProvider>> {
    let kind = match name {
        "hosts" => Kind::Hosts,
        "workers" => Kind::Workers,
        "steps" => Kind::Steps,
        "leases" => Kind::Leases,
        "views" => Kind::Views,
        "jobs" => Kind::Jobs,
        _ => return None,
    };
    let catalog = Arc::clone(&context.catalog);
    Some(Arc::new(StatusTable { kind, frame: Arc::clone(&context.frame), catalog }))
}

struct StatusTable {
    kind: Kind,
    frame: Arc<Frame>,
    catalog: Arc<Catalog>,
}

impl fmt::Debug for StatusTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StatusTable({:?})", self.kind)
    }
}

#[async_trait]
impl TableProvider for StatusTable {
    fn schema(&self) -> SchemaRef {
        schema(&self.kind.columns())
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let rows = self.rows().await.map_err(|error| DataFusionError::External(Box::new(error)))?;
        let table = SystemTable { columns: self.kind.columns(), rows };
        let table = MemTable::try_new(table.schema(), vec![vec![table.batch()]])?;
        table.scan(session, projection, filters, limit).await
    }
}

impl StatusTable {
    async fn rows(&self) -> Result<Vec<Vec<Cell>>, Error> {
        match self.kind {
            Kind::Hosts => self.hosts().await,
            Kind::Workers => self.workers().await,
            Kind::Steps => self.steps().await,
            Kind::Leases => self.leases().await,
            Kind::Views => self.views().await,
            Kind::Jobs => self.jobs().await,
        }
    }

    /// What each host keeps at the statement's step, by place.
    async fn statistics(&self) -> Result<Vec<Statistics>, Error> {
        let (epoch, step) = (self.frame.epoch(), self.frame.step());
        let hosts = self.frame.database().hosts.iter();
        let asked = hosts.map(|host| host.statistics(epoch, step));
        Ok(futures::future::try_join_all(asked).await?)
    }

    async fn hosts(&self) -> Result<Vec<Vec<Cell>>, Error> {
        let status = self.frame.database().coordinator.status().await?;
        let kept = self.statistics().await?;
        let hosts = status.hosts.iter().zip(kept);
        let rows = hosts.map(|(host, kept)| {
            vec![
                host.host.0.into(),
                host.workers.into(),
                host.active.into(),
                host.step.map(|step| step.0).into(),
                Cell::Integer(kept.frames.len() as i64),
            ]
        });
        Ok(rows.collect())
    }

    async fn workers(&self) -> Result<Vec<Vec<Cell>>, Error> {
        let kept = self.statistics().await?;
        let mut by_shard: BTreeMap<_, (i64, u64)> =
            self.frame.database().shards().map(|shard| (shard, (0, 0))).collect();
        for relation in kept.iter().flat_map(|kept| &kept.relations) {
            let (relations, entries) = by_shard.entry(relation.shard).or_default();
            *relations += 1;
            *entries += relation.entries;
        }
        let rows = by_shard.into_iter().map(|(shard, (relations, entries))| {
            vec![shard.host.0.into(), shard.worker.into(), relations.into(), entries.into()]
        });
        Ok(rows.collect())
    }

    async fn steps(&self) -> Result<Vec<Vec<Cell>>, Error> {
        let status = self.frame.database().coordinator.status().await?;
        let rows = status.steps.iter().map(|step| {
            vec![
                step.step.0.into(),
                Cell::Time(step.clock_us),
                step.transactions.into(),
                step.took_us.into(),
                step.catalog.0.into(),
            ]
        });
        Ok(rows.collect())
    }

    async fn leases(&self) -> Result<Vec<Vec<Cell>>, Error> {
        let status = self.frame.database().coordinator.status().await?;
        let rows = status.leases.iter().map(|lease| {
            vec![
                uuid::Uuid::from_u128(lease.lease.0).to_string().into(),
                lease.step.0.into(),
                lease.age_ms.into(),
                lease.expires_in_ms.into(),
            ]
        });
        Ok(rows.collect())
    }

    async fn jobs(&self) -> Result<Vec<Vec<Cell>>, Error> {
        let status = self.frame.database().coordinator.status().await?;
        let rows = status.jobs.iter().map(|job| {
            let kind = match job.kind {
                JobKind::Describe => "describe",
                JobKind::Create => "create",
                JobKind::Drop => "drop",
                JobKind::Exchange => "exchange",
            };
            let (phase, progress) = match job.phase {
                JobPhase::Waits => ("waits", None),
                JobPhase::Replaces => ("replaces", None),
                JobPhase::Fills { pumps, hosts_done, recorded } => {
                    ("fills", Some((pumps, hosts_done, recorded)))
                }
                JobPhase::CutsOver => ("cuts over", None),
            };
            vec![
                job.id.0.into(),
                kind.into(),
                Cell::Integer(job.relations.len() as i64),
                phase.into(),
                progress.map(|(pumps, ..)| pumps).into(),
                progress.map(|(_, hosts_done, _)| hosts_done).into(),
                progress.map(|(.., recorded)| recorded).into(),
            ]
        });
        Ok(rows.collect())
    }

    async fn views(&self) -> Result<Vec<Vec<Cell>>, Error> {
        let database = self.frame.database();
        let common = database.coordinator.status().await?.common;
        let step = self.frame.step();
        let lag = common.map_or(0, |common| common.0.saturating_sub(step.0));
        let kept = self.statistics().await?;
        let kept: Vec<_> = kept.iter().flat_map(|kept| &kept.relations).collect();
        let mut rows = vec![];
        for view in self.catalog.relations.values() {
            if !matches!(view.kind, RelationKind::MaterializedView { .. }) {
                continue;
            }
            let shards: Vec<&&RelationStatistics> =
                kept.iter().filter(|kept| kept.relation == view.stored_id()).collect();
            let error = self.error(view.stored_id()).await?;
            rows.push(vec![
                view.schema.as_str().into(),
                view.name.as_str().into(),
                view.id.0.into(),
                step.0.into(),
                lag.into(),
                shards.iter().map(|shard| shard.entries).sum::<u64>().into(),
                Cell::Integer(shards.len() as i64),
                error.as_ref().map(|error| error.sqlstate.as_str()).into(),
                error.as_ref().map(|error| error.message.as_str()).into(),
            ]);
        }
        Ok(rows)
    }

    /// What reading the view raises, if anything.
    async fn error(
        &self,
        view: RelationId,
    ) -> Result<Option<stillframe_protocol::RowError>, Error> {
        let (epoch, step) = (self.frame.epoch(), self.frame.step());
        let hosts = self.frame.database().hosts.iter();
        let asked = hosts.map(|host| host.view_errors(epoch, step, view));
        let errors = futures::future::try_join_all(asked).await?;
        Ok(errors.into_iter().flatten().min())
    }
}
