//! Who is part of the epoch: a fixed number of hosts by place, all of which are needed.
//!
//! Reports are level-triggered: the newest replaces what was known. There is no failure detector;
//! a silent host is waited for.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use stillframe_protocol::{Activation, Epoch, Filling, Generation, HostId, HostStatus, Report};

use super::{Effect, Member};

/// The hosts by place.
#[derive(Debug)]
pub(super) struct Membership {
    epoch: Epoch,
    members: Vec<Member>,
    reports: Vec<Option<Report>>,
    /// When each was heard of last.
    heard: Vec<Duration>,
}

impl Membership {
    pub(super) fn new(epoch: Epoch, members: Vec<Member>) -> Self {
        let reports = vec![None; members.len()];
        let heard = vec![Duration::ZERO; members.len()];
        Self { epoch, members, reports, heard }
    }

    /// All hosts' places.
    pub(super) fn hosts(&self) -> impl Iterator<Item = HostId> + use<> {
        (0..self.members.len() as u32).map(HostId)
    }

    /// Has every host join the epoch.
    pub(super) fn activate(&self, effects: &mut Vec<Effect>) {
        let (epoch, workers) = (self.epoch, self.members.iter().map(|member| member.workers));
        let workers: Vec<u32> = workers.collect();
        effects.extend(self.hosts().zip(&self.members).map(|(host, member)| {
            let (incarnation, workers) = (member.incarnation, workers.clone());
            let activation = Activation { epoch, host, incarnation, workers };
            Effect::Activate { host, activation }
        }));
    }

    /// Learns that a host lives.
    pub(super) fn hear(&mut self, now: Duration, host: HostId) {
        if let Some(heard) = self.heard.get_mut(host.0 as usize) {
            *heard = now.max(*heard);
        }
    }

    /// One of these hosts that hasn't been heard of since a moment, if there is one.
    pub(super) fn silent_since(&self, since: Duration, hosts: &BTreeSet<HostId>) -> Option<HostId> {
        hosts.iter().copied().find(|host| self.heard[host.0 as usize] <= since)
    }

    /// Takes a report in, unless it is stale, of another epoch or of nobody; returns whether it did.
    pub(super) fn record(&mut self, now: Duration, report: &Report) -> bool {
        if report.epoch != self.epoch {
            return false;
        }
        self.hear(now, report.host);
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

    /// How far each host is with what is new in its circuit.
    pub(super) fn fillings(&self) -> Vec<Option<Filling>> {
        self.reports.iter().map(|report| report.as_ref()?.filling).collect()
    }

    /// The first moment at which rows come or go by the clock alone.
    pub(super) fn due_us(&self) -> Option<i64> {
        self.reports.iter().filter_map(|report| report.as_ref()?.due_us).min()
    }

    pub(super) fn status(&self) -> Vec<HostStatus> {
        self.hosts()
            .zip(&self.members)
            .zip(&self.reports)
            .map(|((host, member), report)| HostStatus {
                host,
                workers: member.workers,
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
