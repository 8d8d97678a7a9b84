"""Plain Spark: the view from nothing, over plain Parquet tables, written as Parquet.

The tables stay as they were at the start: they are as large as the changed ones, and cheaper to read than those.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from bench.workload import TABLES, VIEWS, Batch, data


class SparkFull:
    name = "Spark full"

    def __init__(self, spark: SparkSession, scale: float, root: Path) -> None:
        self.spark = spark.newSession()
        self.target = str(root)
        for table in TABLES:
            self.spark.read.parquet(str(data(scale) / f"{table}.parquet")).createOrReplaceTempView(table)

    def change(self, batch: Batch) -> None:
        return None

    def refresh(self, view: str) -> None:
        self.spark.sql(VIEWS[view]).write.mode("overwrite").parquet(self.target)

    def rows(self, view: str) -> pa.Table | None:
        return None

    def close(self) -> None:
        return None
