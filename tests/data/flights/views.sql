create materialized view delay_by_carrier as
  select a.name, count(*) as flights, count(f.arr_delay) as arrived, sum(f.arr_delay) as total_delay, max(f.arr_delay) as worst, min(f.arr_delay) as best
  from flights f join airlines a on f.carrier = a.carrier group by a.name;
create materialized view busy_routes as
  select origin, dest, count(*) as flights, avg(distance) as miles from flights group by origin, dest having count(*) > 100;
create materialized view delay_in_wind as
  select f.origin, (w.wind_speed / 5)::int as wind, count(*) as flights, sum(f.dep_delay) as delay
  from flights f join weather w on w.origin = f.origin and w.time_hour = f.time_hour where f.dep_delay is not null and w.wind_speed is not null
  group by f.origin, (w.wind_speed / 5)::int;
