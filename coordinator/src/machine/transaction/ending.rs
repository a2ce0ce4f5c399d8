//! How transactions end: with a step, without one, or not at all.

use std::collections::VecDeque;

use stillframe_protocol::{Committed, CoordinatorError, TransactionId};

use super::super::effect::Answers;
use super::super::{Effect, Reply, Ticket, breaks};
use super::outcomes::Outcome;
use super::{Moment, Phase, Transaction, Transactions, Waiting};

impl Transactions {
    /// Whether a transaction can't be written to any more: it has ended or is about to.
    pub(super) fn has_ended(&self, transaction: TransactionId) -> bool {
        self.outcomes.get(transaction).is_some()
            || self
                .open
                .get(&transaction)
                .is_some_and(|open| matches!(open.phase, Phase::Committed(_)))
    }

    /// Answers a commit, or a change of the catalog, if it was asked for before; false if not.
    pub(in super::super) fn repeats(
        &mut self,
        moment: Moment,
        transaction: TransactionId,
        ticket: Ticket,
        effects: &mut Vec<Effect>,
    ) -> bool {
        if let Some(Transaction { phase: Phase::Committed(waiting), .. }) =
            self.open.get_mut(&transaction)
        {
            if breaks!(self.defect, CommitsTwice) {
                return false;
            }
            waiting.push(Waiting { ticket, since: moment.now });
            return true;
        }
        match self.outcomes.get(transaction) {
            Some(Outcome::Committed(step)) => {
                effects.answer(ticket, Ok(Reply::Committed(Committed { step })));
            }
            Some(Outcome::Aborted) => {
                effects.answer(ticket, Err(CoordinatorError::UnknownTransaction));
            }
            None => return false,
        }
        true
    }

    /// Closes a transaction that will enter a step.
    pub(in super::super) fn close(
        &mut self,
        moment: Moment,
        transaction: TransactionId,
        ticket: Ticket,
        effects: &mut Vec<Effect>,
    ) {
        let waiting = Waiting { ticket, since: moment.now };
        let closed = CoordinatorError::UnknownTransaction;
        let runnable = self.stop_reserving(moment, transaction, Some(closed), effects);
        self.open.entry(transaction).or_default().phase = Phase::Committed(vec![waiting]);
        self.run(moment, runnable, effects);
    }

    /// Ends a transaction that commits and has changed nothing.
    pub(in super::super) fn end_unchanged(
        &mut self,
        moment: Moment,
        transaction: TransactionId,
        ticket: Ticket,
        effects: &mut Vec<Effect>,
    ) {
        self.close(moment, transaction, ticket, effects);
        let runnable = self.end(moment, transaction, Outcome::Committed(moment.common), effects);
        self.run(moment, runnable.into(), effects);
    }

    /// Ends transactions whose step is common: what they wrote is history, what they held is free,
    /// who waits for them is answered.
    pub(in super::super) fn entered(
        &mut self,
        moment: Moment,
        transactions: &[TransactionId],
        effects: &mut Vec<Effect>,
    ) {
        for transaction in transactions {
            self.history.record(moment.common, self.locks.held(*transaction));
        }
        let mut runnable = VecDeque::new();
        for transaction in transactions {
            let outcome = Outcome::Committed(moment.common);
            runnable.extend(self.end(moment, *transaction, outcome, effects));
        }
        self.run(moment, runnable, effects);
    }

    /// Ends a transaction without effect; false if it has ended, or will enter a step.
    pub(in super::super) fn abort(
        &mut self,
        moment: Moment,
        transaction: TransactionId,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let undoes =
            breaks!(self.defect, AbortsCommitted) && self.outcomes.get(transaction).is_none();
        if self.has_ended(transaction) && !undoes {
            return false;
        }
        let aborted = CoordinatorError::UnknownTransaction;
        let mut runnable = self.stop_reserving(moment, transaction, Some(aborted), effects);
        runnable.extend(self.end(moment, transaction, Outcome::Aborted, effects));
        self.run(moment, runnable, effects);
        true
    }

    /// Answers everybody with an error, and forgets everything.
    pub(in super::super) fn refuse_all(
        &mut self,
        error: impl Fn(TransactionId) -> CoordinatorError,
        effects: &mut Vec<Effect>,
    ) {
        for (id, transaction) in std::mem::replace(self, Self::new(self.defect)).open {
            let tickets = match transaction.phase {
                Phase::Open => vec![],
                Phase::Reserving(reserving) => vec![reserving.ticket],
                Phase::Committed(waiting) => waiting.iter().map(|waiting| waiting.ticket).collect(),
            };
            for ticket in tickets {
                effects.answer(ticket, Err(error(id)));
            }
        }
    }

    /// Ends a transaction that isn't reserving; returns who need wait no longer.
    pub(super) fn end(
        &mut self,
        moment: Moment,
        transaction: TransactionId,
        outcome: Outcome,
        effects: &mut Vec<Effect>,
    ) -> Vec<TransactionId> {
        self.set_frame(transaction, None);
        self.outcomes.insert(transaction, outcome);
        if let Some(Transaction { phase: Phase::Committed(waiting), .. }) =
            self.open.remove(&transaction)
            && let Outcome::Committed(step) = outcome
        {
            for Waiting { ticket, .. } in waiting {
                effects.answer(ticket, Ok(Reply::Committed(Committed { step })));
            }
        }
        self.locks.release(transaction, moment.common)
    }
}
