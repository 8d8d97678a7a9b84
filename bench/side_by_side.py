"""Goal P12: eight small views that do not read each other, refreshed by one and by four workers.

``python -m bench.side_by_side``. Three warehouses have the same tables and views and take the same commits. *Serial* is
the stages called in a plain loop, without the scheduler. Sides take turns in one session, and what they show is
compared every round.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from pyspark.sql import SparkSession
from rich.console import Console

from bench.goals import Figures, verdicts
from rollview import Warehouse
from rollview.apply import plan_apply, run_apply
from rollview.costs.steps import past_steps
from rollview.engine import session
from rollview.engine.meter import Meter
from rollview.propagate import plan_propagate, run_propagate
from rollview.relations.reader import Reader

ROWS, CHANGED = 20_000, 50
CORES = 2
VIEWS = {
    "by_customer": "SELECT customer, SUM(price) AS price, COUNT(*) AS n FROM sales GROUP BY customer",
    "by_shop": "SELECT shop, SUM(price) AS price FROM sales GROUP BY shop",
    "by_day": "SELECT day, COUNT(*) AS n, SUM(price) AS price FROM sales GROUP BY day",
    "by_region": "SELECT region, SUM(price) AS price FROM sales JOIN shops ON shop = id GROUP BY region",
    "dear": "SELECT * FROM sales WHERE price > 900",
    "with_region": "SELECT number, region, price FROM sales JOIN shops ON shop = id WHERE price < 100",
    "first_days": "SELECT number, customer, day FROM sales WHERE day < 20",
    "regions_by_day": "SELECT region, day, COUNT(*) AS n FROM sales JOIN shops ON shop = id GROUP BY region, day",
}
Side = Callable[[Warehouse], object]


def _serial(warehouse: Warehouse) -> None:
    place, meters = warehouse._place, {name: Meter() for name in VIEWS}
    ahead = {}
    with place.catalog.lease(*(f"relation:{name}" for name in VIEWS)) as lease:
        csn = place.snapshot().moment.csn
        for name in VIEWS:
            snapshot = place.snapshot()
            past = lambda name=name: past_steps(place.catalog, name)  # noqa: E731
            step = plan_propagate(snapshot, place.data, name, csn, place.catalog.changes, past, applied_next=True)
            assert step is not None
            spark = place.spark
            if step.shuffles_little:
                spark = session.for_few_rows(spark) if step.at_once else session.for_small_work(spark)
            done = run_propagate(Reader(spark, place.data, snapshot), place.catalog, lease, step, meters[name])
            if done.ahead is not None:
                ahead[name] = done.ahead
        reader = Reader(place.spark, place.data, place.snapshot())
        steps = plan_apply(reader.snapshot, place.data, tuple(VIEWS), csn)
        run_apply(reader, place.catalog, lease, steps, meters, ahead=ahead)


SIDES: dict[str, Side] = {
    "serial": _serial,
    "1 worker": lambda warehouse: warehouse.refresh(workers=1),
    "4 workers": lambda warehouse: warehouse.refresh(workers=4),
}


def _statements(random: Random, first: int, rows: int) -> Iterator[str]:
    made = ((number, *map(random.randrange, (500, 40, 365, 1000))) for number in range(first, first + rows))
    yield f"INSERT INTO sales VALUES {', '.join(map(str, made))}"
    if first:
        yield f"DELETE FROM sales WHERE number % 997 = {random.randrange(997)}"


def _made(spark: SparkSession, root: Path) -> Warehouse:
    Warehouse.create(root).close()
    warehouse = Warehouse.open(root, spark=spark)
    warehouse.sql(
        "CREATE TABLE sales (number INT, customer INT, shop INT, day INT, price INT)",
        "CREATE TABLE shops (id INT, region INT)",
        f"INSERT INTO shops VALUES {', '.join(f'({shop}, {shop % 7})' for shop in range(40))}",
        *_statements(Random(0), 0, ROWS),
    )
    for name, query in VIEWS.items():
        warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    return warehouse


def measure(spark: SparkSession, rounds: int, warm: int = 3) -> Figures:
    """Seconds by side: the median of the rounds after the first."""
    folder = Path(tempfile.mkdtemp(prefix="rollview-bench-"))
    try:
        warehouses = {side: _made(spark, folder / str(place)) for place, side in enumerate(SIDES)}
        seconds: dict[str, list[float]] = {side: [] for side in SIDES}
        for number in range(warm + rounds):
            for side in sorted(SIDES, key=lambda side: Random(f"{number} {side}").random()):
                warehouses[side].sql(*_statements(Random(number), (number + 1) * ROWS, CHANGED))
                began = time.perf_counter()
                SIDES[side](warehouses[side])
                seconds[side].append(time.perf_counter() - began)
            _compare(warehouses)
        return {"eight small views": {side: median(taken[warm:]) for side, taken in seconds.items()}}
    finally:
        shutil.rmtree(folder)


def _compare(warehouses: dict[str, Warehouse]) -> None:
    for name in VIEWS:
        shown: list[Counter[Any]] = [Counter(warehouse.read(name).collect()) for warehouse in warehouses.values()]
        assert shown[0] == shown[1] == shown[2], name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=12)
    spark = session.start({"spark.master": f"local[{CORES}]"}, app="rollview bench")
    found = measure(spark, parser.parse_args().rounds)
    console = Console()
    for side, seconds in found["eight small views"].items():
        console.print(f"{side}: {seconds:.3f} s")
    console.print(*(one for one in verdicts({}, side_by_side=found) if one.number == "P12"))


if __name__ == "__main__":
    main()
