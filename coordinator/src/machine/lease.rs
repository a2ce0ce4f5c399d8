//! Leases: a client's hold on one step.
//!
//! A lease is granted on the common step alone and ends exactly once: it is released or it expires.
//! Only a tick lets leases expire; if ticks have stopped for long the clock proves nothing, and
//! every lease starts its time to live anew.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use stillframe_protocol::{CatalogSnapshot, LeaseId, LeaseStatus, Step};

use super::multiset::Multiset;
use super::{Defect, breaks, violated};

/// The leases that live.
#[derive(Debug)]
pub(super) struct Leases {
    defect: Defect,
    live: BTreeMap<LeaseId, Lease>,
    deadlines: BTreeSet<(Duration, LeaseId)>,
    pinned: Multiset<Step>,
}

/// A lease that lives.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    pub(super) step: Step,
    pub(super) catalog: CatalogSnapshot,
    granted_at: Duration,
    time_to_live: Duration,
    deadline: Duration,
}

impl Leases {
    pub(super) fn new(defect: Defect) -> Self {
        Self {
            defect,
            live: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            pinned: Multiset::default(),
        }
    }

    /// Grants a lease, or returns and prolongs the one that was granted under this id.
    pub(super) fn grant(
        &mut self,
        now: Duration,
        id: LeaseId,
        time_to_live: Duration,
        step: Step,
        catalog: &CatalogSnapshot,
    ) -> &Lease {
        if self.live.contains_key(&id) {
            self.prolong(now, id);
        } else {
            let deadline = now + time_to_live;
            self.deadlines.insert((deadline, id));
            self.pinned.insert(step);
            let catalog = catalog.clone();
            let lease = Lease { step, catalog, granted_at: now, time_to_live, deadline };
            self.live.insert(id, lease);
        }
        &self.live[&id]
    }

    /// Starts a lease's time to live anew; false if there is none that holds this step.
    pub(super) fn renew(&mut self, now: Duration, id: LeaseId, step: Step) -> bool {
        let lives = self.live.get(&id).is_some_and(|lease| lease.step == step);
        if lives && !breaks!(self.defect, ForgetsRenewals) {
            self.prolong(now, id);
        }
        lives
    }

    /// Ends a lease if it lives; returns whether its step has lost its last one.
    pub(super) fn release(&mut self, id: LeaseId) -> bool {
        let Some(lease) = self.live.remove(&id) else { return false };
        self.deadlines.remove(&(lease.deadline, id));
        self.pinned.remove(lease.step)
    }

    /// Ends every lease whose time is over; returns whether a step has lost its last one.
    pub(super) fn expire(&mut self, now: Duration) -> bool {
        let mut pin_ended = false;
        while let Some(&(deadline, id)) = self.deadlines.first() {
            if deadline > now || breaks!(self.defect, NeverExpires) {
                break;
            }
            pin_ended |= self.release(id);
        }
        pin_ended
    }

    /// Starts every lease's time to live anew.
    pub(super) fn prolong_all(&mut self, now: Duration) {
        let ids: Vec<LeaseId> = self.live.keys().copied().collect();
        for id in ids {
            self.prolong(now, id);
        }
    }

    fn prolong(&mut self, now: Duration, id: LeaseId) {
        if let Some(lease) = self.live.get_mut(&id) {
            self.deadlines.remove(&(lease.deadline, id));
            lease.deadline = lease.deadline.max(now + lease.time_to_live);
            self.deadlines.insert((lease.deadline, id));
        }
    }

    /// The distinct steps that leases hold, ascending.
    pub(super) fn pinned(&self) -> impl Iterator<Item = Step> + '_ {
        self.pinned.distinct()
    }

    /// The oldest step that a lease holds.
    pub(super) fn oldest(&self) -> Option<Step> {
        self.pinned.first()
    }

    pub(super) fn status(&self, now: Duration) -> Vec<LeaseStatus> {
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        self.live
            .iter()
            .map(|(id, lease)| LeaseStatus {
                lease: *id,
                step: lease.step,
                age_ms: millis(now.saturating_sub(lease.granted_at)),
                expires_in_ms: millis(lease.deadline.saturating_sub(now)),
            })
            .collect()
    }

    /// Leases pin steps up to the common one.
    pub(super) fn leases_are_on_common_steps(&self, common: Option<Step>) -> bool {
        self.pinned.distinct().all(|step| Some(step) <= common)
    }

    /// The invariants of this part that don't hold, by name.
    pub(super) fn violated(&self) -> Vec<&'static str> {
        violated([
            ("every lease can expire", self.every_lease_can_expire()),
            ("pins count leases", self.pins_count_leases()),
        ])
    }

    /// Every lease has its one deadline.
    fn every_lease_can_expire(&self) -> bool {
        self.live.len() == self.deadlines.len()
            && self.live.iter().all(|(id, lease)| self.deadlines.contains(&(lease.deadline, *id)))
    }

    /// A step is pinned as often as leases hold it.
    fn pins_count_leases(&self) -> bool {
        let mut held = BTreeMap::<Step, usize>::new();
        for lease in self.live.values() {
            *held.entry(lease.step).or_default() += 1;
        }
        held.into_iter().eq(self.pinned.counts())
    }
}
