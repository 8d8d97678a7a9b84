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


def create_mapped(spark: SparkSession, path: str) -> Any:
    """Field ids, and a feed of changes."""
    mapped = "'delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true'"
    made = "(id INT, name STRING, amount INT, part INT) USING delta PARTITIONED BY (part)"
    spark.sql(f"CREATE TABLE delta.`{path}` {made} TBLPROPERTIES ({mapped}, 'delta.enableChangeDataFeed' = 'true')")
    spark.sql(f"INSERT INTO delta.`{path}` SELECT id, concat('n', id), id * 10, id % 2 FROM range(6)")
    return history(spark, path)


def change_mapped(spark: SparkSession, path: str) -> Any:
    """Every version as it is then: the names of its columns, and its rows."""
    table = f"delta.`{path}`"
    for statement in (
        f"ALTER TABLE {table} RENAME COLUMN name TO title",
        f"ALTER TABLE {table} RENAME COLUMN amount TO name",
        f"UPDATE {table} SET title = 'new' WHERE id = 1",
        f"ALTER TABLE {table} RENAME COLUMN part TO half",
        f"DELETE FROM {table} WHERE half = 1 AND id = 3",
        f"ALTER TABLE {table} DROP COLUMN title",
        f"ALTER TABLE {table} ADD COLUMN title INT",
        f"INSERT INTO {table} VALUES (7, 70, 1, 700)",
        f"ALTER TABLE {table} ALTER COLUMN id TYPE BIGINT",
        f"INSERT INTO {table} VALUES (10000000000, 80, 0, NULL)",
        f"DELETE FROM {table} WHERE id = 2",
        f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')",
    ):
        spark.sql(statement)
    over = spark.sql("SELECT CAST(id AS BIGINT) AS id, concat('w', id) AS name, 0 AS half FROM range(3)")
    over.write.format("delta").mode("overwrite").option("overwriteSchema", "true").partitionBy("half").save(path)
    spark.sql(f"INSERT INTO {table} VALUES (9, 'last', 1)")
    return {version: [columns(spark, path, version), read(spark, path, version)] for version in history(spark, path)}


def columns(spark: SparkSession, path: str, version: str) -> list[str]:
    return list(spark.read.format("delta").option("versionAsOf", version).load(path).columns)


_TASKS = {
    "read": read,
    "history": history,
    "create": create,
    "change": change,
    "create_mapped": create_mapped,
    "change_mapped": change_mapped,
}


def main() -> None:
    jars, *tasks = sys.argv[1:]
    spark = session(jars)
    answers = []
    for task in tasks:
        name, *arguments = json.loads(task)
        answers.append(_TASKS[name](spark, *arguments))
    spark.stop()
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
