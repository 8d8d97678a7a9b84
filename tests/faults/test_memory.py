"""The driver's memory does not grow with the data: within 300 MB of its start while base tables grow fifty-fold."""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pyarrow as pa
from pyspark.sql import functions as sf
from tests.faults import tasks
from tests.sizes import FULL, by_request
from tests.spark.oracle.warehouses import fresh

from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = by_request

FIRST = 100_000 if FULL else 6_000
GROWTH = (2, 8, 20, 50)
MOST = 300 << 20
VIEWS = {
    "joined": "SELECT o.id, o.amount, c.state FROM orders o JOIN customer c ON o.customer = c.id",
    "by_state": "SELECT c.state, COUNT(*) AS n, SUM(o.amount) AS total, MAX(o.amount) AS most "
    "FROM orders o JOIN customer c ON o.customer = c.id GROUP BY c.state",
    "by_customer": "SELECT customer, COUNT(*) AS n, SUM(amount) AS total FROM orders GROUP BY customer",
}


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of this process, and of live objects in Java."""

    python: int
    java: int

    @classmethod
    def now(cls, spark: SparkSession) -> Memory:
        gc.collect()
        pa.default_memory_pool().release_unused()
        jvm = spark.sparkContext._jvm
        assert jvm is not None
        runtime = jvm.java.lang.Runtime.getRuntime()
        java = []
        # What one collection finds unused, Spark lets go of a little later.
        for _ in range(6):
            jvm.System.gc()
            java.append(runtime.totalMemory() - runtime.freeMemory())
            time.sleep(0.5)
        return Memory(psutil.Process().memory_info().rss, min(java))


def test_the_driver_stays_within_300_mb_while_tables_grow_fifty_fold(spark: SparkSession, tmp_path: Path) -> None:
    warehouse = fresh(spark, tmp_path / "warehouse", plain=False)
    warehouse.sql(
        "CREATE TABLE customer (id BIGINT PRIMARY KEY, state STRING)",
        "CREATE TABLE orders (id BIGINT, customer BIGINT, amount BIGINT)",
    )
    grow(warehouse, 0, FIRST)
    for name, query in VIEWS.items():
        warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    look(warehouse, FIRST)
    start, seen = Memory.now(spark), []
    for before, after in zip((1, *GROWTH), GROWTH, strict=False):
        grow(warehouse, before * FIRST, after * FIRST)
        warehouse.refresh()
        warehouse.sql(f"DELETE FROM orders WHERE id = {after}")
        warehouse.refresh()
        tasks.maintain(warehouse, {})
        look(warehouse, after * FIRST - GROWTH.index(after) - 1)
        seen.append(Memory.now(spark))
    assert max(memory.python for memory in seen) - start.python < MOST
    assert max(memory.java for memory in seen) - start.java < MOST


def grow(warehouse: Warehouse, first: int, end: int) -> None:
    """Orders from one number to another, and a customer for every ten."""
    orders = warehouse.spark.range(first, end)
    state = sf.concat(sf.lit("state "), sf.col("id") % 50)
    with warehouse.transaction() as transaction:
        transaction.insert("customer", warehouse.spark.range(first // 10, end // 10).select("id", state.alias("state")))
        columns = ("id", sf.floor(sf.col("id") / 10).alias("customer"), (sf.col("id") % 997).alias("amount"))
        transaction.insert("orders", orders.select(*columns))


def look(warehouse: Warehouse, orders: int) -> None:
    """Reads by count; what is counted is right."""
    assert warehouse.read("joined").count() == orders
    assert warehouse.read("by_state").agg(sf.sum("n")).first()[0] == orders  # type: ignore[index]
    assert warehouse.read("by_customer").agg(sf.sum("n")).first()[0] == orders  # type: ignore[index]
