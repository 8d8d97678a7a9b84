"""Goal P11: what a refresh costs where planning is all there is to pay, ``python -m bench.plans``.

Eight inputs of at most a thousand rows, all changed in every commit. Each view is a text of its own, so that its first
refresh meets nothing that was compiled before; beside it Spark computes the same from nothing, over plain Parquet
files, in the same session. Sides take turns, and the rows are compared every time.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from bench.goals import Planned, verdicts
from rollview import Warehouse
from rollview.engine import session

ROWS = 1_000
CHANGED = 10
TYPES = {"int": pa.int32(), "string": pa.string()}
TABLES: dict[str, tuple[int, dict[str, str]]] = {
    "region": (5, {"r_regionkey": "int", "r_name": "string"}),
    "nation": (25, {"n_nationkey": "int", "n_regionkey": "int", "n_name": "string"}),
    "supplier": (100, {"s_suppkey": "int", "s_nationkey": "int"}),
    "customer": (500, {"c_custkey": "int", "c_nationkey": "int"}),
    "part": (200, {"p_partkey": "int", "p_kind": "int"}),
    "orders": (ROWS, {"o_orderkey": "int", "o_custkey": "int", "o_day": "int"}),
    "lineitem": (ROWS, {"l_orderkey": "int", "l_partkey": "int", "l_suppkey": "int", "l_price": "int"}),
}
"""Rows, and columns with their types. The first column numbers the rows, except where it refers to orders."""
REFERS = {
    "n_regionkey": "region",
    "s_nationkey": "nation",
    "c_nationkey": "nation",
    "o_custkey": "customer",
    "l_orderkey": "orders",
    "l_partkey": "part",
    "l_suppkey": "supplier",
}

EIGHT = """
SELECT o_day % 12 AS month_{n}, n2.n_name AS nation_{n}, SUM(l_price) AS sold_{n}, COUNT(*) AS times_{n}
FROM part JOIN lineitem ON p_partkey = l_partkey JOIN supplier ON s_suppkey = l_suppkey
JOIN orders ON l_orderkey = o_orderkey JOIN customer ON o_custkey = c_custkey
JOIN nation AS n1 ON c_nationkey = n1.n_nationkey JOIN region ON n1.n_regionkey = r_regionkey
JOIN nation AS n2 ON s_nationkey = n2.n_nationkey
WHERE p_kind <> {n} AND o_day > {n} GROUP BY o_day % 12, n2.n_name
"""
"""The shape of TPC-H Q8."""

console = Console()

Row = tuple[Any, ...]


class Data:
    """The tables as they are now, in this process."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.rows: dict[str, list[Row]] = {}
        for name, (size, _) in TABLES.items():
            self.rows[name] = [self._row(name, place) for place in range(size)]

    def _row(self, name: str, place: int) -> Row:
        return tuple(self._value(name, column, place) for column in TABLES[name][1])

    def _value(self, name: str, column: str, place: int) -> Any:
        if column in REFERS:
            return self.random.randrange(TABLES[REFERS[column]][0])
        if column.endswith("key"):
            return place
        return f"{name} {place}" if column.endswith("name") else self.random.randrange(1_000)

    def change(self) -> tuple[dict[str, list[Row]], dict[str, list[Row]]]:
        """Some rows of every table go, and as many come."""
        gone, come = {}, {}
        for name, rows in self.rows.items():
            places = self.random.sample(range(len(rows)), min(CHANGED, len(rows) // 5))
            gone[name] = [rows[place] for place in places]
            come[name] = [self._row(name, place) for place in places]
            for place, row in zip(places, come[name], strict=True):
                rows[place] = row
        return gone, come


def arrow(name: str, rows: list[Row]) -> pa.Table:
    columns = TABLES[name][1]
    values = zip(*rows, strict=True)
    return pa.table({c: pa.array(v, TYPES[t]) for (c, t), v in zip(columns.items(), values, strict=True)})


class Plain:
    """Spark from nothing, over plain Parquet files, written as Parquet."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark, self.root = spark.newSession(), root
        root.mkdir()

    def change(self, data: Data) -> None:
        for name, rows in data.rows.items():
            pq.write_table(arrow(name, rows), self.root / f"{name}.parquet")
            self.spark.read.parquet(str(self.root / f"{name}.parquet")).createOrReplaceTempView(name)

    def compute(self, query: str) -> None:
        self.spark.sql(query).write.mode("overwrite").parquet(str(self.root / "result"))

    def rows(self) -> Counter[Row]:
        return bag(pq.read_table(self.root / "result"))


def bag(rows: pa.Table) -> Counter[Row]:
    return Counter(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def seconds(run: Callable[[], Any]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def load(warehouse: Warehouse, spark: SparkSession, data: Data) -> None:
    for name, (_, columns) in TABLES.items():
        warehouse.sql(f"CREATE TABLE {name} ({', '.join(f'{c} {t}' for c, t in columns.items())})")
        with warehouse.transaction() as transaction:
            transaction.insert(name, spark.createDataFrame(arrow(name, data.rows[name])))


def commit(warehouse: Warehouse, spark: SparkSession, data: Data) -> None:
    gone, come = data.change()
    with warehouse.transaction() as transaction:
        for name in TABLES:
            transaction.delete(name, spark.createDataFrame(arrow(name, gone[name])))
            transaction.insert(name, spark.createDataFrame(arrow(name, come[name])))


def measure(spark: SparkSession, views: int, rounds: int) -> Planned:
    scratch = Path(tempfile.mkdtemp(prefix="rollview-bench-"))
    try:
        data, plain = Data(1), Plain(spark, scratch / "plain")
        Warehouse.create(scratch / "warehouse").close()
        warehouse = Warehouse.open(scratch / "warehouse", spark=spark)
        load(warehouse, spark, data)
        found: Planned = []
        for number in range(views):
            query = EIGHT.format(n=number)
            warehouse.create_view(f"CREATE MATERIALIZED VIEW v{number} AS {query}")
            found.append([one_round(warehouse, spark, data, plain, number, query) for _ in range(rounds)])
        warehouse.close()
        return found
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def one_round(
    warehouse: Warehouse, spark: SparkSession, data: Data, plain: Plain, number: int, query: str
) -> dict[str, float]:
    commit(warehouse, spark, data)
    plain.change(data)
    last: Any = None

    def refresh() -> None:
        nonlocal last
        last = warehouse.refresh([f"v{number}"]).views[0]

    sides: dict[str, Callable[[], Any]] = {"rollview": refresh, "Spark": lambda: plain.compute(query)}
    order = list(sides) if number % 2 else list(reversed(sides))
    times = {name: seconds(sides[name]) for name in order}
    if bag(warehouse.read(f"v{number}").toArrow()) != plain.rows():
        raise SystemExit(f"rollview and Spark differ on view {number}")
    console.print(f"view {number}: {times['rollview']:.2f} s ({last.mode}), Spark {times['Spark']:.2f} s")
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--views", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args()
    found = measure(session.start(), options.views, options.rounds)
    shown = Table("view", "first", "Spark", "repeated", "Spark")
    for number, rounds in enumerate(found):
        first, rest = rounds[0], rounds[1:]
        again = {side: median(one[side] for one in rest) for side in first}
        shown.add_row(
            str(number), *(f"{s:.2f}" for s in (first["rollview"], first["Spark"], again["rollview"], again["Spark"]))
        )
    console.print(shown)
    goal = next(one for one in verdicts({}, planned=found) if one.number == "P11")
    console.print(f"{goal.number}: {goal.goal}: {goal.figure}, {'met' if goal.met else 'not met'}")


if __name__ == "__main__":
    main()
