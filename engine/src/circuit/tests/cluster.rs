//! Several hosts in this process that step together, each driven from a thread of its own.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use arrow::record_batch::RecordBatch;
use datafusion::prelude::SessionContext;
use dbsp::circuit::{CircuitConfig, Layout};
use dbsp::dynamic::DowncastTrait;
use dbsp::trace::{BatchReader as _, Cursor as _};
use dbsp::typed_batch::BatchReader as _;
use dbsp::{DBSPHandle, Runtime};
use stillframe_protocol::{Program, RelationId, RowError};

use crate::circuit::{Circuit, Snapshot, construct};
use crate::{Codec, Functions, Row};

/// Rows with their multiplicities.
pub(super) type Bag = BTreeMap<Row, i64>;

type Job = Box<dyn FnOnce(&mut RunningHost) + Send>;

pub(super) struct RunningHost {
    pub(super) handle: DBSPHandle,
    pub(super) circuit: Circuit,
    pub(super) workers: usize,
}

/// Hosts × workers that compute one program.
pub(super) struct Cluster {
    hosts: Vec<(Sender<Job>, JoinHandle<()>)>,
}

pub(super) fn functions() -> Functions {
    Functions::new(Arc::new(SessionContext::new().state()))
}

/// Layouts of hosts whose exchange listens on ports of its own.
fn layouts(hosts: usize, workers: usize) -> Vec<(Layout, Option<TcpListener>)> {
    if hosts == 1 {
        return vec![(Layout::new_solo(workers), None)];
    }
    let listeners: Vec<TcpListener> =
        (0..hosts).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let addresses: Vec<SocketAddr> =
        listeners.iter().map(|listener| listener.local_addr().unwrap()).collect();
    let parts: Vec<(SocketAddr, usize)> =
        addresses.iter().map(|address| (*address, workers)).collect();
    let layout = |address| Layout::new_multihost(&parts, address).unwrap();
    addresses
        .iter()
        .zip(listeners)
        .map(|(address, listener)| (layout(*address), Some(listener)))
        .collect()
}

impl Cluster {
    /// Starts a cluster; `configure` changes the configuration of a host.
    pub(super) fn start(
        (hosts, workers): (usize, usize),
        program: &Program,
        configure: impl Fn(usize, CircuitConfig) -> CircuitConfig,
    ) -> Self {
        let program = Arc::new(program.clone());
        let start = |(number, (layout, listener)): (usize, (Layout, Option<TcpListener>))| {
            let mut config = CircuitConfig::from(layout).with_streaming_exchange(false);
            if let Some(listener) = listener {
                config = config.with_exchange_listener(listener);
            }
            let config = configure(number, config);
            let (sender, receiver) = channel::<Job>();
            let program = Arc::clone(&program);
            (sender, std::thread::spawn(move || run(config, &program, workers, &receiver)))
        };
        Self { hosts: layouts(hosts, workers).into_iter().enumerate().map(start).collect() }
    }

    /// Does something on all hosts at once.
    pub(super) fn on_all<T: Send + 'static>(
        &self,
        job: impl Fn(usize, &mut RunningHost) -> T + Clone + Send + 'static,
    ) -> Vec<T> {
        let answers: Vec<Receiver<T>> = self
            .hosts
            .iter()
            .enumerate()
            .map(|(number, (jobs, _))| {
                let (sender, receiver) = channel();
                let job = job.clone();
                let send = move |host: &mut RunningHost| sender.send(job(number, host)).unwrap();
                jobs.send(Box::new(send)).expect("host runs");
                receiver
            })
            .collect();
        answers.into_iter().map(|answer| answer.recv().expect("host answers")).collect()
    }

    /// Feeds changes, each to one of the hosts, and makes a step.
    pub(super) fn step(&self, changes: &[(RelationId, Bag)]) {
        let hosts = self.hosts.len();
        let changes = Arc::new(changes.to_vec());
        self.on_all(move |number, host| {
            for (table, rows) in changes.iter() {
                // Neighbours in order go to different hosts, the retractions elsewhere again.
                let mine = rows.iter().enumerate().filter(|(place, (_, weight))| {
                    (place + usize::from(**weight < 0)) % hosts == number
                });
                let mine = mine.map(|(_, (row, weight))| (row.clone(), *weight));
                host.circuit.inputs[table].append(mine);
            }
            host.handle.transaction().unwrap();
        });
    }

    /// A relation's rows over all hosts. No worker may hold a row less often than never.
    pub(super) fn rows(&self, relation: RelationId) -> Bag {
        let parts = self.on_all(move |_, host| {
            let output = &host.circuit.outputs[&relation];
            (0..host.workers)
                .flat_map(|worker| entries(&output.shard(worker).expect("a step was made").rows))
                .collect::<Vec<_>>()
        });
        let mut bag = Bag::new();
        for (row, weight) in parts.into_iter().flatten() {
            assert!(weight > 0, "row {row:?} of relation {relation} has weight {weight}");
            *bag.entry(row).or_default() += weight;
        }
        bag
    }

    /// A relation's errors over all hosts, sorted.
    pub(super) fn errors(&self, relation: RelationId) -> Vec<RowError> {
        let parts = self.on_all(move |_, host| {
            let output = &host.circuit.outputs[&relation];
            (0..host.workers)
                .flat_map(|worker| output.shard(worker).expect("a step was made").errors(100))
                .collect::<Vec<_>>()
        });
        let mut errors: Vec<RowError> = parts.into_iter().flatten().collect();
        errors.sort();
        errors.dedup();
        errors
    }

    /// How often each worker holds a row of a relation, by global number.
    pub(super) fn spread(&self, relation: RelationId) -> Vec<usize> {
        let parts = self.on_all(move |_, host| {
            let output = &host.circuit.outputs[&relation];
            (0..host.workers)
                .map(|worker| entries(&output.shard(worker).expect("a step was made").rows).len())
                .collect::<Vec<_>>()
        });
        parts.into_iter().flatten().collect()
    }

    pub(super) fn codec(&self, relation: RelationId) -> Arc<Codec> {
        let codecs =
            self.on_all(move |_, host| Arc::clone(host.circuit.outputs[&relation].codec()));
        Arc::clone(&codecs[0])
    }
}

impl Drop for Cluster {
    /// Ends all hosts before any of what they use.
    fn drop(&mut self) {
        for (jobs, thread) in self.hosts.drain(..) {
            drop(jobs);
            if thread.join().is_err() && !std::thread::panicking() {
                panic!("a host has panicked");
            }
        }
    }
}

fn run(config: CircuitConfig, program: &Arc<Program>, workers: usize, jobs: &Receiver<Job>) {
    let program = Arc::clone(program);
    let (handle, circuit) = Runtime::init_circuit(config, move |circuit| {
        Ok(construct(circuit, &program, &functions(), &Default::default())?)
    })
    .unwrap();
    let mut host = RunningHost { handle, circuit, workers };
    while let Ok(job) = jobs.recv() {
        job(&mut host);
    }
    host.handle.kill().unwrap();
}

/// Whole rows with weights.
fn entries(snapshot: &Snapshot) -> Vec<(Row, i64)> {
    let mut entries = vec![];
    // SAFETY (of both downcasts): the snapshots' keys and values are rows.
    match snapshot {
        Snapshot::Set(rows) => {
            let mut cursor = rows.inner().cursor();
            while cursor.key_valid() {
                let row: &Row = unsafe { cursor.key().downcast() };
                let row = row.clone();
                entries.push((row, **cursor.weight()));
                cursor.step_key();
            }
        }
        Snapshot::Keyed(rows) => {
            let mut cursor = rows.inner().cursor();
            while cursor.key_valid() {
                while cursor.val_valid() {
                    let key: &Row = unsafe { cursor.key().downcast() };
                    let rest: &Row = unsafe { cursor.val().downcast() };
                    let row = Row::concatenate([key.as_bytes(), rest.as_bytes()]);
                    entries.push((row, **cursor.weight()));
                    cursor.step_val();
                }
                cursor.step_key();
            }
        }
    }
    entries.retain(|(_, weight)| *weight != 0);
    entries
}

/// A bag with each row of a batch once more or once less.
pub(super) fn bag(codec: &Codec, batch: &RecordBatch, weight: i64) -> Bag {
    let mut bag = Bag::new();
    for row in codec.encode_batch(batch).unwrap() {
        *bag.entry(row).or_default() += weight;
    }
    bag
}
