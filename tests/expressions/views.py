"""Asks a materialized view what compare.py asks of queries: the same expressions over columns.

    views.py "PostgreSQL's DSN" "Stillframe's DSN" [PART/PARTS]

For each signature a table with the operands as columns gets a view, then its rows, loses some and gets
them again; what the view has must be what PostgreSQL computes. Rows that are errors stay out.
"""

import sys

import psycopg

from compare import connect
from generate import groups, literal


def answers(server, template, kinds, rows):
    """PostgreSQL's answer to each row that is no error."""
    found = {}
    for number, texts in enumerate(rows):
        expression = template.format(*(literal(text, kind) for text, kind in zip(texts, kinds)))
        try:
            found[number] = server.execute(f"select ({expression})::text".encode()).fetchone()[0]
        except psycopg.Error:
            pass
    return found


def ask(server, number, template, kinds, rows, expected):
    """What is wrong with a view of an expression, if anything."""
    table, view = f"expr_{number}", f"expr_{number}_v"
    columns = ", ".join(f"a{place} {kind}" for place, kind in enumerate(kinds))
    named = template.format(*(f"a{place}" for place in range(len(kinds))))
    insert = lambda numbers: f"insert into {table} values " + ", ".join(
        f"({n}, {', '.join(literal(text, kind) for text, kind in zip(rows[n], kinds))})" for n in numbers
    )
    try:
        server.execute(f"drop table if exists {table} cascade")
        server.execute(f"create table {table} (k integer primary key, {columns})")
        server.execute(f"create materialized view {view} as select k, ({named})::text as v from {table}".encode())
        server.execute(insert(expected).encode())
        half = [n for n in expected if n % 2]
        if half:
            server.execute(f"delete from {table} where k in ({', '.join(map(str, half))})")
            server.execute(insert(half).encode())
        got = dict((int(k), v) for k, v in server.execute(f"select k, v from {view}").fetchall())
        wrong = [n for n in expected if got.get(n, "no row") != expected[n]]
        if wrong:
            return f"{len(wrong)} rows, as {rows[wrong[0]]}: {got.get(wrong[0], 'no row')!r} instead of {expected[wrong[0]]!r}"
    except psycopg.Error as error:
        return f"{error.sqlstate} {str(error).splitlines()[0]}"
    finally:
        server.execute(f"drop table if exists {table} cascade")
    return None


def main():
    postgresql, stillframe = connect(sys.argv[1]), connect(sys.argv[2])
    part, parts = map(int, sys.argv[3].split("/")) if len(sys.argv) > 3 else (0, 1)
    count = wrong = 0
    for number, (template, kinds, rows) in enumerate(groups(postgresql)):
        if number % parts != part or not kinds:
            continue
        expected = answers(postgresql, template, kinds, rows)
        if not expected:
            continue
        count += 1
        fault = ask(stillframe, number, template, kinds, rows, expected)
        if fault:
            wrong += 1
            print(f"{template} of {', '.join(kinds)}: {fault}", flush=True)
    print(f"{wrong} of {count} views differ")


if __name__ == "__main__":
    main()
