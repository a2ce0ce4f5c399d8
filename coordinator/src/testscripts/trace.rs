//! Effects as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use stillframe_protocol::{
    Action, ClusterStatus, Command, Program, Reservation, Retention, Standing, Step, TransactionId,
};

use crate::cluster;
use crate::machine::{Answer, Effect, Reply, Ticket};

/// Writes down what a machine wants done.
pub(super) struct Trace<'a> {
    pub(super) asked: &'a BTreeMap<Ticket, String>,
}

impl Trace<'_> {
    /// One line for each effect; what several hosts are told alike is one.
    pub(super) fn effects(&self, effects: &[cluster::Effect]) -> String {
        let mut lines: Vec<(Vec<u32>, String)> = vec![];
        for effect in effects {
            let (host, line) = match effect {
                cluster::Effect::Tell { effect, .. } | cluster::Effect::Answer(effect) => {
                    self.effect(effect)
                }
                cluster::Effect::Stand { ticket, standing } => {
                    (None, format!("<- {}: {}", self.asked[ticket], stand(standing)))
                }
                cluster::Effect::Retire { incarnation, reason } => {
                    (None, format!("-> process {incarnation}: retire: {reason}"))
                }
            };
            match lines.last_mut() {
                Some((hosts, last)) if host.is_some() && *last == line => hosts.extend(host),
                _ => lines.push((host.into_iter().collect(), line)),
            }
        }
        lines.into_iter().fold(String::new(), |mut text, (hosts, line)| {
            let hosts: Vec<String> = hosts.iter().map(u32::to_string).collect();
            let to =
                if hosts.is_empty() { String::new() } else { format!("-> {}: ", hosts.join(",")) };
            writeln!(text, "{to}{line}").unwrap();
            text
        })
    }

    fn effect(&self, effect: &Effect) -> (Option<u32>, String) {
        match effect {
            Effect::Activate { host, activation } => {
                let line = format!("activate epoch {}", activation.epoch);
                (Some(host.0), format!("{line}, workers {:?}", activation.workers))
            }
            Effect::Execute { host, command } => (Some(host.0), execute(command)),
            Effect::Retain { host, retention, .. } => (Some(host.0), keep(retention)),
            Effect::Unstage { host, transaction, .. } => {
                (Some(host.0), format!("unstage t{transaction}"))
            }
            Effect::Answer { ticket, answer } => {
                (None, format!("<- {}: {}", self.asked[ticket], reply(answer)))
            }
        }
    }
}

fn stand(standing: &Standing) -> String {
    match standing {
        Standing::Waits { place: None, reason } => format!("waits: {reason}"),
        Standing::Waits { place: Some(place), reason } => format!("waits at {place}: {reason}"),
        Standing::Member { epoch, place } => format!("is host {place} of epoch {epoch}"),
        Standing::Retires { reason } => format!("retires: {reason}"),
        Standing::Refused { reason } => format!("is refused: {reason}"),
    }
}

fn execute(command: &Command) -> String {
    let number = command.number;
    let keep = keep(&command.retention);
    match &command.action {
        Action::Advance { step, clock_us, transactions } => {
            let transactions: Vec<String> = transactions.iter().map(transaction).collect();
            let transactions = transactions.join(" ");
            format!("#{number} advance to step {step} at {clock_us} [{transactions}], {keep}")
        }
        Action::Replace { step, clock_us, generation, program, exchange, .. }
        | Action::ReplaceOnline { step, clock_us, generation, program, exchange } => {
            let views = views(program);
            let ports: Vec<u16> = exchange.iter().map(|address| address.port()).collect();
            let online = matches!(command.action, Action::ReplaceOnline { .. });
            let is_hidden = matches!(command.action, Action::Replace { is_hidden: true, .. });
            let online = match (online, is_hidden) {
                (true, _) => " online",
                (false, true) => " hidden",
                (false, false) => "",
            };
            format!(
                "#{number} replace{online}, step {step} at {clock_us}, circuit {generation} on \
                 {ports:?} computes {views:?}, {keep}"
            )
        }
        Action::Pump { step, number: pump, slices } => {
            format!("#{number} pump {pump} of {slices} slices at step {step}, {keep}")
        }
        Action::Cutover { step, clock_us } => {
            format!("#{number} cutover, step {step} at {clock_us}, {keep}")
        }
    }
}

fn keep(retention: &Retention) -> String {
    let pinned: Vec<u64> = retention.pinned.iter().map(|step| step.0).collect();
    match retention.common {
        None => "keep all".into(),
        Some(common) => format!("keep {pinned:?} and {common}.."),
    }
}

fn reply(answer: &Answer) -> String {
    match answer {
        Ok(Reply::Granted(grant)) => {
            let catalog = String::from_utf8_lossy(&grant.catalog.bytes).into_owned();
            format!("step {}, catalog {} {catalog:?}", grant.step, grant.catalog.version)
        }
        Ok(Reply::Renewed(gone)) => {
            let gone: Vec<String> = gone.iter().map(|lease| format!("l{lease}")).collect();
            format!("gone [{}]", gone.join(" "))
        }
        Ok(Reply::Reserved(Reservation::Granted)) => "granted".into(),
        Ok(Reply::Reserved(Reservation::Changed(Step(step)))) => format!("changed at step {step}"),
        Ok(Reply::Committed(committed)) => format!("part of step {}", committed.step),
        Ok(Reply::Head(catalog)) => {
            let text = String::from_utf8_lossy(&catalog.bytes).into_owned();
            format!("catalog {} {text:?}", catalog.version)
        }
        Ok(Reply::Status(status)) => self::status(status),
        Err(error) => format!("error: {error}"),
    }
}

fn status(status: &ClusterStatus) -> String {
    let shown = |step: Option<Step>| step.map_or("none".into(), |step| step.to_string());
    let mut text = format!("epoch {}, common {}", status.epoch, shown(status.common));
    for host in &status.hosts {
        let step = shown(host.step);
        let active = if host.active { "active" } else { "absent" };
        write!(text, "\n   host {}: {active}, step {step}", host.host).unwrap();
    }
    for lease in &status.leases {
        let (id, step, age, rest) = (lease.lease, lease.step, lease.age_ms, lease.expires_in_ms);
        write!(text, "\n   lease l{id}: step {step}, {age} ms old, expires in {rest} ms").unwrap();
    }
    for step in &status.steps {
        write!(
            text,
            "\n   step {}: clock {}, {} transactions, took {} us, catalog {}",
            step.step, step.clock_us, step.transactions, step.took_us, step.catalog
        )
        .unwrap();
    }
    for job in &status.jobs {
        let relations: Vec<u32> = job.relations.iter().map(|relation| relation.0).collect();
        let (id, kind, phase) = (job.id, job.kind, &job.phase);
        write!(text, "\n   job {id}: {kind:?} {relations:?}, {phase:?}").unwrap();
    }
    text
}

fn transaction(transaction: &TransactionId) -> String {
    format!("t{transaction}")
}

fn views(program: &Program) -> Vec<u32> {
    program.views.iter().map(|view| view.id.0).collect()
}
