//! A cluster under test whose hosts are processes.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};

use tempfile::TempDir;

use crate::deadline::{PATIENCE, poll};
use crate::{Client, Link, Process, binary};

/// A coordinator, which serves Postgres clients, and hosts.
#[derive(Debug)]
pub struct Processes {
    /// The hosts.
    pub hosts: Vec<Process>,
    /// The coordinator.
    pub coordinator: Process,
    /// The links between processes, if all that they say goes over them.
    pub links: Vec<Link>,
    pg: SocketAddr,
    registering: SocketAddr,
    options: ProcessesOptions,
}

/// What a cluster of processes is to be.
#[derive(Clone, Debug)]
pub struct ProcessesOptions {
    /// How many workers each host has.
    pub workers: u32,
    /// More arguments of the coordinator.
    pub coordinator: Vec<String>,
    /// More arguments of each host.
    pub host: Vec<String>,
}

impl ProcessesOptions {
    /// Nothing but a number of workers.
    pub fn new(workers: u32) -> Self {
        Self { workers, coordinator: vec![], host: vec![] }
    }

    /// With certificates of this folder.
    pub fn certified(mut self, folder: &Path) -> Self {
        let certs = format!("--certs={}", folder.display());
        self.coordinator.push(certs.clone());
        self.host.push(certs);
        self
    }
}

impl Processes {
    /// Starts a coordinator, and then its hosts.
    pub fn start(hosts: u32, workers: u32) -> Self {
        Self::start_with(hosts, ProcessesOptions::new(workers))
    }

    /// Starts a coordinator, and then its hosts.
    pub fn start_with(hosts: u32, options: ProcessesOptions) -> Self {
        let mut cluster = Self::start_coordinator(hosts, options, "127.0.0.1:0");
        for _ in 0..hosts {
            cluster.add_host();
        }
        cluster
    }

    /// Starts a coordinator without hosts, which register at an address.
    pub fn start_coordinator(hosts: u32, options: ProcessesOptions, listen: &str) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let ready = folder.path().join("ready");
        let mut arguments: Vec<_> = [
            "coordinator",
            "--hosts",
            &hosts.to_string(),
            "--workers",
            &options.workers.to_string(),
            "--pg-listen",
            "127.0.0.1:0",
            "--listen",
            listen,
            "--ready-file",
            ready.to_str().expect("a path that is text"),
        ]
        .map(str::to_owned)
        .into();
        arguments.extend(options.coordinator.iter().cloned());
        let coordinator = Process::start(&arguments);
        let Some((pg, registering)) = poll(PATIENCE, || addresses(&ready)) else {
            panic!("the coordinator isn't ready after {PATIENCE:?}:\n{}", coordinator.stderr());
        };
        Self { hosts: vec![], coordinator, links: vec![], pg, registering, options }
    }

    /// Starts one more host.
    pub fn add_host(&mut self) {
        self.hosts.push(start_host(self.registering, &self.options, &[]));
    }

    /// Starts one more host, and puts a link before everything by which others reach it, and before
    /// the coordinator as it sees it. Must be called inside a Tokio runtime.
    pub fn add_linked_host(&mut self) {
        let network = Network::new();
        let mut link = |ip, port, to| {
            let link = Link::open(SocketAddr::new(ip, port), to);
            self.links.push(link);
            SocketAddr::new(ip, port)
        };
        let coordinator = link(network.seen, COORDINATOR_PORT, self.registering);
        let last = EXCHANGE_PORT + EXCHANGE_PORTS - 1;
        for port in [CONTROL_PORT, BULK_PORT].into_iter().chain(EXCHANGE_PORT..=last) {
            link(network.seen, port, SocketAddr::new(network.real, port));
        }
        let more = [
            format!("--listen={}:{CONTROL_PORT}", network.real),
            format!("--bulk-port={BULK_PORT}"),
            format!("--exchange-ports={EXCHANGE_PORT}-{last}"),
            format!("--advertise={}", network.seen),
        ];
        self.hosts.push(start_host(coordinator, &self.options, &more));
    }

    /// Where hosts register.
    pub fn registering(&self) -> SocketAddr {
        self.registering
    }

    /// Where Postgres clients are served.
    pub fn address(&self) -> SocketAddr {
        self.pg
    }

    /// A new session.
    pub async fn connect(&self) -> Client {
        Client::connect(self.pg).await.unwrap_or_else(|error| panic!("{error}"))
    }
}

/// Starts a host that looks for its coordinator at an address.
pub fn start_host(coordinator: SocketAddr, options: &ProcessesOptions, more: &[String]) -> Process {
    let mut arguments = vec![
        "host".to_owned(),
        format!("--coordinator={coordinator}"),
        format!("--workers={}", options.workers),
    ];
    arguments.extend(options.host.iter().chain(more).cloned());
    Process::start(&arguments)
}

/// A folder of certificates, made as a user would.
pub fn certificates() -> (TempDir, PathBuf) {
    let folder = TempDir::new().expect("a temporary folder");
    let certificates = folder.path().join("certs");
    let made = Command::new(binary::stillframe()).arg("make-certs").arg(&certificates).output();
    let made = made.expect("the binary can be started");
    assert!(made.status.success(), "{made:?}");
    (folder, certificates)
}

const COORDINATOR_PORT: u16 = 7000;
const CONTROL_PORT: u16 = 7001;
const BULK_PORT: u16 = 7002;
const EXCHANGE_PORT: u16 = 7100;
const EXCHANGE_PORTS: u16 = 8;

/// Two loopback addresses that nobody else uses: where a host is, and where others see it.
struct Network {
    real: IpAddr,
    seen: IpAddr,
}

impl Network {
    fn new() -> Self {
        static NEXT: AtomicU8 = AtomicU8::new(1);
        let [high, low] = (std::process::id() as u16).to_be_bytes();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        assert!(number < 128, "there are no more addresses");
        // 127.0.x.x is everybody's.
        let address = |last| Ipv4Addr::new(127, 1 + high % 254, low, last).into();
        Self { real: address(number), seen: address(number + 128) }
    }
}

fn addresses(ready: &Path) -> Option<(SocketAddr, SocketAddr)> {
    let ready: serde_json::Value = serde_json::from_str(&fs::read_to_string(ready).ok()?).ok()?;
    let address = |name| ready.get(name)?.as_str()?.parse().ok();
    Some((address("pg")?, address("hosts")?))
}
