//! A host in this process.

use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use async_trait::async_trait;
use stillframe_protocol::{
    Activation, Changes, Command, Epoch, Generation, Host, HostError, RelationId,
    RelationStatistics, Report, Retention, RowError, ScanRequest, ScanStream, Shard, Staging,
    Statistics, Step, TransactionId,
};
use tokio::sync::watch;

use crate::engine::{Engine, Job};
use crate::exchange::{Descriptors, ExchangeOptions, NextExchange};
use crate::live::Site;
use crate::scan::Scanner;
use crate::sequence::Admission;
use crate::staging::EncodedChanges;
use crate::state::{Dropped, Membership, State, TableFormat};
use crate::{EngineError, Functions};

/// How many errors of a view are told at most.
const VIEW_ERRORS_MAX: usize = 16;
/// Batches with more rows are encoded where they keep nobody waiting.
const ENCODED_AT_ONCE_MAX: usize = 1024;
/// How long a failed engine may take to end.
const FAILED_ENGINE_PATIENCE: Duration = Duration::from_secs(1);
/// The first circuit of an epoch.
const FIRST_GENERATION: Generation = Generation(1);

/// What a host needs to know from the start.
#[derive(Clone, Debug)]
pub struct HostOptions {
    /// The scalar functions that programs and scans may call.
    pub functions: Functions,
    /// Where a temporary directory is made; none for the system's place for such.
    pub directory: Option<PathBuf>,
    /// How many batches are made for scans at the same time.
    pub scan_concurrency: NonZeroUsize,
    /// How the workers of other hosts reach its own.
    pub exchange: ExchangeOptions,
}

impl HostOptions {
    /// Options with these functions, and defaults for everything else.
    pub fn new(functions: Functions) -> Self {
        let scan_concurrency = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Self { functions, directory: None, scan_concurrency, exchange: ExchangeOptions::default() }
    }
}

/// A host that runs in this process, and keeps nothing beyond it.
///
/// Its engine runs on a thread of its own; when the host is dropped, the thread ends by itself,
/// and [`LocalHost::shut_down`] waits for that.
pub struct LocalHost {
    shared: Arc<Shared>,
    scanner: Scanner,
    engine: Mutex<Option<EngineThread>>,
}

struct EngineThread {
    /// Room for one: there is never more than one command under way.
    jobs: SyncSender<Job>,
    ended: watch::Receiver<bool>,
}

/// What the host and its engine's thread both see.
pub(crate) struct Shared {
    state: Mutex<State>,
    changed: watch::Sender<()>,
}

impl Shared {
    /// Reads or changes the state, and wakes whoever waits for a change.
    pub(crate) fn update<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = self.with(change);
        self.changed.send_replace(());
        result
    }

    /// Reads or changes the state where nobody waits for it.
    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        // A panic here is a bug of ours that fails the request or the engine; the state itself is
        // changed by single assignments.
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl LocalHost {
    /// Starts a host that is part of no epoch yet.
    ///
    /// # Errors
    ///
    /// If there is no place for its temporary directory, or no port.
    pub fn start(options: HostOptions) -> Result<Arc<Self>, EngineError> {
        let mut directory = tempfile::Builder::new();
        directory.prefix("stillframe-");
        let directory = match &options.directory {
            Some(parent) => directory.tempdir_in(parent)?,
            None => directory.tempdir()?,
        };
        let descriptors = Descriptors::new()?;
        let next = NextExchange::bind(&options.exchange, FIRST_GENERATION)?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new(next.reported())),
            changed: watch::Sender::new(()),
        });
        let scanner = Scanner::new(options.functions.clone(), options.scan_concurrency);

        let (jobs, received) = sync_channel(1);
        let engine_shared = Arc::clone(&shared);
        let (end, ended) = watch::channel(false);
        thread::Builder::new().name("engine".to_owned()).spawn(move || {
            let HostOptions { functions, exchange, .. } = options;
            let site = Site { directory: directory.path().to_owned(), descriptors, exchange };
            Engine::new(engine_shared, functions, site, next).run(&received);
            drop(directory);
            end.send_replace(true);
        })?;
        let engine = Mutex::new(Some(EngineThread { jobs, ended }));
        Ok(Arc::new(Self { shared, scanner, engine }))
    }

    /// Ends the engine and waits until its threads, sockets and files are gone. Every request from
    /// now on fails.
    ///
    /// If the engine has failed, its thread may wait for other hosts for ever; then it is left
    /// behind.
    pub async fn shut_down(&self) {
        let mut changed = self.shared.changed.subscribe();
        let engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(EngineThread { jobs, mut ended }) = engine else { return };
        drop(jobs);
        let patience = async {
            while !self.shared.with(|state| state.has_failed()) {
                changed.changed().await.expect("the host holds the sender");
            }
            tokio::time::sleep(FAILED_ENGINE_PATIENCE).await;
        };
        tokio::select! {
            // An error says that the thread is gone, too.
            _ = ended.wait_for(|ended| *ended) => {}
            () = patience => {}
        }
    }

    fn send(&self, membership: Membership, command: &Arc<Command>) -> Result<(), HostError> {
        let job = Job { membership, command: Arc::clone(command) };
        let engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = engine.as_ref().is_some_and(|engine| engine.jobs.try_send(job).is_ok());
        if sent { Ok(()) } else { Err(HostError::Failed("host has shut down".to_owned())) }
    }
}

impl fmt::Debug for LocalHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalHost").finish_non_exhaustive()
    }
}

#[async_trait]
impl Host for LocalHost {
    async fn activate(&self, activation: Activation) -> Result<Report, HostError> {
        self.shared.update(|state| state.activate(activation))
    }

    async fn execute(&self, command: Arc<Command>) -> Result<Report, HostError> {
        let mut changed = self.shared.changed.subscribe();
        let (admission, membership, dropped) = self.shared.with(|state| state.admit(&command))?;
        if admission == Admission::Start {
            self.send(membership, &command)?;
        }
        free(dropped);
        loop {
            if let Some(outcome) = self.shared.with(|state| state.outcome(&command)) {
                return outcome;
            }
            changed.changed().await.expect("the host holds the sender");
        }
    }

    async fn retain(&self, epoch: Epoch, retention: Retention) -> Result<(), HostError> {
        free(self.shared.with(|state| state.retain(epoch, &retention))?);
        Ok(())
    }

    async fn stage(&self, staging: Staging) -> Result<(), HostError> {
        let Staging { epoch, transaction, sequence, changes, tables } = staging;
        let formats = tables.iter().map(|table| Ok((table.id, TableFormat::of(table)?)));
        let formats = formats.collect::<Result<HashMap<_, _>, HostError>>()?;
        let mut encoded = Vec::with_capacity(changes.len());
        if !self.shared.with(|state| state.is_new(epoch, transaction, sequence))? {
            return Ok(());
        }
        for changes in changes {
            let relation = changes.relation;
            let format = match formats.get(&relation) {
                Some(format) => format.clone(),
                None => self.shared.with(|state| state.table(relation))?,
            };
            encoded.push(if changes.rows.num_rows() > ENCODED_AT_ONCE_MAX {
                let encode = move || encode(&changes, &format);
                tokio::task::spawn_blocking(encode)
                    .await
                    .map_err(|error| HostError::Failed(error.to_string()))??
            } else {
                encode(&changes, &format)?
            });
        }
        self.shared.with(|state| state.stage(epoch, transaction, sequence, encoded))
    }

    async fn unstage(&self, epoch: Epoch, transaction: TransactionId) -> Result<(), HostError> {
        self.shared.with(|state| state.unstage(epoch, transaction))
    }

    async fn scan(&self, request: ScanRequest) -> Result<ScanStream, HostError> {
        let frame = self.shared.with(|state| state.frame(request.epoch, request.step))?;
        self.scanner.scan(&frame, &request)
    }

    async fn view_errors(
        &self,
        epoch: Epoch,
        step: Step,
        view: RelationId,
    ) -> Result<Vec<RowError>, HostError> {
        let frame = self.shared.with(|state| state.frame(epoch, step))?;
        let relation = frame.relations.get(&view).ok_or(HostError::UnknownRelation(view))?;
        let errors = relation.shards.iter().flat_map(|shard| shard.errors(VIEW_ERRORS_MAX));
        let mut errors: Vec<RowError> = errors.collect();
        errors.sort_unstable();
        errors.dedup();
        errors.truncate(VIEW_ERRORS_MAX);
        Ok(errors)
    }

    async fn statistics(&self, epoch: Epoch, step: Step) -> Result<Statistics, HostError> {
        let (host, frame, frames) = self.shared.with(|state| {
            let host = state.membership(epoch)?.host;
            Ok::<_, HostError>((host, state.frame(epoch, step)?, state.steps()))
        })?;
        let mut relations = Vec::new();
        for (relation, shards) in &frame.relations {
            for (worker, shard) in (0..).zip(&shards.shards) {
                relations.push(RelationStatistics {
                    relation: *relation,
                    shard: Shard { host, worker },
                    entries: shard.rows.entries() as u64,
                });
            }
        }
        relations.sort_unstable_by_key(|entry| (entry.relation, entry.shard));
        Ok(Statistics { relations, frames })
    }
}

/// Encodes staged changes, or says what is wrong with them.
fn encode(changes: &Changes, format: &TableFormat) -> Result<EncodedChanges, HostError> {
    let Changes { relation, rows, weights } = changes;
    if rows.num_rows() != weights.len() {
        let message = format!("{} rows with {} weights", rows.num_rows(), weights.len());
        return Err(HostError::Invalid(message));
    }
    if format.key_columns > 0 && weights.iter().any(|weight| weight.unsigned_abs() != 1) {
        let message = format!("a row of table {relation} has a weight other than 1 or -1");
        return Err(HostError::Invalid(message));
    }
    let encoded = format
        .codec
        .encode_batch(rows)
        .map_err(|error| HostError::Invalid(format!("table {relation}: {error}")))?;
    let rows = encoded.into_iter().zip(weights.iter().copied()).collect();
    Ok(EncodedChanges { relation: *relation, rows })
}

/// Frees frames where it keeps nobody waiting.
fn free(dropped: Dropped) {
    if !dropped.is_empty() {
        tokio::task::spawn_blocking(move || drop(dropped));
    }
}

#[cfg(test)]
mod tests;
