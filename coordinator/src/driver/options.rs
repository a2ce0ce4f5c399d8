//! What a coordinator can be told when it is started.

use std::time::Duration;

use stillframe_protocol::Epoch;

use crate::cluster::{Hosts, Settings};
use crate::machine::Online;

/// How to run a coordinator.
#[derive(Clone, Debug)]
pub struct Options {
    /// The first epoch; of two lives of a coordinator of processes the later one had better have a
    /// later one. Default 1.
    pub epoch: Epoch,
    /// How many workers each host runs. Default 1.
    pub workers: u32,
    /// Leases live at least so long without being renewed. Default 1 s.
    pub time_to_live_min: Duration,
    /// Leases live at most so long without being renewed. Default 1 min.
    pub time_to_live_max: Duration,
    /// How often time is looked at: leases, lock timeouts and retention are as precise as this.
    /// Default 20 ms.
    pub tick: Duration,
    /// If time wasn't looked at for so long, the coordinator stood still and no lease expires for
    /// it. Default 500 ms.
    pub clock_gap_max: Duration,
    /// How long requests wait for the cluster to be ready, and for hosts that are silent. Default
    /// 30 s.
    pub patience: Duration,
    /// How circuits are replaced while steps go on; none, the default, if that is done at once.
    pub online: Option<Online>,
    /// The longest time between two tries to reach a host. Default 1 s.
    pub retry_max: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            epoch: Epoch(1),
            workers: 1,
            time_to_live_min: Duration::from_secs(1),
            time_to_live_max: Duration::from_secs(60),
            tick: Duration::from_millis(20),
            clock_gap_max: Duration::from_millis(500),
            patience: Duration::from_secs(30),
            online: None,
            retry_max: Duration::from_secs(1),
        }
    }
}

impl Options {
    pub(super) fn settings(&self, hosts: Hosts) -> Settings {
        Settings {
            hosts,
            epoch: self.epoch,
            time_to_live_min: self.time_to_live_min,
            time_to_live_max: self.time_to_live_max,
            clock_gap_max: self.clock_gap_max,
            patience: self.patience,
            online: self.online,
        }
    }
}
