//! What clients want while no epoch lives, and the way to the machine of the one that does.

use stillframe_protocol::{ClusterStatus, CoordinatorError, HostStatus};

use super::{Cluster, Effect, Phase};
use crate::machine::{
    Effect as MachineEffect, Event, Now, Parked, Reply, Request, answer_late, breaks, stale,
};

impl Cluster {
    /// Time passes, or a client wants something.
    pub(super) fn happen(&mut self, now: Now, event: Event, effects: &mut Vec<Effect>) {
        let patience = self.settings.patience;
        let Phase::Gathering(parked) = &mut self.phase else {
            self.tell_machine(now, event, effects);
            return;
        };
        match event {
            Event::Ticked => {
                let (why, mut late) = (self.registry.missing(), vec![]);
                answer_late(parked, now.elapsed, &why, &mut late);
                effects.extend(late.into_iter().map(Effect::Answer));
            }
            Event::Requested { ticket, request } => {
                let deadline = now.elapsed + patience;
                self.park(Parked { deadline, ticket, request }, effects);
            }
            Event::Cancelled { ticket } => parked.retain(|parked| parked.ticket != ticket),
            Event::Aborted { transaction } => {
                parked.retain(|Parked { ticket, request, .. }| {
                    let ends = match request {
                        Request::Reserve(reserve) => reserve.transaction == transaction,
                        Request::Change(change) => change.transaction == transaction,
                        _ => false,
                    };
                    if ends {
                        let (ticket, answer) = (*ticket, Err(CoordinatorError::UnknownTransaction));
                        effects.push(Effect::Answer(MachineEffect::Answer { ticket, answer }));
                    }
                    !ends
                })
            }
            // There is nothing that could be released, and nobody who could report.
            Event::Released { .. }
            | Event::Started
            | Event::Reported(_)
            | Event::HostFailed { .. } => {}
        }
    }

    /// Has a request wait for the next epoch, if that can serve it.
    pub(super) fn park(&mut self, request: Parked, effects: &mut Vec<Effect>) {
        let answer = match &request.request {
            Request::Status => Some(Ok(Reply::Status(self.status()))),
            other => {
                let blind = breaks!(self.defect, ForgetsEpochs);
                stale(other, None).filter(|_| !blind).map(Err)
            }
        };
        let Phase::Gathering(parked) = &mut self.phase else { return };
        match answer {
            Some(answer) => {
                let ticket = request.ticket;
                effects.push(Effect::Answer(MachineEffect::Answer { ticket, answer }));
            }
            None => parked.push_back(request),
        }
    }

    /// The cluster while no epoch lives.
    fn status(&self) -> ClusterStatus {
        let workers = self.settings.hosts.workers();
        let host = |((host, _), workers): ((_, bool), u32)| HostStatus {
            host,
            workers,
            active: false,
            step: None,
        };
        ClusterStatus {
            epoch: self.registry.newest_epoch(),
            common: None,
            hosts: self.registry.places().zip(workers).map(host).collect(),
            leases: vec![],
            steps: vec![],
            jobs: vec![],
        }
    }
}
