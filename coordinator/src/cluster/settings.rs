//! What a cluster is made of.

use std::time::Duration;

use stillframe_protocol::Epoch;

use crate::machine::{Loss, Online};

/// What a cluster is made for.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its hosts.
    pub hosts: Hosts,
    /// The first epoch it may make. Of two lives of a coordinator the later one had better make
    /// later ones, even if no host remembers the former: seconds since 1970 will do.
    pub epoch: Epoch,
    /// A lease's time to live is at least this.
    pub time_to_live_min: Duration,
    /// A lease's time to live is at most this.
    pub time_to_live_max: Duration,
    /// Ticks further apart than this mean that the coordinator stood still: nobody's lease expires
    /// for it.
    pub clock_gap_max: Duration,
    /// Requests wait so long for the cluster to be ready, and for hosts that are silent.
    pub patience: Duration,
    /// How circuits are replaced while steps go on; none if that is done at once.
    pub online: Option<Online>,
}

/// Where hosts come from.
#[derive(Clone, Debug)]
pub enum Hosts {
    /// They are parts of the coordinator's process, with so many workers by place. There is one
    /// epoch; the loss of one of them is final. By place, their incarnations are 0, 1, 2...
    Given(Vec<u32>),
    /// They are processes that register.
    Registering(Requirements),
}

/// What processes must be like to be part of a cluster.
#[derive(Clone, Debug)]
pub struct Requirements {
    /// The cluster's name.
    pub cluster: String,
    /// What they must be built from.
    pub build: String,
    /// How many there are.
    pub hosts: u32,
    /// How many workers each runs.
    pub workers: u32,
    /// One that wasn't heard of for so long may lose its place to one that has none.
    pub silence_max: Duration,
}

impl Hosts {
    /// How many workers each host runs, by place.
    pub(super) fn workers(&self) -> Vec<u32> {
        match self {
            Self::Given(workers) => workers.clone(),
            Self::Registering(Requirements { hosts, workers, .. }) => {
                vec![*workers; *hosts as usize]
            }
        }
    }

    /// What comes after the loss of a host.
    pub(super) fn loss(&self) -> Loss {
        match self {
            Self::Given(_) => Loss::IsFinal,
            Self::Registering(_) => Loss::EndsEpoch,
        }
    }
}
