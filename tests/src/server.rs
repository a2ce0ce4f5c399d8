//! A server under test: the real binary as a child process.

use std::fmt;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::str::FromStr;

use tempfile::TempDir;

use crate::deadline::{PATIENCE, poll};
use crate::{Client, Wire, binary};

/// How many hosts, and how many workers on each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Layout {
    /// Hosts.
    pub hosts: u32,
    /// Workers of each host.
    pub workers: u32,
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.hosts, self.workers)
    }
}

impl FromStr for Layout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('x').and_then(|(hosts, workers)| {
            Some(Self { hosts: hosts.parse().ok()?, workers: workers.parse().ok()? })
        });
        numbers.ok_or_else(|| format!("{text:?} is not a layout such as 3x2"))
    }
}

/// A running server. It is killed when dropped; [`Server::stop`] ends it the polite way and checks
/// that it obeys.
#[derive(Debug)]
pub struct Server {
    layout: Layout,
    process: Child,
    address: SocketAddr,
    /// Holds the ready file, what the server writes to stderr, and its temporary files.
    folder: TempDir,
}

impl Server {
    /// Starts a server and waits until it says that it is ready.
    pub fn start(hosts: u32, workers: u32) -> Self {
        Self::start_layout(Layout { hosts, workers })
    }

    /// Starts a server and waits until it says that it is ready.
    pub fn start_layout(layout: Layout) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let scratch = folder.path().join("tmp");
        fs::create_dir(&scratch).expect("a folder for the server's temporary files");
        let stderr = File::create(folder.path().join("stderr")).expect("a file for stderr");
        let ready = folder.path().join("ready");
        let process = Command::new(binary::stillframe())
            .arg("serve")
            .args(["--hosts", &layout.hosts.to_string()])
            .args(["--workers", &layout.workers.to_string()])
            .args(["--in-memory", "--pg-listen", "127.0.0.1:0", "--ready-file"])
            .arg(&ready)
            .env("TMPDIR", &scratch)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .expect("the binary can be started");
        let unknown = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut server = Self { layout, process, address: unknown, folder };
        server.address = server.await_ready(&ready);
        server
    }

    fn await_ready(&mut self, ready: &PathBuf) -> SocketAddr {
        let answer = poll(PATIENCE, || match fs::read_to_string(ready) {
            // The file may be seen before all of it is written.
            Ok(text) => pg_address(&text).map(Ok),
            Err(_) => self.exited().map(Err),
        });
        match answer {
            Some(Ok(address)) => address,
            Some(Err(status)) => panic!("the server {status} at start:\n{}", self.stderr()),
            None => panic!("the server isn't ready after {PATIENCE:?}:\n{}", self.stderr()),
        }
    }

    /// The layout it runs.
    pub fn layout(&self) -> Layout {
        self.layout
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

    /// What the server has written to stderr so far; the last part of it, if it is much.
    pub fn stderr(&self) -> String {
        const MUCH: usize = 20_000;
        let all = fs::read(self.folder.path().join("stderr")).unwrap_or_default();
        let end = &all[all.len().saturating_sub(MUCH)..];
        format!("--- stderr of the server ({}):\n{}---", self.layout, String::from_utf8_lossy(end))
    }

    fn exited(&mut self) -> Option<ExitStatus> {
        self.process.try_wait().expect("a child can be asked for its status")
    }

    /// Asks the server to end (SIGTERM) and fails unless it was alive, ends in time, with status 0,
    /// without a panic, and leaves nothing behind.
    pub fn stop(mut self) -> Result<(), String> {
        if let Some(status) = self.exited() {
            return Err(format!("the server has ended ({status}):\n{}", self.stderr()));
        }
        let signalled = Command::new("sh")
            .args(["-c", &format!("kill -TERM {}", self.process.id())])
            .status()
            .map_err(|error| error.to_string())?;
        if !signalled.success() {
            return Err("the server can't be signalled".to_owned());
        }
        let Some(status) = poll(PATIENCE, || self.exited()) else {
            return Err(format!("the server doesn't end on SIGTERM:\n{}", self.stderr()));
        };
        if !status.success() {
            return Err(format!("the server ended with {status}:\n{}", self.stderr()));
        }
        if self.stderr().contains("panicked at") {
            return Err(format!("a panic in the server:\n{}", self.stderr()));
        }
        let left: Vec<_> = fs::read_dir(self.folder.path().join("tmp"))
            .map_err(|error| error.to_string())?
            .filter_map(|entry| Some(entry.ok()?.file_name()))
            .collect();
        if !left.is_empty() {
            return Err(format!("the server leaves temporary files behind: {left:?}"));
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.stderr());
        }
        // Both fail only if it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn pg_address(ready: &str) -> Option<SocketAddr> {
    let ready: serde_json::Value = serde_json::from_str(ready).ok()?;
    ready.get("pg")?.as_str()?.parse().ok()
}
