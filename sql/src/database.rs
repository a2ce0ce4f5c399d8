//! The one thing all sessions share: the cluster as this front end sees it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use stillframe_protocol::{
    CatalogSnapshot, CatalogVersion, Coordinator, Host, HostError, HostId, Plan, Program, Shard,
};

use crate::activity::Activities;
use crate::advisory::Locks;
use crate::frame::LeaseKeeper;
use crate::sequences::Sequences;
use crate::signal::Channels;
use crate::{Catalog, Error, Frame, Role};

/// The database's name.
pub const NAME: &str = "stillframe";
/// The role that owns everything, and is always there.
pub const OWNER: &str = crate::system::OWNER;
/// What the database is called as well, for clients that expect it to be there.
const ALIAS: &str = "postgres";

/// Whether a name is the database's.
pub fn is_name(name: &str) -> bool {
    name == NAME || name == ALIAS
}

/// How many versions of the catalog are kept read.
const CATALOGS_KEPT_MAX: usize = 16;

/// A cluster as a front end sees it.
pub struct Database {
    /// Leases, reservations, commits, the catalog.
    pub(crate) coordinator: Arc<dyn Coordinator>,
    /// The hosts, by place.
    pub(crate) hosts: Vec<Arc<dyn Host>>,
    /// How many workers each host runs.
    pub(crate) workers: u32,
    pub(crate) leases: LeaseKeeper,
    pub(crate) sequences: Sequences,
    pub(crate) channels: Channels,
    pub(crate) advisory: Locks,
    pub(crate) activities: Activities,
    pub(crate) oids: Oids,
    catalogs: Mutex<BTreeMap<CatalogVersion, Arc<Catalog>>>,
    explainer: OnceLock<Explainer>,
    checker: OnceLock<Checker>,
}

/// Tells the operators that the engine makes of a plan over a program, one line for each.
pub type Explainer = Box<dyn Fn(&Plan, &Program) -> Result<Vec<String>, HostError> + Send + Sync>;

/// Tells whether the engine can build a program, before anybody is asked to.
pub type Checker = Arc<dyn Fn(&Arc<Program>) -> Result<(), HostError> + Send + Sync>;

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database")
            .field("coordinator", &self.coordinator)
            .field("hosts", &self.hosts)
            .field("workers", &self.workers)
            .finish_non_exhaustive()
    }
}

/// The OIDs that were given away, also by transactions that were rolled back: a sequence's numbers
/// are told by its OID, and aren't rolled back.
#[derive(Debug, Default)]
pub(crate) struct Oids(AtomicU32);

impl Oids {
    /// The OID that is next in a catalog in which it would be this one.
    pub(crate) fn next_at_least(&self, next: u32) -> u32 {
        self.0.fetch_max(next, Ordering::Relaxed).max(next)
    }
}

impl Database {
    /// A front end of this cluster. Must be called inside a Tokio runtime, on which it keeps
    /// renewing the leases of its frames.
    pub fn new(
        coordinator: Arc<dyn Coordinator>,
        hosts: Vec<Arc<dyn Host>>,
        workers: u32,
    ) -> Arc<Self> {
        let leases = LeaseKeeper::start(Arc::clone(&coordinator));
        Arc::new(Self {
            coordinator,
            hosts,
            workers,
            leases,
            sequences: Sequences::default(),
            channels: Channels::default(),
            advisory: Locks::default(),
            activities: Activities::default(),
            oids: Oids::default(),
            catalogs: Mutex::default(),
            explainer: OnceLock::new(),
            checker: OnceLock::new(),
        })
    }

    /// What is known now of a role; none if there is none of this name. The owner of everything may be
    /// one of whom nothing was said.
    pub async fn role(self: &Arc<Self>, name: &str) -> Result<Option<Role>, Error> {
        let frame = Frame::take(self).await?;
        Ok(frame.catalog().roles.get(name).cloned())
    }

    /// Lets definitions be refused that the engine can't build; before that all are accepted.
    pub fn check_with(&self, checker: Checker) {
        // The first one stays: all check for the same engine.
        let _ = self.checker.set(checker);
    }

    /// Fails if the engine can't build a program. A command that can't be executed would end the
    /// engine, so no program gets into one unchecked.
    pub(crate) async fn check(&self, program: Program) -> Result<(), Error> {
        let Some(checker) = self.checker.get().cloned() else { return Ok(()) };
        let checked = tokio::task::spawn_blocking(move || checker(&Arc::new(program))).await;
        Ok(checked.map_err(|error| Error::internal(error.to_string()))??)
    }

    /// Lets EXPLAIN tell how the engine keeps a materialized view; before that it tells the plan.
    pub fn explain_with(&self, explainer: Explainer) {
        // The first one stays: all explain the same engine.
        let _ = self.explainer.set(explainer);
    }

    pub(crate) fn explain(&self, plan: &Plan, program: &Program) -> Result<Vec<String>, Error> {
        match self.explainer.get() {
            Some(explainer) => Ok(explainer(plan, program)?),
            None => Ok(crate::view::operators(plan)),
        }
    }

    /// The runtime for what goes on when nobody waits for it.
    pub(crate) fn runtime(&self) -> &tokio::runtime::Handle {
        self.leases.runtime()
    }

    /// The host with this place.
    pub(crate) fn host(&self, host: HostId) -> &Arc<dyn Host> {
        &self.hosts[host.0 as usize]
    }

    /// All shards, by host and worker.
    pub(crate) fn shards(&self) -> impl Iterator<Item = Shard> + use<> {
        let (hosts, workers) = (self.hosts.len() as u32, self.workers);
        (0..hosts).flat_map(move |host| {
            (0..workers).map(move |worker| Shard { host: HostId(host), worker })
        })
    }

    /// The catalog that a snapshot holds, read once.
    pub(crate) fn catalog(&self, snapshot: &CatalogSnapshot) -> Result<Arc<Catalog>, Error> {
        let mut catalogs = self.catalogs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(catalog) = catalogs.get(&snapshot.version) {
            return Ok(Arc::clone(catalog));
        }
        let catalog = Arc::new(Catalog::decode(snapshot)?);
        catalogs.insert(snapshot.version, Arc::clone(&catalog));
        while catalogs.len() > CATALOGS_KEPT_MAX {
            catalogs.pop_first();
        }
        Ok(catalog)
    }
}
