-- Bids of each bidder in windows of 10 seconds; the original's are of the time of processing.
select bidder, count(*) as bids, date_bin('10 seconds', date_time, timestamp '2000-01-01') as starts
from bid
group by bidder, starts;
