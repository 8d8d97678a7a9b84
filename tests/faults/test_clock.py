"""The system's clock jumps or stands still. Rows, csns and files do not depend on it; ledger time never goes back."""

from __future__ import annotations

import ctypes
import hashlib
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

from tests.faults import tasks
from tests.faults.crew import PATIENCE, Place
from tests.faults.preload import crew_with, library
from tests.faults.shop import VIEWS, Shop, check_every_csn, check_ledger, check_stored, statements
from tests.sizes import by_request, times

from rollview.catalog import Catalog, Part, Snapshot
from rollview.core.schema import Schema
from rollview.store.folder import DeltaFolder
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
JUMPS = (-HOUR, timedelta(days=8000), timedelta(days=-4000), timedelta(0), DAY, -2 * DAY, HOUR)


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2030, 3, 31, 1, 59, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def test_rows_do_not_depend_on_the_clock(spark: SparkSession, tmp_path: Path) -> None:
    clock, shop = Clock(), Shop.founded(Place(tmp_path / "shop"), spark)
    moments = []
    for jump in JUMPS[: times(4, full=len(JUMPS))]:
        clock.now += jump
        with shop.opened() as warehouse:
            warehouse.catalog.close()
            warehouse._place.catalog = Catalog.open(shop.place.root / "catalog.db", wall_clock=clock)
            shop.commit(warehouse)
            assert warehouse.refresh().csn == shop.csn
            moments.append(warehouse.snapshot().moment)
            check_stored(shop, warehouse.snapshot())
            assert {warehouse.snapshot().get(name).pins[Part.EXTENT].through for name in VIEWS} == {shop.csn}
            assert all(warehouse.catalog.csn_at(moment.time) == moment.csn for moment in moments)
    assert all(after.csn == before.csn + 1 and after.time > before.time for before, after in pairwise(moments))
    with shop.opened() as warehouse:
        check_ledger(shop, warehouse)
        check_every_csn(shop, warehouse)
        shop.commit(warehouse)
        late = [view.staleness_seconds for view in warehouse.status().views]
        assert all(seconds >= 0 for seconds in late), "a commit of the future is not late by less than nothing"


STEPS = ((-3600, False), (79_200, False), (79_200, True), (-86_400, True), (0, False))
"""Seconds, and whether the clock stands still there. More than a day ahead at once would be refused."""


@by_request
def test_the_same_bytes_whatever_the_clock_says(spark: SparkSession, tmp_path: Path) -> None:
    """Of every data file of every part: back an hour, forward nearly a day, frozen, back two days and frozen."""
    usual, odd = (Shop.founded(Place(tmp_path / name), spark) for name in ("usual", "odd"))
    with crew_with(library("clock", tmp_path), spark) as crew:
        worker = crew.start(odd.place, work_at)
        for step in STEPS:
            worker.tell((step, odd.next()))
            assert worker.answers.poll(PATIENCE)
            assert worker.answers.recv() == step
            odd.committed(odd.count)
            with usual.opened() as warehouse:
                work(warehouse, usual.next())
            usual.committed(usual.count)
            with usual.place.open(None) as one, odd.place.open(None) as other:
                assert contents(usual, one.snapshot()) == contents(odd, other.snapshot()), step
                check_stored(odd, other.snapshot())
                check_ledger(odd, other)


def work_at(warehouse: Warehouse, ears: Connection) -> None:
    """The same under the clock that is told."""
    while True:
        (seconds, stands), number = ears.recv()
        ctypes.CDLL(None).rv_clock(ctypes.c_long(seconds), int(stands))
        work(warehouse, number)
        ears.send((seconds, stands))


def work(warehouse: Warehouse, number: int) -> None:
    warehouse.sql(*statements(number))
    warehouse.refresh()
    tasks.maintain(warehouse, {})


def contents(shop: Shop, snapshot: Snapshot) -> dict[tuple[str, Part], list[str]]:
    found = {}
    for relation in snapshot.relations.values():
        for part, pin in relation.pins.items():
            folder = DeltaFolder(shop.place.root / "data" / relation.folder / part, Schema(()))
            files = [(folder.root / file.path).read_bytes() for file in folder.files(pin.version)]
            found[relation.name, part] = sorted(hashlib.sha256(file).hexdigest() for file in files)
    return found
