"""Queries answered from views, beside the same queries over the tables: ``python -m bench.routing``.

The tables and views of workload W, and a view of revenue by nation and day. Measured in one run, rows compared: a
roll-up from that view; a view brought up by 0.1 % of changes that are pending, beside the tables and beside propagating
them; for 30 pairs of a query and a state of the views, the way that is chosen beside every other way; finding a way
among 200 views; commits below no view, below a view that is propagated later, and below an immediate one.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession

from bench.goals import Figures, verdicts
from bench.sides.rollview import Rollview
from bench.workload import VIEWS, Batch, batches, data, table
from rollview import Warehouse
from rollview.algebra.text import parse_one
from rollview.costs.steps import costs_of
from rollview.engine import session
from rollview.routing.answers import rows_along
from rollview.routing.residual import ResidualReader
from rollview.routing.route import Route, RouteWish, candidates, route

JOINED = """FROM customer JOIN orders ON o_custkey = c_custkey JOIN lineitem ON l_orderkey = o_orderkey
JOIN nation ON n_nationkey = c_nationkey"""
BY_DAY = f"""SELECT n_name, o_orderdate, SUM(l_extendedprice * (1 - l_discount)) AS revenue, COUNT(*) AS sold
{JOINED} GROUP BY n_name, o_orderdate"""
ROLL_UP = f"""SELECT n_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue, COUNT(*) AS sold {JOINED}
WHERE o_orderdate >= DATE '1995-01-01' AND o_orderdate < DATE '1997-01-01' GROUP BY n_name"""
QUERIES = {
    "by nation": VIEWS["v1"],
    "roll-up": ROLL_UP,
    "lines": VIEWS["v2"],
    "flags": VIEWS["v3"],
    "total": f"SELECT SUM(l_extendedprice * (1 - l_discount)) AS revenue {JOINED}",
    "asia": VIEWS["v4"],
}
PENDING = (0.0, 0.0001, 0.001, 0.01, 0.03)
"""Shares of the orders that go, and as many that come, since the views were refreshed."""
AMONG = 200


PARTS = ("commits", "roll-up", "residual", "among", "cells")


def measure(spark: SparkSession, scale: float, rounds: int, cells: float, parts: Sequence[str] = PARTS) -> Figures:
    """``cells``: the scale at which ways are compared."""
    found: Figures = {}

    def add(name: str, run: Callable[[], dict[str, float]]) -> None:
        if name in parts:
            found[name] = run()
            print(name, json.dumps(found[name]), flush=True)

    add("commits", lambda: commits(spark, rounds))
    if {"roll-up", "residual"} & set(parts):
        with Bench(spark, scale) as bench:
            add("roll-up", lambda: bench.rolled_up(rounds))
            add("residual", lambda: bench.residual(rounds))
    if {"among", "cells"} & set(parts):
        with Bench(spark, cells) as bench:
            add("cells", bench.cells)
            add("among", bench.among)
    return found


class Bench:
    def __init__(self, spark: SparkSession, scale: float) -> None:
        self.spark, self.scale = spark, scale
        self.scratch = Path(tempfile.mkdtemp(prefix="rollview-routing-"))
        self.side = Rollview(spark, scale, self.scratch / "warehouse", keys=True)
        self.warehouse = self.side.warehouse
        self.warehouse.create_view(f"CREATE MATERIALIZED VIEW by_day AS {BY_DAY}")
        self.warehouse.refresh()
        self.used = 0

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *about: object) -> None:
        self.side.close()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def batch(self, share: float) -> Batch:
        size = max(1, int(table(data(self.scale), "orders").num_rows * share))
        made = next(iter(batches(data(self.scale), size, after=self.used)))
        self.used += 2 * size
        return made

    def rolled_up(self, rounds: int) -> dict[str, float]:
        """``views`` and ``tables``: the same text again and again; ``new text…``: others, asked once each way."""

        def views(text: str = ROLL_UP) -> Any:
            return fetched(self.warehouse, text, rewrite="require")

        def tables(text: str = ROLL_UP) -> Any:
            return fetched(self.warehouse, text, rewrite="off")

        again = compared({"views": views, "tables": tables}, rounds + 1)
        texts = [ROLL_UP.replace("'1995-01-01'", f"'1995-01-{day:02}'") for day in range(2, rounds + 2)]
        once = [
            compared({"new text": lambda t=text: views(t), "new text, tables": lambda t=text: tables(t)}, 1)
            for text in texts
        ]
        return {**again, **{name: statistics.median(one[name] for one in once) for name in once[0]}}

    def residual(self, rounds: int) -> dict[str, float]:
        """Of V1: read with what is pending, computed from tables, and propagated."""
        found: dict[str, list[float]] = {"views": [], "tables": [], "propagate": []}
        for _ in range(rounds + 1):
            self.side.change(self.batch(0.001))
            for name, seconds in compared(
                {
                    "views": lambda: fetched(self.warehouse, "SELECT * FROM v1"),
                    "tables": lambda: fetched(self.warehouse, VIEWS["v1"], rewrite="off"),
                },
                1,
            ).items():
                found[name].append(seconds)
            found["propagate"].append(stopwatch(lambda: self.warehouse.propagate(["v1"])))
            self.warehouse.refresh()
        # The first round warms up.
        return {name: statistics.median(seconds[1:]) for name, seconds in found.items()}

    def among(self) -> dict[str, float]:
        """Milliseconds to find a way among many views over the same tables."""
        snapshot, place = self.warehouse.snapshot(), self.warehouse._place
        view = snapshot.get("by_day")
        assert view.definition is not None
        with place.catalog.write() as writer:
            for number in range(AMONG - len(VIEWS) - 1):
                name, text = f"many_{number}", f"{BY_DAY} HAVING COUNT(*) > {number}"
                about = (view.schema, view.constraints, replace(view.definition, query=text), view.depends_on)
                writer.add_relation(name, view.kind, *about, f"v-{uuid4().hex}", since=view.created)
                for pin in view.pins.values():
                    writer.pin(name, pin)
        tree = parse_one(
            "SELECT c_nationkey, COUNT(*) AS n FROM customer JOIN orders ON o_custkey = c_custkey GROUP BY 1"
        )
        seconds = [stopwatch(lambda: route(place, place.snapshot(), tree.copy(), RouteWish())) for _ in range(12)]
        return {"milliseconds": 1000 * statistics.median(seconds[2:]), "first": 1000 * seconds[0]}

    def cells(self) -> dict[str, float]:
        """By query and share of changes: how many times longer the chosen way took than the best."""
        for text in QUERIES.values():
            fetched(self.warehouse, text)
        found = {}
        for share in PENDING:
            self.warehouse.refresh()
            if share:
                self.side.change(self.batch(share))
            for name, text in QUERIES.items():
                found[f"{name}, {share:.2%}"] = self._cell(text)
        return found

    def _cell(self, text: str) -> float:
        place, tree = self.warehouse._place, parse_one(text)
        chosen = route(place, place.snapshot(), tree.copy(), RouteWish())
        ways = [chosen, *(one for one in self._ways(tree) if one.readings != chosen.readings)]
        best = [min(stopwatch(lambda way=way: self._read(tree, way)) for _ in range(2)) for way in ways]
        return best[0] / min(best)

    def _ways(self, tree: Any) -> Iterator[Route]:
        place = self.warehouse._place
        costs = costs_of(place.catalog, place.data, place.snapshot())
        for one in candidates(place, place.snapshot(), tree.copy(), RouteWish()):
            yield one
            for number, reading in enumerate(one.readings):
                for way in costs.ways(reading.relation, one.csn):
                    if way != reading:
                        yield replace(one, readings=(*one.readings[:number], way, *one.readings[number + 1 :]))

    def _read(self, tree: Any, way: Route) -> None:
        place = self.warehouse._place
        reader = ResidualReader(place.spark, place.data, place.snapshot().at(way.csn), place.catalog.changes)
        rows = rows_along(reader, tree, way)
        assert rows is not None
        rows.toArrow()


def commits(spark: SparkSession, rounds: int) -> dict[str, float]:
    """A commit of one row: below no view, below one that is propagated later, and below an immediate one, with what
    refreshing it takes."""
    policies = {"none": None, "later": "dpda", "immediate": "immediate"}
    scratch = Path(tempfile.mkdtemp(prefix="rollview-commits-"))
    places: dict[str, Warehouse] = {}
    found: dict[str, list[float]] = {name: [] for name in (*policies, "refresh")}
    try:
        for name, policy in policies.items():
            Warehouse.create(scratch / name).close()
            places[name] = Warehouse.open(scratch / name, spark=spark)
            places[name].sql("CREATE TABLE t (id INT PRIMARY KEY, g INT, x INT)")
            rows = spark.range(100_000).selectExpr("CAST(id AS INT) id", "CAST(id % 50 AS INT) g", "CAST(1 AS INT) x")
            with places[name].transaction() as transaction:
                transaction.insert("t", rows)
            if policy is not None:
                properties = f"TBLPROPERTIES ('rollview.policy' = '{policy}')"
                text = "SELECT g, SUM(x) AS s, COUNT(*) AS n FROM t GROUP BY g"
                places[name].create_view(f"CREATE MATERIALIZED VIEW v {properties} AS {text}")
        turns = deque(places.items())
        for number in range(8 * rounds + 5):
            # Nobody always comes after the same other one.
            turns.rotate()
            now = {name: stopwatch(lambda n=number, p=place: one_row(p, n)) for name, place in turns}
            now["refresh"] = stopwatch(lambda: places["later"].refresh(["v"]))
            for name, seconds in now.items() if number >= 5 else ():
                found[name].append(seconds)
    finally:
        for place in places.values():
            place.close()
        shutil.rmtree(scratch, ignore_errors=True)
    return {name: statistics.median(seconds) for name, seconds in found.items()}


def one_row(warehouse: Warehouse, number: int) -> None:
    warehouse.sql(f"INSERT INTO t VALUES ({1_000_000 + number}, {number % 50}, 1)")


def fetched(warehouse: Warehouse, text: str, **wish: Any) -> Counter[Any]:
    answer = warehouse.query(text, **wish)
    assert answer.fetch is not None
    found = answer.fetch().rows
    return Counter(zip(*(column.to_pylist() for column in found.columns), strict=True))


def compared(sides: dict[str, Callable[[], Counter[Any]]], times: int) -> dict[str, float]:
    """Medians of each side, one after the other; all have the same rows. The first of several times warms up."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(times):
        told = []
        for name, run in sides.items():
            began = time.perf_counter()
            told.append(run())
            seconds[name].append(time.perf_counter() - began)
        if any(one != told[0] for one in told):
            raise SystemExit("rollview's views and tables do not agree")
    return {name: statistics.median(one[1:] or one) for name, one in seconds.items()}


def stopwatch(run: Callable[[], Any]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--cells", type=float, default=0.3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--part", action="append", choices=PARTS, help="only this; may be given several times")
    options = parser.parse_args()
    found = measure(session.start(), options.scale, options.rounds, options.cells, options.part or PARTS)
    for verdict in verdicts({}, routed=found)[-5:]:
        print(verdict.number, verdict.figure, verdict.met)


if __name__ == "__main__":
    main()
