"""A tiny "join + group + write" in Spark: about the least that any refresh on Spark can take."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from bench.workload import Batch


class TinyQuery:
    name = "tiny query"

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark = spark.newSession()
        self.root = str(root)
        for side in ("a", "b"):
            rows = self.spark.range(1000).selectExpr("id AS k", "id % 25 AS g", "id AS v")
            rows.coalesce(1).write.parquet(f"{self.root}/{side}")

    def change(self, batch: Batch) -> None:
        return None

    def refresh(self, view: str) -> None:
        for side in ("a", "b"):
            read = self.spark.read.schema("k BIGINT, g BIGINT, v BIGINT").parquet(f"{self.root}/{side}")
            read.createOrReplaceTempView(side)
        grouped = self.spark.sql("SELECT a.g, SUM(b.v) AS v, COUNT(*) AS n FROM a JOIN b ON a.k = b.k GROUP BY a.g")
        grouped.write.mode("overwrite").parquet(f"{self.root}/out")

    def rows(self, view: str) -> pa.Table | None:
        return None

    def close(self) -> None:
        return None
