create table person (
  id bigint primary key, name text, email_address text, credit_card text, city text, state text,
  date_time timestamp, extra text
);

create table auction (
  id bigint primary key, item_name text, description text, initial_bid bigint, reserve bigint,
  date_time timestamp, expires timestamp, seller bigint, category bigint, extra text
);

create table bid (
  auction bigint, bidder bigint, price bigint, channel text, url text, date_time timestamp, extra text
);

create table side_input (key bigint primary key, value text);
