//! Looks for anomalies in a history. Knows nothing of servers.
//!
//! The longest list that was read of a key is the order in which it was written; every other read
//! must be a beginning of it. Then who depends on whom is known, and an anomaly is a circle:
//!
//! | edge from A to B | is there if |
//! |---|---|
//! | ww | B's is the next value after A's |
//! | wr | B read A's value last |
//! | rw | A read a list to its end, and B's is the next value |
//! | time | A was acknowledged before B began |
//!
//! Under snapshot isolation there is no circle but those with two rw edges in a row (Adya 1999; Fekete
//! et al. 2005), and reads are as new as what was acknowledged. Under READ COMMITTED that is so of
//! each reading statement by itself.

use std::collections::{HashMap, HashSet, VecDeque};

use super::history::{Act, Key, Level, Outcome, Transaction, Value};

/// What is wrong with a history.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Anomaly {
    /// An own write is missing from a read, or one after it was not the last.
    Internal { transaction: usize, key: Key },
    /// Two reads of a transaction under REPEATABLE READ are of different frames.
    Moved { transaction: usize, key: Key },
    /// Two reads can't be of the same list.
    Orders { key: Key },
    /// What was never committed is there.
    G1a { key: Key, value: Value },
    /// What its writer has written over was read by another.
    G1b { transaction: usize, key: Key, value: Value },
    /// What was committed is not there.
    Lost { key: Key, value: Value },
    /// A circle of writes.
    G0 { circle: Vec<usize> },
    /// A circle of writes and reads of them.
    G1c { circle: Vec<usize> },
    /// A circle with one read of what was written over: lost updates, read skew, stale reads.
    GSingle { circle: Vec<usize> },
    /// A circle with several, none after another.
    GNonadjacent { circle: Vec<usize> },
}

/// All that is wrong with a history that ends with a read of every key.
pub(super) fn check(history: &[Transaction], level: Level) -> Vec<Anomaly> {
    let mut found = Found::default();
    let writers = writers(history);
    for (number, transaction) in history.iter().enumerate() {
        internal(number, transaction, level, &mut found);
    }
    let orders = orders(history, &writers, &mut found);
    reads(history, &writers, &orders, &mut found);
    if found.list.is_empty() {
        let nodes = nodes(history, level);
        let edges = edges(&nodes, history, &writers, &orders);
        circles(&nodes, &edges, &mut found);
    }
    found.list
}

/// Each once, in the order they are found.
#[derive(Default)]
struct Found {
    list: Vec<Anomaly>,
    seen: HashSet<Anomaly>,
}

impl Found {
    fn add(&mut self, anomaly: Anomaly) {
        if self.seen.insert(anomaly.clone()) {
            self.list.push(anomaly);
        }
    }
}

/// Who wrote each value, and which is the last that they wrote of its key.
type Writers = HashMap<Value, (usize, bool)>;

fn writers(history: &[Transaction]) -> Writers {
    let mut writers = Writers::new();
    for (number, transaction) in history.iter().enumerate() {
        let mut last: HashMap<Key, Value> = HashMap::new();
        for act in &transaction.acts {
            if let Act::Append(key, value) = act {
                writers.insert(*value, (number, true));
                if let Some(before) = last.insert(*key, *value) {
                    writers.insert(before, (number, false));
                }
            }
        }
    }
    writers
}

/// What a transaction sees of its own writes, and under REPEATABLE READ of others'.
fn internal(number: usize, transaction: &Transaction, level: Level, found: &mut Found) {
    let mut own: HashMap<Key, Vec<Value>> = HashMap::new();
    let mut others: HashMap<Key, Vec<Value>> = HashMap::new();
    for act in &transaction.acts {
        match act {
            Act::Append(key, value) => own.entry(*key).or_default().push(*value),
            Act::Read(_, lists) => {
                for (key, list) in lists {
                    let mine = own.get(key).map_or(&[][..], Vec::as_slice);
                    let Some(theirs) = list.strip_suffix(mine) else {
                        found.add(Anomaly::Internal { transaction: number, key: *key });
                        continue;
                    };
                    let before = others.insert(*key, theirs.to_vec());
                    let moved = before.is_some_and(|before| before != theirs);
                    if moved && level == Level::RepeatableRead {
                        found.add(Anomaly::Moved { transaction: number, key: *key });
                    }
                }
            }
        }
    }
}

/// Committed values of each key, in order.
fn orders(
    history: &[Transaction],
    writers: &Writers,
    found: &mut Found,
) -> HashMap<Key, Vec<Value>> {
    let mut orders: HashMap<Key, Vec<Value>> = HashMap::new();
    for (number, transaction) in history.iter().enumerate() {
        for (key, list) in transaction.acts.iter().flat_map(read) {
            let list = foreign(list, number, writers, transaction.outcome);
            let order = orders.entry(*key).or_default();
            let (longer, shorter) = match list.len() > order.len() {
                true => (list.to_vec(), std::mem::take(order)),
                false => (std::mem::take(order), list.to_vec()),
            };
            if !longer.starts_with(&shorter) {
                found.add(Anomaly::Orders { key: *key });
            }
            *order = longer;
        }
    }
    for transaction in history.iter().filter(|one| one.outcome == Outcome::Committed) {
        for act in &transaction.acts {
            if let Act::Append(key, value) = act
                && !orders.get(key).is_some_and(|order| order.contains(value))
            {
                found.add(Anomaly::Lost { key: *key, value: *value });
            }
        }
    }
    orders
}

/// A list without what its reader itself has appended and never committed.
fn foreign<'a>(
    list: &'a [Value],
    reader: usize,
    writers: &Writers,
    outcome: Outcome,
) -> &'a [Value] {
    let is_own = |value: &Value| writers.get(value).is_some_and(|(writer, _)| *writer == reader);
    match outcome {
        Outcome::Committed => list,
        Outcome::Aborted => {
            let own = list.iter().rev().take_while(|value| is_own(value)).count();
            &list[..list.len() - own]
        }
    }
}

fn read(act: &Act) -> &[(Key, Vec<Value>)] {
    match act {
        Act::Append(..) => &[],
        Act::Read(_, lists) => lists,
    }
}

/// Whether all that was read was committed, and whole.
fn reads(
    history: &[Transaction],
    writers: &Writers,
    orders: &HashMap<Key, Vec<Value>>,
    found: &mut Found,
) {
    for (key, order) in orders {
        for value in order {
            let writer = writers.get(value).map(|(writer, _)| history[*writer].outcome);
            if writer != Some(Outcome::Committed) {
                found.add(Anomaly::G1a { key: *key, value: *value });
            }
        }
    }
    for (number, transaction) in history.iter().enumerate() {
        for (key, list) in transaction.acts.iter().flat_map(read) {
            let Some(value) = list.last() else { continue };
            if let Some((writer, false)) = writers.get(value)
                && *writer != number
            {
                found.add(Anomaly::G1b { transaction: number, key: *key, value: *value });
            }
        }
    }
}

/// Something that is at one place in the order of all: a transaction, or under READ COMMITTED what
/// it wrote, and each statement that read.
struct Node {
    transaction: usize,
    begun: u64,
    ended: u64,
    writes: bool,
    /// Whether all that it read is of one frame.
    framed: bool,
    /// What it read of others.
    reads: Vec<(Key, Vec<Value>)>,
}

fn nodes(history: &[Transaction], level: Level) -> Vec<Node> {
    let mut nodes = Vec::new();
    for (number, transaction) in history.iter().enumerate() {
        if transaction.outcome == Outcome::Aborted {
            continue;
        }
        let node = |begun, writes, framed, reads| Node {
            transaction: number,
            begun,
            ended: transaction.ended,
            writes,
            framed,
            reads,
        };
        let mut written: HashSet<Key> = HashSet::new();
        let mut all = Vec::new();
        for act in &transaction.acts {
            match act {
                Act::Append(key, _) => drop(written.insert(*key)),
                Act::Read(begun, lists) => {
                    let of_others = lists.iter().filter(|(key, _)| !written.contains(key));
                    let reads: Vec<_> = of_others.cloned().collect();
                    if level == Level::ReadCommitted {
                        nodes.push(node(*begun, false, true, reads.clone()));
                    }
                    all.extend(reads);
                }
            }
        }
        nodes.push(node(transaction.begun, true, level == Level::RepeatableRead, all));
    }
    nodes
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Edge {
    Ww,
    Wr,
    Rw,
    Time,
}

fn edges(
    nodes: &[Node],
    history: &[Transaction],
    writers: &Writers,
    orders: &HashMap<Key, Vec<Value>>,
) -> Vec<Vec<(usize, Edge)>> {
    let mut edges: Vec<Vec<(usize, Edge)>> = vec![Vec::new(); nodes.len()];
    let written = nodes.iter().enumerate().filter(|(_, node)| node.writes);
    let node_of: HashMap<usize, usize> =
        written.map(|(place, node)| (node.transaction, place)).collect();
    let writer = |value: &Value| {
        let (transaction, _) = writers.get(value)?;
        debug_assert_eq!(history[*transaction].outcome, Outcome::Committed);
        node_of.get(transaction).copied()
    };
    let mut add = |from: Option<usize>, to: Option<usize>, edge| {
        if let (Some(from), Some(to)) = (from, to)
            && from != to
        {
            edges[from].push((to, edge));
        }
    };
    for order in orders.values() {
        for pair in order.windows(2) {
            add(writer(&pair[0]), writer(&pair[1]), Edge::Ww);
        }
    }
    for (place, node) in nodes.iter().enumerate() {
        for (key, list) in &node.reads {
            add(list.last().and_then(writer), Some(place), Edge::Wr);
            let next = orders.get(key).and_then(|order| order.get(list.len()));
            if node.framed {
                add(Some(place), next.and_then(writer), Edge::Rw);
            }
        }
        // What comes later still is reached over one of these.
        let later = |other: &&Node| node.writes && node.ended < other.begun;
        let next = nodes.iter().filter(later).filter(|other| other.writes).map(|node| node.ended);
        let next = next.min().unwrap_or(u64::MAX);
        for (place_later, other) in nodes.iter().enumerate() {
            if later(&other) && other.begun <= next {
                add(Some(place), Some(place_later), Edge::Time);
            }
        }
    }
    edges
}

/// Finds a shortest circle through each node in which no rw edge follows another.
fn circles(nodes: &[Node], edges: &[Vec<(usize, Edge)>], found: &mut Found) {
    let passes: [(&[Edge], bool); 3] = [
        (&[Edge::Ww], false),
        (&[Edge::Ww, Edge::Wr, Edge::Time], false),
        (&[Edge::Ww, Edge::Wr, Edge::Time, Edge::Rw], true),
    ];
    for (allowed, with_rw) in passes {
        for start in 0..nodes.len() {
            // A circle with rw edges is found from the node that one of them leads to.
            if let Some((mut circle, rw)) = shortest(start, edges, allowed, with_rw) {
                let least = circle.iter().enumerate().min_by_key(|(_, node)| **node);
                let least = least.map_or(0, |(place, _)| place);
                circle.rotate_left(least);
                let circle = circle.iter().map(|node| nodes[*node].transaction).collect();
                found.add(match (allowed.len(), rw) {
                    (1, _) => Anomaly::G0 { circle },
                    (_, 0) => Anomaly::G1c { circle },
                    (_, 1) => Anomaly::GSingle { circle },
                    _ => Anomaly::GNonadjacent { circle },
                });
                return;
            }
        }
    }
}

/// A shortest circle that begins and ends at a node, and how many of its edges are rw. With `rw` the
/// first of its edges is one, and none follows another.
fn shortest(
    start: usize,
    edges: &[Vec<(usize, Edge)>],
    allowed: &[Edge],
    rw: bool,
) -> Option<(Vec<usize>, usize)> {
    // Where one is, and whether an rw edge leads there.
    type State = (usize, bool);
    let slot = |(node, is_rw): State| node * 2 + usize::from(is_rw);
    let mut from: Vec<Option<State>> = vec![None; edges.len() * 2];
    let mut queue = VecDeque::from([(start, false)]);
    while let Some(state) = queue.pop_front() {
        let is_first = state.0 == start;
        for &(to, edge) in &edges[state.0] {
            let is_rw = edge == Edge::Rw;
            if !allowed.contains(&edge) || is_rw && state.1 || rw && is_first && !is_rw {
                continue;
            }
            if to == start && !(rw && is_rw) {
                let mut circle = vec![state.0];
                let mut count = usize::from(state.1) + usize::from(is_rw);
                let mut at = state;
                while let Some(before) = from[slot(at)] {
                    count += usize::from(before.1);
                    circle.push(before.0);
                    at = before;
                }
                circle.reverse();
                return Some((circle, count));
            }
            if to != start && from[slot((to, is_rw))].is_none() {
                from[slot((to, is_rw))] = Some(state);
                queue.push_back((to, is_rw));
            }
        }
    }
    None
}
