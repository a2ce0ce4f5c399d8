//! The engine's thread: executes commands, one after the other.
//!
//! A plain thread, because dbsp blocks for as long as a step takes and must not be dropped inside
//! of tokio. It is the only one that touches the circuit; everybody else sees frames.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use stillframe_protocol::{Action, Command, Generation, RelationId, Step, TransactionId};
use tracing::{debug, error, warn};

use crate::Functions;
use crate::circuit::RelationOutput;
use crate::exchange::{Lost, NextExchange, Place};
use crate::frames::{Frame, Relation};
use crate::host::Shared;
use crate::live::{Blueprint, LiveCircuit, Origin, Site};
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
        Self { shared, functions, site, next, live: None }
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
            Action::Advance { step, transactions, .. } => self.advance(*step, transactions)?,
            Action::Replace { step, generation, program, exchange, .. } => {
                let place = Place {
                    epoch: membership.epoch,
                    generation: *generation,
                    host: membership.host,
                    acceptors: exchange.clone(),
                };
                let blueprint = Blueprint {
                    place,
                    workers: membership.workers.clone(),
                    program: Arc::clone(program),
                    functions: self.functions.clone(),
                    lost: self.lost(*generation),
                };
                self.replace(*step, &blueprint)?
            }
            Action::ReplaceOnline { .. } | Action::Pump { .. } | Action::Cutover { .. } => {
                return Err(Failure::Refused("this engine replaces circuits at once".to_owned()));
            }
        };
        made.done.took_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        Ok(made)
    }

    /// Feeds what transactions have staged, and makes a step of it.
    fn advance(&mut self, step: Step, transactions: &[TransactionId]) -> Result<Made, Failure> {
        let staged = self.shared.update(|state| state.enter(transactions));
        let live = self.live.as_mut().ok_or_else(|| broken("there is no circuit"))?;
        let inputs = live.inputs();
        let key_len = |relation, row: &crate::row::Row| {
            let input = inputs.get(&relation)?;
            let keyed = input.key_columns() > 0;
            keyed.then(|| input.codec().prefix_len(row.as_bytes(), input.key_columns()))
        };
        for TableChanges { relation, rows } in consolidate(staged, key_len).map_err(broken)? {
            match inputs.get(&relation) {
                Some(input) => input.append(rows),
                None => warn!(%relation, %step, "changes of a table that is gone were dropped"),
            }
        }
        live.step().map_err(broken)?;
        let frame = frame(step, live, None);
        Ok(self.made(frame))
    }

    /// Puts a new circuit in the place of the old one.
    fn replace(&mut self, step: Step, blueprint: &Blueprint) -> Result<Made, Failure> {
        let started = Instant::now();
        let generation = blueprint.place.generation;
        self.check(blueprint)?;
        let origin = match &mut self.live {
            Some(live) => live.checkpoint().map_err(broken)?,
            None => Origin::default(),
        };
        let checkpointed = Instant::now();

        let after = NextExchange::bind(generation.next()).map_err(refused)?;
        let next = std::mem::replace(&mut self.next, after);
        let mut live = match LiveCircuit::start(&mut self.site, blueprint, next, origin) {
            Ok(live) => live,
            Err(error) => {
                self.next = NextExchange::bind(generation).map_err(broken)?;
                return Err(refused(error));
            }
        };
        let built = Instant::now();
        self.shared.update(|state| state.enter_circuit(generation));

        live.step().map_err(broken)?;
        let old = self.shared.update(|state| state.newest());
        let frame = frame(step, &live, old.as_deref());
        debug!(
            %step,
            %generation,
            checkpoint_us = (checkpointed - started).as_micros(),
            start_us = (built - checkpointed).as_micros(),
            step_us = built.elapsed().as_micros(),
            "circuit was replaced"
        );
        let tables = live.inputs().iter().map(|(relation, input)| {
            let codec = Arc::clone(input.codec());
            (*relation, TableFormat { codec, key_columns: input.key_columns() })
        });
        let tables = tables.collect();
        let replaced = self.live.replace(live);
        let made = self.made(frame);
        Ok(Made { done: Done { tables: Some(tables), ..made.done }, replaced })
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

    fn made(&self, frame: Frame) -> Made {
        let done = Done { frame, tables: None, took_us: 0, exchange: self.next.reported() };
        Made { done, replaced: None }
    }
}

/// The frame of the step that a circuit has just made.
///
/// After a replacement, what the new circuit has taken over and did not have to compute is what it
/// was in the old frame.
///
/// # Panics
///
/// If something is missing: a frame is complete, with all relations and all workers.
fn frame(step: Step, live: &LiveCircuit, old: Option<&Frame>) -> Frame {
    let shard = |relation: &RelationId, output: &RelationOutput, worker| {
        let inherited = || old?.relations.get(relation)?.shards.get(worker).cloned();
        output.shard(worker).or_else(inherited).unwrap_or_else(|| {
            panic!("a frame is complete: relation {relation}, worker {worker}, step {step}")
        })
    };
    let relations = live.outputs().iter().map(|(relation, output)| {
        let shards = (0..live.workers()).map(|worker| shard(relation, output, worker)).collect();
        let codec = Arc::clone(output.codec());
        (*relation, Relation { codec, key_columns: output.key_columns(), shards })
    });
    Frame { step, relations: relations.collect() }
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
