//! The real binary as a child process.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::process::{Child, Command, ExitStatus, Stdio};

use tempfile::TempDir;

use crate::binary;
use crate::deadline::{PATIENCE, poll};

/// A process under test. It is killed when dropped; [`Process::stop`] ends it the polite way and
/// checks that it obeys.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// Holds what it writes to stderr, and its temporary files.
    folder: TempDir,
}

impl Process {
    /// Starts the binary.
    pub fn start<S: AsRef<OsStr>>(arguments: &[S]) -> Self {
        Self::start_in(&[], arguments)
    }

    /// Starts the binary by a command in front of it, which becomes it.
    pub fn start_in<S: AsRef<OsStr>>(front: &[&str], arguments: &[S]) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let scratch = folder.path().join("tmp");
        fs::create_dir(&scratch).expect("a folder for its temporary files");
        let stderr = File::create(folder.path().join("stderr")).expect("a file for stderr");
        let mut words: Vec<OsString> = front.iter().map(OsString::from).collect();
        words.push(binary::stillframe().into());
        words.extend(arguments.iter().map(|argument| argument.as_ref().to_owned()));
        let child = Command::new(&words[0])
            .args(&words[1..])
            .env("TMPDIR", &scratch)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {words:?}: {error}"));
        Self { child, folder }
    }

    /// What it has written to stderr so far; the last part of it, if it is much.
    pub fn stderr(&self) -> String {
        const MUCH: usize = 20_000;
        let all = fs::read(self.folder.path().join("stderr")).unwrap_or_default();
        String::from_utf8_lossy(&all[all.len().saturating_sub(MUCH)..]).into_owned()
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.child.id()
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

    /// How it has ended, if it has.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child can be asked for its status")
    }

    /// Waits until it has ended.
    pub fn ended(&mut self) -> ExitStatus {
        match poll(PATIENCE, || self.exited()) {
            Some(status) => status,
            None => panic!("a process doesn't end:\n{}", self.stderr()),
        }
    }

    /// How many temporary files it has.
    pub fn temporary_files(&self) -> usize {
        fs::read_dir(self.folder.path().join("tmp")).map_or(0, Iterator::count)
    }

    /// Asks it to end (SIGTERM) and fails unless it was alive, ends in time, with status 0, without
    /// a panic, and leaves nothing behind.
    pub fn stop(mut self) -> Result<(), String> {
        if let Some(status) = self.exited() {
            return Err(format!("the process has ended ({status}):\n{}", self.stderr()));
        }
        self.signal("TERM");
        let Some(status) = poll(PATIENCE, || self.exited()) else {
            return Err(format!("the process doesn't end on SIGTERM:\n{}", self.stderr()));
        };
        if !status.success() {
            return Err(format!("the process ended with {status}:\n{}", self.stderr()));
        }
        if self.stderr().contains("panicked at") {
            return Err(format!("a panic:\n{}", self.stderr()));
        }
        match self.temporary_files() {
            0 => Ok(()),
            left => Err(format!("{left} temporary files are left behind")),
        }
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
