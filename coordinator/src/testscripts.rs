//! Protocol traces as golden scripts: what happens to the machine, and what it wants done.
//!
//! `UPDATE_GOLDENFILES=1 cargo test` rewrites them; then read the difference.
//!
//! ```text
//! start hosts=N [online=]    a cluster of given hosts; it is told that it has started
//! cluster hosts=N [epoch= online=]   a cluster of hosts that register; online=BACKLOG
//! register PROCESS [place= newest= workers= build= of=] [used]   a process tells that it is there
//! join [HOST..]              hosts (all) report that they have joined
//! report [HOST..] [done= step= circuit= epoch= from= filling=]   hosts (all) report the newest
//!                            command done; filling=refused, none, goes/N or done/N (as before)
//! fail HOST WHY [from=]      a host says that it has failed
//! tick [AFTER]               time goes on (by 20ms) and is looked at
//! wall SECONDS               the clock on the wall is set
//! lease L [ttl=]             renew L=STEP..        release L
//! reserve T ENTRY.. [frame= epoch= timeout=]   an entry is RELATION[.KEY]/s or /x
//! commit T [on=HOST/.. epoch=]   abort T           cancel REQUEST..
//! head                       change T base= catalog= views=ID/..
//! status
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use goldenscript::{ArgumentConsumer, Command as Line, Context};
use stillframe_protocol::{
    Action, CatalogVersion, Change, Command, CommandNumber, Epoch, Filling, FrameId, Generation,
    HostId, Incarnation, Registration, Report, Step,
};

use self::trace::Trace;
use self::words::{duration, entry, filling, host, lease, positional, program, transaction};
use crate::cluster::{self, Cluster, Hosts, Requirements, Settings};
use crate::machine::{Effect, Event, Now, Online, Request, Reserve, Ticket};

mod trace;
mod words;

#[test]
fn traces_are_as_recorded() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/testscripts");
    let mut scripts: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_none())
        .collect();
    scripts.sort();
    assert!(!scripts.is_empty());
    for script in scripts {
        println!("{}", script.display());
        goldenscript::run(&mut Runner::default(), &script).unwrap();
    }
}

/// Feeds a cluster with what a script says.
#[derive(Default)]
struct Runner {
    cluster: Option<Cluster>,
    /// Who the hosts of the epoch are.
    members: Vec<Incarnation>,
    epoch: Epoch,
    hosts: u32,
    elapsed: Duration,
    /// How far the clock on the wall is off.
    wall_offset_us: i64,
    /// By ticket, what was asked.
    asked: BTreeMap<Ticket, String>,
    newest: Option<Arc<Command>>,
    generation: Generation,
    /// What hosts said last of how far they are with filling.
    filling: Option<Filling>,
    /// When rows come or go by the clock, as hosts said last.
    due_us: Option<i64>,
}

type Parsed<T> = Result<T, Box<dyn Error>>;

impl goldenscript::Runner for Runner {
    type Command = Line;

    fn run(&mut self, line: &Line, _: &Context) -> Parsed<String> {
        let mut args = line.consume_args();
        let events = match line.name.as_str() {
            "start" => self.start(&mut args, true)?,
            "cluster" => self.start(&mut args, false)?,
            "register" => vec![self.register(&mut args)?],
            "join" => self.reports(&mut args, true)?,
            "report" => self.reports(&mut args, false)?,
            "fail" => {
                let host = host(positional(&mut args)?)?;
                let event = Event::HostFailed { host, reason: positional(&mut args)?.into() };
                vec![self.heard(host, event, &mut args)?]
            }
            "tick" => {
                self.elapsed += args.next_pos().map_or(Ok(Duration::from_millis(20)), duration)?;
                vec![happened(Event::Ticked)]
            }
            "wall" => {
                let wall_us = positional(&mut args)?.parse::<i64>()? * 1_000_000;
                self.wall_offset_us = wall_us - self.elapsed.as_micros() as i64;
                vec![]
            }
            "release" => vec![happened(Event::Released { lease: lease(positional(&mut args)?)? })],
            "abort" => {
                vec![happened(Event::Aborted { transaction: transaction(positional(&mut args)?)? })]
            }
            "cancel" => {
                let words: Vec<&str> = std::iter::from_fn(|| args.next_pos()).collect();
                let what = words.join(" ");
                let mut newest = self.asked.iter().rev();
                let (ticket, _) =
                    newest.find(|(_, asked)| **asked == what).ok_or("it wasn't asked")?;
                vec![happened(Event::Cancelled { ticket: *ticket })]
            }
            name => vec![happened(self.request(name, &mut args)?)],
        };
        args.reject_next()?;
        Ok(self.feed(events))
    }
}

impl Runner {
    fn feed(&mut self, events: Vec<cluster::Event>) -> String {
        let mut effects = vec![];
        let wall_us = self.elapsed.as_micros() as i64 + self.wall_offset_us;
        let now = Now { elapsed: self.elapsed, wall_us };
        let cluster = self.cluster.as_mut().expect("scripts begin with start or cluster");
        for event in events {
            cluster.handle(now, event, &mut effects);
        }
        for effect in &effects {
            match effect {
                cluster::Effect::Tell { effect: Effect::Execute { command, .. }, .. } => {
                    self.newest = Some(Arc::clone(command));
                }
                cluster::Effect::Tell {
                    incarnation,
                    effect: Effect::Activate { host, activation },
                } => {
                    self.members[host.0 as usize] = *incarnation;
                    self.epoch = activation.epoch;
                    (self.newest, self.generation) = (None, Generation(0));
                    self.filling = None;
                }
                _ => {}
            }
        }
        Trace { asked: &self.asked }.effects(&effects)
    }

    fn start(
        &mut self,
        args: &mut ArgumentConsumer<'_>,
        given: bool,
    ) -> Parsed<Vec<cluster::Event>> {
        let hosts = args.take_key("hosts").ok_or("how many hosts?")?.parse()?;
        let epoch = Epoch(args.take_key("epoch").map_or(Ok(1), str::parse)?);
        let online = args.take_key("online").map(str::parse).transpose()?;
        let members = (0..hosts).map(|host| Incarnation(host.into())).collect();
        // What was asked and when stays known, so that processes can outlive a coordinator.
        let (asked, elapsed) = (std::mem::take(&mut self.asked), self.elapsed);
        *self = if given { Self::default() } else { Self { asked, elapsed, ..Self::default() } };
        (self.hosts, self.members, self.epoch) = (hosts, members, epoch);
        self.cluster = Some(Cluster::new(Settings {
            hosts: if given {
                Hosts::Given(vec![2; hosts as usize])
            } else {
                Hosts::Registering(Requirements {
                    cluster: "main".into(),
                    build: "b1".into(),
                    hosts,
                    workers: 2,
                    silence_max: Duration::from_secs(3),
                })
            },
            epoch,
            time_to_live_min: Duration::from_secs(1),
            time_to_live_max: Duration::from_secs(60),
            clock_gap_max: Duration::from_secs(1),
            patience: Duration::from_secs(30),
            online: online.map(|backlog_max| Online { backlog_max, slices_per_pump: 8 }),
        }));
        Ok(vec![cluster::Event::Started])
    }

    fn register(&mut self, args: &mut ArgumentConsumer<'_>) -> Parsed<cluster::Event> {
        let process = positional(args)?;
        let registration = Registration {
            cluster: args.take_key("of").unwrap_or("main").into(),
            build: args.take_key("build").unwrap_or("b1").into(),
            incarnation: Incarnation(process.parse()?),
            place: args.take_key("place").map(host).transpose()?,
            workers: args.take_key("workers").map_or(Ok(2), str::parse)?,
            newest_epoch: Epoch(args.take_key("newest").map_or(Ok(0), str::parse)?),
            fresh: args.next_pos().is_none_or(|word| word != "used"),
        };
        let ticket = self.ticket(format!("process {process}"));
        Ok(cluster::Event::Registered { ticket, registration })
    }

    /// What is heard of a host: of the member, unless it says who else it is.
    fn heard(
        &self,
        host: HostId,
        event: Event,
        args: &mut ArgumentConsumer<'_>,
    ) -> Parsed<cluster::Event> {
        let incarnation = match args.take_key("from") {
            Some(process) => Incarnation(process.parse()?),
            None => self.members[host.0 as usize],
        };
        Ok(cluster::Event::Heard { incarnation, event })
    }

    fn ticket(&mut self, label: String) -> Ticket {
        let ticket = Ticket(self.asked.len() as u64);
        self.asked.insert(ticket, label);
        ticket
    }

    fn reports(
        &mut self,
        args: &mut ArgumentConsumer<'_>,
        joins: bool,
    ) -> Parsed<Vec<cluster::Event>> {
        let newest = self.newest.as_ref().filter(|_| !joins);
        let action = newest.map(|newest| newest.action.clone());
        if let Some(word) = args.take_key("filling") {
            self.filling = filling(word)?;
        }
        if let Some(word) = args.take_key("due") {
            self.due_us = match word {
                "none" => None,
                seconds => Some(seconds.parse::<i64>()? * 1_000_000),
            };
        }
        match &action {
            Some(Action::Replace { generation, .. }) => {
                (self.generation, self.filling) = (*generation, None);
            }
            Some(Action::ReplaceOnline { generation, .. }) => {
                let filling = self.filling.get_or_insert(Filling::Goes { recorded: 0 });
                if *filling != Filling::Refused {
                    self.generation = *generation;
                }
            }
            Some(Action::Cutover { .. }) => self.filling = None,
            _ => {}
        }
        let (filling, due_us) = (self.filling, self.due_us);
        let (mut done, mut step) =
            (newest.map(|newest| newest.number), action.as_ref().map(Action::step));
        let mut circuit = self.generation.next();
        if let Some(value) = args.take_key("done") {
            done = Some(CommandNumber(value.parse()?));
        }
        if let Some(value) = args.take_key("step") {
            step = Some(Step(value.parse()?));
        }
        if let Some(value) = args.take_key("circuit") {
            circuit = Generation(value.parse()?);
        }
        let epoch = args.take_key("epoch").map_or(Ok(self.epoch.0), str::parse).map(Epoch)?;
        let from = args.take_key("from").map(str::parse).transpose()?.map(Incarnation);
        let mut hosts = vec![];
        while let Some(word) = args.next_pos() {
            hosts.push(host(word)?);
        }
        if hosts.is_empty() {
            hosts = (0..self.hosts).map(HostId).collect();
        }
        let report = |host: HostId| {
            let port = 1000 * (host.0 as u16 + 1) + circuit.0 as u16;
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let exchange = (circuit, address);
            let report = Report { host, epoch, done, step, exchange, took_us: 0, filling, due_us };
            let event = Event::Reported(report);
            let incarnation = from.unwrap_or(self.members[host.0 as usize]);
            cluster::Event::Heard { incarnation, event }
        };
        Ok(hosts.into_iter().map(report).collect())
    }

    fn request(&mut self, name: &str, args: &mut ArgumentConsumer<'_>) -> Parsed<Event> {
        let mut label = name.to_owned();
        let mut subject = |args: &mut ArgumentConsumer<'_>| -> Parsed<String> {
            let subject = positional(args)?;
            write!(label, " {subject}")?;
            Ok(subject.to_owned())
        };
        let request = match name {
            "lease" => {
                let lease = lease(&subject(args)?)?;
                let time_to_live =
                    args.take_key("ttl").map_or(Ok(Duration::from_secs(10)), duration)?;
                Request::Lease { lease, time_to_live }
            }
            "renew" => {
                let mut leases = vec![];
                while let Some((id, step)) = args.next_key() {
                    leases.push((lease(id)?, Step(step.parse()?)));
                }
                Request::Renew { leases }
            }
            "reserve" => {
                let transaction = transaction(&subject(args)?)?;
                let epoch = self.epoch(args)?;
                let step = args.take_key("frame").map(str::parse).transpose()?.map(Step);
                let frame = step.map(|step| FrameId { epoch, step });
                let timeout = args.take_key("timeout").map(duration).transpose()?;
                let mut entries = vec![];
                while let Some(word) = args.next_pos() {
                    entries.push(entry(word)?);
                }
                Request::Reserve(Reserve { transaction, frame, entries, timeout })
            }
            "commit" => {
                let transaction = transaction(&subject(args)?)?;
                let staged_on = hosts(args.take_key("on").unwrap_or_default())?;
                Request::Commit { transaction, epoch: self.epoch(args)?, staged_on }
            }
            "change" => Request::Change(Change {
                transaction: transaction(&subject(args)?)?,
                base: CatalogVersion(args.take_key("base").ok_or("base?")?.parse()?),
                bytes: args.take_key("catalog").unwrap_or_default().as_bytes().into(),
                program: program(args.take_key("views").unwrap_or_default())?,
                staged_on: hosts(args.take_key("on").unwrap_or_default())?,
            }),
            "head" => Request::CatalogHead,
            "status" => Request::Status,
            other => return Err(format!("what is {other}?").into()),
        };
        let ticket = self.ticket(label);
        Ok(Event::Requested { ticket, request })
    }

    /// The epoch that is named, or the newest.
    fn epoch(&self, args: &mut ArgumentConsumer<'_>) -> Parsed<Epoch> {
        Ok(Epoch(args.take_key("epoch").map_or(Ok(self.epoch.0), str::parse)?))
    }
}

fn hosts(list: &str) -> Parsed<BTreeSet<HostId>> {
    list.split_terminator('/').map(host).collect()
}

fn happened(event: Event) -> cluster::Event {
    cluster::Event::Happened(event)
}
