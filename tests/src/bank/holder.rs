//! Holds one lease over many steps, and must see nothing move.

use std::sync::atomic::Ordering;

use super::Bank;
use crate::{Client, Failure};

const READS: [&str; 5] = [
    "select stillframe.current_step()",
    "select id, owner, balance from account order by id",
    "select owner, accounts, total from wealth order by owner",
    "select pair, account, amount from ledger order by pair, account",
    "select owner, amount from posting order by owner, amount",
];

pub(super) async fn work(bank: &Bank) -> Result<(), Failure> {
    let holder = Client::connect(bank.address).await?;
    let other = Client::connect(bank.address).await?;
    holder.try_query("begin isolation level repeatable read read only").await?;
    let first = read(&holder).await?;
    let Some(step) = step(&first[0]) else {
        bank.fault(format!("a step was expected: {:?}", first[0]));
        return Ok(());
    };
    while bank.is_open() {
        let newest = read_step(&other).await?;
        let again = read(&holder).await?;
        for (sql, (first, again)) in READS.iter().zip(first.iter().zip(&again)) {
            if first != again {
                bank.fault(format!(
                    "{sql}\nunder one lease of step {step}: {first:?}\nthen: {again:?}"
                ));
            }
        }
        bank.steps_held.store(newest.saturating_sub(step), Ordering::Relaxed);
    }
    holder.try_query("commit").await?;
    Ok(())
}

async fn read(client: &Client) -> Result<Vec<Vec<Vec<String>>>, Failure> {
    let mut answers = Vec::new();
    for sql in READS {
        answers.push(client.try_query(sql).await?.rows);
    }
    Ok(answers)
}

async fn read_step(client: &Client) -> Result<u64, Failure> {
    let rows = client.try_query(READS[0]).await?.rows;
    step(&rows).ok_or_else(|| Failure::Lost(format!("a step was expected: {rows:?}")))
}

fn step(rows: &[Vec<String>]) -> Option<u64> {
    rows.first()?.first()?.parse().ok()
}
