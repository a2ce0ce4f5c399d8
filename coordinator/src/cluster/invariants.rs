//! What must hold between epochs and processes.

use super::{Cluster, Hosts, Phase};
use crate::machine::violated;

impl Cluster {
    /// The invariants that don't hold, by name; those of the epoch's machine are its own.
    pub fn violated(&self) -> Vec<&'static str> {
        let members = match &self.phase {
            Phase::Gathering(_) => &[][..],
            Phase::Running(running) => &running.members[..],
        };
        let gathers = matches!(self.phase, Phase::Gathering(_));
        let registry = &self.registry;
        violated([
            (
                "places are of distinct hosts that may take part",
                registry.places_are_of_distinct_hosts_that_may_take_part(),
            ),
            ("members have their places", gathers || registry.members_have_their_places(members)),
            ("an epoch begins when it can", !gathers || registry.complete().is_none()),
            ("the epoch that lives is the newest made", self.the_newest_epoch_lives()),
        ])
    }

    /// A member that has seen a newer epoch ends this one, so that none outlives a newer one.
    /// Given hosts see one only.
    fn the_newest_epoch_lives(&self) -> bool {
        match (&self.settings.hosts, self.live()) {
            (Hosts::Given(_), Some(epoch)) => epoch == self.registry.newest_epoch(),
            (Hosts::Registering(_), Some(epoch)) => epoch <= self.registry.newest_epoch(),
            (_, None) => true,
        }
    }

    /// What is left over of clients that are gone, by name.
    #[cfg(test)]
    pub(crate) fn leftovers(&self) -> Vec<&'static str> {
        match &self.phase {
            Phase::Gathering(parked) => violated([("parked requests", parked.is_empty())]),
            Phase::Running(running) => running.machine.leftovers(),
        }
    }
}
