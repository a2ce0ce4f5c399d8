//! Anomalies that are planted must be found, and what is allowed must not.

use super::checker::{Anomaly, check};
use super::history::{Act, Key, Level, Outcome, Transaction, Value};

/// A history of transactions that all ran at the same time.
#[derive(Default)]
struct Plant(Vec<Transaction>);

impl Plant {
    fn transaction(mut self, outcome: Outcome, acts: Vec<Act>) -> Self {
        self.0.push(Transaction { begun: 0, ended: 1000, outcome, acts });
        self
    }

    fn committed(self, acts: Vec<Act>) -> Self {
        self.transaction(Outcome::Committed, acts)
    }

    fn aborted(self, acts: Vec<Act>) -> Self {
        self.transaction(Outcome::Aborted, acts)
    }

    /// Sets when the newest transaction ran.
    fn at(mut self, begun: u64, ended: u64) -> Self {
        let newest = self.0.last_mut().expect("a transaction");
        (newest.begun, newest.ended) = (begun, ended);
        self
    }

    fn found(&self, level: Level) -> Vec<&'static str> {
        let name = |anomaly: &Anomaly| match anomaly {
            Anomaly::Internal { .. } => "internal",
            Anomaly::Moved { .. } => "moved",
            Anomaly::Orders { .. } => "orders",
            Anomaly::G1a { .. } => "G1a",
            Anomaly::G1b { .. } => "G1b",
            Anomaly::Lost { .. } => "lost",
            Anomaly::G0 { .. } => "G0",
            Anomaly::G1c { .. } => "G1c",
            Anomaly::GSingle { .. } => "G-single",
            Anomaly::GNonadjacent { .. } => "G-nonadjacent",
        };
        check(&self.0, level).iter().map(name).collect()
    }

    /// What is found under REPEATABLE READ and under READ COMMITTED.
    #[track_caller]
    fn finds(self, repeatable_read: &[&str], read_committed: &[&str]) {
        assert_eq!(self.found(Level::RepeatableRead), repeatable_read, "repeatable read");
        assert_eq!(self.found(Level::ReadCommitted), read_committed, "read committed");
    }
}

fn append(key: Key, value: Value) -> Act {
    Act::Append(key, value)
}

fn read(key: Key, list: &[Value]) -> Act {
    Act::Read(0, vec![(key, list.to_vec())])
}

/// One statement.
fn both(x: &[Value], y: &[Value]) -> Act {
    Act::Read(0, vec![(0, x.to_vec()), (1, y.to_vec())])
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    Plant::default()
        .committed(vec![append(0, 1), read(0, &[1]), append(1, 2)])
        .committed(vec![read(0, &[1]), append(0, 3), append(0, 4), read(0, &[1, 3, 4])])
        .aborted(vec![append(0, 5), read(0, &[1, 5])])
        .committed(vec![both(&[1, 3, 4], &[2])])
        .finds(&[], &[]);
}

#[test]
fn write_skew_is_allowed() {
    Plant::default()
        .committed(vec![read(0, &[]), read(1, &[]), append(0, 1)])
        .committed(vec![read(0, &[]), read(1, &[]), append(1, 2)])
        .committed(vec![both(&[1], &[2])])
        .finds(&[], &[]);
}

#[test]
fn g0() {
    Plant::default()
        .committed(vec![append(0, 1), append(1, 2)])
        .committed(vec![append(0, 3), append(1, 4)])
        .committed(vec![both(&[1, 3], &[4, 2])])
        .finds(&["G0"], &["G0"]);
}

#[test]
fn g1a() {
    Plant::default()
        .aborted(vec![append(0, 1)])
        .committed(vec![read(0, &[1])])
        .finds(&["G1a"], &["G1a"]);
    // It need not stay.
    Plant::default()
        .aborted(vec![append(0, 1)])
        .aborted(vec![read(0, &[1])])
        .committed(vec![append(0, 2)])
        .committed(vec![read(0, &[2])])
        .finds(&["orders", "lost", "G1a"], &["orders", "lost", "G1a"]);
}

#[test]
fn g1b() {
    Plant::default()
        .committed(vec![append(0, 1), append(0, 2)])
        .committed(vec![read(0, &[1])])
        .committed(vec![read(0, &[1, 2])])
        .finds(&["G1b"], &["G1b"]);
}

#[test]
fn g1c() {
    // Each has read what the other wrote.
    Plant::default()
        .committed(vec![append(0, 1), read(1, &[2])])
        .committed(vec![append(1, 2), read(0, &[1])])
        .committed(vec![both(&[1], &[2])])
        .finds(&["G1c"], &["G1c"]);
    Plant::default()
        .committed(vec![append(0, 1)])
        .at(20, 30)
        .committed(vec![read(0, &[1])])
        .at(0, 10)
        .finds(&["G1c"], &["G1c"]);
}

#[test]
fn g_single() {
    // Read skew: of one transaction, or of one statement.
    Plant::default()
        .committed(vec![append(0, 1), append(1, 2)])
        .committed(vec![read(0, &[]), read(1, &[2])])
        .committed(vec![both(&[1], &[2])])
        .finds(&["G-single"], &[]);
    Plant::default()
        .committed(vec![append(0, 1), append(1, 2)])
        .committed(vec![both(&[], &[2])])
        .committed(vec![both(&[1], &[2])])
        .finds(&["G-single"], &["G-single"]);
}

#[test]
fn a_lost_update() {
    // Both have read the same before they wrote; one of them is gone, or it looks as if it weren't.
    Plant::default()
        .committed(vec![read(0, &[]), append(0, 1)])
        .committed(vec![read(0, &[]), append(0, 2)])
        .committed(vec![read(0, &[2])])
        .finds(&["lost"], &["lost"]);
    Plant::default()
        .committed(vec![read(0, &[]), append(0, 1)])
        .committed(vec![read(0, &[]), append(0, 2)])
        .committed(vec![read(0, &[1, 2])])
        .finds(&["G-single"], &[]);
}

#[test]
fn a_read_that_is_too_old() {
    let stale = |level| {
        let read = Act::Read(20, vec![(0, vec![])]);
        Plant::default()
            .committed(vec![append(0, 1)])
            .at(0, 10)
            .committed(vec![read])
            .at(20, 30)
            .committed(vec![Act::Read(40, vec![(0, vec![1])])])
            .at(40, 50)
            .found(level)
    };
    assert_eq!(stale(Level::RepeatableRead), ["G-single"]);
    assert_eq!(stale(Level::ReadCommitted), ["G-single"]);
}

#[test]
fn a_long_fork() {
    // Two readers see two writers in different orders.
    Plant::default()
        .committed(vec![append(0, 1)])
        .committed(vec![append(1, 2)])
        .committed(vec![both(&[1], &[])])
        .committed(vec![both(&[], &[2])])
        .committed(vec![both(&[1], &[2])])
        .finds(&["G-nonadjacent"], &["G-nonadjacent"]);
}

#[test]
fn what_one_has_written_and_read() {
    Plant::default()
        .committed(vec![append(0, 1), read(0, &[])])
        .committed(vec![read(0, &[1])])
        .finds(&["internal"], &["internal"]);
    Plant::default()
        .committed(vec![append(0, 1)])
        .committed(vec![read(0, &[]), read(0, &[1])])
        .committed(vec![read(0, &[1])])
        .finds(&["moved"], &[]);
}

#[test]
fn lists_that_do_not_agree() {
    Plant::default()
        .committed(vec![append(0, 1)])
        .committed(vec![append(0, 2)])
        .committed(vec![read(0, &[1, 2])])
        .committed(vec![read(0, &[2])])
        .finds(&["orders"], &["orders"]);
}
