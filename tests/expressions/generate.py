"""Writes expressions over PostgreSQL's own catalog of operators, functions and casts, one query a line.

    generate.py "host=... user=..." > expressions.sql

Every line is a SELECT of one column. What depends on the moment or the server isn't asked.
"""

import itertools
import sys

import psycopg

from values import MEANT, POLYMORPHIC, SAME, VALUES, to_char_patterns

COMBINATIONS_MAX = 16
TYPES = {
    "smallint": "int2", "integer": "int4", "bigint": "int8", "real": "float4", "double precision": "float8",
    "numeric": "numeric", "text": "text", "character varying": "varchar", "character": "bpchar", "bytea": "bytea",
    "boolean": "bool", "date": "date", "time without time zone": "time", "time with time zone": "timetz",
    "timestamp without time zone": "timestamp", "timestamp with time zone": "timestamptz", "interval": "interval",
    "uuid": "uuid", "json": "json", "jsonb": "jsonb", "integer[]": "int4[]", "text[]": "text[]",
    **{name: name for name in POLYMORPHIC},
}
SKIPPED = r"""^(pg_|ts_|current_|lo_|has_|inet|txid|set_config|setseed|gin|query_to|xml|database_|to_ts|to_reg|nextval|
currval|lastval|version|random|gen_random|now|clock_|statement_|transaction_|timeofday|session_user|getpgusername|
getdatabase|int4inc|int8inc|int8dec|.*range|money|point|array_to_tsvector|.*populate|json_to_rec|jsonb_to_rec|.*_subdiff|
plpgsql|suppress|regclass|numeric_(inc|exp|ln|log|sqrt|div_trunc)|dexp|dlog|dround|dtrunc|textlen|jsonb_path|json.?_each|
like$|notlike$|bpchar$|varchar$|name$|char$|bit$|oid$|interval$|convert|to_ascii|.*larger|.*smaller)""".replace("\n", "")
INTERNAL = r"""^(implementation of|I/O|internal|less-equal|hash|aggregate|less|statistics|sort|btree|support|planner|GIN|
transform|window|join|restriction|oper|larger|smaller|final|inverse)""".replace("\n", "")


def literal(text, kind):
    if text is None:
        return f"null::{kind}"
    quoted = text.replace("'", "''")
    if "\\\\" in quoted or "\n" in quoted:
        return "E'" + quoted.replace("\n", "\\n") + f"'::{kind}"
    return f"'{quoted}'::{kind}"


def concrete(kinds):
    """The signatures that a polymorphic one stands for: all of one element type."""
    if not any(kind in POLYMORPHIC for kind in kinds):
        return [[SAME.get(kind, [kind])[0] for kind in kinds]]
    return [
        [POLYMORPHIC[kind][choice] if kind in POLYMORPHIC else kind for kind in kinds] for choice in (0, 1)
    ]


def values(name, place, kind, kinds):
    meant = MEANT.get((name, place))
    if name == "to_char" and place == 1:
        return to_char_patterns(kinds[0])
    if meant and not (place == 0 and kind not in ("text", "int4", "int8", "float8", "numeric", "text[]", "interval")):
        fitting = [text for text in meant if text is None or fits(text, kind)]
        if fitting:
            return fitting
    return VALUES[kind]


def fits(text, kind):
    if kind in ("int2", "int4", "int8"):
        return text.lstrip("-").isdigit()
    if kind in ("float8", "numeric", "float4"):
        try:
            float(text)
        except ValueError:
            return False
    if kind == "interval":
        return text in VALUES["interval"] + ["15 minutes", "1 day", "1 mon", "0", "-03:30", "02:00"]
    return True


def combinations(name, kinds):
    """Some of all combinations of values, every value of each argument among them, and a NULL at each place."""
    lists = [values(name, place, kind, kinds) for place, kind in enumerate(kinds)]
    everything = list(itertools.product(*lists))
    limit = max(COMBINATIONS_MAX, *(len(texts) for texts in lists)) if lists else 1
    if name == "to_char":
        limit = 120
    if len(everything) <= limit:
        chosen = everything
    else:
        step = len(everything) / limit
        # A step that shares no factor with the lists' lengths meets all of their values.
        chosen = [everything[int(n * step)] for n in range(limit)]
        longest = max(len(texts) for texts in lists)
        chosen += [tuple(texts[n % len(texts)] for texts in lists) for n in range(longest)]
    for place in range(len(kinds)):
        chosen.append(tuple(None if at == place else texts[0] for at, texts in enumerate(lists)))
    return list(dict.fromkeys(chosen))


def functions(server):
    rows = server.execute(
        """select proname, array(select format_type(t, null) from unnest(proargtypes::oid[]) with ordinality u(t, n)
                  order by n), provariadic <> 0, proretset
           from pg_proc p where prokind = 'f' and pronamespace = 'pg_catalog'::regnamespace
               and proname !~ %s and coalesce(obj_description(oid, 'pg_proc'), '') !~ %s and not proretset
               and not exists (select from pg_type y where y.oid = prorettype and typname in ('trigger', 'cstring', 'internal'))
           order by proname, pronargs, oid""",
        [SKIPPED, INTERNAL],
    ).fetchall()
    for name, kinds, is_variadic, returns_set in rows:
        kinds = [kind.strip('"') for kind in kinds]
        if all(kind in TYPES for kind in kinds):
            yield name, [TYPES[kind] for kind in kinds], is_variadic


def operators(server):
    rows = server.execute(
        """select oprname, case when oprleft <> 0 then format_type(oprleft, null) end, format_type(oprright, null)
           from pg_operator where oprnamespace = 'pg_catalog'::regnamespace and oprname !~ '^(~.*~|\\*[<>=].*|@@.*)$'
           order by oprname, oprleft, oprright"""
    ).fetchall()
    for name, left, right in rows:
        left, right = (kind.strip('"') if kind else kind for kind in (left, right))
        if (left is None or left in TYPES) and right in TYPES:
            yield name, TYPES.get(left), TYPES[right]


MODIFIED = [
    "timestamp(0)", "timestamp(3)", "timestamptz(1)", "time(2)", "timetz(0)", "interval(0)", "interval(3)",
    "interval year", "interval month", "interval day", "interval hour", "interval minute", "interval second",
    "interval second(1)", "interval year to month", "interval day to hour", "interval day to minute",
    "interval day to second", "interval day to second(2)", "interval hour to minute", "interval hour to second",
    "interval minute to second", "numeric(5,2)", "numeric(10)", "varchar(2)", "char(2)", "int4[]", "numeric(4,1)[]",
]


def modified_casts():
    for target in MODIFIED:
        source = target.split("(")[0].split(" ")[0].replace("char", "text").replace("vartext", "text")
        if target.endswith("[]"):
            continue
        for text in VALUES[source]:
            yield f"{literal(text, source)}::{target}"
            if source in ("timestamp", "time", "timetz", "timestamptz"):
                yield f"{target} '{text}'"
    for text in ["1", "1 2:03", "1-2", "1:02", "2.5", "1 2:03:04.5678", "-1", "1 day", "P1Y2M3DT4H5M6S", "1 year 2 days ago", "@ 1 min"]:
        for fields in ["", " year", " month", " day", " hour", " minute", " second", " year to month", " day to hour", " day to minute",
                       " day to second", " hour to minute", " hour to second", " minute to second", " second(2)", " day to second(1)"]:
            yield f"interval '{text}'{fields}"


QUOTED = """overlaps char timestamp time interval bit numeric timestamptz normalize extract overlay position
substring""".split()


def groups(server):
    """What is asked of operands of some types: a template, the types and the operands' texts."""
    for name, left, right in operators(server):
        for kinds in concrete([right] if left is None else [left, right]):
            template = f"({name} {{}})" if left is None else f"{{}} {name} {{}}"
            yield template, kinds, combinations(f"operator {name}", kinds)
    for name, kinds, is_variadic in functions(server):
        called = f'"{name}"' if name in QUOTED else name
        for settled in concrete(kinds):
            marks = ["{}"] * len(settled)
            if is_variadic and settled[-1].endswith("[]"):
                marks[-1] = "variadic {}"
            yield f"{called}({', '.join(marks)})", settled, combinations(name, settled)
    for source, target in itertools.product(VALUES, VALUES):
        if source != target:
            yield f"{{}}::{target}", [source], [(text,) for text in VALUES[source] + [None]]


def expressions(server):
    for template, kinds, rows in groups(server):
        for texts in rows:
            yield template.format(*(literal(text, kind) for text, kind in zip(texts, kinds)))
    yield from modified_casts()


def main():
    with psycopg.connect(sys.argv[1], autocommit=True) as server:
        for expression in dict.fromkeys(expressions(server)):
            print("select " + expression)
        with open(__file__.replace("generate.py", "written.sql")) as lines:
            for line in lines:
                if line.strip() and not line.startswith("--"):
                    print(line.strip())


if __name__ == "__main__":
    main()
