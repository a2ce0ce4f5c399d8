-- Highest bid of each window of 10 seconds.
select b.auction, b.price, b.bidder, b.date_time, b.extra
from bid b
join (
  select max(price) as price, date_bin('10 seconds', date_time, timestamp '2000-01-01') as starts
  from bid
  group by starts
) as highest
  on b.price = highest.price
  and b.date_time >= highest.starts
  and b.date_time < highest.starts + interval '10 seconds';
