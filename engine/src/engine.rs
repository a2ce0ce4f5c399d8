//! The engine's thread: executes commands, one after the other.
//!
//! A plain thread, because dbsp blocks for as long as a step takes and must not be dropped inside
//! of tokio. It is the only one that touches the circuit; everybody else sees frames.

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use stillframe_protocol::{
    Action, Command, Filling, Generation, Program, RelationId, Step, TransactionId,
};
use tracing::{debug, error, warn};
use uuid::Uuid;

use crate::Functions;
use crate::circuit::{RelationOutput, TableInput};
use crate::exchange::{Lost, NextExchange, Place};
use crate::frames::{Frame, Relation};
use crate::host::Shared;
use crate::live::{Blueprint, Fill, LiveCircuit, Origin, Site};
use crate::staging::{TableChanges, consolidate};
use crate::state::{Done, Membership, TableFormat};

/// A command to execute.
pub(crate) struct Job {
    pub(crate) membership: Membership,
    pub(crate) command: Arc<Command>,
}

/// What the engine's thread owns.
pub(crate) struct Engine {
    shared: Arc<Shared>,
    functions: Functions,
    site: Site,
    next: NextExchange,
    live: Option<LiveCircuit>,
    /// Relations of the circuit that are being filled, and not part of frames yet.
    hidden: HashSet<RelationId>,
}

/// Why a command was not executed.
enum Failure {
    /// It can't be executed. Nothing has changed.
    Refused(String),
    /// The circuit is broken.
    Broken(String),
}

/// What a command has made, and what is to be cleared away when everybody knows.
struct Made {
    done: Done,
    replaced: Option<LiveCircuit>,
}

impl Engine {
    pub(crate) fn new(
        shared: Arc<Shared>,
        functions: Functions,
        site: Site,
        next: NextExchange,
    ) -> Self {
        Self { shared, functions, site, next, live: None, hidden: HashSet::new() }
    }

    /// Executes jobs until nobody can send any more.
    pub(crate) fn run(mut self, jobs: &Receiver<Job>) {
        while let Ok(job) = jobs.recv() {
            let Job { membership, command } = &job;
            let made = catch_unwind(AssertUnwindSafe(|| self.execute(membership, command)))
                .unwrap_or_else(|panic| Err(Failure::Broken(panic_message(&*panic))));
            match made {
                Ok(Made { done, replaced }) => {
                    self.shared.update(|state| state.complete(command, done));
                    if let Some(replaced) = replaced {
                        replaced.end(&mut self.site);
                    }
                }
                Err(Failure::Refused(reason)) => {
                    warn!(epoch = %command.epoch, reason, "command was refused");
                    let exchange = self.next.reported();
                    self.shared.update(|state| state.refuse(command, reason, exchange));
                }
                Err(Failure::Broken(reason)) => {
                    error!(epoch = %command.epoch, reason, "engine has failed");
                    self.shared.update(|state| state.fail(reason));
                    // Its workers may wait for other hosts for ever; nobody waits for this thread.
                    self.live = None;
                }
            }
        }
        if let Some(live) = self.live.take() {
            live.end(&mut self.site);
        }
        self.shared.update(|state| state.fail("host has shut down".to_owned()));
    }

    fn execute(&mut self, membership: &Membership, command: &Command) -> Result<Made, Failure> {
        let started = Instant::now();
        let mut made = match &command.action {
            Action::Advance { step, transactions, clock_us } => {
                self.advance(*step, *clock_us, transactions)?
            }
            Action::Replace { step, clock_us, generation, program, exchange, is_hidden } => {
                let blueprint = self.blueprint(membership, *generation, program, exchange);
                self.replace(*step, *clock_us, &blueprint, *is_hidden)?
            }
            Action::ReplaceOnline { step, clock_us, generation, program, exchange } => {
                let blueprint = self.blueprint(membership, *generation, program, exchange);
                self.replace_online(*step, *clock_us, &blueprint)?
            }
            Action::Pump { slices, .. } => {
                self.live()?.pump(*slices).map_err(broken)?;
                self.made(None)
            }
            Action::Cutover { step, clock_us } => {
                if !self.live()?.end_filling() {
                    return Err(refused("there is more to fill before the cutover"));
                }
                self.hidden.clear();
                self.step(*step, *clock_us, None)?
            }
        };
        made.done.took_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        Ok(made)
    }

    fn live(&mut self) -> Result<&mut LiveCircuit, Failure> {
        self.live.as_mut().ok_or_else(|| broken("there is no circuit"))
    }

    fn blueprint(
        &self,
        membership: &Membership,
        generation: Generation,
        program: &Arc<Program>,
        exchange: &[SocketAddr],
    ) -> Blueprint {
        let place = Place {
            epoch: membership.epoch,
            generation,
            circuit: program.fingerprint(),
            host: membership.host,
            acceptors: exchange.to_vec(),
        };
        Blueprint {
            place,
            workers: membership.workers.clone(),
            program: Arc::clone(program),
            functions: self.functions.clone(),
            lost: self.lost(generation),
        }
    }

    /// Feeds what transactions have staged, and makes a step of it.
    fn advance(
        &mut self,
        step: Step,
        clock_us: i64,
        transactions: &[TransactionId],
    ) -> Result<Made, Failure> {
        let staged = self.shared.update(|state| state.enter(transactions));
        let live = self.live()?;
        let inputs = live.inputs();
        let key_len = |relation, row: &crate::row::Row| {
            let input = inputs.get(&relation)?;
            let keyed = input.key_columns() > 0;
            keyed.then(|| input.codec().prefix_len(row.as_bytes(), input.key_columns()))
        };
        let mut entered = 0;
        for TableChanges { relation, rows } in consolidate(staged, key_len).map_err(broken)? {
            match inputs.get(&relation) {
                Some(input) => {
                    entered += rows.len();
                    input.append(rows);
                }
                None => warn!(%relation, %step, "changes of a table that is gone were dropped"),
            }
        }
        live.record(entered);
        self.step(step, clock_us, None)
    }

    /// Makes a step of what has entered.
    fn step(&mut self, step: Step, clock_us: i64, old: Option<&Frame>) -> Result<Made, Failure> {
        let live = self.live()?;
        live.step(clock_us).map_err(broken)?;
        let filling = live.filling();
        let frame = self.frame(step, old);
        let mut made = self.made(Some(frame));
        made.done.filling = filling;
        Ok(made)
    }

    /// Puts a new circuit in the place of the old one. If it is hidden, the frame is the old one's:
    /// nothing has entered, so it is still right.
    fn replace(
        &mut self,
        step: Step,
        clock_us: i64,
        blueprint: &Blueprint,
        is_hidden: bool,
    ) -> Result<Made, Failure> {
        let started = Instant::now();
        let (live, _) = self.start(blueprint, Fill::AtOnce)?;
        let start_us = started.elapsed().as_micros();
        let generation = live.generation();
        self.shared.update(|state| state.enter_circuit(generation));
        let old = self.shared.update(|state| state.newest());
        let replaced = self.live.replace(live);
        let mut made = self.step(step, clock_us, old.as_deref())?;
        if is_hidden && let Some(old) = old {
            made.done.frame = Some(Frame { step, relations: old.relations.clone() });
        }
        let step_us = started.elapsed().as_micros() - start_us;
        debug!(%step, %generation, start_us, step_us, "circuit was replaced");
        Ok(Made { done: Done { tables: Some(self.tables()), ..made.done }, replaced })
    }

    /// Puts a new circuit in the place of the old one, in which all that there was goes on while
    /// what is new is filled. If dbsp can't do that, the old one makes the step.
    fn replace_online(
        &mut self,
        step: Step,
        clock_us: i64,
        blueprint: &Blueprint,
    ) -> Result<Made, Failure> {
        let known: HashSet<_> = self.live()?.outputs().keys().copied().collect();
        let is_known = |relation: &RelationId| known.contains(relation);
        // What enters a new table meanwhile would be missing from what reads it.
        if !blueprint.program.tables.iter().all(|table| is_known(&table.id)) {
            return self.stay(step, clock_us);
        }
        let (mut live, origin) = self.start(blueprint, Fill::Beside)?;
        let origin = origin.ok_or_else(|| broken("a circuit has no checkpoint"))?;
        let generation = live.generation();
        self.shared.update(|state| state.enter_circuit(generation));
        let begun = live.begin_filling(origin).map_err(broken)?;
        if begun {
            live.step(clock_us).map_err(broken)?;
        }
        let moves = |relation: &RelationId| {
            let output = live.outputs().get(relation);
            output.is_some_and(|output| output.is_complete(live.workers()))
        };
        if !begun || !known.iter().all(moves) {
            live.end(&mut self.site);
            self.next = NextExchange::bind(&self.site.exchange, generation).map_err(broken)?;
            let old = self.live()?.generation();
            self.shared.update(|state| state.enter_circuit(old));
            return self.stay(step, clock_us);
        }
        self.hidden = live.outputs().keys().copied().filter(|id| !is_known(id)).collect();
        let filling = live.filling();
        let replaced = self.live.replace(live);
        let frame = self.frame(step, None);
        let made = self.made(Some(frame));
        Ok(Made { done: Done { tables: Some(self.tables()), filling, ..made.done }, replaced })
    }

    /// Makes the step of a replacement with the old circuit.
    fn stay(&mut self, step: Step, clock_us: i64) -> Result<Made, Failure> {
        let mut made = self.step(step, clock_us, None)?;
        made.done.filling = Some(Filling::Refused);
        Ok(made)
    }

    /// Starts a new circuit from a checkpoint of the old one, if there is one: its name is returned.
    fn start(
        &mut self,
        blueprint: &Blueprint,
        fill: Fill,
    ) -> Result<(LiveCircuit, Option<Uuid>), Failure> {
        let generation = blueprint.place.generation;
        self.check(blueprint)?;
        let origin = match &mut self.live {
            Some(live) if live.filling().is_some() => {
                return Err(refused("the circuit is still being filled"));
            }
            Some(live) => live.checkpoint().map_err(broken)?,
            None => Origin::default(),
        };
        let after = NextExchange::bind(&self.site.exchange, generation.next()).map_err(refused)?;
        let next = std::mem::replace(&mut self.next, after);
        let checkpoint = origin.checkpoint();
        match LiveCircuit::start(&mut self.site, blueprint, next, origin, fill) {
            Ok(live) => Ok((live, checkpoint)),
            Err(error) => {
                self.next = NextExchange::bind(&self.site.exchange, generation).map_err(broken)?;
                Err(refused(error))
            }
        }
    }

    /// Whether a replacement is meant for this host as it is.
    fn check(&self, blueprint: &Blueprint) -> Result<(), Failure> {
        let place = &blueprint.place;
        let (generation, address) = self.next.reported();
        if place.acceptors.len() != blueprint.workers.len() {
            return Err(refused("a replacement needs an address of every host"));
        }
        if place.generation != generation || place.acceptors[place.host.0 as usize] != address {
            return Err(refused(format!("the next circuit is {generation} at {address}")));
        }
        Ok(())
    }

    /// What is to be done when a host can't be part of a circuit any more.
    fn lost(&self, generation: Generation) -> Lost {
        let shared = Arc::clone(&self.shared);
        Arc::new(move |host| shared.update(|state| state.lose(generation, host)))
    }

    /// How rows of each table are staged.
    fn tables(&self) -> HashMap<RelationId, TableFormat> {
        let inputs = self.live.iter().flat_map(|live| live.inputs());
        let format = |(relation, input): (&RelationId, &TableInput)| {
            let codec = Arc::clone(input.codec());
            (*relation, TableFormat { codec, key_columns: input.key_columns() })
        };
        inputs.map(format).collect()
    }

    fn made(&self, frame: Option<Frame>) -> Made {
        let filling = self.live.as_ref().and_then(LiveCircuit::filling);
        let exchange = self.next.reported();
        let due_us = self.live.as_ref().and_then(LiveCircuit::due_us);
        let done = Done { frame, tables: None, took_us: 0, exchange, filling, due_us };
        Made { done, replaced: None }
    }

    /// The frame of the step that the circuit has just made, without what is still being filled.
    ///
    /// After a replacement, what the new circuit has taken over and did not have to compute is what
    /// it was in the old frame.
    ///
    /// # Panics
    ///
    /// If something is missing: a frame is complete, with all relations and all workers.
    fn frame(&self, step: Step, old: Option<&Frame>) -> Frame {
        let live = self.live.as_ref().expect("a circuit has made the step");
        let shard = |relation: &RelationId, output: &RelationOutput, worker| {
            let inherited = || old?.relations.get(relation)?.shards.get(worker).cloned();
            output.shard(worker).or_else(inherited).unwrap_or_else(|| {
                panic!("a frame is complete: relation {relation}, worker {worker}, step {step}")
            })
        };
        let shown = live.outputs().iter().filter(|(relation, _)| !self.hidden.contains(relation));
        let relations = shown.map(|(relation, output)| {
            let shards =
                (0..live.workers()).map(|worker| shard(relation, output, worker)).collect();
            let codec = Arc::clone(output.codec());
            (*relation, Relation { codec, key_columns: output.key_columns(), shards })
        });
        Frame { step, relations: relations.collect() }
    }
}

fn broken(reason: impl ToString) -> Failure {
    Failure::Broken(reason.to_string())
}

fn refused(reason: impl ToString) -> Failure {
    Failure::Refused(reason.to_string())
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("panic without a message").to_owned()
}
