//! How an epoch ends, and what becomes of those who wait for a host that is silent.
//!
//! Nothing ends an epoch but a host that says that it has failed, one that does what it must not,
//! and the cluster, when another process has a host's place. Silence doesn't.

use std::collections::VecDeque;

use stillframe_protocol::{CoordinatorError, Epoch, HostId, TransactionId};

use super::effect::Answers;
use super::jobs::Jobs;
use super::{Effect, Loss, Machine, Now, Over, Parked, Phase, Request, breaks};

impl Machine {
    /// Ends the epoch for what a host says or does.
    pub(super) fn fail(&mut self, host: HostId, reason: &str, effects: &mut Vec<Effect>) {
        let reason = format!("host {host}: {reason}");
        match self.settings.loss {
            Loss::IsFinal => {
                let error = CoordinatorError::Failed(reason.clone());
                self.finish(reason, |_| error.clone(), effects);
                if let Phase::Over(Over { parked, .. }) = &mut self.phase {
                    for Parked { ticket, .. } in parked.drain(..) {
                        effects.answer(ticket, Err(error.clone()));
                    }
                }
            }
            Loss::EndsEpoch => self.end(&reason, effects),
        }
    }

    /// Ends the epoch. Whose changes are part of a command can't know what became of them; nobody
    /// else's have any effect.
    pub(crate) fn end(&mut self, reason: &str, effects: &mut Vec<Effect>) {
        let why = format!("epoch {} has ended: {reason}", self.settings.epoch);
        let lost = CoordinatorError::NotReady(why.clone());
        let unknown = CoordinatorError::Unknown(why.clone());
        let under_way = self.sequence.under_way().to_vec();
        let knows_better = breaks!(self.defect, DeniesCommits);
        let error = |transaction: TransactionId| match under_way.contains(&transaction) {
            true if !knows_better => unknown.clone(),
            _ => lost.clone(),
        };
        self.finish(why, error, effects);
        if let Phase::Over(Over { parked, .. }) = &mut self.phase {
            // What is staged in this epoch is lost with it. All others can be served by the next.
            parked.retain(|Parked { ticket, request, .. }| {
                let commits = matches!(request, Request::Commit { .. });
                if commits {
                    effects.answer(*ticket, Err(lost.clone()));
                }
                !commits
            });
        }
    }

    /// Why the epoch is over, if it is.
    pub(crate) fn over(&self) -> Option<&str> {
        match &self.phase {
            Phase::Over(Over { reason, .. }) => Some(reason),
            Phase::Forming(_) | Phase::Live => None,
        }
    }

    /// Takes out the requests that this epoch hasn't served.
    pub(crate) fn into_parked(self) -> VecDeque<Parked> {
        match self.phase {
            Phase::Over(Over { parked, .. }) | Phase::Forming(parked) => parked,
            Phase::Live => VecDeque::new(),
        }
    }

    /// Has requests wait for the first step of the epoch.
    pub(crate) fn park(&mut self, requests: VecDeque<Parked>) {
        if let Phase::Forming(parked) = &mut self.phase {
            parked.extend(requests);
        }
    }

    fn finish(
        &mut self,
        reason: String,
        error: impl Fn(TransactionId) -> CoordinatorError,
        effects: &mut Vec<Effect>,
    ) {
        let parked = match std::mem::replace(&mut self.phase, Phase::Live) {
            // The first reason is the cause.
            over @ Phase::Over(_) => {
                self.phase = over;
                return;
            }
            Phase::Live => {
                self.transactions.refuse_all(error, effects);
                self.jobs = Jobs::new(self.settings.online, self.defect);
                VecDeque::new()
            }
            Phase::Forming(parked) => parked,
        };
        self.phase = Phase::Over(Over { reason, parked });
    }

    /// Answers those who have waited too long for a host that says nothing. The command goes on,
    /// and with it what is part of it; commits that wait for the next are withdrawn.
    pub(super) fn give_up_waiting(&mut self, now: Now, effects: &mut Vec<Effect>) {
        let patience = self.settings.patience;
        let Some(since) = now.elapsed.checked_sub(patience) else { return };
        let silent = self.membership.silent_since(since, self.sequence.awaited());
        let (Loss::EndsEpoch, Some(host)) = (self.settings.loss, silent) else { return };
        let why = format!("host {host} has said nothing for {} s", patience.as_secs_f32());
        let waiting = self.sequence.waiting_transactions().to_vec();
        let moment = self.moment(now);
        for transaction in self.transactions.give_up(moment, since, &why, &waiting, effects) {
            self.sequence.withdraw(transaction);
            self.unstage(transaction, effects);
        }
    }
}

/// What is answered to a request of an epoch that doesn't live.
pub(crate) fn stale(request: &Request, live: Option<Epoch>) -> Option<CoordinatorError> {
    match request {
        // It may have been asked before, and its answer lost.
        Request::Commit { epoch, .. } if Some(*epoch) != live => {
            Some(CoordinatorError::Unknown(format!("epoch {epoch} has ended")))
        }
        Request::Reserve(reserve) => {
            let epoch = reserve.frame?.epoch;
            let why = || CoordinatorError::NotReady(format!("epoch {epoch} has ended"));
            (Some(epoch) != live).then(why)
        }
        _ => None,
    }
}
