-- Bids by the day and the minute of their log.
select auction, bidder, price, date_time, extra,
  to_char(date_time, 'YYYY-MM-DD') as day, to_char(date_time, 'HH24:MI') as minute
from bid;
