\d
create table person (id int primary key, name text not null, born date, height numeric(5,2));
create table visit (person int, at timestamp with time zone, "where" text, note double precision);
create view tall as select name, height from person where height > 1.8;
create materialized view visits as select p.name, count(*) as n from person p join visit v on v.person = p.id group by p.name;
\d
\dt
\dm
\dv
\d person
\d visit
\d tall
\d visits
\d nosuch
\dt nosuch
drop table person, visit cascade;
\d
