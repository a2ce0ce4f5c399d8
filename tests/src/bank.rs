//! A bank that must never lose money: writers that move it, readers that count it in one
//! statement, and one who holds a lease all the while and must see nothing move. Others may create
//! and drop views meanwhile.
//!
//! Every statement of a writer keeps the totals. So any read that meets another total has seen two
//! steps at once: of two relations, of two shards, or of two scans of one relation.

mod builder;
mod holder;
mod reader;
mod writer;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::future::join_all;

use crate::{Client, Failure};

const WRITERS: u64 = 4;
const READERS: u64 = 4;
const BUILDERS: u64 = 2;
const ACCOUNTS: u64 = 60;
const BALANCE: u64 = 1000;

/// When the bank may close.
#[derive(Clone, Copy, Debug)]
pub struct Hours {
    /// Not before this time.
    pub time_min: Duration,
    /// At the latest after this time, whatever has been reached.
    pub time_max: Duration,
    /// Not before so many statements were committed, so many distinct steps read, and one lease
    /// held over so many.
    pub steps_min: u64,
    /// Not before so many views were created and dropped; 0 is none at all.
    pub views_min: u64,
}

/// What happened.
#[derive(Debug)]
pub struct Report {
    /// How many writing statements were acknowledged.
    pub commits: u64,
    /// How many had to be tried again, for a serialization failure or a deadlock.
    pub retries: u64,
    /// How many reads were checked.
    pub reads: u64,
    /// How many distinct steps they read.
    pub steps_read: u64,
    /// Over how many steps one lease was held.
    pub steps_held: u64,
    /// How many views were created.
    pub views: u64,
    /// How long it took.
    pub time: Duration,
    /// What was wrong. The first fault closes the bank.
    pub faults: Vec<String>,
}

impl Report {
    /// Panics unless all is right and enough has happened.
    pub fn check(&self, hours: Hours) {
        assert!(self.faults.is_empty(), "{self:#?}");
        let enough = hours.steps_min;
        assert!(self.commits >= enough, "too few commits: {self:#?}");
        assert!(self.steps_read >= enough, "too few distinct steps read: {self:#?}");
        assert!(self.steps_held >= enough, "the lease was held over too few steps: {self:#?}");
        assert!(self.views >= hours.views_min, "too few views: {self:#?}");
    }
}

/// What all at work share.
#[derive(Debug)]
struct Bank {
    address: SocketAddr,
    hours: Hours,
    opened: Instant,
    closed: AtomicBool,
    commits: AtomicU64,
    retries: AtomicU64,
    reads: AtomicU64,
    steps_held: AtomicU64,
    views: AtomicU64,
    steps_read: Mutex<BTreeSet<u64>>,
    faults: Mutex<Vec<String>>,
}

/// Opens the bank in an empty database of a server, and works until the hours are over.
pub async fn run(address: SocketAddr, hours: Hours) -> Report {
    found(address).await.unwrap_or_else(|failure| panic!("the bank can't be founded: {failure}"));
    let bank = Bank {
        address,
        hours,
        opened: Instant::now(),
        closed: AtomicBool::new(false),
        commits: AtomicU64::new(0),
        retries: AtomicU64::new(0),
        reads: AtomicU64::new(0),
        steps_held: AtomicU64::new(0),
        views: AtomicU64::new(0),
        steps_read: Mutex::default(),
        faults: Mutex::default(),
    };
    let writers =
        join_all((0..WRITERS).map(|number| bank.employ("writer", writer::work(&bank, number))));
    let readers = join_all((0..READERS).map(|_| bank.employ("reader", reader::work(&bank))));
    let holder = bank.employ("holder", holder::work(&bank));
    let builders = if hours.views_min > 0 { BUILDERS } else { 0 };
    let builders =
        join_all((0..builders).map(|number| bank.employ("builder", builder::work(&bank, number))));
    tokio::join!(writers, readers, holder, builders);
    bank.report()
}

async fn found(address: SocketAddr) -> Result<(), Failure> {
    let client = Client::connect(address).await?;
    for sql in [
        "create table account (id int primary key, owner int not null, balance bigint not null)",
        "create table ledger (pair bigint not null, account int not null, amount bigint not null)",
        "create materialized view wealth as \
         select owner, count(*) as accounts, sum(balance) as total from account group by owner",
        "create materialized view mirror as select id, balance from account",
        "create materialized view turnover as \
         select account, count(*) as entries, sum(amount) as total from ledger group by account",
        "create materialized view posting as \
         select a.owner, l.amount from account a join ledger l on l.account = a.id",
    ] {
        client.try_query(sql).await?;
    }
    let accounts: Vec<_> =
        (0..ACCOUNTS).map(|id| format!("({id}, {}, {BALANCE})", id % 7)).collect();
    client.try_query(&format!("insert into account values {}", accounts.join(", "))).await?;
    Ok(())
}

impl Bank {
    /// Runs somebody's work; what stops it is a fault.
    async fn employ(&self, who: &str, work: impl Future<Output = Result<(), Failure>>) {
        if let Err(failure) = work.await {
            self.fault(format!("a {who} was stopped by {failure}"));
        }
    }

    fn is_open(&self) -> bool {
        if self.closed.load(Ordering::Relaxed) {
            return false;
        }
        let time = self.opened.elapsed();
        let enough = time >= self.hours.time_min
            && self.reached() >= self.hours.steps_min
            && self.views.load(Ordering::Relaxed) >= self.hours.views_min;
        !enough && time < self.hours.time_max
    }

    /// The least of what must be reached.
    fn reached(&self) -> u64 {
        let commits = self.commits.load(Ordering::Relaxed);
        let held = self.steps_held.load(Ordering::Relaxed);
        commits.min(held).min(self.steps_read())
    }

    fn steps_read(&self) -> u64 {
        self.steps_read.lock().unwrap_or_else(PoisonError::into_inner).len() as u64
    }

    fn fault(&self, what: String) {
        self.closed.store(true, Ordering::Relaxed);
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    fn report(self) -> Report {
        Report {
            steps_read: self.steps_read(),
            commits: self.commits.into_inner(),
            retries: self.retries.into_inner(),
            reads: self.reads.into_inner(),
            steps_held: self.steps_held.into_inner(),
            views: self.views.into_inner(),
            time: self.opened.elapsed(),
            faults: self.faults.into_inner().unwrap_or_else(PoisonError::into_inner),
        }
    }
}
