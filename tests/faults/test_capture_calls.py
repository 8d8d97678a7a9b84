"""The k-th call of the file system or the catalog fails, for every k of a capture, without Spark.

The source's transactions are in the tables once, whatever failed, and the same capture again takes in what is left.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.faults import tasks
from tests.faults.calls import Order, Told, Where, obey, tell
from tests.faults.crew import Place, Worker
from tests.faults.preload import crew_with, library
from tests.sizes import FULL
from tests.sources.harness import Write, account, stored
from tests.sources.sqlite_harness import SqliteHarness

from rollview.warehouse import Warehouse

SAMPLE = 8


@pytest.fixture
def source(tmp_path: Path) -> Iterator[SqliteHarness]:
    with closing(SqliteHarness(tmp_path)) as made:
        yield made


@pytest.fixture
def place(source: SqliteHarness, tmp_path: Path) -> Place:
    place = Place(tmp_path / "bank")
    with Warehouse.create(place.root) as warehouse:
        warehouse.add_source("bank", source.settings())
    return place


@pytest.fixture
def worker(place: Place, tmp_path: Path) -> Iterator[Worker]:
    with crew_with(library("failing", tmp_path), None) as crew:
        yield crew.start(place, obey)


@pytest.mark.parametrize("where", Where, ids=str)
def test_the_kth_call_of_a_capture_fails(place: Place, source: SqliteHarness, worker: Worker, where: Where) -> None:
    chance = random.Random(f"{where}")
    for number in (0, 1):
        count = run(place, source, worker, Order(tasks.capture, ("bank",), where), number).seen
    assert count > 20, "the first one makes folders, the second one is as all others"
    for k in range(1, count + 1) if FULL else sorted(chance.sample(range(1, count + 1), SAMPLE)):
        order = Order(tasks.capture, ("bank",), where, k, chance.choice([errno.EIO, errno.ENOSPC]))
        told = run(place, source, worker, order, 1 + k)
        assert told.failed, (k, count)
        assert not told.trace, told
        assert told.hint or not told.error, told


def run(place: Place, source: SqliteHarness, worker: Worker, order: Order, number: int) -> Told:
    """What one failing capture tells; then the same again, and everything is there."""
    before = {table: source.rows(table) for table in ("account", "note")}
    new = account(1000 + number, "new", "1.00")
    source.write(Write("account", None, new), Write("note", None, ("same",)), Write("note", None, ("same",)))
    told = tell(worker, order)
    with Warehouse.open(place.root) as warehouse:
        for table, rows in before.items():
            assert stored(warehouse, table) in (rows, source.rows(table)), f"{table} after {told}"
        assert (stored(warehouse, "account") == before["account"]) == (stored(warehouse, "note") == before["note"])
    again = tell(worker, Order(tasks.capture, ("bank",)))
    assert not again.error, (told, again)
    with Warehouse.open(place.root) as warehouse:
        for table in before:
            assert stored(warehouse, table) == source.rows(table), f"{table} after {told} and again"
    return told
