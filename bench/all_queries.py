"""The 22 queries of TPC-H as views, each beside Spark from nothing: ``python -m bench.all_queries``.

By default tables of a handful of rows without keys, all of which change in every commit, so that planning is all there
is to pay (goal P11). With ``--keys`` and a larger ``--scale`` orders are replaced with their lines (goals P6 and P10).
Rows are compared every time.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random
from statistics import median

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from bench.plain_rows import stopwatch
from bench.run import bag
from bench.sides.rollview import constraints
from bench.tpch import QUERIES
from bench.workload import ALL_TABLES, Batch, batches, data, table
from rollview import Warehouse
from rollview.engine import session

CHANGED = 10
"""Rows of a small table that go in a commit."""

console = Console()

Taken = dict[str, list[dict[str, float]]]
"""By query and round: seconds of each side."""


class Compared:
    """``changing``: tables that change; the others are read as they were made."""

    def __init__(self, spark: SparkSession, scale: float, scratch: Path, *, keys: bool) -> None:
        self.spark, self.plain, self.scratch = spark, spark.newSession(), scratch
        source = data(scale, ALL_TABLES)
        self.warehouse = loaded(spark, source, scratch, keys=keys)
        self.changing = ("orders", "lineitem") if keys else ALL_TABLES
        for name in ALL_TABLES:
            self.plain.read.parquet(str(source / f"{name}.parquet")).createOrReplaceTempView(name)

    def change(self, batch: Batch) -> None:
        with self.warehouse.transaction() as transaction:
            for name in reversed(self.changing):
                transaction.delete(name, self.spark.createDataFrame(batch.deleted[name]))
            for name in self.changing:
                transaction.insert(name, self.spark.createDataFrame(batch.inserted[name]))

    def write_plain(self, number: int) -> None:
        for name in self.changing:
            place = str(self.scratch / f"plain-{number}" / name)
            self.warehouse.read(name).write.parquet(place)
            self.plain.read.parquet(place).createOrReplaceTempView(name)
        shutil.rmtree(self.scratch / f"plain-{number - 1}", ignore_errors=True)

    def refresh(self, name: str, *, rollview_first: bool) -> dict[str, float]:
        modes, result = [], str(self.scratch / "result")
        sides = {
            "rollview": lambda: modes.append(self.warehouse.refresh([name]).views[0].mode),
            "Spark": lambda: self.plain.sql(QUERIES[name]).write.mode("overwrite").parquet(result),
        }
        order = list(sides) if rollview_first else list(reversed(sides))
        times = {side: stopwatch(sides[side]) for side in order}
        if bag(self.warehouse.read(name).toArrow()) != bag(self.plain.read.parquet(result).toArrow()):
            raise SystemExit(f"rollview and Spark differ on {name}")
        console.print(f"{name}: {times['rollview']:.2f} s ({modes[0]}), Spark {times['Spark']:.2f} s")
        return times


def measure(spark: SparkSession, scale: float, rounds: int, *, keys: bool, orders: int, only: list[str]) -> Taken:
    scratch = Path(tempfile.mkdtemp(prefix="rollview-queries-"))
    found: Taken = {name: [] for name in QUERIES if not only or name in only}
    try:
        compared, source = Compared(spark, scale, scratch, keys=keys), data(scale, ALL_TABLES)
        coming = batches(source, orders) if keys else few_of_all(source)
        compared.change(next(coming))
        for name in found:
            compared.warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} AS {QUERIES[name]}")
        for number, batch in zip(range(rounds), coming, strict=False):
            compared.change(batch)
            compared.write_plain(number)
            for place, name in enumerate(found):
                found[name].append(compared.refresh(name, rollview_first=(number + place) % 2 == 0))
        compared.warehouse.close()
        return found
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def loaded(spark: SparkSession, source: Path, scratch: Path, *, keys: bool) -> Warehouse:
    Warehouse.create(scratch / "warehouse").close()
    warehouse = Warehouse.open(scratch / "warehouse", spark=spark)
    for name in ALL_TABLES:
        rows = spark.read.parquet(str(source / f"{name}.parquet"))
        columns = [f"{field.name} {field.dataType.simpleString()}" for field in rows.schema.fields]
        warehouse.sql(f"CREATE TABLE {name} ({', '.join(columns + (constraints(name) if keys else []))})")
        with warehouse.transaction() as transaction:
            transaction.insert(name, rows)
    return warehouse


def few_of_all(source: Path) -> Iterator[Batch]:
    """Some rows of every table go, of every second row in turn, and come again with the next commit."""
    random, gone = Random(1), {name: table(source, name).slice(0, 0) for name in ALL_TABLES}
    for number in count():
        come, gone = gone, {}
        for name in ALL_TABLES:
            places = range(number % 2, table(source, name).num_rows, 2)
            gone[name] = table(source, name).take(random.sample(places, min(CHANGED, (len(places) + 1) // 2)))
        yield Batch(gone, come)


def show(found: Taken) -> None:
    shown = Table("query", "first", "Spark", "÷", "repeated", "Spark", "÷")
    for name, (first, *rest) in found.items():
        again = {side: median(one[side] for one in rest) for side in first} if rest else first
        cells = [(one["rollview"], one["Spark"], one["rollview"] / one["Spark"]) for one in (first, again)]
        shown.add_row(name, *(f"{cell:.2f}" for cell in (*cells[0], *cells[1])))
    console.print(shown)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=0.0002)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--keys", action="store_true")
    parser.add_argument("--orders", type=int, default=1500, help="how many go, and come, in a commit; with --keys")
    parser.add_argument("--only", action="append", default=[], help="a query by name; may be given several times")
    options = parser.parse_args()
    about = {"keys": options.keys, "orders": options.orders, "only": options.only}
    show(measure(session.start(), options.scale, options.rounds, **about))


if __name__ == "__main__":
    main()
