"""Prepared queries: analysed once, exact over every later interval, also where files are shared by intervals."""

from __future__ import annotations

import gc
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pytest
from tests.spark.oracle.warehouses import assert_verified, fresh

from rollview.algebra.script import AT_ONCE_ROWS
from rollview.core.interval import Interval
from rollview.publish import merge
from rollview.relations import prepared_query
from rollview.relations.reader import stored_as
from rollview.store import timed
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS = {
    "total": "SELECT g, SUM(x) AS x, COUNT(*) AS n FROM r JOIN s ON r.k = s.k GROUP BY g",
    "joined": "SELECT r.k, r.x, s.g FROM r JOIN s ON r.k = s.k",
}


@pytest.fixture
def analysed(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was analysed, in order."""
    seen: list[object] = []
    analyse = prepared_query._analysed

    def noting(*given: object) -> object:
        seen.append(given)
        return analyse(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(prepared_query, "_analysed", noting)
    return seen


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> Warehouse:
    warehouse = fresh(spark, tmp_path / "warehouse")
    warehouse.sql("CREATE TABLE r (k BIGINT, x BIGINT)", "CREATE TABLE s (k BIGINT, g STRING)")
    warehouse.sql("INSERT INTO r VALUES (1, 10), (2, 20)", "INSERT INTO s VALUES (1, 'a'), (2, 'b')")
    for name, query in VIEWS.items():
        warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    return warehouse


def test_later_refreshes_of_the_same_kind_analyse_nothing(warehouse: Warehouse, analysed: list[object]) -> None:
    for number in range(5):
        warehouse.sql(f"INSERT INTO r VALUES (1, {number}), ({number}, 7), (NULL, 1)")
        warehouse.refresh()
        assert_verified(warehouse)
    assert len(analysed) == len(VIEWS)


def test_rows_that_came_and_went_before_meet_nothing(warehouse: Warehouse) -> None:
    for number in range(4):
        warehouse.sql(f"UPDATE r SET x = {number} WHERE k = 1", "INSERT INTO r VALUES (NULL, 1), (7, 7), (7, 7)")
    snapshot = warehouse.snapshot()
    now = snapshot.moment.csn
    rows = timed.few_timed_rows(stored_as(warehouse.root / "data", snapshot.get("r")), Interval(now - 1, now), 100)
    assert rows is not None
    before = rows.filter(pc.equal(rows["_csn"], 0)).select(["k", "x", "_count"]).to_pylist()
    assert sorted(map(str, map(tuple, map(dict.values, before)))) == sorted(
        ["(1, 2, 1)", "(2, 20, 1)", *3 * ["(None, 1, 1)"], *6 * ["(7, 7, 1)"]]
    )


MANY_ROWS = f"INSERT INTO r SELECT -1, id FROM range({AT_ONCE_ROWS})"


def test_one_query_serves_whatever_moved_where_all_is_small(warehouse: Warehouse, analysed: list[object]) -> None:
    for statement in ("INSERT INTO s VALUES (1, 'a')", "DELETE FROM r WHERE k = 1", "UPDATE s SET g = 'c' WHERE k = 2"):
        warehouse.sql(statement)
        warehouse.refresh()
        assert_verified(warehouse)
    assert len(analysed) == len(VIEWS)


def test_another_motion_of_many_rows_is_another_query(warehouse: Warehouse, analysed: list[object]) -> None:
    warehouse.sql(MANY_ROWS)
    warehouse.refresh()
    analysed.clear()
    for statement in ("INSERT INTO s VALUES (1, 'a')", "DELETE FROM r WHERE k = 1", "UPDATE s SET g = 'c' WHERE k = 2"):
        warehouse.sql(statement)
        warehouse.refresh()
        assert_verified(warehouse)
    assert len(analysed) > 2 * len(VIEWS)


@pytest.fixture
def shared_files(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> range:
    """A file of changes that belong to several csns; the intervals to these end inside it."""
    warehouse.sql(MANY_ROWS)
    warehouse.refresh()
    monkeypatch.setattr(merge, "MANY", 2)
    first = warehouse.snapshot().moment.csn
    for number in range(6):
        warehouse.sql(f"INSERT INTO r VALUES ({number}, 1)", "DELETE FROM r WHERE k = 1")
    return range(first + 1, first + 6)


def test_intervals_that_end_inside_a_file_need_no_query_of_their_own(
    warehouse: Warehouse, analysed: list[object], shared_files: range
) -> None:
    analysed.clear()
    counts = []
    for csn in shared_files:
        warehouse.refresh(to=csn)
        assert_verified(warehouse)
        counts.append(len(analysed))
    assert counts[0] > 0
    assert counts[-1] == counts[2]


def test_of_files_that_hold_much_more_than_the_interval_no_rows_are_cut_out(
    warehouse: Warehouse, analysed: list[object], shared_files: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    analysed.clear()
    monkeypatch.setattr(prepared_query, "_MOST_CUT", 0)
    for csn in shared_files:
        warehouse.refresh(to=csn)
        assert_verified(warehouse)
    assert not analysed


def test_folders_of_links_that_were_cleaned_away_are_made_anew(warehouse: Warehouse, analysed: list[object]) -> None:
    for number in range(4):
        warehouse.sql(f"INSERT INTO r VALUES (2, {number})")
        warehouse.refresh()
        assert_verified(warehouse)
        if number == 1:
            homes = [
                links._home
                for kept in prepared_query._kept.values()
                for idle in kept.values()
                for one in idle
                for links in one.links
            ]
            for home in homes:
                shutil.rmtree(home)
    assert len(analysed) == 2 * len(VIEWS)


def test_a_query_that_is_no_longer_kept_leaves_no_folder(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(warehouse.root))
    warehouse.sql("INSERT INTO r VALUES (2, 2)")
    warehouse.refresh()
    assert list(warehouse.root.glob("rollview-*"))
    prepared_query._kept.clear()
    gc.collect()
    assert not list(warehouse.root.glob("rollview-*"))
