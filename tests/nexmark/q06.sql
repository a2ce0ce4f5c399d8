-- Average selling price by seller, over the last ten auctions of each.
select seller, id,
  avg(price) over (
    partition by seller order by date_time, id rows between 10 preceding and current row
  ) as average
from (
  select a.seller, a.id, b.price, b.date_time,
    row_number() over (partition by a.id order by b.price desc, b.date_time, b.bidder) as place
  from auction a, bid b
  where a.id = b.auction and b.date_time between a.date_time and a.expires
) as winning
where place = 1;
