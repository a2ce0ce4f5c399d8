//! The hosts' place in the world.

use std::time::Duration;

use rand::Rng;
use stillframe_protocol::{Activation, Incarnation};

use super::super::host::{Heard, Joined};
use super::super::session::fill;
use super::super::wires::{Delivery, NotThere, ToHost};
use super::World;
use crate::cluster;
use crate::machine::Event;

impl World {
    pub(super) fn tell_host(&mut self, life: u64, to: Incarnation, message: ToHost) {
        let Some(machine) = self.machine_of(to) else {
            self.unreachable(message);
            return;
        };
        let now = self.now();
        let frozen_until = self.processes[machine].frozen_until;
        if frozen_until > now {
            self.postpone(life, frozen_until - now, Delivery::ToHost(to, message));
            return;
        }
        match message {
            ToHost::Retire => self.replace(machine),
            ToHost::Stand(standing) => self.stand(machine, &standing),
            ToHost::Activate(activation) => self.activate(life, machine, &activation),
            message => self.tell_engine(machine, message),
        }
    }

    fn activate(&mut self, life: u64, machine: usize, activation: &Activation) {
        let Some(host) = &mut self.processes[machine].host else { return };
        let incarnation = host.incarnation;
        match host.activate(activation) {
            Joined::Reports(report) => {
                self.wires.borrow_mut().send_report(incarnation, &report);
            }
            Joined::Passes => {}
            Joined::Fails => {
                // What it said when it was fresh may come late to a coordinator that has started
                // since. It says so, if that still listens.
                if life == self.wires.borrow().life {
                    let host = activation.host;
                    let event = Event::HostFailed { host, reason: "it isn't fresh".into() };
                    self.handle(cluster::Event::Heard { incarnation, event });
                }
                self.replace(machine);
            }
        }
    }

    fn tell_engine(&mut self, machine: usize, message: ToHost) {
        let Some(host) = &mut self.processes[machine].host else { return };
        let mut wires = self.wires.borrow_mut();
        let mut checker = self.checker.borrow_mut();
        match message {
            ToHost::Execute(command) => match host.execute(&command) {
                Ok(Heard::Begins) => {
                    let mut takes = Duration::from_micros(wires.rng.random_range(100..2_000));
                    if wires.goes_wrong(|faults| faults.slowness) {
                        takes += Duration::from_millis(wires.rng.random_range(5..80));
                    }
                    wires.after(takes, Delivery::HostDone(host.incarnation));
                }
                Ok(Heard::Executes | Heard::TooLate) => {}
                Ok(Heard::Done(report)) => wires.send_report(host.incarnation, &report),
                Err(violation) => checker.check(Err(violation)),
            },
            ToHost::Retain(epoch, retention) => host.retain(epoch, &retention),
            ToHost::Unstage(epoch, transaction) => host.unstage(epoch, transaction),
            ToHost::Stage(epoch, transaction, writes, client, slot) => {
                let staged = host.stage(epoch, transaction, writes);
                wires.send(Delivery::ToClient(client, fill(&slot, staged)));
            }
            ToHost::Scan { lease, frame, client, slot } => {
                let contents = host.scan(frame);
                if let Ok(None) = contents {
                    checker.frame_gone(wires.now, lease, frame);
                }
                wires.send(Delivery::ToClient(client, fill(&slot, contents)));
            }
            ToHost::Activate(_) | ToHost::Retire | ToHost::Stand(_) => {}
        }
        checker.keeps(wires.now, host.epoch, host.id, &host.frames());
    }

    /// A message finds nobody. Clients are told so; all else is tried again, or isn't owed any more.
    fn unreachable(&mut self, message: ToHost) {
        let mut wires = self.wires.borrow_mut();
        match message {
            ToHost::Stage(.., client, slot) => {
                wires.send(Delivery::ToClient(client, fill(&slot, false)));
            }
            ToHost::Scan { client, slot, .. } => {
                wires.send(Delivery::ToClient(client, fill(&slot, Err(NotThere))));
            }
            _ => {}
        }
    }

    pub(super) fn host_done(&mut self, id: Incarnation) {
        let Some(machine) = self.machine_of(id) else { return };
        let now = self.now();
        let process = &mut self.processes[machine];
        let mut wires = self.wires.borrow_mut();
        if process.frozen_until > now {
            wires.after(process.frozen_until - now, Delivery::HostDone(id));
            return;
        }
        let Some(host) = &mut process.host else { return };
        let mut checker = self.checker.borrow_mut();
        match host.finish() {
            Ok(report) => {
                checker.made(host.epoch, host.id, host.done(), host.made(), host.filling());
                wires.send_report(id, &report);
            }
            Err(violation) => checker.check(Err(violation)),
        }
    }

    /// Makes a call again that may have been lost. Commands until they are reported; notices once
    /// more, which may be long after the next one. Nothing to who has retired.
    pub(super) fn retry(&mut self, id: Incarnation, message: ToHost) {
        if self.retired.contains(&id) {
            return;
        }
        let reported = self.reported.get(&id).copied();
        let mut wires = self.wires.borrow_mut();
        match &message {
            ToHost::Execute(command) if reported.flatten() >= Some(command.number) => {}
            ToHost::Activate(_) if reported.is_some() => {}
            ToHost::Execute(_) | ToHost::Activate(_) => wires.send_to_host(id, message),
            _ => wires.send(Delivery::ToHost(id, message)),
        }
    }
}
