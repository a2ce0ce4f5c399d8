"""psycopg 3: every type in text and in binary, both ways; errors, COPY, cursors, pipelines.

Environment: DSN.
"""

import datetime as dt
import json
import os
import uuid
from decimal import Decimal

import psycopg
from psycopg import errors
from psycopg.types.json import Json, Jsonb

DSN = os.environ["DSN"]
UTC = dt.timezone.utc

# A type, and values of it as Python has them.
TYPES = [
    ("boolean", [True, False]),
    ("smallint", [0, -32768, 32767]),
    ("integer", [0, -2147483648, 2147483647]),
    ("bigint", [0, -(2**63), 2**63 - 1]),
    ("real", [0.0, 1.5, -0.25, float("inf")]),
    ("double precision", [0.1, -1e300, 5e-324, float("-inf")]),
    ("numeric", [Decimal("0"), Decimal("-12345.678900"), Decimal(10) ** 50, Decimal("1e-30"), Decimal("NaN")]),
    ("numeric(12,3)", [Decimal("0.000"), Decimal("-123456789.125"), Decimal("10000.000")]),
    ("text", ["", "añ🎉", "it's \\ \"x\"\n\t", "x" * 100_000]),
    ("varchar(20)", ["abc", "  "]),
    ("char(5)", ["abc  ", "     "]),
    ("bytea", [b"", b"\x00\xff\\x", bytes(range(256))]),
    ("date", [dt.date(1, 1, 1), dt.date(2024, 2, 29), dt.date(9999, 12, 31)]),
    ("time", [dt.time(0, 0), dt.time(23, 59, 59, 999999)]),
    ("timestamp", [dt.datetime(1, 1, 1), dt.datetime(1999, 12, 31, 23, 59, 59, 999999), dt.datetime(9999, 12, 31)]),
    ("timestamptz", [dt.datetime(1970, 1, 1, tzinfo=UTC), dt.datetime(2024, 2, 29, 12, 30, 0, 5, tzinfo=UTC)]),
    ("interval", [dt.timedelta(0), dt.timedelta(days=-3, seconds=5, microseconds=7), dt.timedelta(days=400)]),
    ("uuid", [uuid.UUID(int=0), uuid.UUID("c0ffee00-1234-5678-9abc-def012345678")]),
    ("integer[]", [[], [1, None, -3]]),
    ("bigint[]", [[2**40, None]]),
    ("text[]", [["a", None, 'q"\\{},', "", "NULL"]]),
    ("numeric[]", [[Decimal("1.50"), None, Decimal("-7")]]),
    ("boolean[]", [[True, False, None]]),
    ("double precision[]", [[0.5, -1.0]]),
    ("date[]", [[dt.date(2024, 1, 2), None]]),
    ("timestamp[]", [[dt.datetime(2024, 1, 2, 3, 4, 5, 6)]]),
    ("timestamptz[]", [[dt.datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=UTC)]]),
    ("uuid[]", [[uuid.UUID(int=7)]]),
    ("bytea[]", [[b"\x00\x01", b""]]),
]
DOCUMENTS = [None, True, 1.5, "añ\"\\", [1, [2], {}], {"a": {"b": [None, False]}, "": "x"}]


def same(got, want):
    """Equality, where NaN is itself."""
    if isinstance(want, (float, Decimal)) and want != want:
        return got != got
    return got == want and type(got) is type(want)


def check(got, want, what):
    assert same(got, want), f"{what}: {got!r} instead of {want!r}"


def types(conn, binary):
    """Every type through an expression and through a table, by parameters and by what is read."""
    marker = "%b" if binary else "%t"
    # The table of one name has another type every time.
    conn.prepare_threshold = None
    for kind, values in TYPES:
        cur = conn.cursor(binary=binary)
        for value in values:
            got = cur.execute(f"select {marker}::{kind}", [value]).fetchone()[0]
            check(got, value, f"{kind} as a parameter, binary={binary}")
        assert cur.execute(f"select {marker}::{kind}", [None]).fetchone() == (None,), kind
        conn.execute("drop table if exists every_type")
        conn.execute(f"create table every_type (id integer primary key, v {kind})")
        rows = list(enumerate([*values, None]))
        cur.executemany(f"insert into every_type values ({marker}, {marker})", rows)
        got = cur.execute("select id, v from every_type order by id").fetchall()
        for (number, value), row in zip(rows, got, strict=True):
            check(row[0], number, kind)
            check(row[1], value, f"{kind} in a table, binary={binary}")
        # As text the server writes what PostgreSQL writes, which psycopg reads again as the same.
        text = conn.cursor(binary=False).execute("select v from every_type order by id").fetchall()
        for (_, value), row in zip(rows, text, strict=True):
            check(row[0], value, f"{kind} as text")
    for kind, wrapper in (("json", Json), ("jsonb", Jsonb)):
        for document in DOCUMENTS:
            got = cur.execute(f"select {marker}::{kind}", [wrapper(document)]).fetchone()[0]
            check(got, document, f"{kind}, binary={binary}")
        got = cur.execute(f"select array[{marker}::{kind}, null]", [wrapper({"a": 1})]).fetchone()[0]
        check(got, [{"a": 1}, None], f"{kind}[], binary={binary}")
    conn.execute("drop table every_type")
    conn.prepare_threshold = 5


def prepared(conn):
    """A statement that is prepared on the server from its first execution on."""
    with conn.transaction():
        conn.execute("create table prep (id integer primary key, name text)")
    for number in range(12):
        conn.execute("insert into prep values (%s, %s)", [number, f"n{number}"], prepare=True)
    for number in range(12):
        row = conn.execute("select name from prep where id = %s", [number], prepare=True).fetchone()
        assert row == (f"n{number}",)
    kept = conn.execute("select count(*) from pg_prepared_statements").fetchone()[0]
    assert kept >= 2, kept
    # A type that changes below a prepared statement.
    conn.execute("alter table prep alter column name type varchar(30)")
    try:
        conn.execute("select name from prep where id = %s", [1], prepare=True).fetchone()
    except errors.FeatureNotSupported as error:
        assert "cached plan" in str(error)
    conn.execute("deallocate all")
    conn.execute("drop table prep")


def transactions(conn):
    """Blocks, savepoints, errors by their SQLSTATE."""
    conn.execute("create table tx (id integer primary key, n integer not null check (n >= 0))")
    for wrong, state in [
        ("insert into tx values (1, null)", errors.NotNullViolation),
        ("insert into tx values (1, -1)", errors.CheckViolation),
        ("insert into tx values (1, 'x')", errors.InvalidTextRepresentation),
        ("insert into tx values (1, 3000000000)", errors.NumericValueOutOfRange),
        ("insert into nowhere values (1)", errors.UndefinedTable),
        ("select nothing from tx", errors.UndefinedColumn),
        ("select nothing(1)", errors.UndefinedFunction),
        ("selec 1", errors.SyntaxError),
        ("select 1/0", errors.DivisionByZero),
        ("select count(*) from tx where n", errors.DatatypeMismatch),
        ("create table tx (a int)", errors.DuplicateTable),
    ]:
        try:
            conn.execute(wrong)
        except state as error:
            assert error.diag.message_primary and error.diag.severity == "ERROR", wrong
        else:
            raise AssertionError(f"{wrong} is no error")
    conn.execute("insert into tx values (1, 1)")
    try:
        conn.execute("insert into tx values (1, 2)")
        raise AssertionError("a key twice")
    except errors.UniqueViolation as error:
        diag = error.diag
        assert (diag.schema_name, diag.table_name, diag.constraint_name) == ("public", "tx", "tx_pkey"), (
            diag.schema_name, diag.table_name, diag.constraint_name)
    with conn.transaction():
        conn.execute("insert into tx values (2, 2)")
        try:
            with conn.transaction():
                conn.execute("insert into tx values (3, 3)")
                conn.execute("select 1/0")
        except errors.DivisionByZero:
            pass
        assert conn.execute("select count(*) from tx").fetchone() == (2,)
    with conn.transaction(force_rollback=True):
        conn.execute("delete from tx")
    assert conn.execute("select sum(n) from tx").fetchone() == (3,)
    # A failed block takes nothing but its end.
    with psycopg.connect(DSN) as other:
        try:
            other.execute("select 1/0")
        except errors.DivisionByZero:
            pass
        try:
            other.execute("select 1")
            raise AssertionError("a failed block goes on")
        except errors.InFailedSqlTransaction:
            pass
        other.rollback()
        assert other.execute("select 1").fetchone() == (1,)
    for level in (psycopg.IsolationLevel.READ_COMMITTED, psycopg.IsolationLevel.REPEATABLE_READ):
        with psycopg.connect(DSN) as other:
            other.isolation_level = level
            shown = other.execute("show transaction_isolation").fetchone()[0]
            assert shown == level.name.lower().replace("_", " "), shown
    conn.execute("drop table tx")


def copies(conn):
    """COPY in text, csv and binary, both ways."""
    conn.execute("create table cp (id integer primary key, t text, n numeric(10,2), ts timestamptz, a integer[])")
    rows = [
        (1, "a\tb\\n\n", Decimal("1.50"), dt.datetime(2024, 5, 6, 7, 8, 9, 10, tzinfo=UTC), [1, None]),
        (2, None, None, None, None),
        (3, "", Decimal("-0.01"), dt.datetime(1960, 1, 1, tzinfo=UTC), []),
    ]
    kinds = ["int4", "text", "numeric", "timestamptz", "int4[]"]
    for form in ("text", "binary"):
        conn.execute("delete from cp")
        with conn.cursor().copy(f"copy cp from stdin (format {form})") as copy:
            if form == "binary":
                copy.set_types(kinds)
            for row in rows:
                copy.write_row(row)
        assert conn.execute("select * from cp order by id").fetchall() == rows, form
        with conn.cursor().copy(f"copy (select * from cp order by id) to stdout (format {form})") as copy:
            copy.set_types(kinds)
            assert list(copy.rows()) == rows, form
    with conn.cursor().copy("copy (select id, t from cp order by id) to stdout (format csv, header)") as copy:
        text = b"".join(copy).decode()
    assert text == 'id,t\n1,"a\tb\\n\n"\n2,\n3,""\n', text
    try:
        with conn.cursor().copy("copy cp (id) from stdin") as copy:
            copy.write("4\n4\n")
        raise AssertionError("a key twice")
    except errors.UniqueViolation:
        pass
    try:
        with conn.cursor().copy("copy cp (id) from stdin") as copy:
            copy.write("9\n")
            raise ValueError("given up")
    except ValueError:
        pass
    assert conn.execute("select count(*) from cp").fetchone() == (3,)
    conn.execute("drop table cp")


def cursors(conn):
    """Rows that come as they are asked for: server-side cursors, streams, single rows."""
    conn.execute("create table big (id integer primary key, v text)")
    with conn.cursor().copy("copy big from stdin") as copy:
        for number in range(20_000):
            copy.write_row((number, f"value {number}"))
    with conn.transaction():
        with conn.cursor(name="rows", binary=True) as cur:
            cur.itersize = 777
            cur.execute("select id, v from big order by id")
            assert sum(row[0] for row in cur) == sum(range(20_000))
        with conn.cursor(name="moves", scrollable=True) as cur:
            cur.execute("select id from big order by id")
            assert cur.fetchmany(3) == [(0,), (1,), (2,)]
            cur.scroll(100)
            assert cur.fetchone() == (103,)
            cur.scroll(0, mode="absolute")
            assert cur.fetchone() == (0,)
    seen = 0
    for row in conn.cursor().stream("select id from big order by id"):
        assert row == (seen,)
        seen += 1
    assert seen == 20_000
    # One that is left early.
    cur = conn.cursor()
    for row in cur.stream("select id from big order by id"):
        break
    assert conn.execute("select 1").fetchone() == (1,)
    conn.execute("drop table big")


def pipelines(conn):
    """Many statements before the first answer; after an error nothing up to the next sync."""
    conn.execute("create table pipe (id integer primary key)")
    with conn.pipeline():
        for number in range(500):
            conn.execute("insert into pipe values (%s)", [number])
        count = conn.execute("select count(*) from pipe")
    assert count.fetchone() == (500,)
    try:
        with conn.pipeline() as pipe:
            conn.execute("insert into pipe values (1000)")
            pipe.sync()
            conn.execute("insert into pipe values (1001)")
            conn.execute("insert into pipe values (1)")
            conn.execute("insert into pipe values (1002)")
        raise AssertionError("a key twice")
    except errors.UniqueViolation:
        pass
    got = conn.execute("select id from pipe where id >= 1000 order by id").fetchall()
    assert got == [(1000,)], got
    conn.execute("drop table pipe")


def notices(conn):
    """What is told beside answers."""
    told = []
    conn.add_notice_handler(lambda diag: told.append((diag.severity, diag.sqlstate)))
    conn.execute("drop table if exists nothing_of_this_name")
    conn.execute("commit")
    conn.execute("begin")
    conn.execute("begin")
    conn.execute("rollback")
    conn.execute("rollback")
    assert told == [("NOTICE", "00000"), ("WARNING", "25P01"), ("WARNING", "25001"), ("WARNING", "25P01")], told
    heard = []
    with psycopg.connect(DSN, autocommit=True) as listener:
        listener.execute("listen news")
        with conn.transaction():
            conn.execute("notify news, 'one'")
            conn.execute("select pg_notify('news', 'two')")
            assert list(listener.notifies(timeout=0.2, stop_after=1)) == []
        for notice in listener.notifies(timeout=10, stop_after=2):
            heard.append((notice.channel, notice.payload, notice.pid))
    assert heard == [("news", "one", conn.info.backend_pid), ("news", "two", conn.info.backend_pid)], heard


def cancels(conn):
    """A statement that is cancelled, and one that takes too long."""
    import threading

    timer = threading.Timer(0.3, conn.cancel_safe)
    timer.start()
    try:
        conn.execute("select count(*) from generate_series(1, 9000000) a, generate_series(1, 9000000) b")
        raise AssertionError("an endless query ends")
    except errors.QueryCanceled:
        pass
    timer.join()
    conn.execute("set statement_timeout = '200ms'")
    try:
        conn.execute("select count(*) from generate_series(1, 9000000) a, generate_series(1, 9000000) b")
        raise AssertionError("an endless query ends")
    except errors.QueryCanceled as error:
        assert "timeout" in str(error)
    conn.execute("reset statement_timeout")


def main():
    with psycopg.connect(DSN, autocommit=True) as conn:
        info = conn.info
        assert info.server_version >= 150000 and info.encoding == "utf-8" and info.timezone
        assert info.parameter_status("integer_datetimes") == "on"
        for binary in (False, True):
            types(conn, binary)
        for act in (prepared, transactions, copies, cursors, pipelines, notices, cancels):
            act(conn)
        assert json.loads(conn.execute("select to_json(array[1,2])::text").fetchone()[0]) == [1, 2]


main()
