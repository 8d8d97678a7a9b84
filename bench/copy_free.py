"""A view whose tables stay at PostgreSQL, beside its copied twin and REFRESH there: ``python -m bench.copy_free``.

V1 of the workload, batches of 0.1 % of the orders. Both warehouses capture the same server through wires that count the
bytes which cross them; each round another side begins, and all three show the same rows.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table
from tests.servers.postgres import PostgresServer, running_postgres

from bench.goals import Figures
from bench.sides.postgres import SETTINGS, Tables
from bench.wire import Wire, counted_wire
from bench.workload import VIEWS, Batch, batches, data, table
from rollview import Warehouse
from rollview.engine import session
from rollview.sources import SourceSettings, TableSettings

READ = ("nation", "customer", "orders", "lineitem")
SHARE = 0.001
VIEW = f"CREATE MATERIALIZED VIEW v1 AS {VIEWS['v1']}"


class Captured:
    """A warehouse that reads the server's log. ``asked``: no rows of its tables are here."""

    def __init__(self, spark: SparkSession, server: PostgresServer, wire: Wire, root: Path, *, asked: bool) -> None:
        Warehouse.create(root).close()
        self.warehouse, self.wire = Warehouse.open(root, spark=spark), wire
        url = f"postgresql://{server.user}@127.0.0.1:{wire.port}/postgres"
        tables = tuple(TableSettings(name, name, needed=True, asked=asked) for name in READ)
        self.warehouse.add_source("shop", SourceSettings("postgres", url, tables), declared=[VIEW])
        self.warehouse.create_view(VIEW)
        self.first = wire.total

    def refresh(self) -> dict[str, float]:
        """Seconds and bytes of capturing and of refreshing."""
        before, began = self.wire.total, time.perf_counter()
        self.warehouse.capture()
        captured, between = self.wire.total, time.perf_counter()
        done = self.warehouse.refresh()
        assert done.lagging == (), done.views[0].reason
        took = {"capture": between - began, "refresh": time.perf_counter() - between}
        return {**took, "captured bytes": captured - before, "asked bytes": self.wire.total - captured}

    def rows(self) -> list[tuple[str, ...]]:
        return sorted(tuple(map(str, row)) for row in self.warehouse.read("v1").collect())


@contextmanager
def _sides(spark: SparkSession, scale: float) -> Iterator[tuple[Tables, dict[str, Captured]]]:
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rollview-copy-free-")))
        server = stack.enter_context(running_postgres(settings={**SETTINGS, "wal_level": "logical"}))
        tables = stack.enter_context(Tables(server.url(), scale, scratch))
        for name in READ:
            tables.execute(f"ALTER TABLE {name} REPLICA IDENTITY FULL")
        tables.execute(f"CREATE MATERIALIZED VIEW v1 AS {VIEWS['v1']}")
        sides = {}
        for name in ("asked", "copied"):
            wire = stack.enter_context(counted_wire(server.host, server.port))
            sides[name] = Captured(spark, server, wire, scratch / name, asked=name == "asked")
            stack.callback(sides[name].warehouse.close)
        yield tables, sides


def measure(spark: SparkSession, scale: float, warm_up: int, rounds: int) -> Figures:
    """By side, medians of the rounds."""
    found: dict[str, list[dict[str, float]]] = {"PostgreSQL REFRESH": [], "asked": [], "copied": []}
    size = max(1, int(table(data(scale), "orders").num_rows * SHARE))
    with _sides(spark, scale) as (tables, sides):
        for number, batch in zip(range(warm_up + rounds), batches(data(scale), size), strict=False):
            one = _round(tables, sides, batch, number)
            if number >= warm_up:
                for name, figures in one.items():
                    found[name].append(figures)
        first = {name: {"first bytes": float(side.first)} for name, side in sides.items()}
    told = {name: {what: median(one[what] for one in some) for what in some[0]} for name, some in found.items()}
    return {name: {**figures, **first.get(name, {})} for name, figures in told.items()}


def _round(tables: Tables, sides: dict[str, Captured], batch: Batch, number: int) -> dict[str, dict[str, float]]:
    tables.change(batch)
    order = ["PostgreSQL REFRESH", "asked", "copied"]
    order = order[number % 3 :] + order[: number % 3]
    found: dict[str, dict[str, float]] = {}
    for name in order:
        if name in sides:
            found[name] = sides[name].refresh()
        else:
            began = time.perf_counter()
            tables.execute("REFRESH MATERIALIZED VIEW v1")
            found[name] = {"refresh": time.perf_counter() - began}
    if sides["asked"].rows() != sides["copied"].rows():
        raise SystemExit("The asked view and its copied twin differ.")
    (own,) = tables.execute("SELECT count(*), sum(sold) FROM v1").fetchall()
    mine = sides["asked"].warehouse.read("v1").selectExpr("count(*)", "sum(sold)").collect()
    assert tuple(map(int, own)) == tuple(map(int, mine[0])), (own, mine)  # type: ignore[call-overload]
    return found


def show(figures: Figures, console: Console) -> None:
    headings = ("capture s", "refresh s", "captured KB", "asked KB", "first copy MB")
    shown = Table("side", *headings, title="V1 at 0.1 %, over PostgreSQL")
    for name, one in figures.items():
        seconds = (f"{one['capture']:.2f}" if "capture" in one else "", f"{one['refresh']:.2f}")
        sizes = (one.get(what) for what in ("captured bytes", "asked bytes"))
        first = f"{one['first bytes'] / 1e6:.1f}" if "first bytes" in one else ""
        shown.add_row(name, *seconds, *("" if size is None else f"{size / 1e3:,.0f}" for size in sizes), first)
    console.print(shown)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--warm-up", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    show(measure(session.start(), options.scale, options.warm_up, options.rounds), Console())


if __name__ == "__main__":
    main()
