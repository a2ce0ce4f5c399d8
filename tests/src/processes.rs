//! A cluster under test whose hosts are processes: the real binary several times.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use tempfile::TempDir;

use crate::deadline::{PATIENCE, poll};
use crate::{Client, binary};

/// A process of a cluster. It is killed when dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// Holds what it writes to stderr, and its temporary files.
    folder: TempDir,
}

impl Process {
    /// Starts the binary.
    pub fn start(arguments: &[&str]) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let scratch = folder.path().join("tmp");
        fs::create_dir(&scratch).expect("a folder for its temporary files");
        let stderr = File::create(folder.path().join("stderr")).expect("a file for stderr");
        let child = Command::new(binary::stillframe())
            .args(arguments)
            .env("TMPDIR", &scratch)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .expect("the binary can be started");
        Self { child, folder }
    }

    /// Starts a host that looks for its coordinator at an address.
    pub fn host(coordinator: SocketAddr, workers: u32, more: &[&str]) -> Self {
        let (coordinator, workers) = (coordinator.to_string(), workers.to_string());
        let arguments = ["host", "--coordinator", &coordinator, "--workers", &workers];
        Self::start(&[&arguments, more].concat())
    }

    /// What it has written to stderr so far.
    pub fn stderr(&self) -> String {
        fs::read_to_string(self.folder.path().join("stderr")).unwrap_or_default()
    }

    /// Sends a signal.
    pub fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        let status = Command::new("sh").args(["-c", &kill]).status().expect("there is a shell");
        assert!(status.success(), "{kill}");
    }

    /// Kills it, and waits until it is dead.
    pub fn kill(&mut self) {
        self.child.kill().expect("a child can be killed");
        self.child.wait().expect("a child can be waited for");
    }

    /// Waits until it has ended.
    pub fn ended(&mut self) -> ExitStatus {
        let exited = || self.child.try_wait().expect("a child can be asked for its status");
        match poll(PATIENCE, exited) {
            Some(status) => status,
            None => panic!("a process doesn't end:\n{}", self.stderr()),
        }
    }

    /// How many temporary files it has.
    pub fn temporary_files(&self) -> usize {
        fs::read_dir(self.folder.path().join("tmp")).map_or(0, Iterator::count)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- stderr of process {}:\n{}---", self.child.id(), self.stderr());
        }
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A coordinator, which serves Postgres clients, and hosts.
#[derive(Debug)]
pub struct Processes {
    /// The hosts.
    pub hosts: Vec<Process>,
    /// The coordinator.
    pub coordinator: Process,
    pg: SocketAddr,
    registering: SocketAddr,
    workers: u32,
}

impl Processes {
    /// Starts a coordinator, and then its hosts.
    pub fn start(hosts: u32, workers: u32) -> Self {
        let mut cluster = Self::start_coordinator(hosts, workers, "127.0.0.1:0");
        for _ in 0..hosts {
            cluster.add_host();
        }
        cluster
    }

    /// Starts a coordinator without hosts, which register at an address.
    pub fn start_coordinator(hosts: u32, workers: u32, listen: &str) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let ready = folder.path().join("ready");
        let coordinator = Process::start(&[
            "coordinator",
            "--hosts",
            &hosts.to_string(),
            "--workers",
            &workers.to_string(),
            "--pg-listen",
            "127.0.0.1:0",
            "--listen",
            listen,
            "--ready-file",
            ready.to_str().expect("a path that is text"),
        ]);
        let Some((pg, registering)) = poll(PATIENCE, || addresses(&ready)) else {
            panic!("the coordinator isn't ready after {PATIENCE:?}:\n{}", coordinator.stderr());
        };
        Self { hosts: vec![], coordinator, pg, registering, workers }
    }

    /// Starts one more host.
    pub fn add_host(&mut self) {
        self.hosts.push(Process::host(self.registering, self.workers, &[]));
    }

    /// Where hosts register.
    pub fn registering(&self) -> SocketAddr {
        self.registering
    }

    /// A new session.
    pub async fn connect(&self) -> Client {
        Client::connect(self.pg).await.unwrap_or_else(|error| panic!("{error}"))
    }
}

fn addresses(ready: &Path) -> Option<(SocketAddr, SocketAddr)> {
    let ready: serde_json::Value = serde_json::from_str(&fs::read_to_string(ready).ok()?).ok()?;
    let address = |name| ready.get(name)?.as_str()?.parse().ok();
    Some((address("pg")?, address("hosts")?))
}
