"""What Spark does to recompute a view over tables with pending changes: as over plain files, and little more."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.oracle.warehouses import fresh

from rollview.relations.reader import Reader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROWS = 30_000


def test_a_table_at_a_csn_is_filtered_and_pruned_where_it_is_read(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warehouse = fresh(spark, tmp_path)
    warehouse.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, g INT, v INT, more STRING)")
    warehouse.sql(f"INSERT INTO t SELECT id, INT(id % 7), INT(id % 1000), 'more' FROM range({ROWS})")
    warehouse.create_view("CREATE MATERIALIZED VIEW w AS SELECT g, MAX(v) AS m FROM t WHERE v < 500 GROUP BY g")
    warehouse.sql("UPDATE t SET v = 499 - g WHERE id < 7")
    snapshot = warehouse.snapshot()
    recomputed = Reader(warehouse.spark, tmp_path / "data", snapshot).recompute("w", snapshot.moment.csn)
    recomputed.explain("formatted")
    plan = capsys.readouterr().out
    tree, _, nodes = plan.partition("\n\n")
    assert tree.count("Scan parquet") == 2, "the table, and the changes that end lives of its rows"
    assert tree.count("Exchange") == 2, "one of groups, one of the changes"
    assert tree.count("BroadcastExchange") == 1
    assert tree.count("HashAggregate") == 2, "before and after the exchange of groups, and none over the table"
    table = nodes[nodes.index("Scan parquet") :].partition("\n\n")[0]
    assert "LessThan(v,500)" in table.partition("PushedFilters: ")[2]
    assert "ReadSchema: struct<id:bigint,g:int,v:int,_count:bigint,_csn:bigint>" in table
    assert sorted(map(tuple, recomputed.collect())) == [(g, 499) for g in range(7)]
