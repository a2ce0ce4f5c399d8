create table t (id int primary key, s text, b boolean, d double precision, n numeric(8,2), a date, m timestamp, z timestamptz);
insert into t values (1, 'one', true, 0.1, 1.50, '2024-01-31', '2024-01-31 10:20:30.5', '2024-01-31 10:20:30+02'), (2, null, null, null, null, null, null, null);
select * from t order by id;
\x
select * from t where id = 1;
\x
copy t (id, s) from stdin (format csv);
3,three
4,"four, or so"
\.
select count(*), max(id) as "Highest", min(s) from t;
select nosuch from t;
selec 1;
begin;
select 1 / 0;
select 1;
commit;
update t set s = upper(s) where id > 2;
select id, s from t where s is not null order by id \g
show server_encoding;
drop table t;
drop table t;
