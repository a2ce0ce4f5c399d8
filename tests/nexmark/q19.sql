-- The ten highest bids of each auction.
select *
from (
  select *, row_number() over (
    partition by auction order by price desc, date_time, bidder, extra
  ) as place
  from bid
) as bids
where place <= 10;
