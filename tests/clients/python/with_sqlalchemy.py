"""SQLAlchemy 2: tables made from metadata, reflected again; the ORM; all of its three drivers.

Environment: DSN.
"""

import datetime as dt
import os
import uuid
from decimal import Decimal

import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.dialects import postgresql as pg

DSN = os.environ["DSN"].split("://", 1)[1]

metadata = sa.MetaData()
parent = sa.Table(
    "alchemy_parent",
    metadata,
    sa.Column("id", sa.Integer, sa.Identity(), primary_key=True),
    sa.Column("name", sa.String(40), nullable=False, unique=True),
    sa.Column("price", sa.Numeric(10, 2), server_default=sa.text("9.99")),
    sa.Column("made", sa.DateTime(timezone=True)),
    sa.Column("born", sa.Date),
    sa.Column("data", pg.JSONB),
    sa.Column("tags", pg.ARRAY(sa.Text)),
    sa.Column("token", sa.Uuid),
    sa.Column("raw", sa.LargeBinary),
    sa.Column("ratio", sa.Double),
    sa.Column("open", sa.Boolean, server_default=sa.true()),
    sa.CheckConstraint("price >= 0", name="alchemy_parent_price"),
    comment="what is sold",
)
child = sa.Table(
    "alchemy_child",
    metadata,
    sa.Column("a", sa.Integer, primary_key=True),
    sa.Column("b", sa.BigInteger, primary_key=True),
    sa.Column("parent_id", sa.ForeignKey("alchemy_parent.id", ondelete="CASCADE"), comment="whose"),
    sa.Index("alchemy_child_parent", "parent_id"),
)


def reflection(engine):
    inspector = sa.inspect(engine)
    assert inspector.default_schema_name == "public"
    assert {"alchemy_parent", "alchemy_child"} <= set(inspector.get_table_names())
    assert "public" in inspector.get_schema_names()
    assert inspector.has_table("alchemy_parent") and not inspector.has_table("alchemy_nobody")
    columns = {column["name"]: column for column in inspector.get_columns("alchemy_parent")}
    kinds = {name: type(column["type"]) for name, column in columns.items()}
    assert kinds == {
        "id": sa.INTEGER, "name": sa.VARCHAR, "price": sa.NUMERIC, "made": pg.TIMESTAMP, "born": sa.DATE,
        "data": pg.JSONB, "tags": pg.ARRAY, "token": sa.UUID, "raw": pg.BYTEA,
        "ratio": sa.DOUBLE_PRECISION, "open": sa.BOOLEAN,
    }, kinds
    assert columns["name"]["type"].length == 40 and not columns["name"]["nullable"]
    assert (columns["price"]["type"].precision, columns["price"]["type"].scale) == (10, 2)
    assert columns["price"]["default"] == "9.99" and columns["made"]["type"].timezone
    assert columns["id"]["identity"]["start"] == 1 and not columns["id"]["identity"]["always"]
    assert inspector.get_pk_constraint("alchemy_child") == {
        "constrained_columns": ["a", "b"], "name": "alchemy_child_pkey", "comment": None, "dialect_options": {"postgresql_include": []},
    } or inspector.get_pk_constraint("alchemy_child")["constrained_columns"] == ["a", "b"]
    (key,) = inspector.get_foreign_keys("alchemy_child")
    assert key["referred_table"] == "alchemy_parent" and key["options"] == {"ondelete": "CASCADE"}, key
    (unique,) = inspector.get_unique_constraints("alchemy_parent")
    assert unique["column_names"] == ["name"]
    (rule,) = inspector.get_check_constraints("alchemy_parent")
    assert rule["name"] == "alchemy_parent_price" and "price >=" in rule["sqltext"], rule
    indexes = {index["name"]: index for index in inspector.get_indexes("alchemy_child")}
    assert indexes["alchemy_child_parent"]["column_names"] == ["parent_id"]
    assert not indexes["alchemy_child_parent"]["unique"]
    assert inspector.get_table_comment("alchemy_parent") == {"text": "what is sold"}
    reflected = sa.MetaData()
    reflected.reflect(engine, only=["alchemy_child"])
    # The foreign key has brought the parent.
    assert set(reflected.tables) == {"alchemy_child", "alchemy_parent"}
    assert reflected.tables["alchemy_child"].c.parent_id.comment == "whose"
    (reference,) = reflected.tables["alchemy_child"].c.parent_id.foreign_keys
    assert reference.column is reflected.tables["alchemy_parent"].c.id
    with engine.begin() as conn:
        conn.exec_driver_sql("create view alchemy_view as select id, name from alchemy_parent")
        conn.exec_driver_sql("create materialized view alchemy_sums as select name, price from alchemy_parent")
    inspector = sa.inspect(engine)
    assert "alchemy_view" in inspector.get_view_names()
    assert "alchemy_sums" in inspector.get_materialized_view_names()
    assert "alchemy_parent" in inspector.get_view_definition("alchemy_view")
    assert [c["name"] for c in inspector.get_columns("alchemy_sums")] == ["name", "price"]
    assert inspector.get_sequence_names() == ["alchemy_parent_id_seq"], inspector.get_sequence_names()
    assert inspector.get_enums() == []
    with engine.begin() as conn:
        conn.exec_driver_sql("drop view alchemy_view")
        conn.exec_driver_sql("drop materialized view alchemy_sums")


def rows(engine):
    values = {
        "name": "cup", "price": Decimal("4.50"), "made": dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.timezone.utc),
        "born": dt.date(2020, 2, 29), "data": {"a": [1, None]}, "tags": ["x", "y\"z"], "token": uuid.UUID(int=5),
        "raw": b"\x00\xff", "ratio": 0.1, "open": False,
    }
    with engine.begin() as conn:
        (key,) = conn.execute(sa.insert(parent).returning(parent.c.id), values).one()
        row = conn.execute(sa.select(parent).where(parent.c.id == key)).mappings().one()
        assert {name: row[name] for name in values} == values, dict(row)
        conn.execute(sa.insert(parent), [{"name": f"n{n}", "price": n} for n in range(250)])
        conn.execute(sa.insert(child), [{"a": n, "b": n * 2**33, "parent_id": key} for n in range(5)])
    with engine.connect() as conn:
        assert conn.scalar(sa.select(sa.func.count()).select_from(parent)) == 251
        found = conn.scalars(sa.select(parent.c.name).where(parent.c.name.in_(["n1", "n3", "no"])).order_by(parent.c.name))
        assert found.all() == ["n1", "n3"]
        joined = sa.select(sa.func.count()).select_from(parent.join(child))
        assert conn.scalar(joined) == 5
        stream = conn.execute(sa.select(parent.c.id), execution_options={"yield_per": 50})
        assert sum(1 for _ in stream) == 251
        conn.rollback()
        upsert = pg.insert(parent).values(name="cup", price=7)
        upsert = upsert.on_conflict_do_update(index_elements=["name"], set_={"price": upsert.excluded.price})
        conn.execute(upsert)
        assert conn.scalar(sa.select(parent.c.price).where(parent.c.name == "cup")) == Decimal("7.00")
        conn.rollback()
        assert conn.scalar(sa.select(parent.c.price).where(parent.c.name == "cup")) == Decimal("4.50")
    try:
        with engine.begin() as conn:
            conn.execute(sa.insert(parent), {"name": "cup"})
        raise AssertionError("a name twice")
    except sa.exc.IntegrityError:
        pass


def objects(engine):
    registry = orm.registry(metadata=metadata)

    class Parent:
        pass

    class Child:
        pass

    registry.map_imperatively(Parent, parent, properties={"children": orm.relationship(Child, order_by=child.c.a, passive_deletes="all")})
    registry.map_imperatively(Child, child)
    with orm.Session(engine) as session:
        cup = session.scalars(sa.select(Parent).where(parent.c.name == "cup").options(orm.selectinload(Parent.children))).one()
        assert [c.a for c in cup.children] == [0, 1, 2, 3, 4]
        cup.price = Decimal("8.25")
        with session.begin_nested():
            fresh = Parent()
            fresh.name = "fresh"
            session.add(fresh)
        assert fresh.id and fresh.price == Decimal("9.99")
        session.delete(cup)
        session.commit()
        assert session.scalar(sa.select(sa.func.count()).select_from(child)) == 0
    registry.dispose()


def main():
    for driver in ("psycopg", "psycopg2"):
        engine = sa.create_engine(f"postgresql+{driver}://{DSN}")
        metadata.drop_all(engine)
        metadata.create_all(engine)
        reflection(engine)
        rows(engine)
        objects(engine)
        metadata.drop_all(engine)
        engine.dispose()


main()
