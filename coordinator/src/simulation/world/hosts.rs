//! The hosts' place in the world.

use std::time::Duration;

use rand::Rng;
use stillframe_protocol::HostId;

use super::super::host::Heard;
use super::super::session::fill;
use super::super::wires::{Delivery, ToHost};
use super::World;

impl World {
    pub(super) fn tell_host(&mut self, id: HostId, message: ToHost) {
        let host = &mut self.hosts[id.0 as usize];
        let mut wires = self.wires.borrow_mut();
        match message {
            ToHost::Activate(activation) => {
                let report = host.activate(&activation);
                wires.send_report(report);
            }
            ToHost::Execute(command) => match host.execute(&command) {
                Ok(Heard::Begins) => {
                    let mut takes = Duration::from_micros(wires.rng.random_range(100..2_000));
                    if wires.goes_wrong(|faults| faults.slowness) {
                        takes += Duration::from_millis(wires.rng.random_range(5..80));
                    }
                    wires.after(takes, Delivery::HostDone(id));
                }
                Ok(Heard::Executes) => {}
                Ok(Heard::Done(report)) => wires.send_report(report),
                Err(violation) => self.checker.borrow_mut().check(Err(violation)),
            },
            ToHost::Retain(retention) => host.retain(&retention),
            ToHost::Unstage(transaction) => host.unstage(transaction),
            ToHost::Stage(transaction, writes, client, slot) => {
                host.stage(transaction, writes);
                wires.send(Delivery::ToClient(client, fill(&slot, ())));
            }
            ToHost::Scan { lease, step, client, slot } => {
                let contents = host.scan(step).cloned();
                if contents.is_none() {
                    self.checker.borrow_mut().frame_gone(wires.now, lease, step);
                }
                wires.send(Delivery::ToClient(client, fill(&slot, contents)));
            }
        }
        self.checker.borrow_mut().keeps(wires.now, id, &host.frames());
    }

    pub(super) fn host_done(&mut self, id: HostId) {
        let host = &mut self.hosts[id.0 as usize];
        let mut checker = self.checker.borrow_mut();
        match host.finish() {
            Ok(report) => {
                checker.made(id, host.made());
                self.wires.borrow_mut().send_report(report);
            }
            Err(violation) => checker.check(Err(violation)),
        }
    }

    /// Makes a call again that may have been lost. Commands until they are reported; notices once
    /// more, which may be long after the next one.
    pub(super) fn retry(&mut self, id: HostId, message: ToHost) {
        let reported = self.reported[id.0 as usize];
        let mut wires = self.wires.borrow_mut();
        match &message {
            ToHost::Execute(command) if reported >= Some(command.number) => {}
            ToHost::Activate(_) if reported.is_some() => {}
            ToHost::Execute(_) | ToHost::Activate(_) => wires.send_to_host(id, message),
            _ => wires.send(Delivery::ToHost(id, message)),
        }
    }
}
