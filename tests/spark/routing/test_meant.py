"""Texts in which a name, a number or a comparison means to Spark something else than it seems to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from tests.spark.oracle.warehouses import fresh

from rollview.errors import UsageError
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LONG = "19876543210987654321098765"
VIEWS = {
    "listed": "SELECT a, b FROM o",
    "above_half": "SELECT a, x FROM wide WHERE x > 0.5",
    "above_long": f"SELECT a, x FROM wide WHERE x >= -{LONG}9891",
}


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warehouse]:
    with fresh(spark, tmp_path_factory.mktemp("meant") / "w") as warehouse:
        warehouse.sql(
            "CREATE TABLE o (a INT, b INT)",
            "INSERT INTO o VALUES (1, 30), (2, 20), (3, 10)",
            "CREATE TABLE wide (a INT, x DECIMAL(38,0))",
            f"INSERT INTO wide VALUES (1, 0), (2, 1), (3, 2), (4, -{LONG}9895)",
        )
        for name, text in VIEWS.items():
            warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} AS {text}")
        yield warehouse


def rows(shop: Warehouse, text: str, rewrite: str) -> list[tuple[object, ...]]:
    answer = shop.query(text, rewrite=rewrite)
    assert answer.rows is not None
    assert rewrite == "off" or not {one.relation for one in answer.used} <= {"o", "wide"}
    return [tuple(row) for row in answer.rows.collect()]


@pytest.mark.parametrize(
    "text",
    [
        # a name in ORDER BY is that of an output first
        "SELECT a AS b, b AS a FROM o ORDER BY a LIMIT 2",
        "SELECT a + b AS s, -a AS b FROM o ORDER BY a + b LIMIT 1",
        "SELECT a AS v, SUM(b) AS a FROM o GROUP BY a ORDER BY a LIMIT 2",
        # a number is a place, also behind a star
        "SELECT *, 1 AS one FROM o ORDER BY 1 DESC LIMIT 2",
        "SELECT COUNT(*) AS n, d.k FROM (SELECT 99 AS k, a FROM o) d GROUP BY d.k",
        "SELECT COUNT(*) AS n, d.k FROM (SELECT -1 AS k, a FROM o) d GROUP BY d.k",
        # with 38 digits before the point none is left behind it, so 0.5 is 1
        "SELECT a, x FROM wide WHERE x >= 1 ORDER BY a",
        f"SELECT a, x FROM wide WHERE x >= -{LONG}9899 ORDER BY a",
    ],
)
def test_views_answer_what_spark_takes_the_text_for_or_not_at_all(shop: Warehouse, text: str) -> None:
    expected = rows(shop, text, "off")
    with suppress(UsageError):
        assert rows(shop, text, "require") == expected
    answer = shop.query(text)
    assert answer.rows is not None
    assert [tuple(row) for row in answer.rows.collect()] == expected


@pytest.mark.parametrize("limit", ["LIMIT 0", "LIMIT 1", "LIMIT 2 OFFSET 1"])
def test_a_limit_keeps_no_view_from_answering(shop: Warehouse, limit: str) -> None:
    text = f"SELECT a, b FROM o ORDER BY b {limit}"
    assert rows(shop, text, "require") == rows(shop, text, "off")


def test_stored_rows_tell_no_other_condition_that_spark_rounds(shop: Warehouse) -> None:
    shop.create_view("CREATE MATERIALIZED VIEW changed AS SELECT a, x FROM wide WHERE x > 0.5")
    shop.create_view("CREATE OR REPLACE MATERIALIZED VIEW changed AS SELECT a, x FROM wide WHERE x >= 1")
    assert shop.verify("changed").equal
    assert sorted(row["a"] for row in shop.read("changed").collect()) == [2, 3]
