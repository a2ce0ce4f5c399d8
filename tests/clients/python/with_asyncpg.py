"""asyncpg: all in binary, statements prepared and kept; introspection of types; COPY; LISTEN.

Environment: DSN.
"""

import asyncio
import datetime as dt
import os
import uuid
from decimal import Decimal

import asyncpg

DSN = os.environ["DSN"]
UTC = dt.timezone.utc

TYPES = [
    ("boolean", [True, False]),
    ("smallint", [-32768, 32767]),
    ("integer", [-2147483648, 2147483647]),
    ("bigint", [-(2**63), 2**63 - 1]),
    ("oid", [0, 4294967295]),
    ("real", [1.5, -0.25]),
    ("double precision", [0.1, float("inf")]),
    ("numeric", [Decimal("-12345.678900"), Decimal("1e40"), Decimal("1e-30")]),
    ("numeric(12,3)", [Decimal("-123456789.125"), Decimal("0.000")]),
    ("text", ["", "añ🎉"]),
    ("varchar", ["abc"]),
    ("char(5)", ["abc  "]),
    ("bytea", [b"", b"\x00\xff"]),
    ("date", [dt.date(2024, 2, 29), dt.date(1, 1, 1)]),
    ("time", [dt.time(23, 59, 59, 999999)]),
    ("timestamp", [dt.datetime(1999, 12, 31, 23, 59, 59, 999999)]),
    ("timestamptz", [dt.datetime(2024, 2, 29, 12, 30, tzinfo=UTC)]),
    ("interval", [dt.timedelta(days=-3, seconds=5, microseconds=7)]),
    ("uuid", [uuid.UUID("c0ffee00-1234-5678-9abc-def012345678")]),
    ("json", ['{"a": [1, null]}']),
    ("jsonb", ['{"a": [1, null]}']),
    ("integer[]", [[], [1, None, -3]]),
    ("text[]", [["a", None, 'q"\\{},', "NULL"]]),
    ("numeric[]", [[Decimal("1.50"), None]]),
    ("timestamptz[]", [[dt.datetime(2024, 1, 2, tzinfo=UTC)]]),
    ("jsonb[]", [['{"a": 1}', None]]),
    ("interval[]", [[dt.timedelta(days=1), None]]),
]


async def types(conn):
    for place, (kind, values) in enumerate(TYPES):
        for value in [*values, None]:
            got = await conn.fetchval(f"select $1::{kind}", value)
            assert got == value, (kind, got, value)
        if kind == "oid":
            continue
        # Of its own name for each type: asyncpg keeps statements by their text.
        table = f"aio_{place}"
        await conn.execute(f"create table {table} (id integer primary key, v {kind})")
        rows = list(enumerate([*values, None]))
        await conn.executemany(f"insert into {table} values ($1, $2)", rows)
        assert [tuple(row) for row in await conn.fetch(f"select * from {table} order by id")] == rows, kind
        await conn.execute(f"delete from {table}")
        await conn.copy_records_to_table(table, records=rows)
        assert [tuple(row) for row in await conn.fetch(f"select * from {table} order by id")] == rows, kind
        await conn.execute(f"drop table {table}")


async def statements(conn):
    await conn.execute("create table aio (id integer primary key, name text not null, at timestamptz)")
    statement = await conn.prepare("insert into aio (id, name) values ($1, $2) returning id, name")
    assert [p.name for p in statement.get_parameters()] == ["int4", "text"]
    assert [(a.name, a.type.name) for a in statement.get_attributes()] == [("id", "int4"), ("name", "text")]
    for number in range(20):
        assert tuple(await statement.fetchrow(number, f"n{number}")) == (number, f"n{number}")
    assert await conn.execute("insert into aio values (100, 'x'), (101, 'y')") == "INSERT 0 2"
    assert await conn.execute("delete from aio where id >= 100") == "DELETE 2"
    assert await conn.execute("update aio set name = name || '!' where id < 5") == "UPDATE 5"
    for wrong, state in [
        ("insert into aio values (1, 'x')", asyncpg.UniqueViolationError),
        ("insert into aio values (99, null)", asyncpg.NotNullViolationError),
        ("select * from aio_nowhere", asyncpg.UndefinedTableError),
        ("select 1/0", asyncpg.DivisionByZeroError),
        ("selec", asyncpg.PostgresSyntaxError),
    ]:
        try:
            await conn.fetch(wrong)
        except state:
            pass
        else:
            raise AssertionError(wrong)
    try:
        await conn.fetchval("select $1::integer", "no number")
        raise AssertionError("a text where a number is meant")
    except asyncpg.DataError:
        pass
    assert await conn.fetchval("select count(*) from aio where id = any($1::int[])", [1, 2, 500]) == 2


async def transactions(conn):
    async with conn.transaction():
        await conn.execute("update aio set name = 'kept' where id = 1")
        try:
            async with conn.transaction():
                await conn.execute("delete from aio")
                raise ValueError
        except ValueError:
            pass
        assert await conn.fetchval("select count(*) from aio") == 20
    for level in ("read_committed", "repeatable_read"):
        async with conn.transaction(isolation=level, readonly=True):
            try:
                async with conn.transaction():
                    await conn.execute("delete from aio")
                raise AssertionError("a write in a transaction that only reads")
            except asyncpg.ReadOnlySQLTransactionError:
                pass
            assert await conn.fetchval("select count(*) from aio") == 20


async def cursors(conn):
    async with conn.transaction():
        seen = 0
        async for row in conn.cursor("select g from generate_series(1, 5000) g order by g", prefetch=99):
            seen += 1
            assert row["g"] == seen
        assert seen == 5000
        cursor = await conn.cursor("select g from generate_series(1, 100) g order by g")
        assert await cursor.forward(10) == 10
        assert (await cursor.fetchrow())["g"] == 11
        assert [r["g"] for r in await cursor.fetch(3)] == [12, 13, 14]


async def copies(conn, folder):
    path = os.path.join(folder, "aio.csv")
    assert await conn.copy_from_table("aio", columns=["id", "name"], output=path, format="csv") == "COPY 20"
    await conn.execute("truncate aio")
    assert await conn.copy_to_table("aio", columns=["id", "name"], source=path, format="csv") == "COPY 20"
    assert await conn.copy_from_query("select id from aio where id < $1", 3, output=path) == "COPY 3"
    path = os.path.join(folder, "aio.bin")
    assert await conn.copy_from_table("aio", output=path, format="binary") == "COPY 20"
    await conn.execute("truncate aio")
    assert await conn.copy_to_table("aio", source=path, format="binary") == "COPY 20"
    assert await conn.fetchval("select name from aio where id = 1") == "kept"


async def notifications(conn):
    heard = asyncio.Queue()
    listener = await asyncpg.connect(DSN)
    await listener.add_listener("aio_news", lambda _conn, pid, channel, text: heard.put_nowait((pid, channel, text)))
    await conn.execute("select pg_notify('aio_news', $1)", "hello")
    assert await asyncio.wait_for(heard.get(), 10) == (conn.get_server_pid(), "aio_news", "hello")
    await listener.close()


async def timeouts(conn):
    try:
        await conn.fetchval("select count(*) from generate_series(1, 9000000) a, generate_series(1, 9000000) b", timeout=0.3)
        raise AssertionError("an endless query ends")
    except asyncio.TimeoutError:
        pass
    assert await conn.fetchval("select 1") == 1


async def pools():
    async with asyncpg.create_pool(DSN, min_size=2, max_size=4) as pool:
        got = await asyncio.gather(*(pool.fetchval("select $1::int", n) for n in range(40)))
        assert got == list(range(40))


async def main():
    import tempfile

    conn = await asyncpg.connect(DSN)
    assert conn.get_server_version().major >= 15
    await types(conn)
    await statements(conn)
    await transactions(conn)
    await cursors(conn)
    with tempfile.TemporaryDirectory() as folder:
        await copies(conn, folder)
    await notifications(conn)
    await timeouts(conn)
    await conn.execute("drop table aio")
    await conn.reset()
    await conn.close()
    await pools()


asyncio.run(main())
