//! Moves money: within one UPDATE, or by two entries of one INSERT.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::{ACCOUNTS, Bank};
use crate::{Client, Failure};

/// How many of its pairs of entries a writer leaves in the ledger, so that it doesn't grow for ever.
const PAIRS_MAX: usize = 50;
/// After so many statements a writer looks whether what was acknowledged can be seen.
const LOOK_EVERY: u64 = 10;

pub(super) async fn work(bank: &Bank, number: u64) -> Result<(), Failure> {
    let client = Client::connect(bank.address).await?;
    let mut random = StdRng::seed_from_u64(number);
    let mut pairs = VecDeque::new();
    let mut next_pair = number << 32;
    for turn in 0.. {
        if !bank.is_open() {
            break;
        }
        let from = random.random_range(0..ACCOUNTS);
        let to = (from + random.random_range(1..ACCOUNTS)) % ACCOUNTS;
        let amount = random.random_range(1..50);
        match random.random_range(0..10) {
            0..5 => {
                let sql = format!(
                    "update account set balance = balance + case id when {from} then -{amount} \
                     else {amount} end where id in ({from}, {to})"
                );
                expect(bank, &sql, 2, commit(bank, &client, &sql).await?);
            }
            5 => {
                let sql = format!("update account set owner = owner + {amount} where id = {from}");
                expect(bank, &sql, 1, commit(bank, &client, &sql).await?);
            }
            _ => {
                let pair = next_pair;
                next_pair += 1;
                let sql = format!(
                    "insert into ledger values ({pair}, {from}, -{amount}), ({pair}, {to}, {amount})"
                );
                expect(bank, &sql, 2, commit(bank, &client, &sql).await?);
                pairs.push_back(pair);
            }
        }
        if pairs.len() > PAIRS_MAX {
            let oldest = pairs.pop_front().unwrap_or_default();
            let sql = format!("delete from ledger where pair = {oldest}");
            expect(bank, &sql, 2, commit(bank, &client, &sql).await?);
        }
        if turn % LOOK_EVERY == 0
            && let Some(newest) = pairs.back()
        {
            let sql = format!("select pair from ledger where pair = {newest}");
            let seen = client.try_query(&sql).await?.count;
            expect(bank, "entries seen after they were acknowledged", 2, seen);
        }
    }
    Ok(())
}

/// Runs a statement until it is committed; how many rows it has changed.
async fn commit(bank: &Bank, client: &Client, sql: &str) -> Result<u64, Failure> {
    loop {
        match client.try_query(sql).await {
            Ok(answer) => {
                bank.commits.fetch_add(1, Ordering::Relaxed);
                return Ok(answer.count);
            }
            Err(failure) if matches!(failure.sqlstate(), Some("40001" | "40P01")) => {
                bank.retries.fetch_add(1, Ordering::Relaxed);
            }
            Err(failure) => return Err(failure),
        }
    }
}

fn expect(bank: &Bank, what: &str, expected: u64, actual: u64) {
    if actual != expected {
        bank.fault(format!("{what}: {actual} rows instead of {expected}"));
    }
}
