//! Who is part of the epoch: a fixed number of hosts by place, all of which are needed.
//!
//! Reports are level-triggered: the newest replaces what was known. There is no failure detector;
//! a silent host is waited for.

use std::net::SocketAddr;

use stillframe_protocol::{Activation, Epoch, Generation, HostId, HostStatus, Report};

use super::Effect;

/// The hosts by place.
#[derive(Debug)]
pub(super) struct Membership {
    epoch: Epoch,
    workers: Vec<u32>,
    reports: Vec<Option<Report>>,
}

impl Membership {
    pub(super) fn new(epoch: Epoch, workers: Vec<u32>) -> Self {
        let reports = vec![None; workers.len()];
        Self { epoch, workers, reports }
    }

    /// All hosts' places.
    pub(super) fn hosts(&self) -> impl Iterator<Item = HostId> + use<> {
        (0..self.workers.len() as u32).map(HostId)
    }

    /// Has every host join the epoch.
    pub(super) fn activate(&self, effects: &mut Vec<Effect>) {
        effects.extend(self.hosts().map(|host| Effect::Activate {
            host,
            activation: Activation { epoch: self.epoch, host, workers: self.workers.clone() },
        }));
    }

    /// Takes a report in, unless it is stale, of another epoch or of nobody; returns whether it did.
    pub(super) fn record(&mut self, report: &Report) -> bool {
        if report.epoch != self.epoch {
            return false;
        }
        let Some(known) = self.reports.get_mut(report.host.0 as usize) else { return false };
        if known.as_ref().is_some_and(|known| known.done > report.done) {
            return false;
        }
        *known = Some(report.clone());
        true
    }

    /// Whether every host has joined.
    pub(super) fn complete(&self) -> bool {
        self.reports.iter().all(Option::is_some)
    }

    /// Where each host's part of a circuit is reached, or which host offers another circuit.
    pub(super) fn exchange(&self, generation: Generation) -> Result<Vec<SocketAddr>, HostId> {
        self.hosts()
            .zip(&self.reports)
            .map(|(host, report)| match report {
                Some(Report { exchange: (offered, address), .. }) if *offered == generation => {
                    Ok(*address)
                }
                _ => Err(host),
            })
            .collect()
    }

    pub(super) fn status(&self) -> Vec<HostStatus> {
        self.hosts()
            .zip(&self.workers)
            .zip(&self.reports)
            .map(|((host, workers), report)| HostStatus {
                host,
                workers: *workers,
                active: report.is_some(),
                step: report.as_ref().and_then(|report| report.step),
            })
            .collect()
    }

    /// Nothing is asked of the hosts before all of them are there.
    pub(super) fn commands_need_all_hosts(&self, commands_sent: bool) -> bool {
        !commands_sent || self.complete()
    }
}
