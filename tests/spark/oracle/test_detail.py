"""A view that keeps only what a refresh reached: right there, refused in between, and one change in its delta."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.oracle.checks import check_refusals, check_view
from tests.spark.oracle.test_operators import HISTORY, build

from rollview import errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS = {
    "joined": "SELECT r.k, r.x, s.w FROM r LEFT JOIN s ON r.k = s.k",
    "summed": "SELECT g, SUM(x) AS x, COUNT(*) AS n FROM r GROUP BY g",
    "above": "SELECT n, COUNT(*) AS groups FROM summed GROUP BY n",
}


def test_the_csns_between_two_refreshes_are_given_up(spark: SparkSession, tmp_path: Path) -> None:
    said = "TBLPROPERTIES ('rollview.detail' = 'refresh')"
    warehouse, model = build(spark, tmp_path / "warehouse", VIEWS, said)
    end = len(HISTORY)
    warehouse.refresh()
    for name in VIEWS:
        assert warehouse.explain(name).mode == "incremental"
        check_view(warehouse, model, name)
        assert check_refusals(warehouse, name) == end - 2
        assert {row["_csn"] for row in warehouse.delta(name, 1, end).collect()} == {end}


@pytest.mark.parametrize("property_", ["'rollview.detail' = 'sometimes'", "'rollview.retention' = 'refresh'"])
def test_words_that_say_nothing_are_refused(spark: SparkSession, tmp_path: Path, property_: str) -> None:
    warehouse, _ = build(spark, tmp_path / "warehouse", {})
    with pytest.raises(errors.UsageError, match="does not say how long"):
        warehouse.create_view(f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ({property_}) AS SELECT k FROM r")
