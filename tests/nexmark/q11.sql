-- Sessions of bidders, which end after 10 seconds without a bid.
select bidder, count(*) as bids, min(date_time) as starts, max(date_time) + interval '10 seconds' as ends
from (
  select bidder, date_time,
    sum(begins) over (partition by bidder order by date_time) as session
  from (
    select bidder, date_time,
      case
        when date_time - lag(date_time) over (partition by bidder order by date_time)
          < interval '10 seconds' then 0
        else 1
      end as begins
    from bid
  ) as bids
) as sessions
group by bidder, session;
