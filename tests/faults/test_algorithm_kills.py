"""Killed while an algorithm asks: it goes on at the last csn that it published, and shows no other rows meanwhile."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.faults import tasks
from tests.faults.crew import Crew, Place
from tests.sizes import FULL
from tests.spark.oracle.warehouses import fresh

from rollview.catalog import Part
from rollview.sources import SourceSettings, TableSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rollview.warehouse import Warehouse

QUIET = ("eca", "strobe", "t-strobe", "g-strobe")
STEPS = ("ask.answered", "propagate.computed", "propagate.logged", "propagate.published")
MORE = ("ask.answered:2", "ask.answered:3", "ask.answered:4")
"""Who publishes every csn asks once for each."""
COMPLETE = dict.fromkeys(("c-strobe", "c-tstrobe"), (*STEPS, *MORE))
BY_QUERIES = dict.fromkeys(("propagate", "rolling"), (*STEPS, *MORE[:2]))
"""Two tables that nobody writes to meanwhile are three queries."""
POINTS = {**dict.fromkeys(QUIET, STEPS), **COMPLETE, **BY_QUERIES, "sweep": (*STEPS, MORE[0])}
EACH = [(name, step) for name, steps in POINTS.items() for step in steps]
PART = [("sweep", "ask.answered:2"), ("t-strobe", "ask.answered"), ("c-tstrobe", "ask.answered:3")]
KILLS = sorted(EACH * 12) if FULL else PART
"""12 times 47 are 564 kills. One algorithm after the other, so that no view falls far behind."""
ORDERS = 24


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Place:
    root = tmp_path_factory.mktemp("asking")
    with closing(sqlite3.connect(root / "shop.db")) as shop:
        shop.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, amount INTEGER)")
        shop.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, state TEXT)")
        shop.execute("INSERT INTO customers VALUES (0, 'CA'), (1, 'WI'), (2, 'NY')")
        shop.commit()
    with fresh(spark, root / "w") as warehouse:
        tables = tuple(TableSettings(name, name, needed=True, asked=True) for name in ("orders", "customers"))
        often = {"asks_per_minute": "1000000"}
        settings = SourceSettings("sqlite", str(root / "shop.db"), tables, options=often)
        warehouse.add_source("shop", settings, declared=[_view(KILLS[0][0])])
    return Place(root / "w")


def _view(algorithm: str) -> str:
    return f"""CREATE MATERIALIZED VIEW {_name(algorithm)} TBLPROPERTIES ('rollview.algorithm' = '{algorithm}')
        AS SELECT o.id, o.amount, c.id AS customer, c.state FROM orders o JOIN customers c ON o.customer = c.id"""


def _name(algorithm: str) -> str:
    return f"by_{algorithm.replace('-', '_')}"


@pytest.fixture
def shop(place: Place) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(Path(place.root).parent / "shop.db", isolation_level=None)) as shop:
        yield shop


@pytest.mark.parametrize("number", range(len(KILLS)), ids=lambda number: f"{number}-{'-'.join(KILLS[number])}")
def test_killed_while_it_asks(
    place: Place, shop: sqlite3.Connection, crew: Crew, spark: SparkSession, number: int
) -> None:
    algorithm, step = KILLS[number]
    view = _name(algorithm)
    with place.open(spark) as warehouse:
        if warehouse.snapshot().find(view) is None:
            warehouse.create_view(_view(algorithm))
        for key in range(number * 4, number * 4 + 4):
            shop.execute(f"DELETE FROM orders WHERE id = {key - ORDERS}")
            shop.execute(f"INSERT INTO orders VALUES ({key}, {key % 3}, {key})")
            shop.execute(f"UPDATE customers SET state = 'S{key}' WHERE id = {(key + 1) % 3}")
            warehouse.capture()
        before = _read(warehouse, view)
    ended = crew.run(place, tasks.refresh_one, view, fault=step)
    assert ended.killed, ended
    rows = shop.execute("SELECT o.id, o.amount, c.id, c.state FROM orders o JOIN customers c ON o.customer = c.id")
    expected = Counter(rows.fetchall())
    with place.open(spark) as warehouse:
        assert _read(warehouse, view) in (before, expected)
        warehouse.refresh([view])
        assert warehouse.catalog.steps(status="running") == ()
        newest = warehouse.snapshot()
        assert newest.get(view).pins[Part.DELTA].through == newest.moment.csn
        assert _read(warehouse, view) == expected


def _read(warehouse: Warehouse, view: str) -> Counter[tuple[object, ...]]:
    return Counter(map(tuple, warehouse.read(view).collect()))
