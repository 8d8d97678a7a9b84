"""Incremental refresh beside full recomputation, interleaved in one run: ``make bench``.

Prints medians of per-round ratios, and what a refresh needed: Spark actions, jobs, files and bytes. Results are
compared with recomputation every round, outside the measured time.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from bench.workload import VIEWS, Workload, data
from rollview import Warehouse
from rollview.engine import session

RESULTS = Path(__file__).parent / "results"
console = Console()


def main() -> None:
    options = arguments()
    spark = session.start()
    scratch = Path(tempfile.mkdtemp(prefix="rollview-bench-"))
    try:
        rows = [row for keys in (True, False) for row in measure(spark, scratch, options, declared_keys=keys)]
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    report(rows, options)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="TPC-H scale factor")
    parser.add_argument("--share", type=float, default=0.001, help="share of the orders that each batch changes")
    parser.add_argument("--warm-up", type=int, default=5, help="rounds that are not counted")
    parser.add_argument("--rounds", type=int, default=10, help="rounds that are counted")
    return parser.parse_args()


def measure(
    spark: SparkSession, scratch: Path, options: argparse.Namespace, *, declared_keys: bool
) -> list[dict[str, Any]]:
    root = scratch / ("keys" if declared_keys else "no-keys")
    Warehouse.create(root).close()
    work = Workload(spark, Warehouse.open(root, spark=spark), data(options.scale))
    began = time.perf_counter()
    work.load(declared_keys=declared_keys)
    console.print(f"loaded in {time.perf_counter() - began:.0f} s ({'declared keys' if declared_keys else 'no keys'})")
    size = max(1, int(work.orders() * options.share))
    rounds: dict[str, list[dict[str, Any]]] = {view: [] for view in VIEWS}
    for number in range(options.warm_up + options.rounds):
        work.change(size)
        for view in VIEWS:
            found = one_round(work, view, scratch / "recomputed")
            if number >= options.warm_up:
                rounds[view].append(found)
        console.print(f"round {number + 1} of {options.warm_up + options.rounds}", end="\r")
    return [summary(view, declared_keys, size, found) for view, found in rounds.items()]


def one_round(work: Workload, view: str, target: Path) -> dict[str, Any]:
    full, _ = stopwatch(lambda: work.recompute(view, target))
    jobs = job_counter(work.spark)
    refresh, answer = stopwatch(lambda: work.warehouse.refresh([view]))
    used = jobs()
    check = work.warehouse.verify(view)
    if not check.equal:
        raise SystemExit(f"{view} is not equal to recomputation: {check}")
    done = answer.views[0]
    return {
        "full": full,
        "refresh": refresh,
        "actions": done.actions,
        "jobs": used,
        "files_read": done.files_read,
        "bytes_read": done.bytes_read,
        "files_written": done.files_written,
        "bytes_written": done.bytes_written,
        "delta_rows": done.delta_rows,
    }


def stopwatch(run: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    answer = run()
    return time.perf_counter() - began, answer


def job_counter(spark: SparkSession) -> Callable[[], int]:
    """Spark jobs since now: by the largest job number seen, which only a classic session tells."""
    group = f"bench-{time.perf_counter_ns()}"
    spark.sparkContext.setJobGroup(group, group)
    return lambda: len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))


def summary(view: str, declared_keys: bool, size: int, rounds: list[dict[str, Any]]) -> dict[str, Any]:
    def median(name: str) -> float:
        return statistics.median(found[name] for found in rounds)

    return {
        "view": view,
        "declared_keys": declared_keys,
        "orders_changed": 2 * size,
        "times_faster": statistics.median(found["full"] / found["refresh"] for found in rounds),
        **{name: median(name) for name in rounds[0]},
    }


def report(rows: list[dict[str, Any]], options: argparse.Namespace) -> None:
    title = f"TPC-H SF {options.scale:g}, batches of {options.share:.1%}, medians of {options.rounds} rounds"
    table = Table(
        "view", "keys", "full recompute", "refresh", "times faster", "actions", "jobs", "read", "written", title=title
    )
    for row in rows:
        table.add_row(
            row["view"],
            "declared" if row["declared_keys"] else "none",
            f"{row['full']:.2f} s",
            f"{row['refresh']:.2f} s",
            f"{row['times_faster']:.1f}",
            f"{row['actions']:.0f}",
            f"{row['jobs']:.0f}",
            f"{row['files_read']:.0f} files, {row['bytes_read'] / 1024:,.0f} KiB",
            f"{row['files_written']:.0f} files, {row['bytes_written'] / 1024:,.0f} KiB",
        )
    console.print(table)
    RESULTS.mkdir(exist_ok=True)
    target = RESULTS / f"refresh-sf{options.scale:g}.json"
    facts = {"python": platform.python_version(), "cpus": os.cpu_count(), **vars(options), "rows": rows}
    target.write_text(json.dumps(facts, indent=2) + "\n")
    console.print(f"written to {target.relative_to(Path.cwd()) if target.is_relative_to(Path.cwd()) else target}")


if __name__ == "__main__":
    main()
