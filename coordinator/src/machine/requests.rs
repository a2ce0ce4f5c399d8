//! What clients ask, and what the machine does about it: the branch for each request.

use std::sync::Arc;
use std::time::Duration;

use stillframe_protocol::{Change, ClusterStatus, CoordinatorError, Grant, LeaseId, TransactionId};

use super::effect::Answers;
use super::ending::stale;
use super::schedule::Kind;
use super::transaction::Moment;
use super::{Effect, Machine, Now, Over, Parked, Phase, Reply, Request, Settings, Ticket, breaks};

impl Machine {
    pub(super) fn request(
        &mut self,
        now: Now,
        ticket: Ticket,
        request: Request,
        effects: &mut Vec<Effect>,
    ) {
        let (epoch, blind) = (self.settings.epoch, breaks!(self.defect, ForgetsEpochs));
        if let Some(error) = stale(&request, Some(epoch)).filter(|_| !blind) {
            effects.answer(ticket, Err(error));
            return;
        }
        match &mut self.phase {
            _ if matches!(request, Request::Status) => {
                effects.answer(ticket, Ok(Reply::Status(self.status(now))));
            }
            Phase::Over(Over { reason, .. }) => {
                effects.answer(ticket, Err(CoordinatorError::Failed(reason.clone())));
            }
            Phase::Forming(parked) => {
                let deadline = now.elapsed + self.settings.patience;
                parked.push_back(Parked { deadline, ticket, request });
            }
            Phase::Live => self.serve(now, ticket, request, effects),
        }
    }

    pub(super) fn serve(
        &mut self,
        now: Now,
        ticket: Ticket,
        request: Request,
        effects: &mut Vec<Effect>,
    ) {
        let moment = self.moment(now);
        match request {
            Request::Lease { lease, time_to_live } => {
                let grant = self.grant(now, lease, time_to_live);
                effects.answer(ticket, Ok(Reply::Granted(grant)));
            }
            Request::Renew { leases } => {
                let mut gone = vec![];
                for (lease, step) in leases {
                    if !self.leases.renew(now.elapsed, lease, step) {
                        gone.push(lease);
                    }
                }
                effects.answer(ticket, Ok(Reply::Renewed(gone)));
            }
            Request::Reserve(reserve) => {
                self.transactions.reserve(moment, ticket, reserve, effects);
            }
            Request::Commit { transaction, staged_on, .. } => {
                self.commit(moment, ticket, transaction, staged_on.is_empty(), effects);
            }
            Request::CatalogHead => {
                effects.answer(ticket, Ok(Reply::Head(self.catalog.head().clone())));
            }
            Request::Change(change) => self.change(moment, ticket, change, effects),
            Request::Status => {
                effects.answer(ticket, Ok(Reply::Status(self.status(now))));
            }
        }
    }

    fn grant(&mut self, now: Now, lease: LeaseId, time_to_live: Duration) -> Grant {
        let Settings { epoch, time_to_live_min, time_to_live_max, .. } = self.settings;
        let time_to_live = time_to_live.clamp(time_to_live_min, time_to_live_max);
        let mut step = self.moment(now).common;
        if breaks!(self.defect, GrantsAhead) {
            step = self.sequence.newest().unwrap_or(step);
        }
        let catalog = self.catalog.current();
        let granted = self.leases.grant(now.elapsed, lease, time_to_live, step, catalog);
        Grant { lease, epoch, step: granted.step, catalog: granted.catalog.clone() }
    }

    fn commit(
        &mut self,
        moment: Moment,
        ticket: Ticket,
        transaction: TransactionId,
        unchanged: bool,
        effects: &mut Vec<Effect>,
    ) {
        if self.transactions.repeats(moment, transaction, ticket, effects) {
            return;
        }
        if unchanged {
            self.transactions.end_unchanged(moment, transaction, ticket, effects);
            return;
        }
        self.transactions.close(moment, transaction, ticket, effects);
        if self.nobody_waits() {
            self.schedule.first(Kind::Transactions);
        }
        self.sequence.push_transaction(transaction);
    }

    fn change(
        &mut self,
        moment: Moment,
        ticket: Ticket,
        change: Change,
        effects: &mut Vec<Effect>,
    ) {
        let Change { transaction, base, bytes, program, staged_on } = change;
        if self.transactions.repeats(moment, transaction, ticket, effects) {
            return;
        }
        let before = Arc::clone(self.catalog.program());
        if let Err(error) = self.catalog.accept(base, bytes, program) {
            effects.answer(ticket, Err(error));
            return;
        }
        self.transactions.close(moment, transaction, ticket, effects);
        if self.nobody_waits() {
            self.schedule.first(Kind::Changes);
        }
        let (head, program) = (self.catalog.head().clone(), Arc::clone(self.catalog.program()));
        self.jobs.push((transaction, !staged_on.is_empty()), &before, head, program);
    }

    /// Whether nothing waits for its turn.
    fn nobody_waits(&self) -> bool {
        self.sequence.waiting_transactions().is_empty() && !self.jobs.waits()
    }

    pub(super) fn cancel(&mut self, now: Now, ticket: Ticket, effects: &mut Vec<Effect>) {
        match &mut self.phase {
            Phase::Over(_) => {}
            Phase::Live => self.transactions.cancel(self.moment(now), ticket, effects),
            Phase::Forming(parked) => parked.retain(|parked| {
                let commits = matches!(parked.request, Request::Commit { .. } | Request::Change(_));
                parked.ticket != ticket || commits
            }),
        }
    }

    pub(super) fn release(&mut self, lease: LeaseId) {
        if self.leases.release(lease) {
            self.retainer.pin_ended();
        }
    }

    pub(super) fn abort(
        &mut self,
        now: Now,
        transaction: TransactionId,
        effects: &mut Vec<Effect>,
    ) {
        if matches!(self.phase, Phase::Over(_))
            || !self.transactions.abort(self.moment(now), transaction, effects)
        {
            return;
        }
        self.unstage(transaction, effects);
    }

    /// Has the hosts forget what a transaction that has no effect has staged.
    pub(super) fn unstage(&self, transaction: TransactionId, effects: &mut Vec<Effect>) {
        effects.extend(self.membership.hosts().map(|host| Effect::Unstage {
            host,
            epoch: self.settings.epoch,
            transaction,
        }));
    }

    fn status(&self, now: Now) -> ClusterStatus {
        ClusterStatus {
            epoch: self.settings.epoch,
            common: self.sequence.common(),
            hosts: self.membership.status(),
            leases: self.leases.status(now.elapsed),
            steps: self.steps.status(),
            jobs: self.jobs.status(),
        }
    }
}
