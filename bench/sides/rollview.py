"""rollview itself, as a user runs it: a warehouse with the tables and views, a transaction per batch, refresh."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from bench.workload import KEYS, REFERENCES, TABLES, VIEWS, Batch, cache, data
from rollview import Warehouse


class Rollview:
    name = "rollview"

    def __init__(self, spark: SparkSession, scale: float, root: Path, *, keys: bool) -> None:
        self.spark = spark
        self.warehouse = _opened(spark, scale, root, keys=keys)
        self.last: Any = None

    def change(self, batch: Batch) -> None:
        with self.warehouse.transaction() as transaction:
            for name in ("lineitem", "orders"):
                transaction.delete(name, self.spark.createDataFrame(batch.deleted[name]))
            for name in ("orders", "lineitem"):
                transaction.insert(name, self.spark.createDataFrame(batch.inserted[name]))

    def refresh(self, view: str) -> None:
        self.last = self.warehouse.refresh([view]).views[0]

    def rows(self, view: str) -> pa.Table:
        return self.warehouse.read(view).toArrow()

    def close(self) -> None:
        self.warehouse.close()


def _opened(spark: SparkSession, scale: float, root: Path, *, keys: bool) -> Warehouse:
    """A copy of a warehouse that is loaded once and kept beside the data."""
    loaded = cache() / f"warehouse-sf{scale:g}-{'keys' if keys else 'plain'}"
    if not loaded.exists():
        staging = loaded.with_suffix(".part")
        shutil.rmtree(staging, ignore_errors=True)
        _load(spark, scale, staging, keys=keys)
        staging.rename(loaded)
    shutil.copytree(loaded, root)
    return Warehouse.open(root, spark=spark)


def _load(spark: SparkSession, scale: float, root: Path, *, keys: bool) -> None:
    Warehouse.create(root).close()
    warehouse = Warehouse.open(root, spark=spark)
    for name in TABLES:
        rows = spark.read.parquet(str(data(scale) / f"{name}.parquet"))
        columns = [f"{field.name} {field.dataType.simpleString()}" for field in rows.schema.fields]
        declared = constraints(name) if keys else []
        warehouse.sql(f"CREATE TABLE {name} ({', '.join(columns + declared)})")
        with warehouse.transaction() as transaction:
            transaction.insert(name, rows)
    for name, query in VIEWS.items():
        warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    warehouse.close()


def constraints(name: str) -> list[str]:
    """The keys of a table, as they are declared."""
    references = REFERENCES.get(name, {})
    foreign = [f"FOREIGN KEY ({ours}) REFERENCES {other} ({KEYS[other][0]})" for ours, other in references.items()]
    return [f"PRIMARY KEY ({', '.join(KEYS[name])})", *foreign]
