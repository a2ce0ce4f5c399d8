//! A server under test: the real binary as a child process.

use std::fmt;
use std::fs;
use std::net::SocketAddr;
use std::str::FromStr;

use tempfile::TempDir;

use crate::deadline::{PATIENCE, poll};
use crate::wire::sqlstate;
use crate::{Client, Process, Processes, Wire};

/// How many hosts, how many workers on each, and whether hosts are processes: `3x2p` has three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Layout {
    /// Hosts.
    pub hosts: u32,
    /// Workers of each host.
    pub workers: u32,
    /// Whether each host is a process of its own.
    pub processes: bool,
}

impl Layout {
    /// All hosts in one process.
    pub const fn new(hosts: u32, workers: u32) -> Self {
        Self { hosts, workers, processes: false }
    }

    /// Each host in a process of its own.
    pub const fn processes(hosts: u32, workers: u32) -> Self {
        Self { hosts, workers, processes: true }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}{}", self.hosts, self.workers, if self.processes { "p" } else { "" })
    }
}

impl FromStr for Layout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (numbers, processes) = match text.strip_suffix('p') {
            Some(numbers) => (numbers, true),
            None => (text, false),
        };
        let numbers = numbers.split_once('x').and_then(|(hosts, workers)| {
            Some(Self { hosts: hosts.parse().ok()?, workers: workers.parse().ok()?, processes })
        });
        numbers.ok_or_else(|| format!("{text:?} is not a layout such as 3x2 or 3x2p"))
    }
}

/// A running server: one process, or a coordinator and hosts. All are killed when it is dropped;
/// [`Server::stop`] ends it the polite way and checks that all obey.
#[derive(Debug)]
pub struct Server {
    layout: Layout,
    /// Serves Postgres clients.
    front: Process,
    hosts: Vec<Process>,
    address: SocketAddr,
}

impl Server {
    /// Starts a server and waits until it says that it is ready.
    pub fn start(hosts: u32, workers: u32) -> Self {
        Self::start_layout(Layout::new(hosts, workers))
    }

    /// Starts a server and waits until it answers.
    pub fn start_layout(layout: Layout) -> Self {
        if !layout.processes {
            return Self::start_one_process(layout, &[]);
        }
        let cluster = Processes::start(layout.hosts, layout.workers);
        let address = cluster.address();
        let Processes { coordinator, hosts, .. } = cluster;
        let server = Self { layout, front: coordinator, hosts, address };
        let answers = || {
            let mut wire = server.wire();
            let answered = sqlstate(&wire.query("SELECT stillframe.current_step()")).is_none();
            wire.close();
            answered.then_some(())
        };
        if poll(PATIENCE, answers).is_none() {
            panic!("the cluster isn't ready after {PATIENCE:?}:\n{}", server.stderr());
        }
        server
    }

    /// Starts one process with more options, and waits until it says that it is ready.
    pub fn start_with(layout: Layout, options: &[&str]) -> Self {
        Self::start_one_process(layout, options)
    }

    fn start_one_process(layout: Layout, options: &[&str]) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let ready = folder.path().join("ready");
        let arguments = [
            "serve",
            "--in-memory",
            "--pg-listen=127.0.0.1:0",
            &format!("--hosts={}", layout.hosts),
            &format!("--workers={}", layout.workers),
            &format!("--ready-file={}", ready.display()),
        ];
        let mut front = Process::start(&[&arguments[..], options].concat());
        let answer = poll(PATIENCE, || match fs::read_to_string(&ready) {
            Ok(text) => pg_address(&text).map(Ok),
            Err(_) => front.exited().map(Err),
        });
        match answer {
            Some(Ok(address)) => Self { layout, front, hosts: vec![], address },
            Some(Err(status)) => panic!("the server {status} at start:\n{}", front.stderr()),
            None => panic!("the server isn't ready after {PATIENCE:?}:\n{}", front.stderr()),
        }
    }

    /// The layout it runs.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The process that serves clients.
    pub fn front(&self) -> &Process {
        &self.front
    }

    /// Where it listens for Postgres clients.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A new session.
    pub async fn connect(&self) -> Client {
        Client::connect(self.address)
            .await
            .unwrap_or_else(|error| panic!("{error}\n{}", self.stderr()))
    }

    /// A new session, byte by byte.
    pub fn wire(&self) -> Wire {
        Wire::connect(self.address)
    }

    /// What its processes have written to stderr so far.
    pub fn stderr(&self) -> String {
        let processes = std::iter::once(&self.front).chain(&self.hosts);
        let told = processes.map(|process| {
            format!(
                "--- stderr of process {} ({}):\n{}---",
                process.id(),
                self.layout,
                process.stderr()
            )
        });
        told.collect::<Vec<_>>().join("\n")
    }

    /// Asks all processes to end, as [`Process::stop`] does.
    pub fn stop(self) -> Result<(), String> {
        let stopped = self.hosts.into_iter().chain([self.front]).map(Process::stop);
        // All of them, before the first fault is told.
        stopped.collect::<Vec<_>>().into_iter().collect()
    }
}

fn pg_address(ready: &str) -> Option<SocketAddr> {
    let ready: serde_json::Value = serde_json::from_str(ready).ok()?;
    ready.get("pg")?.as_str()?.parse().ok()
}
