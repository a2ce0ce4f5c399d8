-- Hot items: the auctions with the most bids in each window of 10 seconds, one every 2 seconds.
with hops as (
  select auction,
    date_bin('2 seconds', date_time, timestamp '2000-01-01') - hop * interval '2 seconds' as starts
  from bid
  cross join generate_series(0, 4) as hop
), counts as (
  select auction, starts, count(*) as bids
  from hops
  group by auction, starts
), highest as (
  select starts, max(bids) as bids
  from counts
  group by starts
)
select counts.auction, counts.bids, counts.starts
from counts
join highest on counts.starts = highest.starts and counts.bids >= highest.bids;
