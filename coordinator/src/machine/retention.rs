//! Which frames the hosts must keep, and what they were last told about it.
//!
//! Retention travels in every command. When leases end and no command is made it travels alone, at
//! most once a tick.

use std::collections::BTreeSet;

use stillframe_protocol::{Retention, Step};

use super::{Defect, breaks};

/// What every host was last told to keep.
#[derive(Debug)]
pub(super) struct Retainer {
    defect: Defect,
    told: Retention,
    pins_ended: bool,
}

impl Retainer {
    pub(super) fn new(defect: Defect) -> Self {
        Self { defect, told: Retention::default(), pins_ended: false }
    }

    /// Learns that a step lost its last lease.
    pub(super) fn pin_ended(&mut self) {
        self.pins_ended = true;
    }

    /// Whether the hosts keep something that nobody needs.
    pub(super) fn is_outdated(&self, common: Option<Step>) -> bool {
        self.pins_ended || self.told.common != common
    }

    /// What the hosts are told from now on.
    pub(super) fn tell(
        &mut self,
        common: Option<Step>,
        pinned: impl Iterator<Item = Step>,
    ) -> Retention {
        let pinned =
            if breaks!(self.defect, DropsPins) { BTreeSet::new() } else { pinned.collect() };
        self.told = Retention { sequence: self.told.sequence + 1, common, pinned };
        self.pins_ended = false;
        self.told.clone()
    }

    /// A leased step is kept by what every host was last told. Older tellings kept it too: they
    /// name an older common step, or the step itself.
    pub(super) fn leased_steps_are_kept(&self, mut leased: impl Iterator<Item = Step>) -> bool {
        leased.all(|step| self.told.keeps(step))
    }

    /// Hosts aren't told of a common step before it is one.
    pub(super) fn nothing_common_is_promised(&self, common: Option<Step>) -> bool {
        self.told.common <= common
    }
}
