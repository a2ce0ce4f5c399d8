//! Creates and drops views while the others work. The first read after CREATE must be right.

use std::sync::atomic::Ordering;

use super::{ACCOUNTS, BALANCE, Bank};
use crate::{Client, Failure};

/// A view, and a query of it, in one statement with the tables, whose answer is known.
struct Plan {
    definition: &'static str,
    check: &'static str,
    expected: [u64; 2],
}

const PLANS: [Plan; 5] = [
    Plan {
        definition: "select id % 10 as part, sum(balance) as total from account group by id % 10",
        check: "select (select sum(total) from VIEW), (select sum(balance) from account)",
        expected: [ACCOUNTS * BALANCE, ACCOUNTS * BALANCE],
    },
    Plan {
        definition: "select l.pair, l.amount, a.owner from ledger l join account a on a.id = l.account",
        check: "select (select coalesce(sum(amount), 0) from VIEW), \
                (select count(*) from VIEW) - (select count(*) from ledger)",
        expected: [0, 0],
    },
    Plan {
        definition: "select distinct pair from ledger",
        check: "select (select count(*) from VIEW v join ledger l on v.pair = l.pair) \
                - (select count(*) from ledger), \
                (select count(*) from ledger) - 2 * (select count(*) from VIEW)",
        expected: [0, 0],
    },
    Plan {
        definition: "select account as id, total as change from turnover \
                     union all select id, balance from mirror",
        check: "select (select sum(change) from VIEW), (select sum(total) from wealth)",
        expected: [ACCOUNTS * BALANCE, ACCOUNTS * BALANCE],
    },
    Plan {
        definition: "select count(*) as n, max(balance) as most, min(balance) as least from account",
        check: "select (select n from VIEW), (select count(*) from VIEW v, account a \
                where a.balance > v.most or a.balance < v.least)",
        expected: [ACCOUNTS, 0],
    },
];

pub(super) async fn work(bank: &Bank, number: u64) -> Result<(), Failure> {
    let client = Client::connect(bank.address).await?;
    let other = Client::connect(bank.address).await?;
    for turn in 0.. {
        if !bank.is_open() {
            break;
        }
        let plan = &PLANS[turn % PLANS.len()];
        // The second time under a name that was there before.
        let view = format!("built_{number}_{}", turn / 2);
        client
            .try_query(&format!("create materialized view {view} as {}", plan.definition))
            .await?;
        bank.views.fetch_add(1, Ordering::Relaxed);
        let check = plan.check.replace("VIEW", &view);
        for reader in [&client, &other, &client] {
            let rows = reader.try_query(&check).await?.rows;
            if rows != [plan.expected.map(|total| total.to_string())] {
                bank.fault(format!("{check}: {rows:?}, expected {:?}", plan.expected));
            }
        }
        other.try_query(&format!("drop materialized view {view}")).await?;
        let gone = client.try_query(&check).await;
        if gone.as_ref().err().and_then(Failure::sqlstate) != Some("42P01") {
            bank.fault(format!("{view} was dropped, but: {gone:?}"));
        }
    }
    Ok(())
}
