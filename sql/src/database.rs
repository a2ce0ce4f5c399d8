//! The one thing all sessions share: the cluster as this front end sees it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use stillframe_protocol::{CatalogSnapshot, CatalogVersion, Coordinator, Host, HostId, Shard};

use crate::frame::LeaseKeeper;
use crate::{Catalog, Error};

/// The database's name.
pub const NAME: &str = "stillframe";
/// What the database is called as well, for clients that expect it to be there.
const ALIAS: &str = "postgres";

/// Whether a name is the database's.
pub fn is_name(name: &str) -> bool {
    name == NAME || name == ALIAS
}

/// How many versions of the catalog are kept read.
const CATALOGS_KEPT_MAX: usize = 16;

/// A cluster as a front end sees it.
#[derive(Debug)]
pub struct Database {
    /// Leases, reservations, commits, the catalog.
    pub(crate) coordinator: Arc<dyn Coordinator>,
    /// The hosts, by place.
    pub(crate) hosts: Vec<Arc<dyn Host>>,
    /// How many workers each host runs.
    pub(crate) workers: u32,
    pub(crate) leases: LeaseKeeper,
    catalogs: Mutex<BTreeMap<CatalogVersion, Arc<Catalog>>>,
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
        Arc::new(Self { coordinator, hosts, workers, leases, catalogs: Mutex::default() })
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
