//! Versions of the catalog, and the program of the newest.
//!
//! The head is the newest accepted version, whose step may still be under way; what changes start
//! from. The current version is that of the common step; what leases show. What the bytes mean only
//! front ends know.
//!
//! No two catalogs have the same version, in no two epochs: else a change that was made from a
//! catalog of an epoch that has ended could be taken for one of the next.

use std::sync::Arc;

use stillframe_protocol::{CatalogSnapshot, CatalogVersion, CoordinatorError, Epoch, Program};

use super::{Defect, breaks};

/// The current version and the head.
#[derive(Debug)]
pub(super) struct Catalog {
    defect: Defect,
    current: CatalogSnapshot,
    head: CatalogSnapshot,
    program: Arc<Program>,
}

impl Catalog {
    pub(super) fn new(epoch: Epoch, defect: Defect) -> Self {
        let version = first_version(epoch);
        let empty = CatalogSnapshot { version, bytes: Arc::from([]) };
        let program = Arc::new(Program::default());
        Self { defect, current: empty.clone(), head: empty, program }
    }

    /// The version of the common step.
    pub(super) fn current(&self) -> &CatalogSnapshot {
        if breaks!(self.defect, ShowsCatalogEarly) { &self.head } else { &self.current }
    }

    /// The newest accepted version.
    pub(super) fn head(&self) -> &CatalogSnapshot {
        &self.head
    }

    /// What the circuit computes once the head has taken effect.
    pub(super) fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Makes a new head, if it was made from this one.
    pub(super) fn accept(
        &mut self,
        base: CatalogVersion,
        bytes: Arc<[u8]>,
        program: Program,
    ) -> Result<(), CoordinatorError> {
        if base != self.head.version && !breaks!(self.defect, MergesBlindly) {
            return Err(CoordinatorError::CatalogChanged);
        }
        self.head = CatalogSnapshot { version: self.head.version.next(), bytes };
        self.program = Arc::new(program);
        Ok(())
    }

    /// Learns that a version has taken effect on all hosts.
    pub(super) fn took_effect(&mut self, catalog: CatalogSnapshot) {
        self.current = catalog;
    }

    /// What leases show was accepted.
    pub(super) fn current_is_not_ahead_of_head(&self) -> bool {
        self.current.version <= self.head.version
    }
}

/// Each epoch has sixteen million versions for itself; those of the first begin at 0. Even if epochs
/// are counted in seconds since 1970 all of them fit the bigint that clients see.
fn first_version(epoch: Epoch) -> CatalogVersion {
    CatalogVersion(epoch.0.saturating_sub(1) << 24)
}
