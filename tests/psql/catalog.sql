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
create schema store;
create table store.item (id int, shop int, label varchar(20) not null, primary key (shop, id));
create view store.labels as select id, label from store.item;
create materialized view store.per_shop as select shop, count(*) as items from store.item group by shop;
\d store.item
\d+ store.item
\d store.labels
\d+ store.labels
\d+ store.per_shop
\d store.item_pkey
\dt store.*
\dt+ store.*
\dv+ store.*
\dm+ store.*
\di store.*
\dn
\dn+ store
\df
\dT
\l stillframe
\du
\sv store.labels
\d pg_catalog.pg_am
create table store.stock (item int, amount int default 0, since date default current_date, note text default 'none');
comment on table store.stock is 'what is there';
comment on column store.stock.amount is 'pieces';
\d store.stock
\d+ store.stock
\dt+ store.stock
drop schema store;
drop schema store cascade;
