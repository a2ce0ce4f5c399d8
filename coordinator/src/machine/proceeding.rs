//! From one command to the next.

use std::sync::Arc;

use stillframe_protocol::{StepStatus, TransactionId};

#[cfg(test)]
use super::breaks;
use super::sequence::{Cargo, InFlight, Waiting, Work};
use super::{Effect, Machine, Now, Parked, Phase};
#[cfg(test)]
use stillframe_protocol::Step;

impl Machine {
    /// A step is common: those it was made for are answered, and the next may come.
    pub(super) fn complete(&mut self, now: Now, flight: InFlight, effects: &mut Vec<Effect>) {
        let InFlight { command, cargo, clock_us, sent_at, .. } = flight;
        let step = command.action.step();
        let transactions = cargo.transactions().to_vec();
        if let Cargo::Changes { catalog, program, .. } = cargo {
            self.catalog.took_effect(catalog, program);
        }
        let took = now.elapsed.saturating_sub(sent_at);
        self.steps.push(StepStatus {
            step,
            clock_us,
            transactions: transactions.len() as u32,
            took_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            catalog: self.catalog.current().version,
        });
        self.transactions.entered(self.moment(now), &transactions, effects);
        self.trim_history();
        if let Phase::Forming(parked) = &mut self.phase {
            let parked = std::mem::take(parked);
            self.phase = Phase::Live;
            for Parked { ticket, request, .. } in parked {
                self.serve(now, ticket, request, effects);
            }
        }
    }

    /// Sends the next command if none is under way and there is something to do.
    pub(super) fn proceed(&mut self, now: Now, effects: &mut Vec<Effect>) {
        if self.sequence.busy() {
            return;
        }
        match self.phase {
            Phase::Over(_) => {}
            Phase::Forming(_) => {
                if self.membership.complete() {
                    self.send_changes(now, vec![], effects);
                }
            }
            Phase::Live => match self.sequence.take_waiting() {
                None => {}
                Some(Waiting::Transactions(transactions)) => {
                    self.send(now, Work::Advance, Cargo::Transactions(transactions), effects);
                }
                Some(Waiting::Changes(transactions)) => {
                    self.send_changes(now, transactions, effects);
                }
            },
        }
    }

    /// Has the head of the catalog take effect: with a new circuit if it needs another, or the
    /// first.
    fn send_changes(
        &mut self,
        now: Now,
        transactions: Vec<TransactionId>,
        effects: &mut Vec<Effect>,
    ) {
        let program = Arc::clone(self.catalog.program());
        let first = self.sequence.common().is_none();
        let work = if first || self.catalog.needs_replacement() {
            match self.membership.exchange(self.sequence.next_generation()) {
                Ok(exchange) => Work::Replace { program: Arc::clone(&program), exchange },
                Err(host) => {
                    self.fail(host, "it doesn't offer the circuit that is next", effects);
                    return;
                }
            }
        } else {
            Work::Advance
        };
        let catalog = self.catalog.head().clone();
        self.send(now, work, Cargo::Changes { transactions, catalog, program }, effects);
    }

    fn send(&mut self, now: Now, work: Work, cargo: Cargo, effects: &mut Vec<Effect>) {
        let retention = self.retainer.tell(self.sequence.common(), self.leases.pinned());
        let hosts = self.membership.hosts().collect();
        let command = self.sequence.send(now, hosts, retention, work, cargo);
        effects.extend(
            self.membership
                .hosts()
                .map(|host| Effect::Execute { host, command: Arc::clone(&command) }),
        );
        #[cfg(test)]
        self.misbehave(now, command.action.step(), effects);
    }

    /// For canaries.
    #[cfg(test)]
    fn misbehave(&mut self, now: Now, step: Step, effects: &mut Vec<Effect>) {
        let (moment, transactions) = (self.moment(now), self.sequence.under_way().to_vec());
        if breaks!(self.defect, ReleasesEarly) {
            self.transactions.release_early(moment, step, &transactions, effects);
        }
        if breaks!(self.defect, AnswersEarly) {
            self.transactions.answer_early(step, &transactions, effects);
        }
    }

    /// Tells the hosts what to keep, if they keep what nobody needs and no command will say so.
    pub(super) fn tell_retention(&mut self, effects: &mut Vec<Effect>) {
        let common = self.sequence.common();
        if self.sequence.busy() || !self.retainer.is_outdated(common) {
            return;
        }
        let retention = Arc::new(self.retainer.tell(common, self.leases.pinned()));
        effects.extend(self.membership.hosts().map(|host| Effect::Retain {
            host,
            epoch: self.settings.epoch,
            retention: Arc::clone(&retention),
        }));
    }
}
