//! The data that simulated clients write: accounts by key, and a bag of notes; and views, each of
//! which is the sum of all balances plus the number of notes.

use std::collections::{BTreeMap, BTreeSet};

use stillframe_protocol::{Entry, HostId, Lockable, Mode, Program, RelationId};

/// The table of accounts: a key, a balance.
pub(super) const ACCOUNTS: RelationId = RelationId(1);
/// The bag of notes.
pub(super) const NOTES: RelationId = RelationId(2);
/// What every account has at first.
pub(super) const BALANCE: i64 = 100;

/// The contents at one step, of one host or of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Contents {
    pub(super) accounts: BTreeMap<u64, i64>,
    pub(super) notes: BTreeSet<u64>,
    /// The views that can be read.
    pub(super) views: BTreeMap<u32, i64>,
}

/// An exact change.
#[derive(Clone, Debug)]
pub(super) enum Write {
    /// An account's row is replaced.
    Balance { key: u64, old: i64, new: i64 },
    /// A note is added.
    Note(u64),
    /// All notes are taken away: these.
    Sweep(BTreeSet<u64>),
}

impl Contents {
    /// What there is before anybody writes, of the accounts that `here` is true for.
    pub(super) fn initial(accounts: u64, here: impl Fn(u64) -> bool) -> Self {
        let accounts = (0..accounts).filter(|key| here(*key)).map(|key| (key, BALANCE)).collect();
        Self { accounts, ..Self::default() }
    }

    /// What a view is.
    pub(super) fn view(&self) -> i64 {
        self.accounts.values().sum::<i64>() + self.notes.len() as i64
    }

    /// Computes views anew, of those that can be read.
    pub(super) fn show(&mut self, views: &BTreeSet<u32>) {
        let value = self.view();
        self.views = views.iter().map(|view| (*view, value)).collect();
    }

    /// Changes the contents, or says what the change takes away that isn't there, or leaves.
    pub(super) fn apply(&mut self, write: &Write) -> Result<(), String> {
        match write {
            Write::Balance { key, old, new } => {
                let found = self.accounts.insert(*key, *new);
                if found != Some(*old) {
                    return Err(format!("account {key} is {found:?}, and is replaced as {old}"));
                }
            }
            Write::Note(note) => {
                self.notes.insert(*note);
            }
            Write::Sweep(seen) => {
                let found = std::mem::take(&mut self.notes);
                if found != *seen {
                    return Err(format!("notes are {found:?}, and are swept as {seen:?}"));
                }
            }
        }
        Ok(())
    }

    /// Adds another host's part.
    pub(super) fn merge(&mut self, other: &Self) {
        self.accounts.extend(&other.accounts);
        self.notes.extend(&other.notes);
        for (view, value) in &other.views {
            *self.views.entry(*view).or_default() += value;
        }
    }
}

impl Write {
    /// The parts of a write, by the host that owns what they change.
    pub(super) fn shards(&self, hosts: u32) -> Vec<(HostId, Write)> {
        match self {
            Self::Balance { key, .. } => vec![(owner(*key, hosts), self.clone())],
            Self::Note(note) => vec![(owner(*note, hosts), self.clone())],
            Self::Sweep(seen) => (0..hosts)
                .map(HostId)
                .map(|host| {
                    let here = seen.iter().filter(|note| owner(**note, hosts) == host);
                    (host, Self::Sweep(here.copied().collect()))
                })
                .collect(),
        }
    }
}

/// The host that owns an account or a note.
pub(super) fn owner(key: u64, hosts: u32) -> HostId {
    HostId((key % u64::from(hosts)) as u32)
}

/// A reservation of an account.
pub(super) fn account(key: u64, mode: Mode) -> Entry {
    Entry { lockable: Lockable::Key { relation: ACCOUNTS, constraint: 0, hash: key }, mode }
}

/// A reservation of a whole relation.
pub(super) fn whole(relation: RelationId, mode: Mode) -> Entry {
    Entry { lockable: Lockable::Relation(relation), mode }
}

/// The views of a program.
pub(super) fn views(program: &Program) -> BTreeSet<u32> {
    program.views.iter().map(|view| view.id.0).collect()
}

/// Whether a circuit can't be filled while steps go on, for what is new in it.
pub(super) fn must_stop(there_were: &BTreeSet<u32>, program: &Program) -> bool {
    views(program).difference(there_were).any(|view| view.is_multiple_of(5))
}
