-- Winning bids.
select id, item_name, description, initial_bid, reserve, date_time, expires, seller, category, extra,
  auction, bidder, price, bid_date_time, bid_extra
from (
  select a.*, b.auction, b.bidder, b.price, b.date_time as bid_date_time, b.extra as bid_extra,
    row_number() over (
      partition by a.id order by b.price desc, b.date_time, b.bidder, b.extra
    ) as place
  from auction a, bid b
  where a.id = b.auction and b.date_time between a.date_time and a.expires
) as bids
where place <= 1;
