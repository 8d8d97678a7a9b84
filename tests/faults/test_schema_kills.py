"""Killed on the way of a schema change, at a source or here: the next command goes on, and every csn is what it was."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.faults import tasks
from tests.faults.crew import Crew, Place
from tests.sizes import FULL
from tests.spark.oracle.warehouses import assert_verified, fresh

from rollview.sources import SourceSettings, TableSettings
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CAPTURED = ("capture.computed", "capture.logged", "capture.published")
FOLLOWED = ("follow.written", *CAPTURED, "propagate.computed", "propagate.logged", "apply.logged")
ADAPTED = tuple(f"adapt.{step}" for step in ("begun", "computed", "first_logged", "logged", "published"))
EACH = (
    *(("rename", step) for step in FOLLOWED),
    *(("add", step) for step in FOLLOWED),
    *(("anew", step) for step in ("follow.written", "widen.opened", "widen.declared", *CAPTURED)),
    ("gone", "follow.written"),
    *(("alter", step) for step in ADAPTED),
    *(("decide", step) for step in ADAPTED),
)
"""What is done, and where it is killed."""
FEW = (
    ("rename", "follow.written"),
    ("anew", "widen.declared"),
    ("gone", "follow.written"),
    ("alter", "adapt.logged"),
)
KILLS = EACH * 7 if FULL else FEW


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Place:
    root = tmp_path_factory.mktemp("schemas")
    with closing(sqlite3.connect(root / "shop.db")) as shop:
        shop.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, amount INTEGER, state TEXT)")
        shop.execute("CREATE TABLE other (id INTEGER PRIMARY KEY)")
    with fresh(spark, root / "w") as warehouse:
        tables = (TableSettings("orders", "orders"), TableSettings("other", "other"))
        warehouse.add_source("shop", SourceSettings("sqlite", str(root / "shop.db"), tables))
        warehouse.sql("CREATE TABLE note (k BIGINT)", "INSERT INTO note VALUES (1)")
        immediate = "TBLPROPERTIES ('rollview.policy' = 'immediate')"
        warehouse.create_view(
            f"CREATE MATERIALIZED VIEW totals {immediate} AS SELECT state, SUM(amount) AS s FROM orders GROUP BY state"
        )
        warehouse.create_view("CREATE MATERIALIZED VIEW listed AS SELECT id, state, amount FROM orders")
    return Place(root / "w")


@pytest.fixture
def shop(place: Place) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(Path(place.root).parent / "shop.db", isolation_level=None)) as shop:
        yield shop


def columns_of(shop: sqlite3.Connection) -> list[str]:
    return [row[1] for row in shop.execute("PRAGMA table_info(orders)")]


def insert(shop: sqlite3.Connection, number: int) -> None:
    _, amount, state, *_ = columns_of(shop)
    id_ = shop.execute("SELECT coalesce(max(id), 0) + 1 FROM orders").fetchone()[0]
    word = "CA" if number % 2 else "WI"
    shop.execute(f"INSERT INTO orders (id, {amount}, {state}) VALUES (?, ?, ?)", (id_, number, word))


def prepare(shop: sqlite3.Connection, warehouse: Warehouse, operation: str, number: int) -> list[str]:
    """What the killed process finds at the source, or here. Returns the columns that the table had there."""
    names = columns_of(shop)
    if operation == "rename":
        shop.execute(f"ALTER TABLE orders RENAME COLUMN {columns_of(shop)[2]} TO s{number}")
    if operation == "add":
        shop.execute(f"ALTER TABLE orders ADD COLUMN n{number} INTEGER DEFAULT {number}")
    if operation in ("anew", "gone"):
        shop.execute("DROP TABLE orders")
    if operation == "anew":
        make_anew(shop, names)
    if operation in ("rename", "add", "anew"):
        insert(shop, number)
    if operation in ("alter", "decide"):
        asks = ", 'rollview.on_schema_change' = 'ask'" if operation == "decide" else ""
        about = f"('rollview.policy' = 'immediate', 'rollview.dispensable' = 'columns'{asks})"
        warehouse.sql(f"ALTER TABLE note ADD COLUMN c BIGINT DEFAULT {number}")
        warehouse.create_view(f"CREATE MATERIALIZED VIEW kept TBLPROPERTIES {about} AS SELECT k, c FROM note")
        warehouse.refresh()
    return names


def make_anew(shop: sqlite3.Connection, names: list[str]) -> None:
    """A table with the columns in use."""
    id_, amount, state, *_ = names
    shop.execute(f"CREATE TABLE orders ({id_} INTEGER PRIMARY KEY, {amount} INTEGER, {state} TEXT)")
    shop.executemany("INSERT INTO orders VALUES (?, ?, ?)", [(one, one, "CA") for one in range(1, 4)])


DROP = "ALTER TABLE note DROP COLUMN c"
TASKS = {"alter": (tasks.sql, DROP), "decide": (tasks.decide, "kept")}


@pytest.mark.parametrize("number", range(len(KILLS)), ids=lambda number: f"{number}-{'-'.join(KILLS[number])}")
def test_killed_in_a_schema_change(
    place: Place, shop: sqlite3.Connection, crew: Crew, spark: SparkSession, number: int
) -> None:
    operation, step = KILLS[number]
    with place.open(spark) as warehouse:
        names = prepare(shop, warehouse, operation, number)
        first = warehouse.snapshot().moment.csn
        before = seen(warehouse, first)
        if operation == "decide":
            warehouse.sql(DROP)
    task, *arguments = TASKS.get(operation, (tasks.capture_all,))
    ended = crew.run(place, task, *arguments, fault=step)
    assert ended.killed, ended
    with place.open(spark) as warehouse:
        assert seen(warehouse, first) == before, "what was there is there"
        if operation == "gone":
            warehouse.capture()
            assert warehouse.snapshot().get("orders").waits_at == first
            make_anew(shop, names)
        (captured,) = warehouse.capture().sources
        assert captured.problem is None
        warehouse.refresh()
        assert warehouse.catalog.steps(status="running") == ()
        check_orders(shop, warehouse)
        assert seen(warehouse, first) == before
        assert_verified(warehouse)
        if operation in TASKS:
            assert warehouse.read("kept").columns == ["k"]
            assert warehouse.read("kept", as_of=first).columns == ["k", "c"]
            warehouse.drop_view("kept")


def seen(warehouse: Warehouse, csn: int) -> dict[str, Counter[tuple[Any, ...]]]:
    names = [view.name for view in warehouse.snapshot().views()]
    return {name: Counter(map(tuple, warehouse.read(name, as_of=csn).collect())) for name in names}


def check_orders(shop: sqlite3.Connection, warehouse: Warehouse) -> None:
    """Each column is the source's of its name, and the views know it by their own."""
    names = warehouse.snapshot().get("orders").schema.names
    assert sorted(names) == sorted(columns_of(shop))
    expected = Counter(shop.execute(f"SELECT {', '.join(names)} FROM orders").fetchall())
    assert Counter(map(tuple, warehouse.query("SELECT * FROM orders").rows.collect())) == expected
    id_, amount, state, *_ = columns_of(shop)
    listed = Counter(shop.execute(f"SELECT {id_}, {state}, {amount} FROM orders").fetchall())
    assert Counter(map(tuple, warehouse.read("listed").collect())) == listed
