//! One epoch after the other: nothing of one is part of another.

use std::collections::BTreeMap;

use stillframe_protocol::{Epoch, HostId, Incarnation, Registration, TransactionId};

use super::filling::Filling;
use super::history::History;
use super::leases::Leases;
use super::{Checker, Reservations};

impl Checker {
    /// Whether an epoch is the one that lives.
    pub(in super::super) fn lives(&self, epoch: Epoch) -> bool {
        self.lives && self.epoch == Some(epoch)
    }

    /// Whether a process is part of the epoch that lives.
    pub(in super::super) fn is_member(&self, incarnation: Incarnation) -> bool {
        self.lives && self.members.values().any(|member| *member == incarnation)
    }

    /// What steps of an epoch must show.
    pub(super) fn history_of(&mut self, epoch: Epoch) -> Option<&mut History> {
        if self.epoch == Some(epoch) {
            return Some(&mut self.history);
        }
        self.past.get_mut(&epoch)
    }

    /// The coordinator hears of a process.
    pub(in super::super) fn registered(&mut self, registration: &Registration) {
        self.told = self.told.max(registration.newest_epoch);
        if !registration.fresh && !self.is_member(registration.incarnation) {
            self.used.insert(registration.incarnation);
        }
    }

    /// A process is to be part of an epoch.
    pub(in super::super) fn activated(
        &mut self,
        epoch: Epoch,
        host: HostId,
        incarnation: Incarnation,
    ) {
        if !self.lives(epoch) {
            self.begins(epoch);
        }
        let used = self.used.contains(&incarnation);
        self.expect(!used, || format!("process {incarnation} is used, and taken into {epoch}"));
        let before = self.members.insert(host, incarnation);
        self.expect(before.is_none_or(|before| before == incarnation), || {
            format!("host {host} of epoch {epoch} is {before:?} and then {incarnation}")
        });
        let places = self.members.values().filter(|member| **member == incarnation).count();
        self.expect(places == 1, || format!("{incarnation} has {places} places in epoch {epoch}"));
    }

    fn begins(&mut self, epoch: Epoch) {
        self.count("epochs");
        let (last, told) = (self.epoch, self.told);
        self.expect(epoch > told, || format!("epoch {epoch} begins where {told} was known"));
        let ended = !self.lives;
        self.expect(ended, || format!("epoch {epoch} begins while {last:?} lives"));
        let past = std::mem::replace(&mut self.history, History::new(self.accounts));
        if let Some(last) = last {
            self.past.insert(last, past);
        }
        (self.epoch, self.lives, self.told) = (Some(epoch), true, epoch);
        self.made = vec![None; self.hosts as usize];
        self.done = vec![None; self.hosts as usize];
        self.filling = Filling::default();
        self.acknowledged = None;
        self.members.clear();
    }

    /// The coordinator has ended the epoch.
    pub(in super::super) fn ended(&mut self) {
        let formed = self.members.len() as u32 == self.hosts;
        self.expect(!self.lives || formed, || "an epoch ends that never was whole".into());
        self.lives = false;
        self.used.extend(self.members.values());
        self.leases = Leases::default();
        self.reservations.epoch_ended();
    }

    /// The coordinator is gone, and with it all who have asked it something.
    pub(in super::super) fn coordinator_gone(&mut self) {
        self.count("coordinators lost");
        self.ended();
        // If no host remembers, the next epoch may have the same number.
        (self.told, self.acknowledged) = (Epoch(0), None);
        self.acknowledged_when_asked.clear();
        self.used.clear();
        self.asked = BTreeMap::new();
        self.cancelled.clear();
        self.reservations = Reservations::default();
    }

    /// A client is told that its transaction has no effect.
    pub(super) fn has_no_effect(&mut self, transaction: TransactionId, epoch: Epoch) {
        let Some(history) = self.history_of(epoch) else { return };
        let entered = history.entered(transaction);
        history.never_enters(transaction);
        self.reservations.ended(transaction);
        self.expect(entered.is_none(), || {
            format!("{transaction} is said to have no effect, and has entered step {entered:?}")
        });
    }
}
