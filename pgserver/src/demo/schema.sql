CREATE TABLE person (id bigint PRIMARY KEY, name text, city text, state text, date_time timestamp);

CREATE TABLE auction (
  id bigint PRIMARY KEY, item_name text, initial_bid bigint, reserve bigint, seller bigint,
  category bigint, date_time timestamp, expires timestamp
);

CREATE TABLE bid (auction bigint, bidder bigint, price bigint, channel text, date_time timestamp);

-- How many bids each channel brings, and what they are worth.
CREATE MATERIALIZED VIEW channels AS
  SELECT channel, count(*) AS bids, sum(price) AS total, max(price) AS highest
  FROM bid GROUP BY channel;

-- The highest bid of each auction.
CREATE MATERIALIZED VIEW winning AS
  SELECT a.id, a.item_name, a.category, a.seller, max(b.price) AS price, count(*) AS bids
  FROM auction a JOIN bid b ON b.auction = a.id AND b.date_time BETWEEN a.date_time AND a.expires
  GROUP BY a.id, a.item_name, a.category, a.seller;

-- What is paid on average in each category: a view over a view.
CREATE MATERIALIZED VIEW categories AS
  SELECT category, count(*) AS auctions, avg(price) AS average FROM winning GROUP BY category;

-- Who sells most.
CREATE MATERIALIZED VIEW sellers AS
  SELECT p.id, p.name, p.city, count(*) AS sold, sum(w.price) AS earned
  FROM winning w JOIN person p ON p.id = w.seller GROUP BY p.id, p.name, p.city;

-- From where people come, minute by minute.
CREATE MATERIALIZED VIEW arrivals AS
  SELECT date_trunc('minute', date_time) AS minute, state, count(*) AS people
  FROM person GROUP BY date_trunc('minute', date_time), state;
