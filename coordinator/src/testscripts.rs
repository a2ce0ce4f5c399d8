//! Protocol traces as golden scripts: what happens to the machine, and what it wants done.
//!
//! `UPDATE_GOLDENFILES=1 cargo test` rewrites them; then read the difference.
//!
//! ```text
//! start hosts=N              a machine; it is told that it has started
//! join [HOST..]              hosts (all) report that they have joined
//! report [HOST..] [done= step= circuit=]   hosts (all) report the newest command done
//! fail HOST WHY              a host says that it has failed
//! tick [AFTER]               time goes on (by 20ms) and is looked at
//! wall SECONDS               the clock on the wall is set
//! lease L [ttl=]             renew L=STEP..        release L
//! reserve T ENTRY.. [frame= timeout=]    an entry is RELATION[.KEY]/s or /x
//! commit T [on=HOST/..]      abort T               cancel REQUEST..
//! head                       change T base= catalog= views=ID/..
//! status
//! ```

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow_schema::Schema;
use goldenscript::{ArgumentConsumer, Command as Line, Context};
use stillframe_protocol::{
    CatalogVersion, Change, Command, CommandNumber, Entry, Epoch, Generation, HostId, LeaseId,
    Lockable, Mode, Plan, Program, RelationId, Report, Step, TransactionId, View,
};

use self::trace::Trace;
use crate::machine::{Effect, Event, Machine, Now, Request, Reserve, Settings, Ticket};

mod trace;

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

/// Feeds a machine with what a script says.
#[derive(Default)]
struct Runner {
    machine: Option<Machine>,
    hosts: u32,
    elapsed: Duration,
    /// How far the clock on the wall is off.
    wall_offset_us: i64,
    /// By ticket, what was asked.
    asked: BTreeMap<Ticket, String>,
    newest: Option<Arc<Command>>,
    generation: Generation,
}

type Parsed<T> = Result<T, Box<dyn Error>>;

impl goldenscript::Runner for Runner {
    type Command = Line;

    fn run(&mut self, line: &Line, _: &Context) -> Parsed<String> {
        let mut args = line.consume_args();
        let events = match line.name.as_str() {
            "start" => self.start(&mut args)?,
            "join" => self.reports(&mut args, true)?,
            "report" => self.reports(&mut args, false)?,
            "fail" => {
                let host = host(positional(&mut args)?)?;
                vec![Event::HostFailed { host, reason: positional(&mut args)?.into() }]
            }
            "tick" => {
                self.elapsed += args.next_pos().map_or(Ok(Duration::from_millis(20)), duration)?;
                vec![Event::Ticked]
            }
            "wall" => {
                let wall_us = positional(&mut args)?.parse::<i64>()? * 1_000_000;
                self.wall_offset_us = wall_us - self.elapsed.as_micros() as i64;
                vec![]
            }
            "release" => vec![Event::Released { lease: lease(positional(&mut args)?)? }],
            "abort" => {
                vec![Event::Aborted { transaction: transaction(positional(&mut args)?)? }]
            }
            "cancel" => {
                let words: Vec<&str> = std::iter::from_fn(|| args.next_pos()).collect();
                let what = words.join(" ");
                let mut newest = self.asked.iter().rev();
                let (ticket, _) =
                    newest.find(|(_, asked)| **asked == what).ok_or("it wasn't asked")?;
                vec![Event::Cancelled { ticket: *ticket }]
            }
            name => vec![self.request(name, &mut args)?],
        };
        args.reject_next()?;
        Ok(self.feed(events))
    }
}

impl Runner {
    fn feed(&mut self, events: Vec<Event>) -> String {
        let mut effects = vec![];
        let wall_us = self.elapsed.as_micros() as i64 + self.wall_offset_us;
        let now = Now { elapsed: self.elapsed, wall_us };
        let machine = self.machine.as_mut().expect("scripts begin with start");
        for event in events {
            machine.handle(now, event, &mut effects);
        }
        for effect in &effects {
            if let Effect::Execute { command, .. } = effect {
                self.newest = Some(Arc::clone(command));
            }
        }
        Trace { asked: &self.asked }.effects(&effects)
    }

    fn start(&mut self, args: &mut ArgumentConsumer<'_>) -> Parsed<Vec<Event>> {
        *self = Self::default();
        self.hosts = args.take_key("hosts").ok_or("how many hosts?")?.parse()?;
        self.machine = Some(Machine::new(Settings {
            epoch: Epoch(1),
            workers: vec![2; self.hosts as usize],
            time_to_live_min: Duration::from_secs(1),
            time_to_live_max: Duration::from_secs(60),
            clock_gap_max: Duration::from_secs(1),
            patience: Duration::from_secs(30),
        }));
        Ok(vec![Event::Started])
    }

    fn reports(&mut self, args: &mut ArgumentConsumer<'_>, joins: bool) -> Parsed<Vec<Event>> {
        let newest = self.newest.as_ref().filter(|_| !joins);
        let action = newest.map(|newest| &newest.action);
        if let Some(stillframe_protocol::Action::Replace { generation, .. }) = action {
            self.generation = *generation;
        }
        let (mut done, mut step) =
            (newest.map(|newest| newest.number), action.map(|action| action.step()));
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
            Event::Reported(Report { host, epoch: Epoch(1), done, step, exchange, took_us: 0 })
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
                let frame = args.take_key("frame").map(str::parse).transpose()?.map(Step);
                let timeout = args.take_key("timeout").map(duration).transpose()?;
                let mut entries = vec![];
                while let Some(word) = args.next_pos() {
                    entries.push(entry(word)?);
                }
                Request::Reserve(Reserve { transaction, frame, entries, timeout })
            }
            "commit" => {
                let transaction = transaction(&subject(args)?)?;
                let hosts = args.take_key("on").unwrap_or_default();
                let staged_on = hosts.split_terminator('/').map(host).collect::<Parsed<_>>()?;
                Request::Commit { transaction, staged_on }
            }
            "change" => Request::Change(Change {
                transaction: transaction(&subject(args)?)?,
                base: CatalogVersion(args.take_key("base").ok_or("base?")?.parse()?),
                bytes: args.take_key("catalog").unwrap_or_default().as_bytes().into(),
                program: program(args.take_key("views").unwrap_or_default())?,
            }),
            "head" => Request::CatalogHead,
            "status" => Request::Status,
            other => return Err(format!("what is {other}?").into()),
        };
        let ticket = Ticket(self.asked.len() as u64);
        self.asked.insert(ticket, label);
        Ok(Event::Requested { ticket, request })
    }
}

fn positional<'a>(args: &mut ArgumentConsumer<'a>) -> Parsed<&'a str> {
    Ok(args.next_pos().ok_or("something is missing")?)
}

fn host(word: &str) -> Parsed<HostId> {
    Ok(HostId(word.parse()?))
}

fn lease(word: &str) -> Parsed<LeaseId> {
    Ok(LeaseId(word.strip_prefix('l').ok_or("leases are l1, l2, ..")?.parse()?))
}

fn transaction(word: &str) -> Parsed<TransactionId> {
    Ok(TransactionId(word.strip_prefix('t').ok_or("transactions are t1, t2, ..")?.parse()?))
}

fn duration(word: &str) -> Parsed<Duration> {
    if let Some(millis) = word.strip_suffix("ms") {
        return Ok(Duration::from_millis(millis.parse()?));
    }
    Ok(Duration::from_secs(word.strip_suffix('s').ok_or("durations end in s or ms")?.parse()?))
}

fn entry(word: &str) -> Parsed<Entry> {
    let (what, mode) = word.split_once('/').ok_or("entries are 1/s, 1.7/x, ..")?;
    let lockable = match what.split_once('.') {
        None => Lockable::Relation(RelationId(what.parse()?)),
        Some((relation, hash)) => Lockable::Key {
            relation: RelationId(relation.parse()?),
            constraint: 0,
            hash: hash.parse()?,
        },
    };
    let mode = match mode {
        "s" => Mode::Shared,
        "x" => Mode::Exclusive,
        _ => return Err("modes are s and x".into()),
    };
    Ok(Entry { lockable, mode })
}

fn program(views: &str) -> Parsed<Program> {
    let view = |id: &str| -> Parsed<View> {
        let plan = Plan::Values { schema: Arc::new(Schema::empty()), rows: vec![] };
        Ok(View { id: RelationId(id.parse()?), plan: Arc::new(plan) })
    };
    let views = views.split_terminator('/').map(view).collect::<Parsed<_>>()?;
    Ok(Program { tables: vec![], views })
}
