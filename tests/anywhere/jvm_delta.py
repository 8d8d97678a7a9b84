"""Run by a Python with a PySpark that the JVM Delta library was built for: reads and writes Delta tables with it.

``jvm_delta.py JARS TASK…``: what it answers is the last line, as JSON. It knows nothing of rollview.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import SparkSession


def session(jars: str) -> SparkSession:
    return (
        SparkSession.builder.master("local[1]")
        .config("spark.jars", jars)
        .config("spark.driver.extraClassPath", jars.replace(",", ":"))
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )


def read(spark: SparkSession, path: str, version: str) -> Any:
    """The rows of a version, every value as text."""
    rows = spark.read.format("delta").option("versionAsOf", version).load(path)
    return sorted([str(value) for value in row] for row in rows.collect())


def history(spark: SparkSession, path: str) -> Any:
    return [row.version for row in spark.sql(f"DESCRIBE HISTORY delta.`{path}`").collect()]


def create(spark: SparkSession, path: str) -> Any:
    rows = "SELECT CAST(id AS INT) AS id, concat('name ', id) AS name, CAST(id * 2.5 AS DECIMAL(12,2)) AS amount, "
    rows += "TIMESTAMP'2026-01-01 00:00:00' + make_dt_interval(id) AS at FROM range(20)"
    spark.sql(f"CREATE TABLE delta.`{path}` USING delta PARTITIONED BY (name) AS {rows}")
    return history(spark, path)


def change(spark: SparkSession, path: str) -> Any:
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 5 = 0")
    spark.sql(f"UPDATE delta.`{path}` SET amount = amount + 1 WHERE id < 7")
    spark.sql(
        f"MERGE INTO delta.`{path}` AS t USING (SELECT CAST(id AS INT) AS id FROM range(18, 23)) AS s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET amount = NULL WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'new')"
    )
    spark.sql(f"OPTIMIZE delta.`{path}`")
    return history(spark, path)


def main() -> None:
    jars, *tasks = sys.argv[1:]
    spark = session(jars)
    answers = []
    for task in tasks:
        name, *arguments = json.loads(task)
        answers.append({"read": read, "history": history, "create": create, "change": change}[name](spark, *arguments))
    spark.stop()
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
