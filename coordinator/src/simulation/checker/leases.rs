//! Which leases must live, and so which frames.

use std::collections::BTreeMap;
use std::time::Duration;

use stillframe_protocol::{HostId, LeaseId, Step};

/// The leases that were granted and not given back.
#[derive(Default)]
pub(super) struct Leases {
    granted: BTreeMap<LeaseId, Granted>,
}

struct Granted {
    step: Step,
    time_to_live: Duration,
    /// It must not end by itself before.
    until: Duration,
}

impl Leases {
    pub(super) fn granted(
        &mut self,
        now: Duration,
        lease: LeaseId,
        step: Step,
        time_to_live: Duration,
    ) -> Result<(), String> {
        if let Some(known) = self.granted.get(&lease)
            && known.until > now
            && known.step != step
        {
            return Err(format!("lease {lease} is granted on {} and on {step}", known.step));
        }
        let until = now + time_to_live;
        self.granted.insert(lease, Granted { step, time_to_live, until });
        Ok(())
    }

    pub(super) fn renewed(&mut self, now: Duration, lease: LeaseId) {
        if let Some(granted) = self.granted.get_mut(&lease) {
            granted.until = granted.until.max(now + granted.time_to_live);
        }
    }

    pub(super) fn ended(&mut self, lease: LeaseId) {
        self.granted.remove(&lease);
    }

    /// The step that a lease was granted on, if it wasn't given back.
    pub(super) fn step(&self, lease: LeaseId) -> Option<Step> {
        self.granted.get(&lease).map(|granted| granted.step)
    }

    /// Whether a lease can't have ended.
    pub(super) fn must_live(&self, now: Duration, lease: LeaseId) -> bool {
        self.granted.get(&lease).is_some_and(|granted| granted.until > now)
    }

    /// Whether a host that has these frames has all that must live.
    pub(super) fn are_kept(
        &self,
        now: Duration,
        host: HostId,
        frames: &[Step],
    ) -> Result<(), String> {
        let gone = |granted: &Granted| frames.binary_search(&granted.step).is_err();
        let mut must_live = self.granted.iter().filter(|(_, granted)| granted.until > now);
        match must_live.find(|(_, granted)| gone(granted)) {
            Some((lease, Granted { step, .. })) => {
                Err(format!("host {host} drops step {step}, which lease {lease} holds"))
            }
            None => Ok(()),
        }
    }
}
