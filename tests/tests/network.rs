//! Each process on a machine of its own, as far as the network goes: whatever a link does, everybody
//! has an answer or an error in time, what was acknowledged is there, and everything goes on.
//!
//! The machines are network namespaces, which need root and the program `ip` (Debian: iproute2).

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use stillframe_tests::deadline::{PATIENCE, poll};
use stillframe_tests::{Process, certificates};
use tempfile::TempDir;

/// The coordinator waits for a silent host for 8 seconds, and a busy machine takes its time.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(20);
const HOSTS: usize = 3;
const WRITERS: u32 = 3;

/// Machines that are joined by a switch: the first is the coordinator's.
struct Machines {
    prefix: String,
    count: usize,
}

fn ip(arguments: &[&str]) {
    let done = Command::new("ip").args(arguments).output();
    let done = done.expect("there is the program ip (Debian: iproute2)");
    assert!(done.status.success(), "ip {arguments:?} (it must be run as root): {done:?}");
}

impl Machines {
    fn new(name: &str, count: usize) -> Self {
        let machines = Self { prefix: format!("sf{}{name}", std::process::id()), count };
        let switch = machines.switch();
        ip(&["netns", "add", &switch]);
        ip(&["-n", &switch, "link", "add", "switch", "type", "bridge"]);
        ip(&["-n", &switch, "link", "set", "switch", "up"]);
        for machine in 0..count {
            let (namespace, port) = (machines.namespace(machine), format!("port{machine}"));
            let address = format!("{}/24", machines.address(machine));
            ip(&["netns", "add", &namespace]);
            let ends = ["link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns"];
            ip(&[&["-n", switch.as_str()], &ends[..], &[&namespace]].concat());
            ip(&["-n", &switch, "link", "set", &port, "master", "switch", "up"]);
            ip(&["-n", &namespace, "addr", "add", &address, "dev", "eth0"]);
            ip(&["-n", &namespace, "link", "set", "eth0", "up"]);
            ip(&["-n", &namespace, "link", "set", "lo", "up"]);
        }
        machines
    }

    fn switch(&self) -> String {
        format!("{}sw", self.prefix)
    }

    fn namespace(&self, machine: usize) -> String {
        format!("{}m{machine}", self.prefix)
    }

    fn address(&self, machine: usize) -> String {
        format!("10.77.0.{}", machine + 1)
    }

    /// Runs the binary on a machine.
    fn run(&self, machine: usize, arguments: &[String]) -> Process {
        Process::start_in(&["ip", "netns", "exec", &self.namespace(machine)], arguments)
    }

    /// Pulls a machine's plug, or puts it in again.
    fn plug(&self, machine: usize, state: &str) {
        ip(&["-n", &self.switch(), "link", "set", &format!("port{machine}"), state]);
    }

    /// What one machine sends to another goes astray; the other way round it arrives.
    fn mislead(&self, from: usize, to: usize) {
        let nobody = ["lladdr", "02:00:00:00:00:99", "dev", "eth0", "nud", "permanent"];
        let place = ["neigh", "replace", &self.address(to)].map(str::to_owned);
        let words: Vec<_> = place.iter().map(String::as_str).chain(nobody).collect();
        ip(&[&["-n", self.namespace(from).as_str()], &words[..]].concat());
    }

    fn lead(&self, from: usize, to: usize) {
        ip(&["-n", &self.namespace(from), "neigh", "del", &self.address(to), "dev", "eth0"]);
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for name in (0..self.count).map(|machine| self.namespace(machine)).chain([self.switch()]) {
            // Whatever is not there can't be deleted.
            let _ = Command::new("ip").args(["netns", "del", &name]).output();
        }
    }
}

/// A coordinator and hosts, each on its machine, secured.
struct Cluster {
    hosts: Vec<Process>,
    _coordinator: Process,
    pg: String,
    machines: Machines,
    _certificates: TempDir,
}

/// How a statement has ended: what it prints, or an SQLSTATE.
type Answer = Result<String, String>;

impl Cluster {
    fn start(name: &str) -> Self {
        let machines = Machines::new(name, HOSTS + 1);
        let (folder, certificates) = certificates();
        let certs = format!("--certs={}", certificates.display());
        let ready = folder.path().join("ready");
        let registering = format!("{}:7000", machines.address(0));
        let coordinator = machines.run(
            0,
            &[
                "coordinator".to_owned(),
                certs.clone(),
                format!("--hosts={HOSTS}"),
                "--workers=1".to_owned(),
                "--pg-listen=127.0.0.1:5433".to_owned(),
                format!("--listen={registering}"),
                format!("--ready-file={}", ready.display()),
            ],
        );
        let pg = poll(PATIENCE, || {
            let told: serde_json::Value =
                serde_json::from_str(&fs::read_to_string(&ready).ok()?).ok()?;
            Some(told.get("pg")?.as_str()?.to_owned())
        });
        let pg = pg.unwrap_or_else(|| panic!("it isn't ready:\n{}", coordinator.stderr()));
        let hosts = (1..=HOSTS).map(|machine| {
            let arguments = [
                "host".to_owned(),
                certs.clone(),
                "--workers=1".to_owned(),
                format!("--coordinator={registering}"),
                format!("--listen={}:0", machines.address(machine)),
                format!("--place={}", machine - 1),
            ];
            machines.run(machine, &arguments)
        });
        let hosts = hosts.collect();
        let cluster =
            Self { hosts, _coordinator: coordinator, pg, machines, _certificates: folder };
        cluster.insist("CREATE TABLE t (n int PRIMARY KEY)");
        cluster.insist("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(n) AS s FROM t");
        cluster
    }

    /// Runs a statement with psql, which must end in time.
    fn psql(&self, sql: &str) -> Answer {
        let began = Instant::now();
        let namespace = self.machines.namespace(0);
        let url = format!("postgres://stillframe@{}/stillframe", self.pg);
        let done = Command::new("ip")
            .args(["netns", "exec", &namespace, "psql", &url])
            .args(["-XAt", "-v", "VERBOSITY=sqlstate", "-c", sql])
            .output();
        let Output { status, stdout, stderr } = done.expect("there are ip and psql");
        let took = began.elapsed();
        assert!(took < ANSWER_TIME_MAX, "{sql} took {took:?}");
        if status.success() {
            return Ok(String::from_utf8_lossy(&stdout).trim().to_owned());
        }
        let told = String::from_utf8_lossy(&stderr);
        let state = told.trim().rsplit(' ').next().unwrap_or_default().to_owned();
        let expected = ["57P01", "57P02", "57P03", "08006", "08007", "40001"];
        assert!(expected.contains(&state.as_str()), "{sql}: {told}");
        Err(state)
    }

    fn insist(&self, sql: &str) -> String {
        let answer = poll(PATIENCE * 2, || self.psql(sql).ok());
        answer.unwrap_or_else(|| panic!("no answer: {sql}"))
    }

    /// Writers and a reader go on while something happens to the network.
    fn endures(&self, happens: impl FnOnce(&Self)) {
        let (stop, next) = (AtomicBool::new(false), AtomicU32::new(1));
        let written = thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|_| {
                    scope.spawn(|| {
                        let (mut acknowledged, mut unknown) = (vec![], vec![]);
                        while !stop.load(Ordering::Relaxed) {
                            let n = next.fetch_add(1, Ordering::Relaxed);
                            match self.psql(&format!("INSERT INTO t VALUES ({n})")) {
                                Ok(_) => acknowledged.push(n),
                                Err(_) => unknown.push(n),
                            }
                        }
                        (acknowledged, unknown)
                    })
                })
                .collect();
            let reader = scope.spawn(|| {
                let mut answered = 0;
                while !stop.load(Ordering::Relaxed) {
                    let sql = "SELECT v.n = x.n AND v.s IS NOT DISTINCT FROM x.s FROM v, \
                               (SELECT count(*) AS n, sum(n) AS s FROM t) x";
                    if let Ok(equal) = self.psql(sql) {
                        assert_eq!(equal, "t", "a table and its view are of two steps");
                        answered += 1;
                    }
                }
                answered
            });
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                thread::sleep(Duration::from_secs(2));
                happens(self);
                // Everything goes on.
                self.insist("INSERT INTO t VALUES (0)");
            }));
            stop.store(true, Ordering::Relaxed);
            let written: Vec<_> =
                writers.into_iter().map(|writer| writer.join().expect("a writer")).collect();
            assert!(reader.join().expect("a reader") > 0, "nothing was read");
            if let Err(panic) = ended {
                std::panic::resume_unwind(panic);
            }
            written
        });
        let rows = self.insist("SELECT n FROM t WHERE n > 0");
        let rows: BTreeSet<u32> = rows.lines().map(|n| n.parse().expect("a number")).collect();
        let acknowledged: BTreeSet<_> = written.iter().flat_map(|(a, _)| a).copied().collect();
        let unknown: BTreeSet<_> = written.iter().flat_map(|(_, u)| u).copied().collect();
        assert!(acknowledged.len() > 3, "{acknowledged:?}");
        assert!(acknowledged.is_subset(&rows), "lost: {:?}", &acknowledged - &rows);
        assert!(rows.is_subset(&(&acknowledged | &unknown)), "{rows:?}");
    }
}

#[test]
fn a_host_that_is_cut_off_is_waited_for() {
    let cluster = Cluster::start("a");
    cluster.endures(|cluster| {
        cluster.machines.plug(2, "down");
        thread::sleep(Duration::from_secs(15));
        cluster.machines.plug(2, "up");
    });
}

#[test]
fn a_link_that_carries_one_way_only_is_waited_for() {
    let cluster = Cluster::start("b");
    cluster.endures(|cluster| {
        // From a host to another, from the coordinator to a host, and from a host to the coordinator.
        for (from, to) in [(1, 2), (0, 3), (2, 0)] {
            cluster.machines.mislead(from, to);
            thread::sleep(Duration::from_secs(5));
            cluster.machines.lead(from, to);
        }
    });
}

#[test]
fn a_host_that_stands_still_is_waited_for() {
    let cluster = Cluster::start("c");
    cluster.endures(|cluster| {
        cluster.hosts[0].signal("STOP");
        thread::sleep(Duration::from_secs(30));
        cluster.hosts[0].signal("CONT");
    });
}
