//! Host processes: how they start, register, stand still and end.

use std::time::Duration;

use rand::Rng;
use stillframe_protocol::{Epoch, HostId, Incarnation, Registration, Standing};

use super::super::host::SimulatedHost;
use super::super::wires::Delivery;
use super::World;
use crate::cluster;
use crate::machine::Event;

/// A machine on which a host's process runs, or is to run.
pub(super) struct Process {
    pub(super) host: Option<SimulatedHost>,
    /// Its place, if that is set.
    place: Option<HostId>,
    /// What it was without registering.
    given: HostId,
    /// What it has heard of epochs.
    newest_epoch: Epoch,
    pub(super) frozen_until: Duration,
}

impl Process {
    pub(super) fn new(host: HostId, has_place: bool) -> Self {
        Self {
            host: None,
            place: has_place.then_some(host),
            given: host,
            newest_epoch: Epoch(0),
            frozen_until: Duration::ZERO,
        }
    }

    /// Whether there is a process that doesn't stand still.
    pub(super) fn goes_on(&self, now: Duration) -> bool {
        self.host.is_some() && self.frozen_until <= now
    }

    pub(super) fn runs(&self, incarnation: Incarnation) -> bool {
        self.host.as_ref().is_some_and(|host| host.incarnation == incarnation)
    }
}

impl World {
    /// The machine on which a process runs, if it still does.
    pub(super) fn machine_of(&self, incarnation: Incarnation) -> Option<usize> {
        self.processes.iter().position(|process| process.runs(incarnation))
    }

    pub(super) fn start(&mut self, machine: usize) {
        let mut wires = self.wires.borrow_mut();
        let process = &mut self.processes[machine];
        if process.host.is_some() {
            return;
        }
        let incarnation = match self.registering {
            true => Incarnation(wires.number().into()),
            false => Incarnation(process.given.0.into()),
        };
        process.host = Some(SimulatedHost::new(incarnation, self.accounts));
        drop(wires);
        if self.registering {
            self.register(incarnation);
        }
    }

    /// A process tells that it is there, and does so again in a while.
    pub(super) fn register(&mut self, incarnation: Incarnation) {
        let Some(machine) = self.machine_of(incarnation) else { return };
        let now = self.now();
        let process = &mut self.processes[machine];
        let Some(host) = &process.host else { return };
        let mut wires = self.wires.borrow_mut();
        if process.frozen_until > now {
            let wait = process.frozen_until - now;
            wires.after(wait, Delivery::Registers(incarnation));
            return;
        }
        process.newest_epoch = process.newest_epoch.max(host.epoch.unwrap_or_default());
        let registration = Registration {
            cluster: "main".into(),
            build: "1".into(),
            incarnation,
            place: process.place,
            workers: 2,
            fresh: host.epoch.is_none(),
            newest_epoch: process.newest_epoch,
        };
        wires.try_to_send(|| Delivery::Registration(registration.clone()));
        let again = Duration::from_millis(wires.rng.random_range(60..120));
        wires.after(again, Delivery::Registers(incarnation));
    }

    /// A process hears what it is.
    pub(super) fn stand(&mut self, machine: usize, standing: &Standing) {
        match standing {
            Standing::Waits { .. } | Standing::Member { .. } => {}
            Standing::Retires { .. } => self.replace(machine),
            Standing::Refused { reason } => {
                let mut checker = self.checker.borrow_mut();
                checker.expect(false, || format!("a host is refused: {reason}"));
            }
        }
    }

    /// A process replaces itself. It remembers the newest epoch.
    pub(super) fn replace(&mut self, machine: usize) {
        let process = &mut self.processes[machine];
        let Some(host) = process.host.take() else { return };
        process.newest_epoch = process.newest_epoch.max(host.epoch.unwrap_or_default());
        let mut wires = self.wires.borrow_mut();
        let delay = Duration::from_millis(wires.rng.random_range(1..40));
        wires.after(delay, Delivery::Start(machine));
    }

    /// A process is killed, and another one started, which remembers nothing.
    pub(super) fn kill(&mut self, machine: usize) {
        let process = &mut self.processes[machine];
        process.host = None;
        process.newest_epoch = Epoch(0);
        process.frozen_until = Duration::ZERO;
        let mut wires = self.wires.borrow_mut();
        let delay = Duration::from_millis(wires.rng.random_range(1..400));
        wires.after(delay, Delivery::Start(machine));
    }

    pub(super) fn freeze(&mut self, machine: usize, freeze: Duration) {
        let until = self.now() + freeze;
        let process = &mut self.processes[machine];
        process.frozen_until = process.frozen_until.max(until);
    }

    /// A process's engine fails, and the process says so.
    pub(super) fn fail(&mut self, machine: usize) {
        let process = &self.processes[machine];
        let Some(incarnation) = process.host.as_ref().map(|host| host.incarnation) else { return };
        let Some((_, place)) = self.place_of(incarnation) else { return };
        self.checker.borrow_mut().failed = !self.registering;
        let event = Event::HostFailed { host: place, reason: "it was to fail".into() };
        self.handle(cluster::Event::Heard { incarnation, event });
        if self.registering {
            self.replace(machine);
        }
    }

    /// The epoch that a process is part of and its place there.
    pub(super) fn place_of(&self, incarnation: Incarnation) -> Option<(Epoch, HostId)> {
        let wires = self.wires.borrow();
        let mut members = wires.members.iter().rev();
        members.find(|(_, member)| **member == incarnation).map(|(place, _)| *place)
    }
}
