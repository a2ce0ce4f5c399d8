//! The coordinator's place in the world: what reaches the cluster, and what it wants done.

use std::time::Duration;

use rand::Rng;
use stillframe_protocol::{Incarnation, Registration, Report};

use super::super::session::fill;
use super::super::wires::{Delivery, ToHost};
use super::World;
use crate::cluster::{self, Effect};
use crate::machine::{self, Event, Now, Request};

impl World {
    pub(super) fn start_coordinator(&mut self) {
        self.cluster = Some(self.new_cluster());
        self.handle(cluster::Event::Started);
    }

    /// The coordinator is gone, and with it the front ends, their clients' connections and all calls
    /// that are under way. It comes again and knows nothing.
    pub(super) fn kill_coordinator(&mut self) {
        if self.cluster.take().is_none() {
            return;
        }
        self.checker.borrow_mut().coordinator_gone();
        self.answers.borrow_mut().clear();
        self.cancelled.clear();
        self.reported.clear();
        self.retired.clear();
        for client in &mut self.clients {
            client.task = None;
            *client.open.borrow_mut() = None;
        }
        let mut wires = self.wires.borrow_mut();
        wires.life += 1;
        let delay = Duration::from_millis(wires.rng.random_range(0..200));
        wires.after(delay, Delivery::StartCoordinator);
        for client in 0..self.clients.len() {
            let later = Duration::from_micros(wires.rng.random_range(0..100_000));
            wires.after(delay + later, Delivery::Arrive(client));
        }
    }

    pub(super) fn tell_machine(&mut self, event: Event) {
        let mut checker = self.checker.borrow_mut();
        match &event {
            Event::Requested { ticket, request } => {
                let effective = matches!(request, Request::Commit { .. } | Request::Change(_));
                if self.cancelled.contains(ticket) && !effective {
                    return;
                }
                checker.asked(*ticket, request);
            }
            Event::Cancelled { ticket } => {
                self.cancelled.insert(*ticket);
                checker.cancelled(*ticket);
            }
            Event::Released { lease } => checker.released(*lease),
            Event::Aborted { transaction } => checker.aborted(*transaction),
            Event::Started | Event::Ticked | Event::Reported(_) | Event::HostFailed { .. } => {}
        }
        drop(checker);
        self.happen(event);
    }

    pub(super) fn reported(&mut self, incarnation: Incarnation, report: Report) {
        let reported = self.reported.entry(incarnation).or_default();
        *reported = (*reported).max(report.done);
        self.handle(cluster::Event::Heard { incarnation, event: Event::Reported(report) });
    }

    pub(super) fn registered(&mut self, registration: Registration) {
        if self.cluster.is_none() {
            return;
        }
        self.checker.borrow_mut().registered(&registration);
        let ticket = self.wires.borrow_mut().ticket();
        let incarnation = registration.incarnation;
        self.handle(cluster::Event::Registered { ticket, registration });
        let standing = self.standing.take();
        let mut wires = self.wires.borrow_mut();
        if let Some(standing) = standing {
            let message = ToHost::Stand(standing);
            wires.try_to_send(|| Delivery::ToHost(incarnation, message.clone()));
        } else {
            let mut checker = self.checker.borrow_mut();
            checker.expect(false, || format!("the registration of {incarnation} isn't answered"));
        }
    }

    pub(super) fn happen(&mut self, event: machine::Event) {
        self.handle(cluster::Event::Happened(event));
    }

    pub(super) fn handle(&mut self, event: cluster::Event) {
        let elapsed = self.now();
        // The wall clock goes wrong now and then.
        let skew = if self.events.is_multiple_of(97) { -5_000_000 } else { 0 };
        let now =
            Now { elapsed, wall_us: 1_700_000_000_000_000 + elapsed.as_micros() as i64 + skew };
        let Some(cluster) = &mut self.cluster else { return };
        cluster.handle(now, event, &mut self.effects);
        for effect in std::mem::take(&mut self.effects) {
            self.carry_out(effect);
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        let (kind, number) = match effect {
            Effect::Stand { ticket, standing } => {
                self.standing = Some(standing);
                (6, ticket.0)
            }
            Effect::Retire { incarnation, .. } => {
                if self.checker.borrow().is_member(incarnation) {
                    self.checker.borrow_mut().ended();
                }
                self.retired.insert(incarnation);
                let mut wires = self.wires.borrow_mut();
                wires.try_to_send(|| Delivery::ToHost(incarnation, ToHost::Retire));
                (7, incarnation.0 as u64)
            }
            Effect::Tell { incarnation, effect } => self.tell(incarnation, effect),
            Effect::Answer(machine::Effect::Answer { ticket, answer }) => {
                let mut wires = self.wires.borrow_mut();
                self.checker.borrow_mut().answered(wires.now, ticket, &answer);
                if let Some((client, slot)) = self.answers.borrow_mut().remove(&ticket) {
                    wires.send(Delivery::ToClient(client, fill(&slot, answer)));
                }
                (5, ticket.0)
            }
            Effect::Answer(_) => (0, 0),
        };
        let now = self.now();
        let entropy = now.as_nanos() as u64 ^ (number << 8) ^ kind;
        self.trace = self.trace.rotate_left(7).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ entropy;
    }

    fn tell(&mut self, to: Incarnation, effect: machine::Effect) -> (u64, u64) {
        let mut wires = self.wires.borrow_mut();
        match effect {
            machine::Effect::Activate { host, activation } => {
                self.checker.borrow_mut().activated(activation.epoch, host, to);
                wires.members.insert((activation.epoch, host), to);
                wires.send_to_host(to, ToHost::Activate(activation));
                (1, u64::from(host.0))
            }
            machine::Effect::Execute { command, .. } => {
                self.checker.borrow_mut().sent(&command);
                let number = command.number.0;
                wires.send_to_host(to, ToHost::Execute(command));
                (2, number)
            }
            machine::Effect::Retain { epoch, retention, .. } => {
                let number = retention.sequence;
                wires.send_to_host(to, ToHost::Retain(epoch, retention));
                (3, number)
            }
            machine::Effect::Unstage { epoch, transaction, .. } => {
                wires.send_to_host(to, ToHost::Unstage(epoch, transaction));
                (4, transaction.0 as u64)
            }
            machine::Effect::Answer { .. } => (0, 0),
        }
    }
}
