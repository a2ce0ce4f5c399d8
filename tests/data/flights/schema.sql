-- Flights that left New York in February 2013, their airlines and the weather (nycflights13, CC0).
create table airlines (carrier text primary key, name text not null);
create table weather (origin text, year int, month int, day int, hour int, temp double precision, dewp double precision, humid double precision,
                      wind_dir int, wind_speed double precision, wind_gust double precision, precip double precision, pressure double precision,
                      visib double precision, time_hour timestamptz);
create table flights (year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int, sched_arr_time int, arr_delay int,
                      carrier text, flight int, tailnum text, origin text, dest text, air_time int, distance int, hour int, minute int, time_hour timestamptz);
