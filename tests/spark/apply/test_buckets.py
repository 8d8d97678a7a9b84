"""An extent too large to write anew is kept in buckets, and a small change reads and writes only those it touches."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import rollview
from rollview import Warehouse
from rollview.apply import plan, run
from rollview.catalog import Part
from rollview.relations.reader import stored_as
from rollview.store.datafile import DataFile


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    for module in (plan, run):
        monkeypatch.setattr(module, "REWRITE_ROWS", 1_000)
    monkeypatch.setattr(run, "BUCKET_ROWS", 200)
    Warehouse.create(tmp_path / "wh").close()
    wh = rollview.open(tmp_path / "wh", spark=spark)
    wh.sql("CREATE TABLE t (id BIGINT, x DOUBLE, w STRING)")
    with wh.transaction() as transaction:
        words = "CASE WHEN id % 3 > 0 THEN concat('w', id % 7) END AS w"
        transaction.insert("t", spark.range(3_000).selectExpr("id", "IF(id % 5 = 0, -0.0D, id / 4) AS x", words))
    wh.create_view("CREATE MATERIALIZED VIEW v AS SELECT id % 1500 AS id, x, w FROM t")
    wh.sql("INSERT INTO t VALUES (5000, 1.5, 'new')")
    wh.refresh()
    return wh


def files(wh: Warehouse) -> set[DataFile]:
    relation = wh.snapshot().get("v")
    return set(stored_as(wh.root / "data", relation).folder("extent").files(relation.pins[Part.EXTENT].version))


def test_an_extent_that_grew_too_large_is_written_in_buckets(warehouse: Warehouse) -> None:
    written = files(warehouse)
    assert len(written) > 8
    assert all(file.bucket is not None and file.bucket_count == 16 for file in written)
    assert warehouse.verify("v").equal


def test_a_small_change_touches_only_its_buckets(warehouse: Warehouse) -> None:
    before = files(warehouse)
    warehouse.sql("DELETE FROM t WHERE id IN (10, 11)", "INSERT INTO t VALUES (6000, NULL, NULL)")
    warehouse.refresh()
    after = files(warehouse)
    assert 1 <= len(before - after) <= 3
    assert {file.bucket for file in before - after} >= {file.bucket for file in after - before} - {None}
    assert len(before & after) >= len(before) - 3
    assert warehouse.verify("v").equal


def test_buckets_roll_back_and_forth(warehouse: Warehouse) -> None:
    warehouse.sql("UPDATE t SET x = 0.0 WHERE id < 40")
    newest = warehouse.refresh().csn
    for csn in (newest - 1, newest, newest - 1):
        warehouse.roll(["v"], csn)
        answer = warehouse.verify("v")
        assert answer.equal, answer
        assert answer.csn == csn


def test_an_extent_that_shrank_is_written_whole_again(warehouse: Warehouse) -> None:
    warehouse.sql("DELETE FROM t WHERE id >= 100")
    warehouse.refresh()
    warehouse.sql("INSERT INTO t VALUES (7000, 1.0, 'x')")
    warehouse.refresh()
    assert all(file.bucket is None for file in files(warehouse))
    assert warehouse.verify("v").equal
