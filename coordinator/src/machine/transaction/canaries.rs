//! What machines do that break a rule.

use std::collections::VecDeque;

use stillframe_protocol::{Committed, Step, TransactionId};

use super::super::effect::Answers;
use super::super::{Effect, Reply};
use super::{Moment, Phase, Transaction, Transactions, Waiting};

impl Transactions {
    /// Who waits for a step that was just sent is answered.
    pub(in super::super) fn answer_early(
        &mut self,
        step: Step,
        transactions: &[TransactionId],
        effects: &mut Vec<Effect>,
    ) {
        for transaction in transactions {
            if let Some(Transaction { phase: Phase::Committed(waiting), .. }) =
                self.open.get_mut(transaction)
            {
                for Waiting { ticket, .. } in waiting.drain(..) {
                    effects.answer(ticket, Ok(Reply::Committed(Committed { step })));
                }
            }
        }
    }

    /// What transactions hold becomes free when their step is sent.
    pub(in super::super) fn release_early(
        &mut self,
        moment: Moment,
        step: Step,
        transactions: &[TransactionId],
        effects: &mut Vec<Effect>,
    ) {
        let mut runnable = VecDeque::new();
        for transaction in transactions {
            self.history.record(step, self.locks.held(*transaction));
            runnable.extend(self.locks.release(*transaction, moment.common));
        }
        self.run(moment, runnable, effects);
    }
}
