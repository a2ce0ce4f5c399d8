//! The coordinator's place in the world: what reaches the machine, and what it wants done.

use super::super::session::fill;
use super::super::wires::{Delivery, ToHost};
use super::World;
use crate::machine::{Effect, Event, Now, Request};

impl World {
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
            Event::HostFailed { .. } => checker.failed = true,
            Event::Started | Event::Ticked | Event::Reported(_) => {}
        }
        drop(checker);
        self.handle(event);
    }

    pub(super) fn handle(&mut self, event: Event) {
        let elapsed = self.now();
        // The wall clock goes wrong now and then.
        let skew = if self.events.is_multiple_of(97) { -5_000_000 } else { 0 };
        let now =
            Now { elapsed, wall_us: 1_700_000_000_000_000 + elapsed.as_micros() as i64 + skew };
        self.machine.handle(now, event, &mut self.effects);
        for effect in std::mem::take(&mut self.effects) {
            self.carry_out(effect);
        }
    }

    pub(super) fn carry_out(&mut self, effect: Effect) {
        let mut wires = self.wires.borrow_mut();
        let (kind, number) = match effect {
            Effect::Activate { host, activation } => {
                wires.send_to_host(host, ToHost::Activate(activation));
                (1, u64::from(host.0))
            }
            Effect::Execute { host, command } => {
                self.checker.borrow_mut().sent(&command);
                let number = command.number.0;
                wires.send_to_host(host, ToHost::Execute(command));
                (2, number)
            }
            Effect::Retain { host, retention, .. } => {
                let number = retention.sequence;
                wires.send_to_host(host, ToHost::Retain(retention));
                (3, number)
            }
            Effect::Unstage { host, transaction, .. } => {
                wires.send_to_host(host, ToHost::Unstage(transaction));
                (4, transaction.0 as u64)
            }
            Effect::Answer { ticket, answer } => {
                self.checker.borrow_mut().answered(wires.now, ticket, &answer);
                if let Some((client, slot)) = self.answers.borrow_mut().remove(&ticket) {
                    wires.send(Delivery::ToClient(client, fill(&slot, answer)));
                }
                (5, ticket.0)
            }
        };
        let entropy = wires.now.as_nanos() as u64 ^ (number << 8) ^ kind;
        self.trace = self.trace.rotate_left(7).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ entropy;
    }
}
