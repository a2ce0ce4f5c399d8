//! Nexmark: people, what they put up for auction, and bids, at 200 events a second, so that there are many
//! windows of 10 seconds.

use nexmark::EventGenerator;
use nexmark::config::NexmarkConfig;
use nexmark::event::Event;

use super::{Table, Workload};

/// At scale 1.
const EVENTS: f64 = 2_000_000.0;
/// 2025-10-01 00:00:00, in milliseconds since 1970.
const BEGIN: u64 = 1_759_276_800_000;

pub fn workload(scale: f64) -> Workload {
    let changes: [(&str, &str); 8] = [
        (
            "auctions go",
            "begin; delete from bid where auction % 20 = 1; \
             delete from auction where id % 20 = 1; commit",
        ),
        (
            "highest bids go",
            "delete from bid where price = (select max(b.price) from bid b where b.auction = bid.auction)",
        ),
        ("bids rise", "update bid set price = price + 100 where auction % 7 = 2"),
        (
            "auctions last longer",
            "update auction set category = 10, expires = expires + interval '30 seconds' \
             where id % 9 = 4",
        ),
        (
            "people come later",
            "update person set state = 'or', date_time = date_time + interval '5 seconds' \
             where id % 9 = 4",
        ),
        (
            "bids are of another time",
            "update bid set date_time = date_time + interval '13 seconds' where bidder % 11 = 3",
        ),
        ("bids are repeated", "insert into bid select * from bid where auction % 50 = 3"),
        ("all goes", "delete from bid; delete from auction; delete from person"),
    ];
    Workload {
        name: "nexmark",
        tables: tables((EVENTS * scale) as usize),
        changes: changes.map(|(change, sql)| (change, sql.to_owned())).into(),
        indexes: "create index on bid (auction)",
    }
}

fn tables(events: usize) -> Vec<Table> {
    let config =
        NexmarkConfig { base_time: BEGIN, first_rate: 200, next_rate: 200, ..Default::default() };
    let [mut people, mut auctions, mut bids] = [(); 3].map(|()| vec![]);
    for event in EventGenerator::new(config).take(events) {
        match event {
            Event::Person(p) => people.push(format!(
                "{}|{}|{}|{}|{}|{}|{}|{}",
                p.id,
                p.name,
                p.email_address,
                p.credit_card,
                p.city,
                p.state,
                moment(p.date_time),
                p.extra
            )),
            Event::Auction(a) => auctions.push(format!(
                "{}|{}|{}|{}|{}|{}|{}|{}|{}|{}",
                a.id,
                a.item_name,
                a.description,
                a.initial_bid,
                a.reserve,
                moment(a.date_time),
                moment(a.expires),
                a.seller,
                a.category,
                a.extra
            )),
            Event::Bid(b) => bids.push(format!(
                "{}|{}|{}|{}|{}|{}|{}",
                b.auction,
                b.bidder,
                b.price,
                b.channel,
                b.url,
                moment(b.date_time),
                b.extra
            )),
        }
    }
    let side = (0..10_000).map(|key| format!("{key}|side {key}"));
    let some = |id| id % 20 == 3;
    vec![
        Table::new("side_input", side, |_| false),
        Table::new("person", people.into_iter(), some),
        Table::new("auction", auctions.into_iter(), some),
        Table::new("bid", bids.into_iter(), some),
    ]
}

/// Milliseconds since 1970, as a timestamp of the first day.
fn moment(milliseconds: u64) -> String {
    let (seconds, rest) = ((milliseconds - BEGIN) / 1000, milliseconds % 1000);
    let (day, hour) = (1 + seconds / 86_400, seconds / 3600 % 24);
    assert!(day <= 31, "a month of events");
    format!("2025-10-{day:02} {hour:02}:{:02}:{:02}.{rest:03}", seconds / 60 % 60, seconds % 60)
}
