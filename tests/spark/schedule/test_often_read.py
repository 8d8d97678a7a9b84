"""A table moves forward in the background where recomputed views read past its pending changes again and again."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.oracle.warehouses import fresh

from rollview.catalog import Part
from rollview.publish import fold
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

RECOMPUTED = "SELECT id, RANK() OVER (ORDER BY v) AS place FROM t"
LINEAR = "SELECT id, v FROM t WHERE v > 3"


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Warehouse]:
    monkeypatch.setattr(fold, "LEAST", 10)
    monkeypatch.setattr(fold, "READS", 3)
    with fresh(spark, tmp_path / "w") as made:
        made.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
        made.sql("INSERT INTO t SELECT INT(id), INT(id) FROM range(40)")
        yield made


def _round(warehouse: Warehouse, change: str) -> tuple[int, int]:
    """Csn of the change, and of the table's state after the daemon's turn."""
    warehouse.sql(change)
    list(warehouse.run(0.1, threading.Event(), 1))
    snapshot = warehouse.snapshot()
    return snapshot.moment.csn, snapshot.get("t").pins[Part.STATE].through


def test_the_third_read_past_pending_changes_moves_the_table_forward(warehouse: Warehouse) -> None:
    warehouse.create_view(f"CREATE MATERIALIZED VIEW places AS {RECOMPUTED}")
    moved = [_round(warehouse, f"UPDATE t SET v = v + 50 WHERE id = {id_}") for id_ in range(4)]
    assert moved == [(2, 0), (3, 3), (4, 3), (5, 3)], "the view's creation was the first"
    for csn in range(1, 6):
        rows = Counter(tuple(row) for row in warehouse.read("t", as_of=csn).collect())
        assert rows == Counter((id_, id_ + 50 * (id_ < csn - 1)) for id_ in range(40)), csn


def test_views_that_are_not_recomputed_leave_a_table_where_it_is(warehouse: Warehouse) -> None:
    warehouse.create_view(f"CREATE MATERIALIZED VIEW large AS {LINEAR}")
    assert [_round(warehouse, f"UPDATE t SET v = v + 50 WHERE id = {id_}")[1] for id_ in range(4)] == [0] * 4


def test_few_changes_are_read_past_for_nothing(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold, "READ_SHARE", 2)
    warehouse.create_view(f"CREATE MATERIALIZED VIEW places AS {RECOMPUTED}")
    assert [_round(warehouse, f"UPDATE t SET v = v + 50 WHERE id = {id_}")[1] for id_ in range(4)] == [0] * 4
