//! What the machine answers, and whether that can be.

use std::time::Duration;

use stillframe_protocol::{
    Committed, CoordinatorError, Grant, LeaseId, Reservation, Step, TransactionId,
};

use super::Checker;
use crate::machine::{Answer, Reply, Request, Ticket};

impl Checker {
    /// The machine answers.
    pub(in super::super) fn answered(&mut self, now: Duration, ticket: Ticket, answer: &Answer) {
        let Some(request) = self.asked.remove(&ticket) else {
            self.expect(false, || format!("{ticket:?} is answered but not asked: {answer:?}"));
            return;
        };
        if let Some(kind) = kind(answer) {
            self.count(kind);
        }
        let before = match self.acknowledged_when_asked.remove(&ticket) {
            Some((epoch, step)) if epoch == self.epoch => step,
            _ => None,
        };
        if let (Ok(reply), Request::Reserve(_)) = (answer, &request) {
            if let Reply::Reserved(reservation) = reply {
                let step = match reservation {
                    Reservation::Granted => None,
                    Reservation::Changed(step) => Some(*step),
                };
                let common = self.made_by_all();
                self.expect(step <= common, || format!("changed at step {step:?} of {common:?}"));
            }
            let granted = self.reservations.granted(ticket);
            self.check(granted);
        } else {
            self.reservations.gave_up(ticket);
        }
        match (answer, request) {
            (Ok(Reply::Granted(grant)), Request::Lease { lease, time_to_live }) => {
                self.granted(now, grant, lease, time_to_live, before);
            }
            (Ok(Reply::Renewed(gone)), Request::Renew { leases }) => {
                let lives = leases.iter().map(|(id, _)| *id).filter(|id| !gone.contains(id));
                lives.for_each(|id| self.leases.renewed(now, id));
            }
            (
                Ok(Reply::Committed(Committed { step })),
                Request::Commit { transaction, epoch, staged_on },
            ) => {
                let current = self.epoch;
                self.expect(Some(epoch) == current, || {
                    format!("{transaction} of epoch {epoch} is acknowledged in {current:?}")
                });
                self.committed(*step, transaction, !staged_on.is_empty());
            }
            (Ok(Reply::Committed(Committed { step })), Request::Change(change)) => {
                self.committed(*step, change.transaction, false);
            }
            (Err(CoordinatorError::CatalogChanged), Request::Change(change)) => {
                self.history.commit_refused(change.transaction);
            }
            (Err(CoordinatorError::Unknown(_)), Request::Change(change)) => {
                // Nobody is told when its step is common.
                self.reservations.ended(change.transaction);
            }
            (
                Err(CoordinatorError::UnknownTransaction | CoordinatorError::Unknown(_)),
                Request::Commit { transaction, .. },
            ) => self.filling.refused(transaction),
            (Err(CoordinatorError::NotReady(_)), Request::Commit { transaction, epoch, .. }) => {
                self.filling.refused(transaction);
                self.has_no_effect(transaction, epoch);
            }
            (Err(CoordinatorError::Failed(why)), _) => {
                let failed = self.failed;
                self.expect(failed, || format!("{why}, but no host has failed"));
            }
            _ => {}
        }
    }

    fn granted(
        &mut self,
        now: Duration,
        grant: &Grant,
        lease: LeaseId,
        time_to_live: Duration,
        acknowledged: Option<Step>,
    ) {
        let (step, made) = (grant.step, self.made_by_all());
        let lives = self.lives(grant.epoch);
        self.expect(lives, || format!("lease {lease} is granted in epoch {}", grant.epoch));
        self.expect(grant.lease == lease, || format!("{lease} is granted as {}", grant.lease));
        self.expect(Some(step) <= made, || {
            format!("lease {lease} is granted on step {step}, all hosts have made {made:?}")
        });
        let known = self.leases.step(lease);
        self.expect(Some(step) >= acknowledged || known == Some(step), || {
            format!("lease {lease} is granted on step {step}, {acknowledged:?} was acknowledged")
        });
        let granted = self.leases.granted(now, lease, step, time_to_live);
        self.check(granted);
        let shown = self.history.shows(step, &grant.catalog);
        self.check(shown);
    }

    fn committed(&mut self, step: Step, transaction: TransactionId, entered: bool) {
        let made = self.made_by_all();
        self.expect(Some(step) <= made, || {
            format!("{transaction} is acknowledged at step {step}, all hosts have made {made:?}")
        });
        if entered {
            let entered = self.history.entered(transaction);
            self.expect(entered == Some(step), || {
                format!("{transaction} entered {entered:?} and is acknowledged at {step}")
            });
        } else {
            self.reservations.ended(transaction);
        }
        self.acknowledged = self.acknowledged.max(Some(step));
    }
}

/// What an answer counts as.
fn kind(answer: &Answer) -> Option<&'static str> {
    match answer {
        Ok(Reply::Granted(_)) => Some("leases"),
        Ok(Reply::Renewed(gone)) if !gone.is_empty() => Some("leases gone"),
        Ok(Reply::Reserved(Reservation::Granted)) => Some("reservations granted"),
        Ok(Reply::Reserved(Reservation::Changed(_))) => Some("reservations changed"),
        Ok(Reply::Committed(_)) => Some("commits"),
        Ok(Reply::Renewed(_) | Reply::Head(_) | Reply::Status(_)) => None,
        Err(CoordinatorError::Deadlock) => Some("deadlocks"),
        Err(CoordinatorError::LockTimeout) => Some("lock timeouts"),
        Err(CoordinatorError::CatalogChanged) => Some("changes refused"),
        Err(CoordinatorError::UnknownTransaction) => Some("transactions refused"),
        Err(CoordinatorError::Failed(_)) => Some("failures"),
        Err(CoordinatorError::NotReady(_)) => Some("not ready"),
        Err(CoordinatorError::Unknown(_)) => Some("outcomes unknown"),
    }
}
