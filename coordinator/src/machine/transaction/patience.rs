//! Those who have waited too long for hosts that say nothing.

use stillframe_protocol::{CoordinatorError, TransactionId};

use super::super::Effect;
use super::super::effect::Answers;
use super::outcomes::Outcome;
use super::{Moment, Phase, Transactions};

impl Transactions {
    /// Answers everybody who has waited since a moment or longer. What becomes of a commit that is
    /// part of a command is unknown; one that waits for the next can be withdrawn, and is: returns
    /// those.
    pub(in super::super) fn give_up(
        &mut self,
        moment: Moment,
        since: std::time::Duration,
        why: &str,
        waiting: &[TransactionId],
        effects: &mut Vec<Effect>,
    ) -> Vec<TransactionId> {
        let late = CoordinatorError::NotReady(why.to_owned());
        let (mut reserving, mut withdrawn) = (vec![], vec![]);
        for (id, transaction) in &mut self.open {
            match &mut transaction.phase {
                Phase::Reserving(request) if request.since <= since => reserving.push(*id),
                Phase::Open | Phase::Reserving(_) => {}
                Phase::Committed(tickets) if waiting.contains(id) => {
                    if tickets.first().is_some_and(|first| first.since <= since) {
                        for ticket in tickets.drain(..) {
                            effects.answer(ticket.ticket, Err(late.clone()));
                        }
                        withdrawn.push(*id);
                    }
                }
                Phase::Committed(tickets) => {
                    for ticket in tickets.extract_if(.., |ticket| ticket.since <= since) {
                        let unknown = CoordinatorError::Unknown(why.to_owned());
                        effects.answer(ticket.ticket, Err(unknown));
                    }
                }
            }
        }
        for transaction in reserving {
            let runnable = self.stop_reserving(moment, transaction, Some(late.clone()), effects);
            self.run(moment, runnable, effects);
        }
        for transaction in &withdrawn {
            let runnable = self.end(moment, *transaction, Outcome::Aborted, effects);
            self.run(moment, runnable.into(), effects);
        }
        withdrawn
    }
}
