//! From epoch to epoch: which processes are part of the cluster, and when an epoch begins and ends.
//!
//! [`Cluster::handle`] is pure, as the [`Machine`] of each epoch is, which it owns.
//!
//! # Epochs and incarnations
//!
//! ```text
//!               every place is taken by a fresh host
//!   Gathering --------------------------------------> Running(the epoch's Machine)
//!       ^                                                  |
//!       '-- another process has a host's place, or --------'
//!           a host has failed: all members retire
//! ```
//!
//! A process has a number of its own, its **incarnation**, and its engine can be part of one epoch
//! only: nothing brings a lost peer back to those that wait for it. So when a process registers for
//! a place whose incumbent is another incarnation, the epoch is over: everybody who waits is told,
//! every lease is revoked, all members are told to retire, and when each has replaced itself by a
//! fresh process the next epoch begins, empty, since nothing is durable.
//!
//! - Nothing else ends an epoch but a host that says that it has failed or does what it must not.
//!   There is no failure detector: a silent host is waited for. Silence only decides, when a process
//!   comes that claims no place of its own and all are taken, whose place it gets.
//! - The number of an epoch is above every one that a process which registers has seen. A
//!   coordinator that starts again knows nothing: hosts that are part of an epoch retire, since they
//!   aren't fresh, and what they have seen keeps the next number from being used twice.
//! - Whatever is heard of a process counts only while it is a member: of the epoch, as that
//!   incarnation.
//! - Requests that come between two epochs wait for the next, as long as the patience; but what
//!   names an epoch that has ended is refused at once.
//!
//! With hosts in the coordinator's process ([`Hosts::Given`]) there is one epoch, and the loss of a
//! host is final.

mod event;
mod invariants;
mod registry;
mod requests;
mod settings;

use std::collections::VecDeque;

use stillframe_protocol::{Epoch, HostId, Incarnation, Registration, Standing};

pub use self::event::{Effect, Event};
pub use self::settings::{Hosts, Requirements, Settings};

use self::registry::{Registry, Verdict};
use crate::machine::{
    Defect, Event as MachineEvent, Loss, Machine, Member, Now, Parked, Settings as MachineSettings,
    Ticket, breaks,
};

/// The state of the coordinator.
#[derive(Debug)]
pub struct Cluster {
    settings: Settings,
    defect: Defect,
    registry: Registry,
    phase: Phase,
    /// What the machine of the epoch wants done, before it is known to whom.
    effects: Vec<crate::machine::Effect>,
}

#[derive(Debug)]
enum Phase {
    /// Not every place is taken; these requests wait for the next epoch.
    Gathering(VecDeque<Parked>),
    /// An epoch lives.
    Running(Box<Running>),
}

/// An epoch that lives.
#[derive(Debug)]
struct Running {
    epoch: Epoch,
    /// By place.
    members: Vec<Incarnation>,
    machine: Machine,
}

impl Cluster {
    /// A cluster to which nothing has happened.
    pub fn new(settings: Settings) -> Self {
        Self::with_defect(settings, Defect::NONE)
    }

    pub(crate) fn with_defect(settings: Settings, defect: Defect) -> Self {
        let registry = Registry::new(&settings.hosts, settings.epoch, defect);
        let phase = Phase::Gathering(VecDeque::new());
        Self { settings, defect, registry, phase, effects: vec![] }
    }

    /// Takes in what has happened; what is to be done is added to `effects`.
    pub fn handle(&mut self, now: Now, event: Event, effects: &mut Vec<Effect>) {
        match event {
            Event::Started => {}
            Event::Registered { ticket, registration } => {
                self.register(now, ticket, &registration, effects);
            }
            Event::Heard { incarnation, event } => self.hear(now, incarnation, event, effects),
            Event::Happened(event) => self.happen(now, event, effects),
        }
        self.begin_if_complete(now, effects);
        if cfg!(debug_assertions) && self.defect == Defect::NONE {
            let violated = self.violated();
            assert!(violated.is_empty(), "invariants that don't hold: {violated:?}");
        }
    }

    /// A process tells that it is there.
    fn register(
        &mut self,
        now: Now,
        ticket: Ticket,
        registration: &Registration,
        effects: &mut Vec<Effect>,
    ) {
        let incarnation = registration.incarnation;
        let live = self.live();
        let verdict = self.registry.register(now.elapsed, registration, live);
        let standing = match verdict {
            Verdict::Refused(reason) => Standing::Refused { reason },
            Verdict::Waits(reason) => Standing::Waits { place: None, reason },
            Verdict::Seated(place) => self.standing(now, place, effects),
            Verdict::Retires(reason) => Standing::Retires { reason },
            Verdict::Astray(place) => {
                let reason = format!("host {place} was taken into another epoch");
                self.end_epoch(&reason, effects);
                Standing::Retires { reason }
            }
            Verdict::Replaces(place, replaced) => {
                let reason = format!("host {place} has started again");
                if live.is_some() && !breaks!(self.defect, SwapsHosts) {
                    self.end_epoch(&reason, effects);
                } else {
                    self.retire(replaced, &reason, effects);
                }
                self.registry.seat(now.elapsed, place, incarnation);
                if let Phase::Running(running) = &mut self.phase {
                    // Only a broken rule leads here: the epoch has ended.
                    running.members[place.0 as usize] = incarnation;
                }
                self.standing(now, place, effects)
            }
        };
        let standing = match standing {
            Standing::Retires { reason } if breaks!(self.defect, RetiresNobody) => {
                Standing::Waits { place: None, reason }
            }
            standing => standing,
        };
        effects.push(Effect::Stand { ticket, standing });
    }

    /// What a process with a place is told.
    fn standing(&mut self, now: Now, place: HostId, effects: &mut Vec<Effect>) -> Standing {
        self.begin_if_complete(now, effects);
        match &mut self.phase {
            Phase::Running(running) => {
                running.machine.hear(now, place);
                Standing::Member { epoch: running.epoch, place }
            }
            Phase::Gathering(_) => {
                Standing::Waits { place: Some(place), reason: self.registry.missing() }
            }
        }
    }

    /// A host says something about the epoch. It counts only if it is a member.
    fn hear(
        &mut self,
        now: Now,
        incarnation: Incarnation,
        event: MachineEvent,
        effects: &mut Vec<Effect>,
    ) {
        let Phase::Running(running) = &self.phase else { return };
        let place = match &event {
            MachineEvent::Reported(report) => report.host,
            MachineEvent::HostFailed { host, .. } => *host,
            _ => return,
        };
        if running.members.get(place.0 as usize) == Some(&incarnation) {
            self.registry.hear(now.elapsed, place);
            self.tell_machine(now, event, effects);
        }
    }

    /// Has the machine take something in, and carries on with what it wants.
    fn tell_machine(&mut self, now: Now, event: MachineEvent, effects: &mut Vec<Effect>) {
        let Phase::Running(running) = &mut self.phase else { return };
        running.machine.handle(now, event, &mut self.effects);
        let over = running.machine.over().map(str::to_owned);
        self.address(effects);
        if let (Some(reason), Loss::EndsEpoch) = (over, self.settings.hosts.loss()) {
            self.end_epoch(&reason, effects);
        }
    }

    /// Addresses what the machine wants done to the processes that are meant.
    fn address(&mut self, effects: &mut Vec<Effect>) {
        let Phase::Running(running) = &self.phase else { return };
        effects.extend(self.effects.drain(..).map(|effect| match effect.host() {
            Some(host) => Effect::Tell { incarnation: running.members[host.0 as usize], effect },
            None => Effect::Answer(effect),
        }));
    }

    /// Begins an epoch if every place is taken.
    fn begin_if_complete(&mut self, now: Now, effects: &mut Vec<Effect>) {
        let Phase::Gathering(parked) = &mut self.phase else { return };
        let Some(members) = self.registry.complete() else { return };
        let parked = std::mem::take(parked);
        let epoch = self.registry.next_epoch();
        let workers = self.settings.hosts.workers();
        let mut machine = Machine::with_defect(
            MachineSettings {
                epoch,
                members: (members.iter().zip(workers))
                    .map(|(incarnation, workers)| Member { incarnation: *incarnation, workers })
                    .collect(),
                loss: self.settings.hosts.loss(),
                time_to_live_min: self.settings.time_to_live_min,
                time_to_live_max: self.settings.time_to_live_max,
                clock_gap_max: self.settings.clock_gap_max,
                patience: self.settings.patience,
                online: self.settings.online,
            },
            self.defect,
        );
        machine.park(parked);
        self.phase = Phase::Running(Box::new(Running { epoch, members, machine }));
        self.tell_machine(now, MachineEvent::Started, effects);
    }

    /// Ends the epoch: who waits is told, and no member can be part of another.
    fn end_epoch(&mut self, reason: &str, effects: &mut Vec<Effect>) {
        let Phase::Running(running) = &mut self.phase else { return };
        running.machine.end(reason, &mut self.effects);
        self.address(effects);
        let gathering = Phase::Gathering(VecDeque::new());
        let Phase::Running(running) = std::mem::replace(&mut self.phase, gathering) else { return };
        for incarnation in running.members {
            self.retire(incarnation, reason, effects);
        }
        if !breaks!(self.defect, ForgetsParked) {
            for parked in running.machine.into_parked() {
                self.park(parked, effects);
            }
        }
    }

    /// Takes a process out for good.
    fn retire(&mut self, incarnation: Incarnation, reason: &str, effects: &mut Vec<Effect>) {
        self.registry.retire(incarnation);
        if !breaks!(self.defect, RetiresNobody) {
            effects.push(Effect::Retire { incarnation, reason: reason.to_owned() });
        }
    }

    /// The epoch that lives.
    fn live(&self) -> Option<Epoch> {
        match &self.phase {
            Phase::Gathering(_) => None,
            Phase::Running(running) => Some(running.epoch),
        }
    }
}
