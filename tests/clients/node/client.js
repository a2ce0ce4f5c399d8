// node-postgres: types by text and by parameters, named statements, transactions, cursors, COPY, LISTEN.
//
// Environment: PGHOST, PGPORT; NODE_PATH has pg, pg-cursor and pg-copy-streams.

const assert = require("assert");
const { pipeline } = require("stream/promises");
const { Readable, Writable } = require("stream");
const { Client, Pool, types } = require("pg");
const Cursor = require("pg-cursor");
const copy = require("pg-copy-streams");

const options = { host: process.env.PGHOST, port: Number(process.env.PGPORT), user: "stillframe", database: "stillframe" };

async function refused(client, sql, state, values) {
  await assert.rejects(client.query(sql, values), (error) => error.code === state, `${sql} is not ${state}`);
}

async function typesBothWays(client) {
  const cases = [
    ["boolean", true, true],
    ["smallint", -32768, -32768],
    ["integer", 2147483647, 2147483647],
    ["bigint", "9223372036854775807", "9223372036854775807"],
    ["real", 1.5, 1.5],
    ["double precision", 0.1, 0.1],
    ["numeric", "-12345.678900", "-12345.678900"],
    ["numeric(8,2)", "1.50", "1.50"],
    ["text", "añ🎉'\\", "añ🎉'\\"],
    ["varchar(5)", "abc", "abc"],
    ["bytea", Buffer.from([0, 255, 92]), Buffer.from([0, 255, 92])],
    ["date", "2024-02-29", new Date(2024, 1, 29)],
    ["time", "23:59:59.000001", "23:59:59.000001"],
    ["timestamp", "2024-02-29 12:30:00.005", new Date(2024, 1, 29, 12, 30, 0, 5)],
    ["timestamptz", new Date(1234567890123), new Date(1234567890123)],
    ["uuid", "c0ffee00-1234-5678-9abc-def012345678", "c0ffee00-1234-5678-9abc-def012345678"],
    ["json", { a: [1, null] }, { a: [1, null] }],
    ["jsonb", JSON.stringify([1, { b: "x" }]), [1, { b: "x" }]],
    ["integer[]", [1, null, -3], [1, null, -3]],
    ["text[]", ['q"\\{},', "", "NULL", null], ['q"\\{},', "", "NULL", null]],
    ["timestamptz[]", [new Date(0)], [new Date(0)]],
    ["integer", null, null],
  ];
  for (const [kind, value, want] of cases) {
    const { rows, fields } = await client.query(`select $1::${kind} as v`, [value]);
    assert.deepStrictEqual(rows[0].v, want, kind);
    assert.strictEqual(fields[0].name, "v");
    await client.query("drop table if exists node_types");
    await client.query(`create table node_types (v ${kind})`);
    await client.query("insert into node_types values ($1)", [value]);
    assert.deepStrictEqual((await client.query("select v from node_types")).rows, [{ v: want }], kind);
  }
  const { rows } = await client.query("select interval '1 mon 2 days 03:04:05.5' as i");
  assert.deepStrictEqual({ ...rows[0].i }, { months: 1, days: 2, hours: 3, minutes: 4, seconds: 5, milliseconds: 500 });
  const binary = await client.query({ text: "select 7::int as a, true as b, 2.5::float8 as c, 'x'::text as d", binary: true });
  assert.deepStrictEqual(binary.rows, [{ a: 7, b: true, c: 2.5, d: "x" }]);
  await client.query("drop table node_types");
}

async function statements(client) {
  await client.query("create table node_t (id integer primary key, name text not null)");
  for (let n = 0; n < 10; n++) {
    const result = await client.query({ name: "put", text: "insert into node_t values ($1, $2)", values: [n, `n${n}`] });
    assert.deepStrictEqual([result.command, result.rowCount], ["INSERT", 1]);
    const got = await client.query({ name: "get", text: "select name from node_t where id = $1", values: [n], rowMode: "array" });
    assert.deepStrictEqual(got.rows, [[`n${n}`]]);
  }
  const several = await client.query("select 1 as a; select 2 as b, 3 as c; update node_t set name = name");
  assert.deepStrictEqual(several.map((result) => result.rows), [[{ a: 1 }], [{ b: 2, c: 3 }], []]);
  assert.strictEqual(several[2].rowCount, 10);
  await refused(client, "insert into node_t values (1, 'x')", "23505");
  await refused(client, "insert into node_t values ($1, $2)", "23502", [99, null]);
  await refused(client, "select $1::int", "22P02", ["x"]);
  await refused(client, "select 1/0", "22012");
  await refused(client, "selec", "42601");
  await client.query("insert into node_t values (1, 'x')").catch((error) => {
    assert.deepStrictEqual([error.table, error.constraint, error.schema], ["node_t", "node_t_pkey", "public"]);
    assert.match(error.detail, /already exists/);
  });
  const many = await client.query("select g from generate_series(1, 50000) g");
  assert.strictEqual(many.rows.length, 50000);
  const any = await client.query("select count(*)::int as n from node_t where id = any($1)", [[1, 2, 77]]);
  assert.strictEqual(any.rows[0].n, 2);
}

async function transactions(client) {
  await client.query("begin");
  await client.query("delete from node_t where id = 1");
  await client.query("savepoint s");
  await refused(client, "select 1/0", "22012");
  await refused(client, "select 1", "25P02");
  await client.query("rollback to s");
  assert.strictEqual((await client.query("select count(*)::int as n from node_t")).rows[0].n, 9);
  await client.query("rollback");
  assert.strictEqual((await client.query("select count(*)::int as n from node_t")).rows[0].n, 10);
}

async function cursors(client) {
  const cursor = client.query(new Cursor("select g from generate_series(1, $1::int) g order by g", [1000]));
  let seen = 0;
  for (let rows = await cursor.read(77); rows.length > 0; rows = await cursor.read(77)) {
    for (const row of rows) assert.strictEqual(row.g, ++seen);
  }
  assert.strictEqual(seen, 1000);
  await cursor.close();
  // One that is left.
  const other = client.query(new Cursor("select g from generate_series(1, 1000) g"));
  assert.strictEqual((await other.read(5)).length, 5);
  await other.close();
  assert.strictEqual((await client.query("select 1 as a")).rows[0].a, 1);
}

async function copies(client) {
  await client.query("delete from node_t");
  const lines = Array.from({ length: 3000 }, (_, n) => `${n}\tname ${n}\n`);
  await pipeline(Readable.from(lines), client.query(copy.from("copy node_t from stdin")));
  const parts = [];
  const sink = new Writable({ write(part, _encoding, done) { parts.push(part); done(); } });
  await pipeline(client.query(copy.to("copy (select * from node_t order by id) to stdout")), sink);
  assert.strictEqual(Buffer.concat(parts).toString(), lines.join(""));
}

async function notifications(client) {
  const other = new Client(options);
  await other.connect();
  const heard = new Promise((resolve) => other.on("notification", resolve));
  await other.query("listen node_news");
  await client.query("select pg_notify('node_news', $1)", ["hello"]);
  const { channel, payload } = await heard;
  assert.deepStrictEqual([channel, payload], ["node_news", "hello"]);
  await other.end();
}

async function main() {
  types.setTypeParser(types.builtins.INT8, (text) => text);
  const client = new Client({ ...options, application_name: "node", statement_timeout: 60000 });
  await client.connect();
  assert.strictEqual((await client.query("show application_name")).rows[0].application_name, "node");
  for (const act of [typesBothWays, statements, transactions, cursors, copies, notifications]) await act(client);
  await client.query("drop table node_t");
  await client.end();
  const pool = new Pool({ ...options, max: 4 });
  const answers = await Promise.all(Array.from({ length: 40 }, (_, n) => pool.query("select $1::int as n", [n])));
  assert.deepStrictEqual(answers.map(({ rows }) => rows[0].n), Array.from({ length: 40 }, (_, n) => n));
  await pool.end();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
