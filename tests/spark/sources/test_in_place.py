"""Views over a Delta table that is read where it is are exact at every csn, whatever was vacuumed meanwhile."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from rollview.catalog import Part
from rollview.sources import SourceSettings, TableSettings
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("n", pa.int64()), ("w", pa.string()), ("f", pa.float64()), ("at", pa.timestamp("us", "UTC"))])
MOMENT = datetime(2026, 11, 15, 12, 30, tzinfo=UTC)


def rows(*given: tuple[int, str | None, float]) -> pa.Table:
    return pa.Table.from_pylist([{"n": n, "w": w, "f": f, "at": MOMENT} for n, w, f in given], SCHEMA)


def bag(rows: pa.Table) -> Counter[tuple[str, ...]]:
    """By their spelling, in which NaN is itself."""
    return Counter(tuple(map(str, row)) for row in zip(*(c.to_pylist() for c in rows.columns), strict=True))


def counted(data: DataFrame) -> Counter[tuple[str, ...]]:
    return bag(data.toArrow())


def expected(rows: list[dict[str, Any]]) -> tuple[Counter[tuple[str, ...]], Counter[tuple[str, ...]]]:
    """Both views, recomputed; NaN is above every number."""
    large = Counter((str(r["n"]), str(r["f"])) for r in rows if r["f"] != r["f"] or r["f"] > 5)
    sums = Counter[str | None]()
    for row in rows:
        sums[row["w"]] += row["n"]
    return large, Counter((str(word), str(total)) for word, total in sums.items())


def test_views_over_it_are_exact_at_every_csn(tmp_path: Path, spark: SparkSession) -> None:
    lake, history = tmp_path / "lake" / "t", []
    write_deltalake(lake, rows((1, "a", 1.0), (2, "b c", nan), (3, None, 7.5), (3, None, 7.5)), partition_by=["w"])
    with Warehouse.create(tmp_path / "warehouse") as made:
        warehouse = Warehouse.open(made.root, spark=spark)
        warehouse.add_source("s", SourceSettings("delta", str(tmp_path / "lake"), (TableSettings("t", "t"),)))
        warehouse.create_view("CREATE MATERIALIZED VIEW large AS SELECT n, f FROM t WHERE f > 5")
        warehouse.create_view("CREATE MATERIALIZED VIEW sums AS SELECT w, SUM(n) AS total FROM t GROUP BY w")
        for number in range(4):
            history.append(pa.table(DeltaTable(lake).to_pyarrow_table()).select(SCHEMA.names))
            if number == 1:
                DeltaTable(lake).update(updates={"n": "n + 10"}, predicate="w IS NULL")
            elif number == 2:
                DeltaTable(lake).delete("n = 1")
            else:
                DeltaTable(lake).vacuum(0, dry_run=False, enforce_retention_duration=False)
                write_deltalake(lake, rows((number, "b c", nan), (number, "z", 6.0)), mode="append")
            warehouse.capture()
            warehouse.refresh()
        history.append(pa.table(DeltaTable(lake).to_pyarrow_table()).select(SCHEMA.names))
        assert warehouse.snapshot().moment.csn == len(history)
        # It moved on when what it had been was vacuumed.
        assert warehouse.snapshot().get("t").pins[Part.STATE].through == 5
        assert warehouse.sources()[0].readings["t"].reason is None
        for csn, held in enumerate(history, start=1):
            large, sums = expected(held.to_pylist())
            assert counted(warehouse.read("t", csn)) == bag(held)
            assert counted(warehouse.read("large", csn)) == large
            assert counted(warehouse.read("sums", csn)) == sums
        assert all(warehouse.verify(view).equal for view in ("large", "sums"))
