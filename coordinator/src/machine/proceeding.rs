//! From one command to the next.

use std::sync::Arc;

use stillframe_protocol::{Action, Filling, HostId, StepStatus, TransactionId};

use super::jobs::Task;
use super::schedule::Kind;
use super::sequence::{Circuit, InFlight, Work};
use super::{Effect, Machine, Now, Parked, Phase, breaks};
#[cfg(test)]
use stillframe_protocol::Step;

impl Machine {
    /// A command is done: its step is common, those it was made for are answered, and the next may
    /// come.
    pub(super) fn complete(&mut self, now: Now, flight: InFlight, effects: &mut Vec<Effect>) {
        let InFlight { command, transactions, sent_at, is_due, .. } = flight;
        if let Err((host, violation)) = self.conclude_job(&command.action, is_due) {
            self.fail(host, &violation, effects);
            return;
        }
        if let Some(clock_us) = command.action.clock_us() {
            let took = now.elapsed.saturating_sub(sent_at);
            self.steps.push(StepStatus {
                step: command.action.step(),
                clock_us,
                transactions: transactions.len() as u32,
                took_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
                catalog: self.catalog.current().version,
            });
        }
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

    /// What a command that is done means for changes of the catalog.
    fn conclude_job(&mut self, action: &Action, is_due: bool) -> Result<(), (HostId, String)> {
        let fillings = self.membership.fillings();
        let takes_effect = match action {
            Action::Replace { is_hidden, .. } => {
                self.sequence.replaced();
                if *is_hidden {
                    self.jobs.replaced();
                    return Ok(());
                }
                true
            }
            Action::ReplaceOnline { .. } => {
                if !fillings.contains(&Some(Filling::Refused)) {
                    self.sequence.replaced();
                }
                // Never, but for a canary.
                breaks!(self.defect, ShowsUnfilled)
            }
            Action::Cutover { .. } => true,
            Action::Advance { .. } if is_due => false,
            Action::Advance { transactions, .. } => transactions.is_empty() || self.jobs.enters(),
            Action::Pump { .. } => false,
        };
        if !takes_effect {
            return self.jobs.progress(&fillings);
        }
        if let Some(catalog) = self.jobs.conclude() {
            self.catalog.took_effect(catalog);
        }
        Ok(())
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
                    self.send_task(now, Task::replace(Arc::default()), effects);
                }
            }
            Phase::Live => {
                let is_due = self.is_due;
                let waits = is_due || !self.sequence.waiting_transactions().is_empty();
                match self.schedule.next(waits, self.jobs.need()) {
                    None => {}
                    Some(Kind::Transactions) => {
                        let transactions = self.sequence.take_transactions();
                        self.is_due = false;
                        let work = if is_due { Work::AdvanceClock } else { Work::Advance };
                        self.send(now, work, transactions, effects);
                    }
                    Some(Kind::Changes) => {
                        if let Some(task) = self.jobs.take() {
                            self.send_task(now, task, effects);
                        }
                    }
                }
            }
        }
    }

    /// Goes on with a change of the catalog.
    fn send_task(&mut self, now: Now, task: Task, effects: &mut Vec<Effect>) {
        let concerned = self.jobs.concerned(&task);
        let circuit = |machine: &Self, program| {
            let generation = machine.sequence.next_generation();
            let exchange = machine.membership.exchange(generation)?;
            Ok::<_, HostId>(Circuit { program, exchange })
        };
        let work = match task {
            Task::Describe => Ok(Work::Describe),
            Task::Replace { program, is_hidden } => {
                circuit(self, program).map(|circuit| Work::Replace(circuit, is_hidden))
            }
            Task::Enter => Ok(Work::Advance),
            Task::ReplaceOnline(program) => circuit(self, program).map(Work::ReplaceOnline),
            Task::Pump { number, slices } => Ok(Work::Pump { number, slices }),
            Task::Cutover => Ok(Work::Cutover),
        };
        match work {
            Ok(work) => self.send(now, work, concerned, effects),
            Err(host) => self.fail(host, "it doesn't offer the circuit that is next", effects),
        }
    }

    fn send(
        &mut self,
        now: Now,
        work: Work,
        transactions: Vec<TransactionId>,
        effects: &mut Vec<Effect>,
    ) {
        let retention = self.retainer.tell(self.sequence.common(), self.leases.pinned());
        let hosts = self.membership.hosts().collect();
        let command = self.sequence.send(now, hosts, retention, work, transactions);
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
