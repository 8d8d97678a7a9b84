"""What is measured: which tables, keys, batches, views and sides, and which goals that speaks to."""

from __future__ import annotations

from dataclasses import dataclass

from bench.workload import VIEWS

ALL = ("rollview", "Spark full", "hand-written Spark", "DuckDB full", "PostgreSQL REFRESH")
PAIR = ("rollview", "Spark full")


@dataclass(frozen=True, slots=True)
class Scenario:
    """``size``: orders deleted, and as many new ones, per batch; a share of all orders if below one."""

    name: str
    scale: float
    size: float
    keys: bool = True
    views: tuple[str, ...] = ("v1",)
    sides: tuple[str, ...] = PAIR
    past: bool = False
    """Also roll to a commit in the past, and read one."""


FULL = (
    Scenario("sf1 keys 0.1%", 1, 0.001, views=tuple(VIEWS), sides=ALL, past=True),
    Scenario("sf1 plain 0.1%", 1, 0.001, keys=False),
    Scenario("sf1 keys 10", 1, 10, sides=("rollview", "Spark full", "tiny query")),
    Scenario("sf1 keys 1000", 1, 1000),
    Scenario("sf1 plain 1000", 1, 1000, keys=False),
    Scenario("sf1 keys 1%", 1, 0.01, views=tuple(VIEWS), sides=("rollview", "Spark full", "hand-written Spark")),
    Scenario("sf1 keys 1% pg_ivm", 1, 0.01, sides=("rollview", "Spark full", "pg_ivm")),
    Scenario("sf1 keys 10%", 1, 0.1, views=tuple(VIEWS)),
    Scenario("sf0.1 keys 0.1%", 0.1, 0.001, views=tuple(VIEWS), sides=ALL),
    Scenario("sf5 keys 1000", 5, 1000, sides=("rollview", "Spark full", "DuckDB full")),
    Scenario("sf5 plain 1000", 5, 1000, keys=False),
)

QUICK = (Scenario("sf0.1 keys 0.1%", 0.1, 0.001, views=tuple(VIEWS), sides=ALL[:4]),)
