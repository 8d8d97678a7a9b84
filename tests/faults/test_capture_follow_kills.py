"""Killed on the way of a capture that takes views along: units of work and views are there together, or not at all."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.faults import tasks
from tests.faults.crew import Crew, Place
from tests.sizes import FULL
from tests.spark.oracle.warehouses import assert_verified, fresh

from rollview.catalog import Part
from rollview.sources import SourceSettings, TableSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STEPS = (
    "capture.computed",
    "capture.logged",
    "propagate.begun",
    "propagate.computed",
    "propagate.logged",
    "propagate.logged:2",
    "apply.begun",
    "apply.computed",
    "apply.logged",
    "capture.published",
)
KILLS = STEPS * 2 if FULL else ("propagate.logged:2", "capture.published")
VIEWS = {
    "totals": ("immediate", "SELECT state, SUM(amount) AS amount, COUNT(*) AS n FROM orders GROUP BY state"),
    "listed": ("ipda", "SELECT id, state FROM orders"),
}


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Place:
    root = tmp_path_factory.mktemp("following")
    with closing(sqlite3.connect(root / "shop.db")) as shop:
        shop.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT, amount INTEGER)")
        shop.commit()
    with fresh(spark, root / "w") as warehouse:
        tables = (TableSettings("orders", "orders"),)
        warehouse.add_source("shop", SourceSettings("sqlite", str(root / "shop.db"), tables))
        for name, (policy, query) in VIEWS.items():
            properties = f"TBLPROPERTIES ('rollview.policy' = '{policy}')"
            warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} {properties} AS {query}")
    return Place(root / "w")


@pytest.fixture
def shop(place: Place) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(Path(place.root).parent / "shop.db", isolation_level=None)) as shop:
        yield shop


@pytest.mark.parametrize("number", range(len(KILLS)), ids=lambda number: f"{number}-{KILLS[number]}")
def test_killed_in_a_capture_that_views_follow(
    place: Place, shop: sqlite3.Connection, crew: Crew, spark: SparkSession, number: int
) -> None:
    shop.execute(f"INSERT INTO orders VALUES ({number}, '{'CA' if number % 2 else 'WI'}', {number})")
    ended = crew.run(place, tasks.capture_all, fault=KILLS[number])
    assert ended.killed, ended
    _check_together(place)
    with place.open(spark) as warehouse:
        warehouse.capture()
        _check_together(place)
        assert warehouse.catalog.steps(status="running") == ()
        assert sum(row.n for row in warehouse.read("totals").collect()) == number + 1
        assert_verified(warehouse)


def _check_together(place: Place) -> None:
    """Both views are complete up to the newest csn, whatever that is."""
    with place.open(None) as warehouse:
        snapshot = warehouse.snapshot()
        assert {snapshot.get(name).pins[Part.DELTA].through for name in VIEWS} == {snapshot.moment.csn}
        assert snapshot.get("totals").pins[Part.EXTENT].through == snapshot.moment.csn
