"""Asks two servers each query of a file, and groups the answers that differ by kind.

    compare.py expressions.sql "PostgreSQL's DSN" "Stillframe's DSN" [--all] [--record]

An answer is the column's type and text, or the SQLSTATE. --all shows every difference instead of three
of a kind. --record writes some of each kind, of those that are equal, to
sql/src/functions/generated.tsv, where the unit tests ask them again.
"""

import os
import re
import sys
from collections import defaultdict

import psycopg


class Text(psycopg.adapt.Loader):
    def load(self, data):
        return bytes(data).decode()


def connect(dsn):
    server = psycopg.connect(dsn, autocommit=True)
    server.execute("set timezone = 'UTC'")
    for oid in range(16, 6000):
        server.adapters.register_loader(oid, Text)
    return server


def ask(server, query):
    try:
        cursor = server.execute(query.encode())
        column = cursor.description[0]
        rows = sorted(str(row) for row in cursor.fetchall()) if cursor.rownumber is not None else []
        return ("is", column.type_code, "; ".join(rows))
    except psycopg.Error as error:
        if server.closed:
            raise
        return ("error", error.sqlstate, str(error).split("\n")[0])


def kind_of(query, theirs, ours):
    """What was asked and how the answers differ, without the values."""
    asked = re.sub(r"^select ", "", query)
    call = re.match(r'\(?"?([a-z_0-9]+)"?\(', asked)
    bare = re.sub(r"E?'(?:[^']|'')*'", "_", asked)
    what = call.group(1) + "()" if call else bare
    if ours[0] == "error" and theirs[0] == "is":
        how = f"{ours[1]}: {re.sub(chr(34) + '.*' + chr(34), '_', ours[2])}" if ours[1] in ("0A000", "42883", "42601", "XX000") else ours[1]
    elif ours[0] == "is" and theirs[0] == "error":
        how = f"answers instead of {theirs[1]}"
    elif ours[0] == "error":
        how = f"{ours[1]} instead of {theirs[1]}"
    elif ours[1] != theirs[1]:
        how = f"type {ours[1]} instead of {theirs[1]}"
    else:
        how = "another value"
    return what, how


UNRECORDED = r"""variadic|similar |symmetric| from |now\(|current_|local|unnest|generate_|=>|regclass|0x|
U&|age\(('[^']*'|null)::\w+\)$""".replace("\n", "")
RECORDED_MAX = {"function": 8, "other": 4}


def recorded(server, queries):
    """The lines of the tests' file: the query, its type and text, or its SQLSTATE."""
    counts = defaultdict(int)
    for query, theirs, columns in queries:
        what, _ = kind_of(query, theirs, theirs)
        what = re.sub(r"null::", "_::", what) + ("" if theirs[0] == "is" else theirs[1])
        counts[what] += 1
        limit = RECORDED_MAX["function" if "()" in what else "other"]
        # What depends on the day, and what only the server's parser or one of its statements can say, isn't
        # asked there.
        if counts[what] > limit or columns != 1 or re.search(UNRECORDED, query):
            continue
        if theirs[0] == "error":
            yield f"{query}\t{theirs[1]}"
            continue
        row = server.execute(f"select pg_typeof(q.v)::text, q.v::text from ({query}) q(v)").fetchone()
        if row is None:
            continue
        kind, text = row
        if kind == "boolean" and text is not None:
            text = text[0]
        line = f"{query}\t{kind}\t{'NULL' if text is None else text}"
        if "\n" not in line and line.count("\t") == 2 and not kind.startswith(("character", "bpchar", "\"")):
            yield line


def main():
    arguments = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    shown_max = 10**9 if "--all" in sys.argv else 3
    postgresql, stillframe = connect(arguments[1]), connect(arguments[2])
    kinds, count, same = defaultdict(list), 0, []
    for line in open(arguments[0]):
        query = line.strip()
        if not query or query.startswith("--"):
            continue
        count += 1
        theirs, ours = ask(postgresql, query), ask(stillframe, query)
        columns = theirs[2].split(")")[0].count("',") or 1 if theirs[0] == "is" else 1
        is_same = theirs[:2] == ours[:2] if theirs[0] == ours[0] == "error" else theirs == ours
        if is_same:
            same.append((query, theirs, columns))
        else:
            kinds[kind_of(query, theirs, ours)].append((query, theirs, ours))
    for (what, how), found in sorted(kinds.items(), key=lambda kind: -len(kind[1])):
        print(f"## {len(found)} {what}: {how}")
        for query, theirs, ours in found[:shown_max]:
            print(f"{query}\n    PostgreSQL {theirs[1:]}\n    Stillframe {ours[1:]}")
    if "--record" in sys.argv:
        folder = os.path.dirname(os.path.abspath(__file__))
        with open(f"{folder}/../../sql/src/functions/generated.tsv", "w") as file:
            file.writelines(line + "\n" for line in recorded(postgresql, same))
    print(f"{sum(map(len, kinds.values()))} of {count} differ, {len(kinds)} kinds")


if __name__ == "__main__":
    main()
