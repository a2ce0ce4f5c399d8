//! How host processes come to be part of an epoch.
//!
//! ```text
//! host process                          coordinator
//!   register(incarnation, fresh)   ->     has a place for it, or refuses it
//!                                  <-     Waits: not all places are taken
//!   ...again and again, which tells that it lives...
//!                                  <-     activate(epoch, place): all places are taken, by fresh
//!   register(.., newest epoch)     ->
//!                                  <-     Member(epoch, place)
//!   register(..)                   ->     another incarnation has come: the epoch has ended
//!                                  <-     Retires
//!   (replaces itself, registers fresh)
//! ```

use serde::{Deserialize, Serialize};

use crate::{Epoch, HostId, Incarnation};

/// What a host process tells of itself, every second or so for as long as it lives, whatever its
/// engine is at.
///
/// Sent by a host to its coordinator. Level-triggered: each tells everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// The cluster that it wants to be part of.
    pub cluster: String,
    /// What it was built from. Hosts of different builds don't understand each other.
    pub build: String,
    /// This life of the process.
    pub incarnation: Incarnation,
    /// The place it wants; without one the coordinator gives it one.
    pub place: Option<HostId>,
    /// How many workers it runs.
    pub workers: u32,
    /// Whether it was never part of an epoch. The engine of a process can be part of one only.
    pub fresh: bool,
    /// The newest epoch that it, or the process it took the place of, knows of; 0 if none.
    pub newest_epoch: Epoch,
}

/// What a registration amounts to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Standing {
    /// It has this place, or none yet, and waits for others. Register again in a while.
    Waits {
        /// Its place.
        place: Option<HostId>,
        /// For what it waits.
        reason: String,
    },
    /// It is part of this epoch, at this place.
    Member {
        /// The epoch.
        epoch: Epoch,
        /// Its place.
        place: HostId,
    },
    /// Its epoch has ended. The process owes to replace itself and to register fresh.
    Retires {
        /// Why.
        reason: String,
    },
    /// It can't be part of this cluster, now or later, as it is. The process owes to say so and to
    /// end.
    Refused {
        /// Why, and what to do.
        reason: String,
    },
}
