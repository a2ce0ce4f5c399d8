//! Counts the money in one statement.

use std::sync::atomic::Ordering;

use std::sync::PoisonError;

use super::{ACCOUNTS, BALANCE, Bank};
use crate::{Client, Failure};

/// Each line reads what must agree, through one more table, view or join.
const COUNT: &str = "select \
    (select sum(balance) from account), \
    (select sum(total) from wealth), \
    (select sum(a.balance) from account a join mirror m on a.id = m.id and a.balance = m.balance), \
    (select sum(m.balance) from mirror m join wealth w on w.owner >= 0 \
        join account a on a.id = m.id and a.owner = w.owner), \
    (select coalesce(sum(amount), 0) from ledger), \
    (select coalesce(sum(total), 0) from turnover), \
    (select coalesce(sum(amount), 0) from posting), \
    (select count(*) from ledger), \
    (select count(*) from ledger), \
    (select coalesce(sum(entries), 0) from turnover), \
    (select count(*) from posting), \
    stillframe.current_step()";

pub(super) async fn work(bank: &Bank) -> Result<(), Failure> {
    let client = Client::connect(bank.address).await?;
    let mut last_step = 0;
    while bank.is_open() {
        let answer = client.try_query(COUNT).await?;
        let [row] = answer.rows.as_slice() else {
            bank.fault(format!("one row was expected: {answer:?}"));
            break;
        };
        bank.reads.fetch_add(1, Ordering::Relaxed);
        let Ok(step) = row[row.len() - 1].parse() else {
            bank.fault(format!("a step was expected: {row:?}"));
            break;
        };
        if step < last_step {
            bank.fault(format!("a read of step {step} after one of step {last_step}"));
        }
        last_step = step;
        bank.steps_read.lock().unwrap_or_else(PoisonError::into_inner).insert(step);
        if let Err(fault) = check(row) {
            bank.fault(format!("{fault} at step {step}: {row:?}"));
        }
    }
    Ok(())
}

fn check(row: &[String]) -> Result<(), &'static str> {
    let all = (ACCOUNTS * BALANCE).to_string();
    let [balances @ .., _, _, _, _, _, _, _, _] = row else {
        return Err("too few columns");
    };
    let [amounts @ .., entries1, entries2, entries3, entries4, _step] = &row[balances.len()..]
    else {
        return Err("too few columns");
    };
    if balances.iter().any(|total| *total != all) {
        return Err("the balances don't add up");
    }
    if amounts.iter().any(|total| total != "0") {
        return Err("the ledger isn't balanced");
    }
    if [entries2, entries3, entries4].iter().any(|entries| *entries != entries1) {
        return Err("counts of one table disagree");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn every_column_is_checked() {
        let good = "60000 60000 60000 60000 0 0 0 8 8 8 8 17";
        assert_eq!(check(&row(good)), Ok(()));
        for column in 0..11 {
            let mut bad = row(good);
            bad[column] = "5".to_owned();
            assert!(check(&bad).is_err(), "column {column}");
        }
    }
}
