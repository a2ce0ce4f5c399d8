-- Who has come and opened an auction in the same window of 10 seconds.
select p.id, p.name, p.starts
from (
  select id, name, date_bin('10 seconds', date_time, timestamp '2000-01-01') as starts
  from person
  group by id, name, starts
) as p
join (
  select seller, date_bin('10 seconds', date_time, timestamp '2000-01-01') as starts
  from auction
  group by seller, starts
) as a on p.id = a.seller and p.starts = a.starts;
