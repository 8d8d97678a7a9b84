"""All sides interleaved in one run, results compared every round: ``make bench``, ``make bench-quick``.

Prints the goals with the figures of the run. A scenario that is done is kept in ``bench/results``; after an
interruption the next run goes on with the first that is not.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from bench import capture, copy_free, hot_keys, picture, plain_rows, plans, routing, side_by_side
from bench.goals import Figures, Planned, Rounds, median, ratio, verdicts
from bench.scenarios import FULL, QUICK, Scenario
from bench.sides import Side, pg_ivm
from bench.sides.duck import Duck
from bench.sides.hand_written import HandWritten
from bench.sides.pg_ivm import PgIvm
from bench.sides.postgres import Postgres
from bench.sides.rollview import Rollview
from bench.sides.spark_full import SparkFull
from bench.sides.tiny import TinyQuery
from bench.workload import batches, data, table
from rollview.engine import session

RESULTS = Path(__file__).parent / "results"
console = Console()


def main() -> None:
    options = arguments()
    asked = [s for s in (QUICK if options.quick else FULL) if not options.only or s.name in options.only]
    scenarios = [scenario for scenario in asked if can_be_measured(scenario)]
    kept = RESULTS / ("quick.json" if options.quick else "bench.json")
    found: dict[str, Any] = {} if options.again or not kept.exists() else json.loads(kept.read_text())["scenarios"]
    RESULTS.mkdir(exist_ok=True)
    spark = session.start()
    for scenario in scenarios:
        if scenario.name not in found or len(found[scenario.name]["rounds"]) < options.rounds:
            found[scenario.name] = measure(spark, scenario, options)
            kept.write_text(json.dumps(report(found), indent=1) + "\n")
    captured = RESULTS / ("capture-quick.json" if options.quick else "capture.json")
    if options.again or not captured.exists():
        rows, seconds = (20_000, 1.0) if options.quick else (200_000, 5.0)
        captured.write_text(json.dumps(capture.measure(rows, seconds), indent=1) + "\n")
    rows = RESULTS / ("plain-rows-quick.json" if options.quick else "plain-rows.json")
    if options.again or not rows.exists():
        rows.write_text(json.dumps(measured_rows(spark, quick=options.quick), indent=1) + "\n")
    hot = RESULTS / ("hot-keys-quick.json" if options.quick else "hot-keys.json")
    if options.again or not hot.exists():
        commits = hot_keys.QUICK if options.quick else hot_keys.COMMITS
        hot.write_text(json.dumps(hot_keys.measure(spark, commits), indent=1) + "\n")
    planned = RESULTS / ("plans-quick.json" if options.quick else "plans.json")
    if options.again or not planned.exists():
        views, times = (2, 4) if options.quick else (6, 12)
        planned.write_text(json.dumps(plans.measure(spark, views, times), indent=1) + "\n")
    routed = RESULTS / ("routing-quick.json" if options.quick else "routing.json")
    if options.again or not routed.exists():
        scale, times, cells = (0.1, 2, 0.1) if options.quick else (1, 5, 0.3)
        routed.write_text(json.dumps(routing.measure(spark, scale, times, cells), indent=1) + "\n")
    beside = RESULTS / ("side-by-side-quick.json" if options.quick else "side-by-side.json")
    if options.again or not beside.exists():
        beside.write_text(json.dumps(side_by_side.measure(spark, 3 if options.quick else 12), indent=1) + "\n")
    free = RESULTS / ("copy-free-quick.json" if options.quick else "copy-free.json")
    if options.again or not free.exists():
        scale, times = (0.1, 2) if options.quick else (1, 5)
        free.write_text(json.dumps(copy_free.measure(spark, scale, times, times), indent=1) + "\n")
    copy_free.show(json.loads(free.read_text()), console)
    measured = (captured, rows, hot, planned, routed, beside)
    show(found, *(json.loads(one.read_text()) for one in measured))
    picture.draw({name: facts["rounds"] for name, facts in found.items()}, kept.with_suffix(".svg"))
    console.print(f"written to {kept} and {kept.with_suffix('.svg').name} beside it")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one small scenario")
    parser.add_argument("--only", action="append", help="a scenario by name; may be given several times")
    parser.add_argument("--again", action="store_true", help="measure also what was measured before")
    parser.add_argument("--warm-up", type=int, default=10, help="rounds that are not counted")
    parser.add_argument("--rounds", type=int, default=10, help="rounds that are counted")
    return parser.parse_args()


def measured_rows(spark: SparkSession, *, quick: bool) -> Figures:
    sizes = ((0.1, 150, 2),) if quick else ((1, 1500, 5), (5, 1500, 3))
    return {f"sf{scale:g}": plain_rows.measure(spark, scale, orders, rounds) for scale, orders, rounds in sizes}


def can_be_measured(scenario: Scenario) -> bool:
    can = "pg_ivm" not in scenario.sides or pg_ivm.unpacked() is not None
    if not can:
        console.print(f"{scenario.name}: NOT MEASURED, pg_ivm is not here; get it with: make pg-ivm")
    return can


def measure(spark: SparkSession, scenario: Scenario, options: argparse.Namespace) -> dict[str, Any]:
    scratch = Path(tempfile.mkdtemp(prefix="rollview-bench-"))
    sides: dict[str, Side] = {}
    try:
        duck = Duck(scenario.scale)
        for name in scenario.sides:
            began = time.perf_counter()
            sides[name] = made(name, spark, scenario, scratch, duck)
            console.print(f"{scenario.name}: {name} ready in {time.perf_counter() - began:.0f} s")
        return rounds(spark, scenario, sides, duck, options)
    finally:
        for side in sides.values():
            side.close()
        shutil.rmtree(scratch, ignore_errors=True)


def made(name: str, spark: SparkSession, scenario: Scenario, scratch: Path, duck: Duck) -> Side:
    def first(view: str) -> pa.Table:
        duck.refresh(view)
        return duck.rows(view)

    makers: dict[str, Callable[[], Side]] = {
        "rollview": lambda: Rollview(spark, scenario.scale, scratch / "warehouse", keys=scenario.keys),
        "Spark full": lambda: SparkFull(spark, scenario.scale, scratch / "full"),
        "hand-written Spark": lambda: HandWritten(spark, scenario.scale, scratch / "hand", first),
        "DuckDB full": lambda: duck,
        "PostgreSQL REFRESH": lambda: Postgres(scenario.scale, scratch),
        "pg_ivm": lambda: PgIvm(scenario.scale, scratch),
        "tiny query": lambda: TinyQuery(spark, scratch / "tiny"),
    }
    return makers[name]()


def rounds(
    spark: SparkSession, scenario: Scenario, sides: dict[str, Side], duck: Duck, options: argparse.Namespace
) -> dict[str, Any]:
    source = data(scenario.scale)
    orders = table(source, "orders").num_rows
    size = int(scenario.size) if scenario.size >= 1 else max(1, int(orders * scenario.size))
    warm_up, wanted = options.warm_up, options.rounds
    most = (orders - 1) // (2 * size)
    if most < warm_up + wanted:
        warm_up, wanted = max(1, most - wanted), min(wanted, most - 1)
    seconds: list[dict[str, dict[str, float]]] = []
    facts: dict[str, Any] = {}
    for number, batch in zip(range(warm_up + wanted), batches(source, size), strict=False):
        for side in {id(side): side for side in (*sides.values(), duck)}.values():
            side.change(batch)
        one = {view: one_view(spark, sides, duck, view, number, facts) for view in scenario.views}
        if scenario.past and number >= warm_up:
            one["v1"].update(in_the_past(sides["rollview"], Random(number)))
        if number >= warm_up:
            seconds.append(one)
        shown = " ".join(f"{view} {times['rollview']:.2f}" for view, times in one.items())
        console.print(f"{scenario.name}: round {number + 1} of {warm_up + wanted}: {shown}")
    return {"orders_changed": 2 * size, "rounds": seconds, "facts": facts}


def one_view(
    spark: SparkSession, sides: dict[str, Side], duck: Duck, view: str, number: int, facts: dict[str, Any]
) -> dict[str, float]:
    """Every side once, each round beginning with another one; then the results are compared."""
    order = list(sides)
    order = order[number % len(order) :] + order[: number % len(order)]
    times: dict[str, float] = {}
    for name in order:
        jobs = job_counter(spark)
        times[name] = seconds_to_refresh(sides[name], view)
        if name == "rollview":
            done = sides[name].last  # type: ignore[attr-defined]
            facts[view] = {"jobs": jobs(), **done.to_json()}
    if "DuckDB full" not in sides:
        duck.refresh(view)
    expected = bag(duck.rows(view))
    for name, side in sides.items():
        rows = None if side is duck else side.rows(view)
        if rows is not None and bag(rows) != expected:
            raise SystemExit(f"{name} is wrong on {view}: {bag(rows) - expected} instead of {expected - bag(rows)}")
    return times


def in_the_past(side: Any, random: Random) -> dict[str, float]:
    """Roll and read at a commit of the last ten, then go back to the newest."""
    delta = side.warehouse.snapshot().get("v1").pins["delta"]
    newest = delta.through
    past = random.randint(max(delta.after, newest - 10), newest - 1)
    times = {
        "read now": stopwatch(lambda: side.warehouse.read("v1").toArrow()),
        "read the past": stopwatch(lambda: side.warehouse.read("v1", as_of=past).toArrow()),
        "roll to the past": stopwatch(lambda: side.warehouse.roll(["v1"], past)),
    }
    side.warehouse.roll(["v1"], newest)
    return times


def bag(rows: pa.Table) -> Counter[tuple[str, ...]]:
    columns = [[_spelled(value) for value in column.to_pylist()] for column in rows.columns]
    return Counter(zip(*columns, strict=True))


def _spelled(value: Any) -> str:
    return str(Decimal(value).normalize()) if isinstance(value, Decimal | int) else str(value)


def seconds_to_refresh(side: Side, view: str) -> float:
    began = time.perf_counter()
    told = side.refresh(view)
    return time.perf_counter() - began if told is None else told


def stopwatch(run: Callable[[], Any]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def job_counter(spark: SparkSession) -> Callable[[], int]:
    group = f"bench-{time.perf_counter_ns()}"
    spark.sparkContext.setJobGroup(group, group)
    return lambda: len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))


def report(found: dict[str, Any]) -> dict[str, Any]:
    return {"python": platform.python_version(), "cpus": os.cpu_count(), "scenarios": found}


def show(
    found: dict[str, Any],
    captured: Figures,
    rows: Figures,
    hot: Figures,
    planned: Planned,
    routed: Figures,
    beside: Figures,
) -> None:
    measured: Rounds = {name: facts["rounds"] for name, facts in found.items()}
    for name, seconds in measured.items():
        heading = Table("view", *seconds[0]["v1"], "Spark full ÷ rollview", "jobs", "files read", "files written")
        heading.title = f"{name}: medians of {len(seconds)} rounds, seconds"
        for view in seconds[0]:
            sides = [
                f"{median(measured, name, view, side):.2f}" if side in seconds[0][view] else ""
                for side in seconds[0]["v1"]
            ]
            facts = found[name]["facts"][view]
            times = f"{ratio(measured, name, view, 'Spark full', 'rollview'):.1f}"
            heading.add_row(view, *sides, times, *(str(facts[k]) for k in ("jobs", "files_read", "files_written")))
        console.print(heading)
    capture.show(captured, console)
    plain_rows.show(rows, console)
    hot_keys.show(hot, console)
    goals = Table("goal", "what", "figure", "met", title="Goals")
    for verdict in verdicts(measured, captured, rows, hot, planned, routed, beside):
        met = "–" if verdict.met is None else "yes" if verdict.met else "no"
        goals.add_row(verdict.number, verdict.goal, verdict.figure, met)
    console.print(goals)


if __name__ == "__main__":
    main()
