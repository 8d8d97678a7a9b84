"""Commits that change most rows of a table: kept as a new state, with the same rows and changes at every csn."""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.sizes import times
from tests.spark.oracle.warehouses import fresh
from tests.spark.tables.local import Local, bag

from rollview import Warehouse
from rollview.catalog import Part
from rollview.core.interval import Interval
from rollview.publish import bulk
from rollview.relations.reader import Reader, stored_as
from rollview.store.datafile import DataFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "LEAST", 10)


def _parts(local: Local, table: str) -> tuple[tuple[DataFile, ...], tuple[DataFile, ...]]:
    held = stored_as(local.data, local.catalog.snapshot().get(table))
    return held.files(Part.STATE), held.files(Part.DELTA)


def _inodes(local: Local, table: str) -> dict[int, int]:
    """Rows by file on disk, whatever names it has."""
    held = stored_as(local.data, local.catalog.snapshot().get(table))
    named = [(held.folder(part).root / file.path, file.rows) for part in Part for file in held.files(part)]
    return {place.stat().st_ino: rows for place, rows in named}


def test_an_update_of_all_rows_is_the_old_state_and_the_new_one(local: Local) -> None:
    local.ddl("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    local.run("INSERT INTO t SELECT INT(id), 0 FROM range(40)")
    local.run("UPDATE t SET v = 1")
    state = local.catalog.snapshot().get("t").pins[Part.STATE]
    assert (state.through, state.rows) == (2, 40)
    assert sum(_inodes(local, "t").values()) == 40 + 40 + 40, "the load, what went and what came: each once"
    assert all(file.linked for file in _parts(local, "t")[0])
    assert [local.rows("t", csn) for csn in (0, 1, 2)] == [
        Counter(),
        {(id, 0): 1 for id in range(40)},
        {(id, 1): 1 for id in range(40)},
    ]


def test_rows_that_stay_are_kept_beside_what_came(local: Local) -> None:
    local.ddl("CREATE TABLE t (id INT, v INT)")
    local.run("INSERT INTO t SELECT INT(id % 20), 0 FROM range(40)")
    local.run("UPDATE t SET v = id WHERE id >= 5")
    state = local.catalog.snapshot().get("t").pins[Part.STATE]
    assert (state.through, state.rows) == (2, 40)
    linked = [file.rows for file in _parts(local, "t")[0] if file.linked]
    assert sum(linked) == 30
    assert local.rows("t") == {(id, id if id >= 5 else 0): 2 for id in range(20)}
    assert local.rows("t", 1) == {(id, 0): 2 for id in range(20)}


def test_an_update_of_few_rows_stays_a_delta(local: Local) -> None:
    local.ddl("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    local.run("INSERT INTO t SELECT INT(id), 0 FROM range(40)")
    local.run("UPDATE t SET v = 1 WHERE id < 15")
    assert local.catalog.snapshot().get("t").pins[Part.STATE].through == 0


def test_the_ledger_is_not_read_for_small_commits(local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    local.ddl("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    for first in range(0, 16, 4):
        local.run(f"INSERT INTO t SELECT INT(id), 0 FROM range({first}, {first + 4})")
    snapshot = local.catalog.snapshot()
    assert snapshot.get("t").pins[Part.DELTA].rows >= bulk.LEAST

    def never(*asked: Any) -> Any:
        raise AssertionError("the ledger was read")

    monkeypatch.setattr(type(local.catalog), "changes", never)
    assert bulk.find_bulk_update(snapshot, local.catalog, local.data, snapshot.get("t")) is None


def test_a_table_whose_columns_have_other_names_in_files_is_not_linked(spark: SparkSession, tmp_path: Path) -> None:
    with fresh(spark, tmp_path / "w") as warehouse:
        warehouse.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
        warehouse.sql("INSERT INTO t SELECT INT(id), 0 FROM range(40)")
        warehouse.sql("ALTER TABLE t RENAME COLUMN v TO w", "UPDATE t SET w = 1")
        assert warehouse.catalog.snapshot().get("t").pins[Part.STATE].through == 0
        assert bag(warehouse.read("t").collect()) == {(id, 1): 1 for id in range(40)}


def test_a_commit_that_was_added_up_with_others_is_no_state(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All rows changed there, and its delta tells no change: the commit before had done the opposite."""
    with fresh(spark, tmp_path / "w") as warehouse:
        monkeypatch.setattr(bulk, "LEAST", 1000)
        warehouse.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
        warehouse.sql("INSERT INTO t SELECT INT(id), 0 FROM range(40)")
        warehouse.maintain(prune_before=warehouse.catalog.snapshot().moment.csn, grace=timedelta(0))
        warehouse.sql("UPDATE t SET v = 1")
        warehouse.sql("UPDATE t SET v = 0")
        warehouse.sql("UPDATE t SET v = 5 WHERE id < 10")
        warehouse.maintain(compress_before=warehouse.catalog.snapshot().moment.csn, grace=timedelta(0))
        assert warehouse.catalog.snapshot().get("t").coarse
        monkeypatch.setattr(bulk, "LEAST", 10)
        warehouse.sql("UPDATE t SET v = 7 WHERE id = 3")
        assert bag(warehouse.read("t").collect()) == {
            (id, 7 if id == 3 else 5 if id < 10 else 0): 1 for id in range(40)
        }


VIEWS = {
    "few": "SELECT id, v FROM t WHERE v % 2 = 0",
    "summed": "SELECT v % 3 AS k, COUNT(*) AS n, SUM(v) AS s FROM t GROUP BY v % 3",
    "joined": "SELECT t.id, t.v, u.v AS w FROM t JOIN u ON t.id = u.id",
}


@pytest.mark.parametrize("seed", range(times(2, 40)))
def test_every_csn_and_every_change_is_as_it_was_made(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    random_ = random.Random(seed)
    with fresh(spark, tmp_path / "w") as warehouse:
        key = random_.choice((" PRIMARY KEY", ""))
        warehouse.sql(f"CREATE TABLE t (id INT{key}, v INT)")
        warehouse.sql("CREATE TABLE u (id INT PRIMARY KEY, v INT)")
        warehouse.sql("INSERT INTO u SELECT INT(id), INT(id) FROM range(30)")
        for name, query in VIEWS.items():
            warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        first = warehouse.catalog.snapshot().moment.csn
        rows: Counter[tuple[Any, ...]] = Counter()
        history = [rows]
        for number in range(6):
            rows = _changed(warehouse, random_, rows, number)
            history.append(rows)
            if random_.random() < 0.4:
                warehouse.refresh()
            if random_.random() < 0.4:
                warehouse.maintain(prune_before=first + random_.randint(0, number), grace=timedelta(0))
        warehouse.refresh()
        _check(warehouse, tmp_path / "w", history, first)


def _changed(warehouse: Warehouse, random_: random.Random, rows: Counter[Any], number: int) -> Counter[Any]:
    """One commit in SQL, and the same in Python."""
    what = random_.choice(("all", "most", "overwrite", "few")) if rows else "overwrite"
    if what == "all":
        warehouse.sql(f"UPDATE t SET v = v + {number + 1}")
        return Counter({(id, v + number + 1): n for (id, v), n in rows.items()})
    if what == "few":
        warehouse.sql(f"UPDATE t SET v = v + {number + 1} WHERE id < 4")
    if what == "most":
        warehouse.sql(f"UPDATE t SET v = v + {number + 1} WHERE id >= 4")
    if what in ("few", "most"):
        return Counter({(id, v + number + 1 if (id < 4) == (what == "few") else v): n for (id, v), n in rows.items()})
    size = random_.randint(12, 30)
    with warehouse.transaction() as transaction:
        transaction.sql("DELETE FROM t", f"INSERT INTO t SELECT INT(id), INT(id + {number}) FROM range({size})")
    return Counter({(id, id + number): 1 for id in range(size)})


def _check(warehouse: Warehouse, root: Path, history: list[Counter[Any]], first: int) -> None:
    snapshot = warehouse.catalog.snapshot()
    reader = Reader(warehouse.spark, root / "data", snapshot)
    oldest = snapshot.get("t").pins[Part.DELTA].after
    csns = [csn for csn in range(first, snapshot.moment.csn + 1) if csn >= oldest]
    for csn in csns:
        assert bag(reader.rows("t", csn).collect()) == +history[csn - first]
    for after in csns:
        for through in (csn for csn in csns if csn > after):
            told = reader.changes("t", Interval(after, through)).groupBy("id", "v").sum("_count").collect()
            expected = Counter(history[through - first])
            expected.subtract(history[after - first])
            assert {(id, v): n for id, v, n in told if n} == {row: n for row, n in expected.items() if n}
    for name in VIEWS:
        assert warehouse.verify(name).equal
