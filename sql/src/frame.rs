//! A leased step: what a statement reads. While a [`Frame`] lives its lease is renewed; when the
//! last owner drops it, the lease is released.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use stillframe_protocol::{Coordinator, Epoch, Grant, LeaseId, RelationId, Step};
use tokio::task::AbortHandle;
use uuid::Uuid;

use crate::write::Overlay;
use crate::{Catalog, Database, Error, SqlState};

/// How long a lease lives without being renewed.
const TIME_TO_LIVE: Duration = Duration::from_secs(10);
/// How often leases are renewed.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(3);

/// One leased step with its catalog, and what the transaction that reads it has changed itself.
#[derive(Debug)]
pub struct Frame {
    lease: Arc<Lease>,
    overlay: Overlay,
}

#[derive(Debug)]
struct Lease {
    database: Arc<Database>,
    grant: Grant,
    catalog: Arc<Catalog>,
}

impl Frame {
    /// Takes a lease on the newest step.
    pub async fn take(database: &Arc<Database>) -> Result<Arc<Self>, Error> {
        let lease = LeaseId(Uuid::new_v4().as_u128());
        let guard = Abandoned { database, lease: Some(lease) };
        let grant = database.coordinator.lease(lease, TIME_TO_LIVE).await?;
        guard.keep();
        database.leases.add(lease, grant.step);
        let lease = Lease {
            catalog: database.catalog(&grant.catalog)?,
            database: Arc::clone(database),
            grant,
        };
        Ok(Arc::new(Self { lease: Arc::new(lease), overlay: Overlay::default() }))
    }

    /// The same step under other changes.
    pub(crate) fn under(&self, overlay: &Overlay) -> Arc<Self> {
        Arc::new(Self { lease: Arc::clone(&self.lease), overlay: overlay.clone() })
    }

    /// What the transaction has changed of it.
    pub(crate) fn overlay(&self) -> &Overlay {
        &self.overlay
    }

    /// The step.
    pub fn step(&self) -> Step {
        self.lease.grant.step
    }

    /// The epoch of the lease.
    pub fn epoch(&self) -> Epoch {
        self.lease.grant.epoch
    }

    /// The catalog of the step, or what the transaction has made of it.
    pub fn catalog(&self) -> &Arc<Catalog> {
        self.overlay.draft().map_or(&self.lease.catalog, |draft| &draft.catalog)
    }

    /// Whether hosts have rows under a number at the step.
    pub(crate) fn stores(&self, id: RelationId) -> bool {
        self.overlay.draft().is_none() || self.lease.catalog.stores(id)
    }

    /// Whether a relation's rows may be others than those that hosts have.
    pub(crate) fn is_changed(&self, relation: RelationId) -> bool {
        if self.overlay.is_empty() {
            return false;
        }
        let mut seen = BTreeSet::new();
        let mut open = vec![relation];
        while let Some(id) = open.pop() {
            let Some(relation) = self.catalog().relations.get(&id) else { continue };
            let stored = relation.stored_id();
            let is_own = self.overlay.table(stored).is_some() || !self.stores(stored);
            if relation.is_stored() && is_own {
                return true;
            }
            open.extend(relation.reads().iter().filter(|id| seen.insert(**id)));
        }
        false
    }

    /// The cluster it is a frame of.
    pub fn database(&self) -> &Arc<Database> {
        &self.lease.database
    }

    /// Fails once the lease was lost (the front end was stopped for longer than its time to live).
    pub fn check(&self) -> Result<(), Error> {
        if self.lease.database.leases.holds(self.lease.grant.lease) {
            return Ok(());
        }
        let message = format!("the lease on step {} has expired", self.step());
        Err(Error::new(SqlState::SERIALIZATION_FAILURE, message)
            .with_hint("Run the statement again."))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.database.leases.remove(self.grant.lease);
    }
}

/// Releases a lease whose grant nobody waited for: the coordinator may have granted it even so.
struct Abandoned<'a> {
    database: &'a Database,
    lease: Option<LeaseId>,
}

impl Abandoned<'_> {
    fn keep(mut self) {
        self.lease = None;
    }
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        if let Some(lease) = self.lease {
            self.database.leases.release(lease);
        }
    }
}

/// Renews and releases this front end's leases.
#[derive(Debug)]
pub(crate) struct LeaseKeeper {
    coordinator: Arc<dyn Coordinator>,
    held: Arc<Mutex<HashMap<LeaseId, Step>>>,
    runtime: tokio::runtime::Handle,
    renewal: AbortHandle,
}

impl LeaseKeeper {
    /// Starts renewing, on the current Tokio runtime.
    pub(crate) fn start(coordinator: Arc<dyn Coordinator>) -> Self {
        let runtime = tokio::runtime::Handle::current();
        let held = Arc::new(Mutex::new(HashMap::new()));
        let renewal = runtime.spawn(renew(Arc::clone(&coordinator), Arc::clone(&held)));
        Self { coordinator, held, runtime, renewal: renewal.abort_handle() }
    }

    /// The runtime on which leases are renewed.
    pub(crate) fn runtime(&self) -> &tokio::runtime::Handle {
        &self.runtime
    }

    fn add(&self, lease: LeaseId, step: Step) {
        lock(&self.held).insert(lease, step);
    }

    fn holds(&self, lease: LeaseId) -> bool {
        lock(&self.held).contains_key(&lease)
    }

    fn remove(&self, lease: LeaseId) {
        if lock(&self.held).remove(&lease).is_some() {
            self.release(lease);
        }
    }

    fn release(&self, lease: LeaseId) {
        let coordinator = Arc::clone(&self.coordinator);
        self.runtime.spawn(async move { coordinator.release(lease).await });
    }
}

impl Drop for LeaseKeeper {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

async fn renew(coordinator: Arc<dyn Coordinator>, held: Arc<Mutex<HashMap<LeaseId, Step>>>) {
    let mut interval = tokio::time::interval(RENEWAL_INTERVAL);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        let leases: Vec<_> = lock(&held).iter().map(|(lease, step)| (*lease, *step)).collect();
        if leases.is_empty() {
            continue;
        }
        match coordinator.renew(leases).await {
            Ok(gone) => {
                for lease in gone {
                    if lock(&held).remove(&lease).is_some() {
                        tracing::warn!(lease = %format!("{:032x}", lease.0), "lease has expired");
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "leases could not be renewed"),
        }
    }
}

fn lock(held: &Mutex<HashMap<LeaseId, Step>>) -> std::sync::MutexGuard<'_, HashMap<LeaseId, Step>> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}
