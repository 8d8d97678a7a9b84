"""The best Spark code that an engineer would write by hand for each of these views and batches, with all keys known.

It uses what rollview must prove: lines come and go with their orders, so that the changes of both tell everything and
no order or line is read. One Spark query, a result merged in this process, one Parquet file. It keeps no history, has
no transactions and serves these batches only.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from bench.workload import TABLES, VIEWS, Batch, data

_REVENUE = "CAST(l_extendedprice * (1 - l_discount) AS DECIMAL(38,4)) * dl.s"
_QUERIES = {
    "v1": f"""SELECT n_name, SUM({_REVENUE}) AS revenue, SUM(dl.s) AS sold
FROM dl JOIN do ON l_orderkey = o_orderkey JOIN customer ON c_custkey = o_custkey
JOIN nation ON n_nationkey = c_nationkey GROUP BY n_name""",
    "v2": """SELECT l_orderkey, l_linenumber, o_orderdate, o_shippriority,
  l_extendedprice * (1 - l_discount) AS revenue, dl.s AS s
FROM dl JOIN do ON l_orderkey = o_orderkey JOIN customer ON c_custkey = o_custkey
WHERE c_mktsegment = 'BUILDING' AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'""",
    "v3": f"""SELECT l_returnflag, l_linestatus, SUM(l_quantity * s) AS sum_qty,
  SUM(l_extendedprice * s) AS sum_base_price, SUM({_REVENUE}) AS sum_disc_price,
  SUM(CAST(l_extendedprice * (1 - l_discount) * (1 + l_tax) AS DECIMAL(38,6)) * s) AS sum_charge, SUM(s) AS count_order
FROM dl WHERE l_shipdate <= DATE '1998-09-02' GROUP BY l_returnflag, l_linestatus""",
    "v4": f"""SELECT n_name, SUM({_REVENUE}) AS revenue
FROM dl JOIN do ON l_orderkey = o_orderkey JOIN customer ON c_custkey = o_custkey
JOIN supplier ON s_suppkey = l_suppkey AND s_nationkey = c_nationkey
JOIN nation ON n_nationkey = s_nationkey JOIN region ON r_regionkey = n_regionkey
WHERE r_name = 'ASIA' AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01' GROUP BY n_name""",
}
_GROUP_KEYS = {"v1": ["n_name"], "v3": ["l_returnflag", "l_linestatus"], "v4": ["n_name"]}
_DIMENSIONS = ("region", "nation", "supplier", "customer")


class HandWritten:
    name = "hand-written Spark"

    def __init__(self, spark: SparkSession, scale: float, root: Path, first: Callable[[str], pa.Table]) -> None:
        self.spark = spark.newSession()
        self.spark.conf.set("spark.sql.adaptive.enabled", "false")
        self.spark.conf.set("spark.sql.shuffle.partitions", "1")
        self.root = root
        root.mkdir(parents=True)
        self.held = {view: first(view) for view in VIEWS}
        self.pending: dict[str, list[Path]] = {view: [] for view in VIEWS}
        self.schemas = {name: self._read(data(scale) / f"{name}.parquet").schema for name in TABLES}
        self.places = {name: data(scale) / f"{name}.parquet" for name in _DIMENSIONS}
        sign = StructField("s", LongType())
        self.signed = {name: StructType([*self.schemas[name].fields, sign]) for name in ("orders", "lineitem")}
        self.number = 0

    def change(self, batch: Batch) -> None:
        """The changes lie in files, as they would have come from somewhere."""
        self.number += 1
        place = self.root / f"batch-{self.number}"
        place.mkdir()
        for name in ("orders", "lineitem"):
            signed = [_signed(batch.deleted[name], -1), _signed(batch.inserted[name], 1)]
            pq.write_table(pa.concat_tables(signed), place / f"{name}.parquet")
        for view in VIEWS:
            self.pending[view].append(place)

    def refresh(self, view: str) -> None:
        places, self.pending[view] = self.pending[view], []
        self._view("dl", "lineitem", [place / "lineitem.parquet" for place in places])
        self._view("do", "orders", [place / "orders.parquet" for place in places])
        for name, place in self.places.items():
            self._read(place, name).createOrReplaceTempView(name)
        change = self.spark.sql(_QUERIES[view]).toArrow()
        merged = self._bag(view, change) if view == "v2" else self._groups(view, change)
        self.held[view] = merged
        pq.write_table(merged, self.root / f"{view}.parquet")

    def rows(self, view: str) -> pa.Table:
        return self.held[view]

    def close(self) -> None:
        return None

    def _view(self, name: str, table: str, places: list[Path]) -> None:
        self.spark.read.schema(self.signed[table]).parquet(*map(str, places)).createOrReplaceTempView(name)

    def _read(self, place: Path, name: str | None = None) -> DataFrame:
        reader = self.spark.read if name is None else self.spark.read.schema(self.schemas[name])
        return reader.parquet(str(place))

    def _groups(self, view: str, change: pa.Table) -> pa.Table:
        keys, held = _GROUP_KEYS[view], self.held[view]
        both = pa.concat_tables([held, change.cast(held.schema)])
        sums = [name for name in held.column_names if name not in keys]
        merged = both.group_by(keys).aggregate([(name, "sum") for name in sums])
        return (
            merged.select([*keys, *(f"{name}_sum" for name in sums)]).rename_columns([*keys, *sums]).cast(held.schema)
        )

    def _bag(self, view: str, change: pa.Table) -> pa.Table:
        held = self.held[view]
        gone = change.filter(pc.less(change["s"], 0)).select(["l_orderkey", "l_linenumber"])
        kept = held.join(gone, ["l_orderkey", "l_linenumber"], join_type="left anti")
        come = change.filter(pc.greater(change["s"], 0)).select(held.column_names)
        return pa.concat_tables([kept.select(held.column_names), come.cast(held.schema)])


def _signed(rows: pa.Table, sign: int) -> pa.Table:
    return rows.append_column("s", pa.repeat(pa.scalar(sign, pa.int64()), rows.num_rows))
