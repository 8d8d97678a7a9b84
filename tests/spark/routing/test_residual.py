"""What is stored of a view and what came since its mark are the view, for every construct that the SQL page lists."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from docs.examples import EXAMPLES, TYPES
from tests.sizes import times
from tests.spark.oracle.bags import bag
from tests.spark.oracle.warehouses import fresh

from rollview.relations import prepared_query
from rollview.relations.prepared_query import _analysed
from rollview.routing.residual import ResidualReader
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEPT = [example for example in EXAMPLES if example.how in ("linear", "keyed")]
SHOWN = KEPT[:: times(7, full=1)]
DAY = "DATE'2026-01-01'"


def test_residual_is_the_view_and_nothing_is_written(spark: SparkSession, tmp_path: Path) -> None:
    with fresh(spark, tmp_path / "w") as warehouse:
        _fill(warehouse)
        for number, example in enumerate(SHOWN):
            warehouse.create_view(f"CREATE MATERIALIZED VIEW v{number} AS {example.query}")
        _change(warehouse)
        place, before = warehouse._place, warehouse.snapshot()
        files = sorted(str(path) for path in warehouse.root.rglob("*"))
        reader = ResidualReader(place.spark, place.data, before, place.catalog.changes)
        newest = before.moment.csn
        for number, example in enumerate(SHOWN):
            found, expected = reader.rows(f"v{number}", newest), reader.recompute(f"v{number}", newest)
            assert bag(found.collect()) == bag(expected.collect()), example.title
        assert warehouse.snapshot() == before
        assert sorted(str(path) for path in warehouse.root.rglob("*")) == files


def test_what_came_since_is_told_by_a_query_that_stays_prepared(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    analysed: list[str] = []

    def noting(*asked: Any) -> Any:
        analysed.append("anew")
        return _analysed(*asked)

    monkeypatch.setattr(prepared_query, "_analysed", noting)
    with fresh(spark, tmp_path / "w") as warehouse:
        _fill(warehouse)
        text = "SELECT o.id AS told_here, c.state FROM orders o JOIN customers c ON o.customer = c.id"
        warehouse.create_view(f"CREATE MATERIALIZED VIEW v AS {text}")
        place = warehouse._place
        for id_ in (7, 8, 9):
            warehouse.sql(f"INSERT INTO orders VALUES ({id_}, 4, {DAY}, 1)")
            now = warehouse.snapshot()
            reader = ResidualReader(place.spark, place.data, now, place.catalog.changes)
            found, expected = reader.rows("v", now.moment.csn), warehouse.query(text, rewrite="off")
            assert bag(found.collect()) == bag(expected.rows.collect())
        assert len(analysed) == 1


def _fill(warehouse: Warehouse) -> None:
    for name, columns in TYPES.items():
        warehouse.sql(f"CREATE TABLE {name} ({', '.join(f'{column} {type_}' for column, type_ in columns)})")
    warehouse.sql(
        "INSERT INTO customers VALUES (1, 'ann b', 'CA'), (2, 'bob', 'NY'), (2, 'bob', NULL), (4, 'cy', 'CA')"
    )
    for name in ("orders", "returns"):
        rows = f"(1, 1, {DAY}, 5), (2, 1, {DAY}, 20), (3, 2, NULL, 110), (4, NULL, {DAY}, NULL), (2, 1, {DAY}, 20)"
        warehouse.sql(f"INSERT INTO {name} VALUES {rows}")


def _change(warehouse: Warehouse) -> None:
    """Groups and keys that come, go, and change twice."""
    warehouse.sql(f"INSERT INTO orders VALUES (5, 4, {DAY}, 200), (6, 1, {DAY}, 7)", "DELETE FROM orders WHERE id = 3")
    warehouse.sql("UPDATE customers SET state = 'WA', name = 'x y' WHERE id = 1")
    warehouse.sql("DELETE FROM returns WHERE id = 2", "INSERT INTO returns VALUES (6, 4, NULL, 21)")
    warehouse.sql("UPDATE orders SET amount = amount + 1 WHERE customer = 1", "DELETE FROM customers WHERE id = 4")
