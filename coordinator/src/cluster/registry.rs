//! Who has which place.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use stillframe_protocol::{Epoch, HostId, Incarnation, Registration};

use super::settings::{Hosts, Requirements};
use crate::machine::{Defect, breaks};

/// So many of those that have retired last are remembered: what they said may still be on its way.
const RETIRED_KEPT: usize = 4096;

/// The places of the cluster and the processes that have them.
#[derive(Debug)]
pub(super) struct Registry {
    defect: Defect,
    /// None if the hosts are given.
    requirements: Option<Requirements>,
    seats: Vec<Option<Seat>>,
    retired: Retired,
    /// The newest epoch that was made here, or that a process which has registered has seen.
    newest_epoch: Epoch,
    /// The least number of an epoch.
    first_epoch: Epoch,
}

/// A place that is taken.
#[derive(Clone, Copy, Debug)]
struct Seat {
    incarnation: Incarnation,
    heard: Duration,
}

/// Processes that can't be part of anything any more.
#[derive(Debug, Default)]
struct Retired {
    known: BTreeSet<Incarnation>,
    order: VecDeque<Incarnation>,
}

/// What a registration amounts to.
#[derive(Debug)]
pub(super) enum Verdict {
    /// The process can never be part of the cluster.
    Refused(String),
    /// There is no place for it now.
    Waits(String),
    /// It has this place, now or since long.
    Seated(HostId),
    /// It has no place and gets none.
    Retires(String),
    /// It had this place in the epoch that lives, and is part of another.
    Astray(HostId),
    /// It is to have the place of another.
    Replaces(HostId, Incarnation),
}

impl Registry {
    pub(super) fn new(hosts: &Hosts, first_epoch: Epoch, defect: Defect) -> Self {
        let (requirements, seats) = match hosts {
            Hosts::Given(workers) => {
                let incarnations = (0..workers.len() as u128).map(Incarnation);
                let seat = |incarnation| Some(Seat { incarnation, heard: Duration::ZERO });
                (None, incarnations.map(seat).collect())
            }
            Hosts::Registering(requirements) => {
                (Some(requirements.clone()), vec![None; requirements.hosts as usize])
            }
        };
        let retired = Retired::default();
        Self { defect, requirements, seats, retired, newest_epoch: Epoch(0), first_epoch }
    }

    /// Decides about a process, and gives it a place if there is one that nobody has.
    pub(super) fn register(
        &mut self,
        now: Duration,
        registration: &Registration,
        live: Option<Epoch>,
    ) -> Verdict {
        if let Some(reason) = self.refusal(registration) {
            return Verdict::Refused(reason);
        }
        let Registration { incarnation, fresh, newest_epoch, .. } = *registration;
        self.newest_epoch = self.newest_epoch.max(newest_epoch);
        if let Some(place) = self.place(incarnation) {
            self.hear(now, place);
            return match live {
                Some(epoch) if newest_epoch > epoch => Verdict::Astray(place),
                None if !fresh => {
                    self.retire(incarnation);
                    Verdict::Retires(USED.into())
                }
                Some(_) | None => Verdict::Seated(place),
            };
        }
        let used = !fresh && !breaks!(self.defect, TakesUsedHosts);
        if used {
            // What it said when it was fresh may come later.
            self.retired.insert(incarnation);
        }
        if self.retired.contains(incarnation) {
            return Verdict::Retires(USED.into());
        }
        let place = match registration.place {
            Some(place) => place,
            None => match self.free_place(now) {
                Some(place) => place,
                None => return Verdict::Waits("all places are taken by others".into()),
            },
        };
        match self.seats[place.0 as usize] {
            Some(incumbent) => Verdict::Replaces(place, incumbent.incarnation),
            None => {
                self.seat(now, place, incarnation);
                Verdict::Seated(place)
            }
        }
    }

    /// Why a process can't ever be part of this cluster, and what to do about it.
    fn refusal(&self, registration: &Registration) -> Option<String> {
        let Registration { cluster, build, place, workers, .. } = registration;
        let Some(wanted) = &self.requirements else {
            return Some(
                "this coordinator has its hosts in its own process: start `stillframe \
                 coordinator` for hosts of their own"
                    .into(),
            );
        };
        if *cluster != wanted.cluster {
            let ours = &wanted.cluster;
            return Some(format!(
                "this is the coordinator of cluster \"{ours}\", the host is of cluster \
                 \"{cluster}\": start it with the coordinator's address or name of its own cluster"
            ));
        }
        if *build != wanted.build {
            let ours = &wanted.build;
            return Some(format!(
                "the coordinator is build {ours}, the host is build {build}: install the same \
                 binary on all machines"
            ));
        }
        if *workers != wanted.workers {
            let ours = wanted.workers;
            return Some(format!(
                "hosts of this cluster run {ours} workers, this one {workers}: start it with \
                 `--workers {ours}`"
            ));
        }
        let place = place.filter(|place| place.0 >= wanted.hosts)?;
        let last = wanted.hosts.saturating_sub(1);
        Some(format!(
            "there is no place {place} in a cluster of {} hosts: start it with a place from 0 to \
             {last}, or without one",
            wanted.hosts
        ))
    }

    /// A place for a process that has none: one that nobody has, or that of the one that has been
    /// silent for longest, and for too long. Something must have been lost, if there are more
    /// processes than places; silence only tells what.
    fn free_place(&self, now: Duration) -> Option<HostId> {
        let places = || (0..).map(HostId).zip(&self.seats);
        if let Some((place, _)) = places().find(|(_, seat)| seat.is_none()) {
            return Some(place);
        }
        let silence_max = self.requirements.as_ref()?.silence_max;
        let heard = |seat: &Option<Seat>| seat.map(|seat| seat.heard);
        let (place, seat) = places().min_by_key(|(_, seat)| heard(seat))?;
        let silence = now.saturating_sub(heard(seat)?);
        (silence > silence_max).then_some(place)
    }

    /// Gives a place to a process.
    pub(super) fn seat(&mut self, now: Duration, place: HostId, incarnation: Incarnation) {
        self.seats[place.0 as usize] = Some(Seat { incarnation, heard: now });
    }

    /// Takes a process out: it never gets a place again.
    pub(super) fn retire(&mut self, incarnation: Incarnation) {
        for seat in &mut self.seats {
            if seat.is_some_and(|seat| seat.incarnation == incarnation) {
                *seat = None;
            }
        }
        self.retired.insert(incarnation);
    }

    /// Learns that the process at a place lives.
    pub(super) fn hear(&mut self, now: Duration, place: HostId) {
        if let Some(Some(seat)) = self.seats.get_mut(place.0 as usize) {
            seat.heard = now;
        }
    }

    /// The processes by place, if every place is taken.
    pub(super) fn complete(&self) -> Option<Vec<Incarnation>> {
        let seats = || self.seats.iter().flatten().map(|seat| seat.incarnation);
        if breaks!(self.defect, BeginsEarly) && self.seats.len() > 1 && seats().count() > 0 {
            let first = seats().next()?;
            return Some(
                self.seats.iter().map(|s| s.map_or(first, |seat| seat.incarnation)).collect(),
            );
        }
        self.seats.iter().map(|seat| seat.map(|seat| seat.incarnation)).collect()
    }

    /// The number of the next epoch, which is used with that.
    pub(super) fn next_epoch(&mut self) -> Epoch {
        let next = self.newest_epoch.next().max(self.first_epoch);
        self.newest_epoch = if breaks!(self.defect, ReusesEpoch) { self.first_epoch } else { next };
        self.newest_epoch
    }

    pub(super) fn newest_epoch(&self) -> Epoch {
        self.newest_epoch
    }

    /// The places, and whether each is taken.
    pub(super) fn places(&self) -> impl Iterator<Item = (HostId, bool)> + '_ {
        (0..).map(HostId).zip(self.seats.iter().map(Option::is_some))
    }

    /// What is missing, in words.
    pub(super) fn missing(&self) -> String {
        let missing = self.places().filter(|(_, taken)| !taken);
        let missing: Vec<String> = missing.map(|(place, _)| place.to_string()).collect();
        format!("no host has registered for place {}", missing.join(", "))
    }

    /// The place of a process.
    fn place(&self, incarnation: Incarnation) -> Option<HostId> {
        let has = |seat: &Option<Seat>| seat.is_some_and(|seat| seat.incarnation == incarnation);
        self.seats.iter().position(has).map(|place| HostId(place as u32))
    }

    /// Who has retired has no place, and nobody has two.
    pub(super) fn places_are_of_distinct_hosts_that_may_take_part(&self) -> bool {
        let seated: Vec<Incarnation> = self.seats.iter().flatten().map(|s| s.incarnation).collect();
        let distinct: BTreeSet<_> = seated.iter().copied().collect();
        distinct.len() == seated.len() && distinct.is_disjoint(&self.retired.known)
    }

    /// The members of an epoch are those that have the places.
    pub(super) fn members_have_their_places(&self, members: &[Incarnation]) -> bool {
        self.seats
            .iter()
            .map(|seat| seat.map(|seat| seat.incarnation))
            .eq(members.iter().copied().map(Some))
    }
}

const USED: &str = "the epoch that the host was part of has ended";

impl Retired {
    fn insert(&mut self, incarnation: Incarnation) {
        if self.known.insert(incarnation) {
            self.order.push_back(incarnation);
            if self.order.len() > RETIRED_KEPT
                && let Some(oldest) = self.order.pop_front()
            {
                self.known.remove(&oldest);
            }
        }
    }

    fn contains(&self, incarnation: Incarnation) -> bool {
        self.known.contains(&incarnation)
    }
}
