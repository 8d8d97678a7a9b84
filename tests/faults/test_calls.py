"""The k-th call of the file system or the catalog fails, for every k of a commit, a refresh, a roll and maintenance.

What was published stays readable and right; the error is told in our words with what to do; the same again is exact.
``make faults`` takes every k; here a few are drawn by a seed.
"""

from __future__ import annotations

import errno
import os
import random
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from tests.faults import tasks
from tests.faults.calls import Order, Told, Where, obey, tell
from tests.faults.crew import PATIENCE, Place, Worker
from tests.faults.preload import crew_with, library
from tests.faults.shop import (
    VIEWS,
    Shop,
    check_every_csn,
    check_ledger,
    check_newest_is_pinned,
    check_newest_is_readable,
    check_stored,
    folders,
    pinned_folders,
    published,
)
from tests.sizes import FULL, by_request

from rollview.catalog import Snapshot
from rollview.schedule.selection import views_below

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = by_request

OPERATIONS = ("commit", "refresh", "roll", "maintain")
SAMPLE = {Where.FILES: 3, Where.BEFORE: 1, Where.AFTER: 1}
NEWEST = 3
COUNTS: dict[tuple[bool, str], int] = {}


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return Shop.founded(Place(tmp_path_factory.mktemp("calls") / "shop"), spark)


@pytest.fixture(scope="module")
def worker(shop: Shop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    with crew_with(library("failing", tmp_path_factory.mktemp("library")), shop.spark) as crew:
        yield crew.start(shop.place, obey)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("where", Where, ids=str)
def test_the_kth_call_fails(shop: Shop, worker: Worker, where: Where, operation: str) -> None:
    chance = random.Random(f"{where} {operation}")
    count = dry_run(shop, worker, where, operation)
    ks = range(1, count + 1) if FULL else sorted(chance.sample(range(1, count + 1), SAMPLE[where]))
    wrong = [fail(shop, worker, where, operation, k, chance.choice([errno.EIO, errno.ENOSPC])) for k in ks]
    assert not any(wrong), "\n".join(filter(None, wrong))


def test_at_the_end_every_csn_is_right_and_nothing_is_left(shop: Shop, worker: Worker) -> None:
    worker.tell(None)
    assert worker.end().error is None
    with shop.opened() as warehouse:
        warehouse.refresh()
        tasks.maintain(warehouse, {})
        snapshot = warehouse.snapshot()
        check_stored(shop, snapshot)
        check_ledger(shop, warehouse)
        check_every_csn(shop, warehouse)
        check_newest_is_pinned(shop, snapshot)
        assert warehouse.catalog.steps(status="running") == ()
        pinned, there = pinned_folders(shop.place.root, snapshot), folders(shop.place.root)
        # A folder whose removal was the call that failed stays, without a file.
        assert pinned <= there
        assert [place for place in there - pinned if any((shop.place.root / "data" / place).iterdir())] == []


def dry_run(shop: Shop, worker: Worker, where: Where, operation: str) -> int:
    """How many calls there are when none fails."""
    known = COUNTS.get((where is Where.FILES, operation))
    if known is not None:
        return known
    task = prepared(shop, operation)
    told = tell(worker, Order(*task, where))
    assert not told.error, told
    check(shop, operation, task)
    assert told.seen > 5
    return COUNTS.setdefault((where is Where.FILES, operation), told.seen)


def fail(shop: Shop, worker: Worker, where: Where, operation: str, k: int, number: int) -> str | None:
    """Returns what is wrong with what the user is told."""
    task = prepared(shop, operation)
    told = tell(worker, Order(*task, where, k, number))
    context = f"{operation}, {where} {k} of {told.seen}: {told.failed} ({os.strerror(number)})"
    done = look_between(shop, operation, context)
    if not done:
        again = tell_when_free(worker, Order(*task))
        assert not again.error, f"{context}, and again: {again.error}"
    check(shop, operation, task, done)
    if told.trace or (told.error and not told.hint):
        return f"{context}: {told.trace or told.error}"
    return None


def tell_when_free(worker: Worker, order: Order) -> Told:
    """A lease whose release failed is free when it has run out."""
    until = time.monotonic() + PATIENCE
    while "is being changed by" in (told := tell(worker, order)).error and time.monotonic() < until:
        time.sleep(1)
    return told


def prepared(shop: Shop, operation: str) -> tuple[Any, tuple[Any, ...]]:
    """Something to do, and how."""
    if operation == "commit":
        return tasks.commit, (shop.next(),)
    with shop.opened() as warehouse:
        if operation == "roll":
            at = {csn for csn, _ in published(shop.place.root, warehouse.snapshot()).values()}
            return tasks.roll, (tuple(VIEWS), shop.csn - 1 if at == {shop.csn} else shop.csn)
        shop.commit(warehouse)
        if operation == "refresh":
            return tasks.refresh, ()
        warehouse.refresh()
        return tasks.maintain, ({},)


def look_between(shop: Shop, operation: str, context: str) -> bool:
    """What is published is right, whatever failed. Whether it has happened all the same."""
    with shop.place.open(None) as warehouse:
        snapshot = warehouse.snapshot()
        done = operation == "commit" and snapshot.moment.csn == shop.csn + 1
        if done:
            shop.committed(shop.count)
        check_stored(shop, snapshot, NEWEST)
        check_newest_is_readable(shop, snapshot)
        together = [name for name in VIEWS if not is_stopped(snapshot, name)]
        csns = {csn for csn, _ in published(shop.place.root, snapshot, together).values()}
        assert len(csns) <= 1, f"{context}: views that are published together are seen together"
        return done


def is_stopped(snapshot: Snapshot, name: str) -> bool:
    """Whether what failed was the view's own, or one's that it reads; the others are published without it."""
    views = {name} | views_below(snapshot, snapshot.get(name))
    return any(snapshot.get(view).problem is not None for view in views)


def check(shop: Shop, operation: str, task: tuple[Any, tuple[Any, ...]], done: bool = False) -> None:
    if operation == "commit" and not done:
        shop.committed(shop.count)
    with shop.place.open(None) as warehouse:
        snapshot = warehouse.snapshot()
        check_stored(shop, snapshot, NEWEST)
        csns = {csn for csn, _ in published(shop.place.root, snapshot).values()}
        if operation != "commit":
            assert csns == {task[1][1] if operation == "roll" else shop.csn}
