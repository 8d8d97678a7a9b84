"""What failed inside Spark is told by its cause, wherever it was computed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.oracle.warehouses import fresh

from rollview.engine.failures import as_users_error, spark_failures
from rollview.errors import EngineFailed, SqlError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IN_A_BROADCAST = """
SELECT /*+ BROADCAST(b) */ b.y FROM range(5) AS a JOIN (SELECT id, 1 / (id - 3) AS y FROM range(5)) AS b ON a.id = b.id
"""


def test_a_failure_inside_a_broadcast_is_told_by_its_cause(spark: SparkSession) -> None:
    with pytest.raises(EngineFailed, match="DIVIDE_BY_ZERO") as failure, spark_failures("divide"):
        spark.sql(IN_A_BROADCAST).collect()
    assert "awaitResult" not in failure.value.message
    assert failure.value.__cause__ is not None
    wrapped = failure.value.__cause__
    assert isinstance(wrapped, Exception)
    assert isinstance(as_users_error(wrapped), SqlError)


def test_a_refresh_that_divides_by_zero_names_the_view_and_the_condition(spark: SparkSession, tmp_path: Path) -> None:
    with fresh(spark, tmp_path / "warehouse") as warehouse:
        warehouse.sql("CREATE TABLE a (k INT, x INT)", "CREATE TABLE b (k INT, y INT)")
        rates = "SELECT a.k, q.r FROM a JOIN (SELECT k, 1 / y AS r FROM b) AS q ON q.k = a.k"
        warehouse.create_view(f"CREATE MATERIALIZED VIEW rates AS {rates}")
        warehouse.sql("INSERT INTO a VALUES (1, 1)", "INSERT INTO b VALUES (1, 0)")
        with pytest.raises(EngineFailed, match=r"'rates'.*DIVIDE_BY_ZERO") as failure:
            warehouse.refresh()
        assert "awaitResult" not in failure.value.message
