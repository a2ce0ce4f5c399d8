select 5 between symmetric 7 and 1
select 5 not between symmetric 7 and 1
select 'abc' like any (array['a%','b%'])
select 'abc' like all (array['a%','%c'])
select 'abc' not like all (array['x%','%y'])
select 'ABC' ilike any (array['a%','b%'])
select 'abc' ~ any (array['^a','b'])
select time with time zone '10:00:00+02'
select '10:00:00+02'::timetz::text
select '2024-01-01 10:00:00.123456'::timestamp(3)
select '2024-01-01 10:00:00.123456'::timestamp(0)
select '10:00:00.123456'::time(2)
select '2024-01-01 10:00:00.123456+00'::timestamptz(1)
select current_timestamp(0) is not null
select localtimestamp is not null, localtime is not null, current_time is not null
select to_char(1234.5, '9999.99')
select to_char(-1234.567, 'FM9,999.00')
select to_char(12, '0000')
select to_char(12345678, '99,999,999')
select to_char(0.5, '0.99')
select to_char(485, 'RN')
select to_char(-12, 'S99')
select to_char(-12, '99S')
select to_char(-12, '99MI')
select to_char(12, '99PL')
select to_char(-12, '99PR')
select to_char(12.3, '99D9')
select to_char(1234, '9G999')
select to_char(12, '$99')
select to_char(12, '99th')
select to_char(0.00001234, '9.99EEEE')
select to_char(12345.678::float8, '99999.99')
select to_char(12.45::real, '99.9')
select to_char(interval '1 day 2:03:04', 'HH24:MI:SS')
select to_char(timestamp '2024-02-29 13:14:15.678', 'YYYY-MM-DD HH12:MI:SS.MS AM Day DDD Month Q WW IW')
select to_number('1,234.5', '9,999.9')
select to_number('-12', 'S99')
select to_date('2024-02-29', 'YYYY-MM-DD')
select to_timestamp('2024-02-29 10:11:12', 'YYYY-MM-DD HH24:MI:SS')
select to_timestamp(1700000000.5)
select array[[1,2],[3,4]]
select '{{1,2},{3,4}}'::int[]
select (array[[1,2],[3,4]])[1][2]
select array_dims(array[[1,2],[3,4]])
select array_ndims(array[1,2])
select ntile(3) over (order by g) from generate_series(1,5) g
select pg_typeof(ntile(3) over (order by g)) from generate_series(1,1) g
select t.id, u.x from (values (1, array[10,20]),(2,array[30])) t(id, a), unnest(t.a) u(x)
select t.id, u.x from (values (1, array[10,20]),(2,array[]::int[])) t(id, a) left join lateral unnest(t.a) u(x) on true
select t.id, u.x, u.n from (values (1, array[10,20])) t(id, a), unnest(t.a) with ordinality u(x, n)
select * from unnest(array[1,2], array['a','b','c']) u(a,b)
select t.id, g from (values (1, 3)) t(id, n), generate_series(1, t.n) g
select 'abc  '::bpchar
select 'abc  '::bpchar = 'abc'
select now() = now()
select now() = transaction_timestamp()
select clock_timestamp() >= now()
select '294276-12-31'::timestamp
select '4713-01-01 BC'::date
select '5874897-12-31'::date
select 1.0/3
select 10::numeric/4
select avg(x) from (values (1),(2)) t(x)
select 2^10, 2.0^10, 2^0.5
select |/ 25.0, ||/ 27.0, @ -5
select 5 % 3, -5 % 3, 5.5 % 2
select 5 & 3, 5 | 3, 5 # 3, ~5, 1 << 4, 256 >> 2
select factorial(20)
select gcd(12, 18), lcm(4,6)
select div(7.5, 2), mod(7, 3)
select width_bucket(5.35, 0.024, 10.06, 5)
select log(100.0), log(2.0, 64.0), ln(2.0), exp(1.0)
select round(2.5), round(-2.5), round(2.567, 2), round(1234.5, -2)
select trunc(2.567, 1), ceil(2.1), floor(-2.1), sign(-3)
select sqrt(2.0), cbrt(27.0), pi()
select degrees(pi()), radians(180.0)
select random() between 0 and 1
select 'a' || 1, 1 || 'a', 'a' || null
select greatest(1,2.5,3), least('a','b')
select nullif(1,1), coalesce(null, 2)
select extract(epoch from interval '1 day'), extract(year from date '2024-01-01')
select date_part('hour', timestamp '2024-01-01 10:20')
select date_trunc('week', timestamp '2024-02-29 10:20')
select date_bin('15 minutes', timestamp '2024-02-29 10:20', timestamp '2001-01-01')
select age(timestamp '2024-02-29', timestamp '2020-01-15')
select justify_days(interval '35 days'), justify_hours(interval '27 hours'), justify_interval(interval '1 mon -1 hour')
select make_date(2024,2,29), make_time(1,2,3.5), make_timestamp(2024,1,2,3,4,5.5), make_interval(days => 10)
select date '2024-01-31' + interval '1 month'
select timestamp '2024-01-31' - timestamp '2024-01-01'
select date '2024-01-31' - date '2024-01-01'
select interval '1 day' * 2.5, interval '1 day' / 2
select timestamptz '2024-01-01 00:00+00' at time zone 'America/New_York'
select timestamp '2024-01-01 00:00' at time zone 'America/New_York'
select timezone('Europe/Paris', timestamptz '2024-07-01 12:00+00')
select (date '2024-01-01', date '2024-01-10') overlaps (date '2024-01-05', date '2024-01-20')
select isfinite(date 'infinity')
select substring('abcdef' from 2 for 3), substring('abcdef' from 'b.d'), substring('abcdef' similar 'a#"%#"f' escape '#')
select overlay('abcdef' placing 'XX' from 2 for 3)
select position('c' in 'abc'), strpos('abc','c')
select trim(both 'x' from 'xxaxx'), ltrim('  a'), rtrim('a  '), btrim('xax','x')
select upper('a'), lower('A'), initcap('hello world'), length('abc'), char_length('abc'), octet_length('é'), bit_length('a')
select left('abc',2), right('abc',2), left('abc',-1), lpad('a',3,'x'), rpad('a',3,'x'), repeat('a',3), reverse('abc'), replace('abc','b','x'), translate('abc','ab','xy')
select split_part('a,b,c', ',', 2), split_part('a,b,c', ',', -1)
select string_to_array('a,b,c', ','), array_to_string(array['a',null,'c'], ',', '*')
select regexp_replace('abc','b','x'), regexp_matches('abcabc','b','g'), regexp_split_to_array('a1b2','\d'), regexp_count('abcabc','b'), regexp_like('abc','B','i'), regexp_substr('abc','b'), regexp_instr('abc','b')
select 'abc' similar to 'a(b|c)c', 'abc' similar to 'abc'
select format('%s %I %L %%', 'a', 'B c', 'it''s'), format('%2$s %1$s', 'a', 'b'), format('%-5s|%5s', 'a', 'b')
select concat('a', 1, null), concat_ws(',', 'a', null, 'b')
select quote_ident('a b'), quote_literal('it''s'), quote_nullable(null)
select ascii('a'), chr(97), md5('a'), encode('abc'::bytea,'base64'), decode('YWJj','base64'), sha256('a')
select to_hex(255), starts_with('abc','a'), 'abc' ^@ 'a'
select cardinality(array[1,2,3]), array_length(array[1,2],1), array_upper(array[1,2],1), array_lower(array[1,2],1)
select array_append(array[1],2), array_prepend(0,array[1]), array_cat(array[1],array[2]), array_remove(array[1,2,1],1), array_replace(array[1,2],1,3), array_position(array[1,2],2), array_positions(array[1,2,1],1)
select array[1,2] || 3, array[1] || array[2], 0 || array[1]
select array[1,2] @> array[1], array[1] <@ array[1,2], array[1,2] && array[2,3]
select 1 = any(array[1,2]), 1 <> all(array[2,3]), 3 = some(array[1])
select (array[1,2,3])[2:3]
select trim_array(array[1,2,3],1)
select array_fill(7, array[3])
select '{"a":{"b":[1,2]}}'::jsonb #> '{a,b}', '{"a":1}'::jsonb -> 'a', '{"a":"x"}'::jsonb ->> 'a'
select jsonb_build_object('a',1,'b',array[1,2]), jsonb_build_array(1,'a',null)
select to_jsonb(row(1,'a')), row_to_json(row(1,'a'))
select jsonb_set('{"a":1}', '{b}', '2'), jsonb_strip_nulls('{"a":null}'), jsonb_pretty('{"a":1}')
select '{"a":1}'::jsonb || '{"b":2}'::jsonb, '{"a":1,"b":2}'::jsonb - 'a', '[1,2]'::jsonb - 0
select '{"a":1}'::jsonb ? 'a', '{"a":1}'::jsonb ?| array['a','b'], '{"a":1}'::jsonb ?& array['a','b'], '{"a":1}'::jsonb @> '{"a":1}'
select * from jsonb_each('{"a":1,"b":2}'), jsonb_object_keys('{"c":1}')
select * from jsonb_array_elements('[1,2]'), jsonb_array_elements_text('["a"]')
select jsonb_array_length('[1,2]'), jsonb_typeof('1'), jsonb_extract_path('{"a":{"b":1}}', 'a', 'b')
select * from jsonb_to_recordset('[{"a":1,"b":"x"}]') as t(a int, b text)
select jsonb_path_query('{"a":[1,2]}', '$.a[*]')
select json_agg(x), jsonb_agg(x), json_object_agg(x::text, x) from (values (1),(2)) t(x)
select gen_random_uuid() is not null
select 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid
select '\xdeadbeef'::bytea, length('\xdead'::bytea), get_byte('\xdead'::bytea,0), '\xde'::bytea || '\xad'::bytea, substring('\xdeadbeef'::bytea from 2 for 2)
select 1::bit(3), b'101', x'ff'
select '1 day'::interval day to second
select interval '1' year, interval '1-2' year to month
select row(1,2) = row(1,2), (1,2) < (1,3), row(1,null) is null
select case when 1=1 then 'a' end, case 1 when 1 then 'x' else 'y' end
select 1 is distinct from null, null is not distinct from null
select true and null, not null, true is unknown
select count(*) filter (where x > 1), sum(x), string_agg(x::text, ',' order by x desc) from (values (1),(2)) t(x)
select bool_and(x), bool_or(x), every(x) from (values (true),(false)) t(x)
select stddev(x), variance(x), corr(x,y), regr_slope(y,x) from (values (1,2),(2,4),(3,7)) t(x,y)
select percentile_cont(0.5) within group (order by x), percentile_disc(0.5) within group (order by x), mode() within group (order by x) from (values (1),(2),(2)) t(x)
select rank(2) within group (order by x) from (values (1),(2),(3)) t(x)
select bit_and(x), bit_or(x), bit_xor(x) from (values (1),(3)) t(x)
select any_value(x) from (values (1)) t(x)
select array_agg(x order by x desc) from (values (1),(2)) t(x)
select array_agg(array[x]) from (values (1),(2)) t(x)
select range_agg(int4range(1,2))
select int4range(1,5) @> 3
select '(1,2)'::point
select 'a'::name, 'x'::"char", 1::oid, 'pg_class'::regclass
select '192.168.0.1'::inet
select '12.34'::money
select 'fat & cat'::tsquery
select 'foo'::xml
select cast('1' as int), '1'::int4, int '1', int4('1')
select 1e3, 1.5e-3, 0x1F
select 1_000
select U&'\0061', E'\n', $$x$$, 'a' 'b'
select current_date is not null, current_user, session_user, current_schema, current_database(), version() is not null
select pg_typeof(1), pg_typeof(1.0), pg_typeof('a'), pg_typeof(null), pg_typeof(now())
select generate_series(1,3), generate_series(1,2)
select generate_series('2024-01-01'::timestamp, '2024-01-03', '1 day')
select * from generate_series(1.0, 2.0, 0.5) g
select * from generate_subscripts(array[1,2],1) s
select * from (values (1,'a')) v(x,y) natural join (values (1,'b')) w(x,z)
select * from rows from (generate_series(1,2), generate_series(1,3)) r(a,b)
select * from generate_series(1,2) with ordinality g(x,n)
table pg_am limit 0
select * from regexp_split_to_table('a,b', ',') r
select * from string_to_table('a,b', ',') r
select string_agg(distinct x, ',' order by x) from (values ('a'),('b'),('a')) t(x)
select sum(distinct x), avg(distinct x) from (values (1),(1),(2)) t(x)
select grouping(x), x, count(*) from (values (1),(2)) t(x) group by rollup(x)
select first_value(x) over w, last_value(x) over w, nth_value(x,2) over w from (values (1),(2)) t(x) window w as (order by x rows between unbounded preceding and unbounded following)
select sum(x) over (order by x range between 1 preceding and 1 following) from (values (1),(2),(4)) t(x)
select sum(x) over (order by x groups between 1 preceding and current row exclude ties) from (values (1),(2),(2)) t(x)
select lag(x, 1, 0) over (order by x), lead(x) over (order by x), cume_dist() over (order by x), percent_rank() over (order by x) from (values (1),(2)) t(x)
