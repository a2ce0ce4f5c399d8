//! One circuit that runs: a dbsp runtime with this host's workers, its storage and its tunnel.
//!
//! dbsp can't change a circuit that runs. A replacement takes a checkpoint of the old one
//! ([`LiveCircuit::checkpoint`]), starts the new one from it while the old one is still there
//! ([`LiveCircuit::start`]: whatever is wrong with the new program shows here, and nothing is
//! lost), and ends the old one when the new one has made its first step ([`LiveCircuit::end`]).
//! What is new in it is filled from the state of what was there: either in that first step, or
//! beside the steps that the rest of it goes on making ([`Fill`]).
//!
//! For the engine's thread alone: dbsp must not be dropped inside of tokio.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dbsp::circuit::{
    CircuitConfig, CircuitStorageConfig, ConcurrentRestoreOutcome, Layout, Mode, StorageConfig,
    StorageOptions,
};
use dbsp::storage::backend::{StorageBackend, StoragePath};
use dbsp::{DBSPHandle, Runtime};
use feldera_storage::tokio::TOKIO;
use feldera_types::checkpoint::CheckpointMetadata;
use feldera_types::config::StorageCompression;
use stillframe_protocol::{Filling, Generation, Program, RelationId};
use tracing::{info, warn};
use uuid::Uuid;

use crate::circuit::{Circuit, Clock, RelationOutput, TableInput, construct};
use crate::exchange::{Descriptors, ExchangeOptions, Lent, Lost, NextExchange, Place, Tunnel};
use crate::storage::MemoryStorage;
use crate::{EngineError, Functions};

/// dbsp's cache of blocks it has read from files, per worker. Our files are in memory anyway.
const CACHE_MIB_PER_WORKER: usize = 32;
/// Free blocks that dbsp keeps per size and worker. It makes room for them when it starts.
const FREE_BLOCK_BYTES: usize = 512 << 10;
/// The file in which dbsp lists its checkpoints.
const CHECKPOINTS_FILE: &str = "checkpoints.feldera";

/// What a circuit starts from: nothing, or the checkpoint of another one.
#[derive(Default)]
pub(crate) struct Origin {
    storage: MemoryStorage,
    checkpoint: Option<CheckpointMetadata>,
}

impl Origin {
    /// The checkpoint's name.
    pub(crate) fn checkpoint(&self) -> Option<Uuid> {
        self.checkpoint.as_ref().map(|checkpoint| checkpoint.uuid)
    }
}

/// When what is new in a circuit is filled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fill {
    /// In the first step.
    AtOnce,
    /// Beside the steps of what was there before: see [`LiveCircuit::pump`].
    Beside,
}

/// What is new in a circuit and being filled.
struct Growth {
    /// Whether nothing of it is missing.
    filled: bool,
    /// Changes made since the checkpoint, which are filled in last.
    recorded: u64,
}

/// Where circuits run.
pub(crate) struct Site {
    /// dbsp locks a directory.
    pub(crate) directory: PathBuf,
    /// For dbsp's listeners.
    pub(crate) descriptors: Descriptors,
    /// How the next ones are reached.
    pub(crate) exchange: ExchangeOptions,
}

/// What a circuit is to be.
pub(crate) struct Blueprint {
    pub(crate) place: Place,
    /// How many workers each host runs, by place.
    pub(crate) workers: Vec<u32>,
    pub(crate) program: Arc<Program>,
    pub(crate) functions: Functions,
    /// Is told of hosts that can't be part of the circuit any more.
    pub(crate) lost: Lost,
}

/// A circuit that runs.
pub(crate) struct LiveCircuit {
    generation: Generation,
    handle: DBSPHandle,
    circuit: Circuit,
    clock: Clock,
    workers: usize,
    storage: MemoryStorage,
    directory: PathBuf,
    link: Option<Link>,
    growth: Option<Growth>,
}

/// What a circuit needs to reach other hosts.
struct Link {
    tunnel: Tunnel,
    lent: Lent,
}

impl LiveCircuit {
    /// Starts a circuit. It has made no step yet.
    ///
    /// # Errors
    ///
    /// If the program can't be built or the checkpoint not be restored. Nothing is left behind.
    pub(crate) fn start(
        site: &mut Site,
        blueprint: &Blueprint,
        next: NextExchange,
        origin: Origin,
        fill: Fill,
    ) -> Result<Self, EngineError> {
        let Blueprint { place, workers, program, functions, .. } = blueprint;
        let directory = site.directory.join(format!("circuit-{}", place.generation));
        fs::create_dir_all(&directory)?;

        let local_workers = workers[place.host.0 as usize] as usize;
        let (config, link) = match workers.len() {
            1 => (CircuitConfig::from(Layout::new_solo(local_workers)), None),
            _ => {
                let (config, link) = linked(site, blueprint, next)?;
                (config, Some(link))
            }
        };
        let mut config = config
            .with_mode(Mode::Persistent)
            // Steps are several times cheaper, and a circuit can be closed, without it.
            .with_streaming_exchange(false)
            .with_allow_input_during_commit(false)
            .with_storage(Some(storage_config(&directory, local_workers, &origin, fill)));

        config.dev_tweaks.fbuf_slab_bytes_per_class = Some(FREE_BLOCK_BYTES);

        let (program, functions) = (Arc::clone(program), functions.clone());
        let clock = Clock::default();
        let read = clock.clone();
        let built = Runtime::init_circuit(config, move |circuit| {
            Ok(construct(circuit, &program, &functions, &read)?)
        });
        match built {
            Ok((handle, circuit)) => {
                let live = Self {
                    generation: place.generation,
                    handle,
                    circuit,
                    clock,
                    workers: local_workers,
                    storage: origin.storage,
                    directory,
                    link,
                    growth: None,
                };
                if fill == Fill::AtOnce {
                    live.admit_peers();
                }
                Ok(live)
            }
            Err(error) => {
                if let Some(link) = link {
                    site.descriptors.forget(&link.lent);
                    link.tunnel.close();
                }
                remove_directory(&directory);
                Err(error.into())
            }
        }
    }

    /// Where changes of each table enter. Between steps only.
    pub(crate) fn inputs(&self) -> &HashMap<RelationId, TableInput> {
        &self.circuit.inputs
    }

    /// What each relation is after the last step. Those that a bootstrap has left out have
    /// nothing yet.
    pub(crate) fn outputs(&self) -> &HashMap<RelationId, RelationOutput> {
        &self.circuit.outputs
    }

    /// The first moment at which the clock alone changes something on this host.
    pub(crate) fn due_us(&self) -> Option<i64> {
        self.circuit.due_us(self.workers)
    }

    /// How many of the circuit's workers run on this host.
    pub(crate) fn workers(&self) -> usize {
        self.workers
    }

    /// Makes a step of what has entered, together with all hosts. The first step after a start from
    /// a checkpoint fills what is new instead, if anything is.
    ///
    /// # Errors
    ///
    /// The circuit can't be used any more.
    pub(crate) fn step(&mut self, clock_us: i64) -> Result<(), EngineError> {
        self.clock.set(clock_us);
        self.handle.transaction()?;
        // Hosts would go apart if one of them had to make another step for it. It can't be: a
        // transaction isn't committed before all workers of all hosts have replayed everything.
        assert!(!self.handle.bootstrap_in_progress(), "a bootstrap ends with its transaction");
        Ok(())
    }

    /// Begins to fill what is new beside the steps, in a circuit that was started
    /// [`Fill::Beside`]s. False if dbsp can't do that: then this circuit is of no use.
    ///
    /// # Errors
    ///
    /// The circuit can't be used any more.
    pub(crate) fn begin_filling(&mut self, origin: Uuid) -> Result<bool, EngineError> {
        let outcome = self.handle.start_concurrent_bootstrap(origin.to_string().into())?;
        self.admit_peers();
        let filled = match outcome {
            ConcurrentRestoreOutcome::UpToDate => true,
            ConcurrentRestoreOutcome::Concurrent(_) => false,
            ConcurrentRestoreOutcome::FellBack { reason, .. } => {
                info!(reason, "new relations can't be filled beside the old ones");
                return Ok(false);
            }
        };
        self.growth = Some(Growth { filled, recorded: 0 });
        Ok(true)
    }

    /// Listens to what peers have sent: all that they may send to is built.
    fn admit_peers(&self) {
        if let Some(link) = &self.link {
            link.tunnel.admit();
        }
    }

    /// How far what is new is filled; none if nothing is new.
    pub(crate) fn filling(&self) -> Option<Filling> {
        self.growth.as_ref().map(|&Growth { filled, recorded }| {
            if filled { Filling::Done { recorded } } else { Filling::Goes { recorded } }
        })
    }

    /// Notes that so many changes enter the next step.
    pub(crate) fn record(&mut self, changes: usize) {
        if let Some(growth) = &mut self.growth
            && !growth.filled
        {
            growth.recorded += changes as u64;
        }
    }

    /// Fills by so many slices of work, together with all hosts. When all that there was is filled
    /// in, what is new catches up with the steps made meanwhile and is like everything else from
    /// then on.
    ///
    /// That this is no part of the step that shows it is for the hosts' sake: each has new operators
    /// for it, to which others must not send before it has them.
    ///
    /// # Errors
    ///
    /// The circuit can't be used any more.
    pub(crate) fn pump(&mut self, slices: u32) -> Result<(), EngineError> {
        let Some(growth) = &mut self.growth else { return Ok(()) };
        for _ in 0..slices {
            if growth.filled {
                break;
            }
            // True on all hosts at once: they agree on it when they commit.
            growth.filled = self.handle.step_bootstrap_circuit()?;
            if growth.filled {
                self.handle.sync_concurrent_bootstrap()?;
                while !self.handle.step_bootstrap_circuit()? {}
                self.handle.complete_concurrent_bootstrap()?;
                growth.recorded = 0;
            }
        }
        Ok(())
    }

    /// Notes that what is new is shown; it must be filled.
    pub(crate) fn end_filling(&mut self) -> bool {
        self.growth.take().is_some_and(|growth| growth.filled)
    }

    /// The circuit's number.
    pub(crate) fn generation(&self) -> Generation {
        self.generation
    }

    /// Takes a checkpoint of the last step for the next circuit to start from.
    pub(crate) fn checkpoint(&mut self) -> Result<Origin, EngineError> {
        let metadata = self.handle.checkpoint().run()?;
        let directory = StoragePath::from(metadata.uuid.to_string());
        let storage: &dyn StorageBackend = &self.storage;
        let batches =
            storage.gather_batches_for_checkpoint(&metadata).map_err(dbsp::Error::from)?;
        let heir = self.storage.inherit(&directory, &batches);
        let backend: &dyn StorageBackend = &heir;
        let list = backend.write_json(&CHECKPOINTS_FILE.into(), &[&metadata]);
        list.map_err(dbsp::Error::from)?;
        Ok(Origin { storage: heir, checkpoint: Some(metadata) })
    }

    /// Ends the circuit: its threads, its sockets and what is only its own of the storage.
    pub(crate) fn end(self, site: &mut Site) {
        if self.handle.kill().is_err() {
            warn!("a worker of a circuit that has ended had panicked");
        }
        drop(self.circuit);
        if let Some(link) = self.link {
            link.tunnel.close();
            if let Err(error) = site.descriptors.reclaim(&link.lent) {
                warn!(%error, "an exchange listener was not closed");
            }
        }
        remove_directory(&self.directory);
    }
}

fn linked(
    site: &mut Site,
    blueprint: &Blueprint,
    next: NextExchange,
) -> Result<(CircuitConfig, Link), EngineError> {
    let Blueprint { place, workers, lost, .. } = blueprint;
    // On the threads of dbsp's exchange: what it sends and receives changes threads less often.
    let (tunnel, ends) = Tunnel::open(TOKIO.handle(), next, place, lost)?;
    let counts = workers.iter().map(|count| *count as usize);
    let hosts: Vec<_> = ends.addresses.iter().copied().zip(counts).collect();
    let layout = Layout::new_multihost(&hosts, ends.addresses[place.host.0 as usize])
        .expect("each end of a tunnel has its own port");
    let (listener, lent) = site.descriptors.lend(ends.listener)?;
    Ok((CircuitConfig::from(layout).with_exchange_listener(listener), Link { tunnel, lent }))
}

fn storage_config(
    directory: &Path,
    workers: usize,
    origin: &Origin,
    fill: Fill,
) -> CircuitStorageConfig {
    CircuitStorageConfig {
        config: StorageConfig {
            path: directory.to_string_lossy().into_owned(),
            cache: Default::default(),
        },
        options: StorageOptions {
            // Batches become files by checkpoints alone.
            min_storage_bytes: Some(usize::MAX),
            min_step_storage_bytes: Some(usize::MAX),
            compression: StorageCompression::None,
            cache_mib: Some(CACHE_MIB_PER_WORKER * workers),
            ..StorageOptions::default()
        },
        backend: Arc::new(origin.storage.clone()),
        init_checkpoint: origin.checkpoint(),
        defer_restore: fill == Fill::Beside,
    }
}

fn remove_directory(directory: &Path) {
    if let Err(error) = fs::remove_dir_all(directory) {
        warn!(%error, "a circuit's directory was not removed");
    }
}
