"""Rows at a csn beside plain files, transactions beside a refresh, loads beside copies: ``python -m bench.plain_rows``.

The tables of workload W with keys and foreign keys. Loading them is measured beside Spark copying the same rows as
Parquet. In each round a transaction replaces orders with their lines and the first view is refreshed; then the lines,
with about 1 % of changes pending since their state, and each view recomputed are measured beside the same rows in plain
files and Spark's own computation from nothing, whose answers are compared.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table

from bench.goals import Figures
from bench.sides.rollview import constraints
from bench.workload import TABLES, VIEWS, Batch, batches, data, table
from rollview import Warehouse
from rollview.engine import session

PENDING = 0.0025
"""The share of the orders that goes before the rounds, and again comes, in each of two transactions."""

Seconds = dict[str, list[float]]


def measure(spark: SparkSession, scale: float, orders: int, rounds: int) -> dict[str, float]:
    """Medians in seconds by what was done. ``orders``: how many go and how many come in a transaction."""
    scratch = Path(tempfile.mkdtemp(prefix="rollview-rows-"))
    found: Seconds = defaultdict(list)
    try:
        warehouse = loaded(spark, scale, scratch, found)
        try:
            run_rounds(spark, warehouse, scale, scratch, orders, rounds, found)
        finally:
            warehouse.close()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return {name: statistics.median(seconds) for name, seconds in found.items()}


def loaded(spark: SparkSession, scale: float, scratch: Path, found: Seconds) -> Warehouse:
    """Each table is copied and loaded in turn; the first copy of all only warms Spark up."""
    rows = {name: spark.read.parquet(str(data(scale) / f"{name}.parquet")) for name in TABLES}
    for name in TABLES:
        rows[name].write.parquet(str(scratch / "warm" / name))
    Warehouse.create(scratch / "warehouse").close()
    warehouse = Warehouse.open(scratch / "warehouse", spark=spark)
    copy = load = 0.0
    for name in TABLES:
        columns = [f"{field.name} {field.dataType.simpleString()}" for field in rows[name].schema.fields]
        warehouse.sql(f"CREATE TABLE {name} ({', '.join(columns + constraints(name))})")
        copy += stopwatch(lambda name=name: rows[name].write.parquet(str(scratch / "copy" / name)))
        load += stopwatch(lambda name=name: inserted(warehouse, name, rows[name]))
    found["copy"].append(copy)
    found["load"].append(load)
    return warehouse


def inserted(warehouse: Warehouse, name: str, rows: DataFrame) -> None:
    with warehouse.transaction() as transaction:
        transaction.insert(name, rows)


def run_rounds(
    spark: SparkSession,
    warehouse: Warehouse,
    scale: float,
    scratch: Path,
    orders: int,
    rounds: int,
    found: Seconds,
) -> None:
    source = data(scale)
    pending = max(1, int(table(source, "orders").num_rows * PENDING))
    before = list(zip(range(2), batches(source, pending), strict=False))
    for _, batch in before:
        changed(spark, warehouse, batch)
    for name, query in VIEWS.items():
        warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    later = batches(source, orders, after=2 * pending * len(before))
    for number, batch in zip(range(rounds + 1), later, strict=False):
        now: Seconds = defaultdict(list)
        now["transaction"].append(stopwatch(lambda batch=batch: changed(spark, warehouse, batch)))
        now["refresh v1"].append(stopwatch(lambda: warehouse.refresh(["v1"])))
        read_both(spark, warehouse, scratch, now, rollview_first=number % 2 == 0)
        # The first round is for warming up.
        for name, seconds in now.items() if number else ():
            found[name] += seconds


def changed(spark: SparkSession, warehouse: Warehouse, batch: Batch) -> None:
    with warehouse.transaction() as transaction:
        for name in ("lineitem", "orders"):
            transaction.delete(name, spark.createDataFrame(batch.deleted[name]))
        for name in ("orders", "lineitem"):
            transaction.insert(name, spark.createDataFrame(batch.inserted[name]))


def read_both(
    spark: SparkSession, warehouse: Warehouse, scratch: Path, found: Seconds, *, rollview_first: bool
) -> None:
    plain = spark.newSession()
    for name in TABLES:
        place = str(scratch / "plain" / name)
        warehouse.read(name).write.mode("overwrite").parquet(place)
        plain.read.parquet(place).createOrReplaceTempView(name)
    sides: list[tuple[str, Callable[[], Any]]] = [
        ("rows", lambda: noop(warehouse.read("lineitem"))),
        ("plain", lambda: noop(plain.table("lineitem"))),
    ]
    interleaved(sides, found, rollview_first)
    for name, query in VIEWS.items():
        if name == "v1":
            continue
        target = str(scratch / "full" / name)
        interleaved(
            [
                (f"recompute {name}", lambda name=name: warehouse.refresh([name], mode="recompute")),
                (f"full {name}", lambda q=query, t=target: plain.sql(q).write.mode("overwrite").parquet(t)),
            ],
            found,
            rollview_first,
        )
        left, right = warehouse.read(name), spark.read.parquet(target)
        if left.exceptAll(right).count() or right.exceptAll(left).count():
            raise SystemExit(f"rollview and Spark do not agree on {name}")


def interleaved(sides: list[tuple[str, Callable[[], Any]]], found: Seconds, in_order: bool) -> None:
    for name, run in sides if in_order else reversed(sides):
        found[name].append(stopwatch(run))


def noop(rows: DataFrame) -> None:
    rows.write.format("noop").mode("overwrite").save()


def stopwatch(run: Callable[[], Any]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def show(figures: Figures, console: Console) -> None:
    for scale, one in figures.items():
        shown = Table("what", "seconds", title=f"{scale}: medians")
        for name, seconds in one.items():
            shown.add_row(name, f"{seconds:.2f}")
        console.print(shown)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--orders", type=int, default=1500)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    found = measure(session.start(), options.scale, options.orders, options.rounds)
    print(json.dumps(found, indent=1))
    show({f"sf{options.scale:g}": found}, Console())


if __name__ == "__main__":
    main()
