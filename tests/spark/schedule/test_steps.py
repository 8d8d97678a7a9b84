"""Views that are far behind come nearer step by step, exactly, whatever ends a refresh early."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from tests.spark.oracle.warehouses import fresh

import rollview
from rollview.catalog import Part
from rollview.propagate import bounds, plan
from rollview.results import Refreshed
from rollview.schedule import crew
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

STEP = 26
"""Commits of a step: so many that keys are not looked at anew at each of them."""
COMMITS = 3 * STEP + 6
VIEWS = {
    "largest": "SELECT owner, MAX(money) AS m FROM accounts GROUP BY owner",
    "total": "SELECT owner, SUM(money) AS m, COUNT(*) AS n FROM accounts GROUP BY owner",
    "named": "SELECT a.id, o.name FROM accounts a LEFT JOIN owners o ON a.owner = o.owner",
}
QUERIES = {
    "largest": "SELECT owner, MAX(money) FROM accounts GROUP BY owner",
    "total": "SELECT owner, SUM(money), COUNT(*) FROM accounts GROUP BY owner",
    "named": VIEWS["named"],
}


@pytest.fixture
def bank(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bank]:
    for place, name in ((bounds, "FIRST_COMMITS"), (bounds, "FIRST_COMMITS_AGAIN"), (bounds, "FEWEST_COMMITS")):
        monkeypatch.setattr(place, name, STEP)
    monkeypatch.setattr(plan, "FEWEST_COMMITS", STEP)
    monkeypatch.setattr(bounds, "TARGET_SECONDS", 0.0)
    with closing(sqlite3.connect(tmp_path / "bank.db", isolation_level=None)) as database:
        database.execute("CREATE TABLE accounts (id INTEGER PRIMARY KEY, owner INTEGER, money INTEGER)")
        database.execute("CREATE TABLE owners (owner INTEGER PRIMARY KEY, name TEXT)")
        with fresh(spark, tmp_path / "w") as warehouse:
            made = Bank(database, warehouse)
            made.write(COMMITS)
            yield made


class Bank:
    """Commits on three hot owners, captured one by one; the database's own answers after each."""

    def __init__(self, database: sqlite3.Connection, warehouse: Warehouse) -> None:
        self.database, self.warehouse = database, warehouse
        names = ("accounts", "owners")
        tables = tuple(rollview.TableSettings(name, name) for name in names)
        path = database.execute("PRAGMA database_list").fetchone()[2]
        warehouse.add_source("bank", rollview.SourceSettings("sqlite", path, tables))
        for name, query in VIEWS.items():
            warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        self.answers: dict[int, dict[str, list[tuple[object, ...]]]] = {}

    def write(self, commits: int) -> None:
        chance, begun = Random(7), self.warehouse.snapshot().moment.csn
        for number in range(1, commits + 1):
            self._change(chance)
            self.warehouse.capture()
            self.answers[begun + number] = {name: self._ask(name) for name in QUERIES}
        assert self.warehouse.snapshot().moment.csn == begun + commits

    def _change(self, chance: Random) -> None:
        account, owner, money = chance.randrange(9), chance.randrange(3), chance.randrange(10**9)
        if chance.random() < 0.2:
            self.database.execute("REPLACE INTO owners VALUES (?, ?)", (owner, f"n{money}"))
        else:
            self.database.execute("REPLACE INTO accounts VALUES (?, ?, ?)", (account, owner, money))

    def _ask(self, name: str) -> list[tuple[object, ...]]:
        return sorted(self.database.execute(QUERIES[name]).fetchall(), key=repr)

    def check(self, name: str, csn: int) -> None:
        found = sorted((tuple(row) for row in self.warehouse.read(name, as_of=csn).collect()), key=repr)
        assert found == self.answers[csn][name], f"{name} at csn {csn}"

    def mark(self, name: str) -> int:
        return self.warehouse.snapshot().get(name).pins[Part.DELTA].through

    def extent(self, name: str) -> int:
        return self.warehouse.snapshot().get(name).pins[Part.EXTENT].through


def test_a_refresh_of_many_commits_is_several_steps_and_right_at_every_csn(bank: Bank) -> None:
    newest = bank.warehouse.snapshot().moment.csn
    done = bank.warehouse.refresh()
    assert {bank.extent(name) for name in VIEWS} == {newest}
    assert all(view.interval.through - view.interval.after == COMMITS for view in done.views)
    for name in VIEWS:
        steps = [step for step in bank.warehouse.catalog.steps(name, None) if step.kind == "propagate"]
        assert len(steps) >= 3, f"{name}: {steps}"
        for csn in (newest - COMMITS + 1, *Random(3).sample(sorted(bank.answers), 6), newest):
            bank.check(name, csn)


def test_in_a_daemon_each_view_and_group_goes_as_far_as_it_comes_and_takes_turns(
    bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no time at all for each turn, every turn is one step; still all views arrive."""
    monkeypatch.setattr(crew, "_SLICE", 0.0)
    for name in ("least", "poorest"):
        query = "SELECT owner, MIN(money) AS m FROM accounts GROUP BY owner"
        properties = "TBLPROPERTIES ('rollview.group' = 'poor')"
        bank.warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} {properties} AS {query}")
    newest, stop = bank.warehouse.snapshot().moment.csn, threading.Event()
    turns: list[tuple[str, ...]] = []
    for event in bank.warehouse.run(3600, stop, schedule="continuous"):
        if isinstance(event, Refreshed):
            names = tuple(view.name for view in event.views)
            turns.append(names)
            assert {bank.extent(name) for name in names} == {event.csn}
            for name in VIEWS.keys() & names:
                bank.check(name, event.csn)
        if min(bank.extent(name) for name in VIEWS) == newest:
            stop.set()
    assert len(turns) >= 9
    assert len(set(turns[:3])) == 3, "each has its turn before one has its second"
    bank.write(STEP + 10)
    stop = threading.Event()
    for event in bank.warehouse.run(3600, stop, schedule="continuous"):
        if isinstance(event, Refreshed) and {view.name for view in event.views} == {"least", "poorest"}:
            assert bank.extent("least") == bank.extent("poorest") == event.csn
            stop.set()
