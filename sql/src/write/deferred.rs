//! Foreign keys that a transaction looks at when it commits.

use std::collections::BTreeMap;
use std::sync::Arc;

use stillframe_protocol::Step;

use super::Transaction;
use crate::{Catalog, Deferral, Error, Frame, SqlState};

/// What SET CONSTRAINTS has said.
#[derive(Clone, Debug, Default)]
pub(super) struct Modes {
    all: Option<bool>,
    /// By OID, whether it is put off.
    named: BTreeMap<u32, bool>,
}

impl Modes {
    /// Whether a constraint is put off.
    pub(super) fn put_off(&self, oid: u32, deferral: Deferral) -> bool {
        let said = self.named.get(&oid).copied().or(self.all);
        match deferral {
            Deferral::Never => false,
            Deferral::OnDemand => said.unwrap_or(false),
            Deferral::Initially => said.unwrap_or(true),
        }
    }
}

impl Transaction {
    /// Puts constraints off, all that can be or some by their names, or doesn't any longer: then what
    /// was put off is looked at.
    pub(crate) async fn set_constraints(
        &mut self,
        catalog: &Arc<Catalog>,
        names: Option<&[String]>,
        deferred: bool,
    ) -> Result<(), Error> {
        match names {
            None => self.modes = Modes { all: Some(deferred), named: BTreeMap::new() },
            Some(names) => {
                for name in names {
                    let all = catalog.relations.values().flat_map(|table| &table.constraints);
                    let named: Vec<_> = all.filter(|found| found.name == *name).collect();
                    if named.is_empty() {
                        let message = format!("constraint \"{name}\" does not exist");
                        return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
                    }
                    if named.iter().any(|found| found.deferral == Deferral::Never) {
                        let message = format!("constraint \"{name}\" is not deferrable");
                        return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message));
                    }
                    self.modes.named.extend(named.iter().map(|found| (found.oid, deferred)));
                }
            }
        }
        let modes = self.modes.clone();
        let (later, now) = std::mem::take(&mut self.deferred).split(&modes);
        self.deferred = later;
        let frame = self.newer_frame(Step(0)).await?;
        now.run_late(&frame).await
    }

    /// Looks at all that was put off.
    pub(super) async fn check_deferred(&mut self) -> Result<(), Error> {
        let deferred = std::mem::take(&mut self.deferred);
        if deferred.is_empty() {
            return Ok(());
        }
        let frame: Arc<Frame> = self.newer_frame(Step(0)).await?;
        deferred.run_late(&frame).await
    }
}
