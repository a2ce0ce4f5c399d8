//! Changes of the catalog that a transaction has made and nobody else sees yet.
//!
//! Who changes the catalog reserves it: shared, if it begins again when somebody else was faster, or
//! alone, to keep what it has made until its commit.

use std::sync::Arc;

use stillframe_protocol::{CatalogVersion, Entry, Lockable, Mode, RelationId, Reservation, Step};

use super::{Transaction, changed_meanwhile};
use crate::{Catalog, Error, Frame};

/// What the catalog is reserved as: `pg_class`, which is no relation of any circuit.
const CATALOG: RelationId = RelationId(1259);

/// The catalog as a transaction has changed it.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    /// The version that it was made from.
    pub(super) base: CatalogVersion,
    pub(crate) catalog: Arc<Catalog>,
    /// Whether it differs from that.
    pub(super) is_changed: bool,
}

impl Transaction {
    /// Begins to change the catalog, if it hasn't begun: a frame with the newest one.
    pub(crate) async fn draft(&mut self, mode: Mode) -> Result<Arc<Frame>, Error> {
        if self.overlay().draft().is_none() {
            let frame = self.frame(Step(0)).await?;
            let entry = Entry { lockable: Lockable::Relation(CATALOG), mode };
            // The catalog is the newest, whatever the frame shows: what came since has no rows in it.
            self.reserve(&frame, vec![entry]).await?;
            let database = Arc::clone(self.database());
            let head = database.coordinator.catalog_head().await?;
            let mut catalog = database.catalog(&head)?;
            // What was rolled back has used its OIDs up.
            let next = database.oids.next_at_least(catalog.next_oid);
            if next != catalog.next_oid {
                Arc::make_mut(&mut catalog).next_oid = next;
            }
            let draft = Draft { base: head.version, catalog, is_changed: false };
            let overlay = self.overlay().drafting(draft);
            self.restore(overlay);
        }
        self.frame(Step(0)).await
    }

    /// Reserves entries that must be as the frame shows them: returns a frame that does.
    pub(crate) async fn reserve_all(&mut self, entries: Vec<Entry>) -> Result<Arc<Frame>, Error> {
        let mut at_least = Step(0);
        loop {
            let frame = self.frame(at_least).await?;
            match self.reserve(&frame, entries.clone()).await? {
                Reservation::Granted => return Ok(frame),
                Reservation::Changed(_) if self.is_repeatable() => return Err(changed_meanwhile()),
                Reservation::Changed(step) => at_least = step,
            }
        }
    }

    /// Whether somebody else has changed the catalog since this one was made.
    pub(crate) async fn is_outdated(&self) -> Result<bool, Error> {
        let Some(draft) = self.overlay().draft() else { return Ok(false) };
        let head = self.database().coordinator.catalog_head().await?;
        Ok(head.version != draft.base)
    }
}
