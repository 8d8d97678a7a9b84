"""Workload W: TPC-H tables, views V1 and V3, and batches of new and deleted orders with their lines."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from pyspark.sql import DataFrame, SparkSession

from rollview import Warehouse

TABLES = ("nation", "customer", "orders", "lineitem")

KEYS = {
    "nation": "PRIMARY KEY (n_nationkey)",
    "customer": "PRIMARY KEY (c_custkey), FOREIGN KEY (c_nationkey) REFERENCES nation (n_nationkey)",
    "orders": "PRIMARY KEY (o_orderkey), FOREIGN KEY (o_custkey) REFERENCES customer (c_custkey)",
    "lineitem": "PRIMARY KEY (l_orderkey, l_linenumber), FOREIGN KEY (l_orderkey) REFERENCES orders (o_orderkey)",
}

VIEWS = {
    "v1": """
SELECT n.n_name, SUM(l.l_extendedprice * (1 - l.l_discount)) AS revenue, COUNT(*) AS lines
FROM customer c JOIN orders o ON o.o_custkey = c.c_custkey
JOIN lineitem l ON l.l_orderkey = o.o_orderkey JOIN nation n ON n.n_nationkey = c.c_nationkey
GROUP BY n.n_name
""",
    "v3": """
SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS sum_qty, SUM(l_extendedprice) AS sum_base_price,
  SUM(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
  SUM(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge, AVG(l_quantity) AS avg_qty,
  AVG(l_extendedprice) AS avg_price, AVG(l_discount) AS avg_disc, COUNT(*) AS count_order
FROM lineitem WHERE l_shipdate <= DATE '1998-09-02' GROUP BY l_returnflag, l_linestatus
""",
}

NEW_KEYS_FROM = 1_000_000_000


def cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "rollview" / "bench"


def data(scale: float) -> Path:
    """The tables as Parquet, made once and kept outside the project."""
    place = cache() / f"tpch-sf{scale:g}"
    if not place.exists():
        staging = place.with_suffix(".part")
        shutil.rmtree(staging, ignore_errors=True)
        generator = Path(sys.executable).with_name("tpchgen-cli")
        tables = f"--tables={','.join(TABLES)}"
        subprocess.run([generator, "parquet", "-s", f"{scale:g}", tables, f"--output-dir={staging}"], check=True)
        staging.rename(place)
    return place


@dataclass
class Workload:
    """A loaded warehouse, and the next batch of changes to it."""

    spark: SparkSession
    warehouse: Warehouse
    source: Path
    random: Random = field(default_factory=lambda: Random(1))
    gone: set[int] = field(default_factory=set)
    made: int = 0

    def load(self, *, declared_keys: bool) -> None:
        for table in TABLES:
            frame = self.table(table)
            columns = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in frame.schema.fields)
            constraints = f", {KEYS[table]}" if declared_keys else ""
            self.warehouse.sql(f"CREATE TABLE {table} ({columns}{constraints})")
            with self.warehouse.transaction() as transaction:
                transaction.insert(table, frame)
        for name, query in VIEWS.items():
            self.warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} AS {query}")

    def table(self, name: str) -> DataFrame:
        return self.spark.read.parquet(str(self.source / f"{name}.parquet"))

    def orders(self) -> int:
        return self.warehouse.snapshot().get("orders").pins["state"].rows

    def change(self, size: int) -> None:
        """One transaction: ``size`` orders deleted and ``size`` new ones, with their lines, keys spread at random."""
        orders, lines = self.table("orders"), self.table("lineitem")
        keys = [row[0] for row in orders.select("o_orderkey").sample(min(1.0, 4 * size / 1_500_000 + 0.0005)).collect()]
        keys = [key for key in self.random.sample(keys, min(len(keys), 3 * size)) if key not in self.gone][: 2 * size]
        deleted, copied = keys[:size], keys[size:]
        self.gone.update(deleted)
        shift = NEW_KEYS_FROM * (self.made + 1)
        self.made += 1
        old_orders, old_lines = self._of(orders, "o_orderkey", deleted), self._of(lines, "l_orderkey", deleted)
        new_orders = self._of(orders, "o_orderkey", copied).withColumn("o_orderkey", orders["o_orderkey"] + shift)
        new_lines = self._of(lines, "l_orderkey", copied).withColumn("l_orderkey", lines["l_orderkey"] + shift)
        with self.warehouse.transaction() as transaction:
            transaction.delete("lineitem", old_lines)
            transaction.delete("orders", old_orders)
            transaction.insert("orders", new_orders)
            transaction.insert("lineitem", new_lines)

    def _of(self, frame: DataFrame, column: str, keys: list[int]) -> DataFrame:
        wanted = self.spark.createDataFrame([(key,) for key in keys], "wanted BIGINT")
        return frame.join(wanted, frame[column] == wanted["wanted"], "left_semi")

    def recompute(self, view: str, target: Path) -> None:
        """The view from nothing, as plain Spark does it: over plain Parquet tables, written as Parquet."""
        query = VIEWS[view]
        for table in TABLES:
            self.table(table).createOrReplaceTempView(table)
        self.spark.sql(query).write.mode("overwrite").parquet(str(target))
