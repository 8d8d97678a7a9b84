"""The disk fills up, at any byte. What was published stays readable and right, and work goes on when there is space.

The warehouse lies on a small file system of its own. In every other round Spark writes the files, not this process.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.faults import tasks
from tests.faults.crew import Place
from tests.faults.shop import (
    VIEWS,
    Shop,
    check_every_csn,
    check_ledger,
    check_newest_is_pinned,
    check_stored,
    folders,
    pinned_folders,
    published,
    statements,
)
from tests.sizes import FULL, by_request

from rollview.errors import RollviewError
from rollview.store import writing
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = by_request

MEGABYTES = 32
FILLS = 50 if FULL else 6
LEFT = 160_000
"""About what a transaction and its refresh take."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m", "rollview-test", str(place)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"NOT RUN: a small file system cannot be mounted here (that needs root): {error}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@contextmanager
def filled(disk: Path, left: int) -> Iterator[None]:
    """All but so many bytes are taken while the block runs."""
    ballast, found = disk / "ballast", os.statvfs(disk)
    size = found.f_bavail * found.f_frsize - left
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, size))
    try:
        yield
    finally:
        ballast.unlink()


def test_the_disk_fills_up(spark: SparkSession, disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance, failed = random.Random(29), 0
    shop = Shop.founded(Place(disk / "shop"), spark)
    for n in range(FILLS):
        monkeypatch.setattr(writing, "BOUND", writing.BOUND if n % 2 else 0)
        failed += fill_once(shop, disk, chance)
        monkeypatch.undo()
    assert failed >= FILLS / 3, "the disk was full often enough"
    with shop.opened() as warehouse:
        tasks.maintain(warehouse, {})
        snapshot = warehouse.snapshot()
        check_stored(shop, snapshot)
        check_ledger(shop, warehouse)
        check_every_csn(shop, warehouse)
        check_newest_is_pinned(shop, snapshot)
        assert warehouse.catalog.steps(status="running") == ()
        assert folders(shop.place.root) == pinned_folders(shop.place.root, snapshot)


def fill_once(shop: Shop, disk: Path, chance: random.Random) -> int:
    """A transaction and a refresh on a disk that is nearly full; then again with space. How often it failed."""
    operation, failed = chance.choice(["commit", "refresh", "roll"]), 0
    if operation != "commit":
        with shop.opened() as warehouse:
            shop.commit(warehouse)
    number = shop.next() if operation == "commit" else 0
    with filled(disk, chance.randrange(LEFT)):
        try:
            with shop.opened() as warehouse:
                run(warehouse, operation, number, shop.csn)
        except RollviewError as error:
            failed, told = 1, error
        assert not failed or told.hint, told.message
        done = look(shop, operation)
    if operation == "commit":
        with shop.opened() as warehouse:
            if not done:
                run(warehouse, operation, number, shop.csn)
                shop.committed(number)
    with shop.opened() as warehouse:
        warehouse.refresh()
        check_stored(shop, warehouse.snapshot(), 3)
        assert {csn for csn, _ in published(shop.place.root, warehouse.snapshot()).values()} == {shop.csn}
    return failed


def run(warehouse: Warehouse, operation: str, number: int, csn: int) -> None:
    if operation == "commit":
        warehouse.sql(*statements(number))
    elif operation == "refresh":
        warehouse.refresh()
    else:
        warehouse.roll(tuple(VIEWS), csn - 2)


def look(shop: Shop, operation: str) -> bool:
    """While the disk is full: everything published is there and right. Whether the transaction was committed."""
    with shop.place.open(None) as warehouse:
        snapshot = warehouse.snapshot()
        done = operation == "commit" and snapshot.moment.csn == shop.csn + 1
        if done:
            shop.committed(shop.count)
        check_stored(shop, snapshot, 3)
        assert len({csn for csn, _ in published(shop.place.root, snapshot).values()}) == 1
        return done
